/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a port of this machine that the sandbox reaches at its own loopback, as `network.host_ports` and
 * `atoll run --host-port` have it. Pure.
 */

#include "base/cleanup.h"
#include "policy/policy.h"

/*
 * "PORT" or "PORT=NAME"; NAME, a plain host name, is borrowed from text. The rule's origin is left alone. -EINVAL: this
 * is no such port; -EILSEQ: NAME cannot be the name of a host, or is localhost; -EPERM: 53, behind which names would be
 * looked up that no rule allows.
 */
int host_port_parse(const char *text, struct host_port *port) MUST_USE;

/* What is wrong, in words, by the error of host_port_parse(). Static. */
const char *host_port_problem(int error);
