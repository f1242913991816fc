/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first process of a container, from its clone to the program. It speaks with the runtime that made it over a
 * socket pair, one packet at a time, and ends where the runtime ends before it is kept.
 */

#include "oci/container-state.h"

/* What the two say, in this order; OCI_PACKET_FAILED at any time, with err. */
enum oci_packet_kind {
	OCI_PACKET_PID = 1,  /* to the runtime: pid is its number on the host */
	OCI_PACKET_MAPPED,   /* to init: ids, limits and control groups are its own; pid as above */
	OCI_PACKET_BUILT,    /* to the runtime: the mounts are there; hooks may run */
	OCI_PACKET_HOOKED,   /* to init: they have run */
	OCI_PACKET_READY,    /* to the runtime: it waits for its start */
	OCI_PACKET_KEPT,     /* to init: its state is stored, it lives on without the runtime */
	OCI_PACKET_FAILED,
};

struct oci_packet {
	enum oci_packet_kind kind;
	pid_t pid;
	struct err err;
};

struct oci_init {
	const struct oci_config *config;
	const struct oci_state *state;
	int channel, listener, console_socket; /* console_socket FD_NONE: there is none */
	unsigned kept_fds;
	bool keeps_keyring;
};

/* Sends; receives one of this kind. -EPIPE: the other has ended; *err of OCI_PACKET_FAILED is taken over. */
int oci_packet_send(int channel, enum oci_packet_kind kind, pid_t pid, const struct err *err) MUST_USE;
int oci_packet_receive(int channel, enum oci_packet_kind kind, pid_t *ret_pid, struct err *err) MUST_USE;

/* Runs it in the calling process, which is in all new namespaces. Never back. */
void oci_init_run(const struct oci_init *init) __attribute__((noreturn));
