/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the launcher says by itself, told to the modules that it concerns. It answers nobody: what follows from an
 * event is each module's business. Run by atoll-front.
 */

#include "wire/service.h"

struct front;

/* Hands an event, which was checked by the table already, to whoever has something of that sandbox. */
void front_event(struct front *front, const struct service_message *event);

/* Has each of them do what is due now and then: signs of life, and ends of what takes too long. */
void front_tick(struct front *front);
