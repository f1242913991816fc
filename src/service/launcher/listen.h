/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where clients come in: a socket that listens, opened by atolld before the front is there and handed to each front,
 * so that nobody is refused while one follows another.
 */

#include "base/cleanup.h"
#include "service/launcher/store/settings.h"

/*
 * The socket (owned by the caller), and the port that it got. Negative with *err: taken, or no address of this machine.
 */
int listen_open(const struct settings *settings, uint16_t *ret_port, struct err *err) MUST_USE;

/* "http://127.0.0.1:49982", for people and for clients. */
void listen_url(const struct settings *settings, uint16_t port, char *out, size_t size);
