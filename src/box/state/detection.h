/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What listens to what a sandbox does, and what follows from that.
 * A part of struct box (sandbox.h): the states of these modules, which box/ alone sees side by side.
 */

#include "detect/agent-trust.h"
#include "detect/alerts.h"
#include "detect/anomaly.h"
#include "detect/canaries.h"
#include "detect/reactions.h"

struct box_detection {
	struct canaries canaries;     /* that the policy has planted */
	struct anomaly anomaly;
	struct alerts alerts;
	struct agent_trust agent_trust; /* of the agent whose record counts; none: nothing is done */
	struct reactions reactions;   /* of these, to the network */
};
