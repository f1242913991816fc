/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A question as a notification of the desktop has it. The specification lets bodies be marked up, and servers differ in
 * what they do with it: nothing in the text that could be markup comes through as such. Pure.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "wire/notify.h"

enum { DESKTOP_WHAT_MAX = 600, DESKTOP_REST_MAX = 200, DESKTOP_BODY_MAX = 16 << 10 };

/* Of "body-markup", which the server says it has. */
enum desktop_form { DESKTOP_PLAIN, DESKTOP_MARKUP };

/*
 * False: what is asked had to be cut, so that nobody can judge it by this; it must not be allowed from there. Of who,
 * why and the agent's own words the rest may be cut.
 */
bool desktop_body_put(struct buf *out, const struct notify_question *question, const char *session,
		      enum desktop_form form);

/* Appends what an alert says, escaped for the form and cut to DESKTOP_WHAT_MAX. */
void desktop_alert_put(struct buf *out, const char *what, enum desktop_form form);
