/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which headers of a request go on to a server inside, and of its answer to the client (RFC 9110 7.6.1): those of one
 * connection do not, and neither do the credentials of the service. Pure. Run by atoll-front.
 */

#include <stdbool.h>

#include "base/buf.h"

/* connection: the value of the message's own Connection header, which names more of them; NULL: it has none. */
bool forward_has_request_header(const char *name, const char *connection);
bool forward_has_response_header(const char *name, const char *connection);

/* Whether the client asks for another protocol: its Connection header says so, and Upgrade names one. */
bool forward_is_upgrade(const char *connection, const char *upgrade);

/* Appends "METHOD TARGET HTTP/1.1"; false, with nothing appended: it cannot be one line. */
bool forward_put_line(struct buf *out, const char *method, const char *target);

/* Appends "NAME: VALUE" and the end of its line; false as above. */
bool forward_put_header(struct buf *out, const char *name, const char *value);

/* Appends the Host to say: mask with ${PORT} replaced. */
void forward_put_host(struct buf *out, const char *mask, unsigned port);
