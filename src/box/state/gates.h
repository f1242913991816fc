/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What judges the calls of a sandbox: one gate for each kind.
 * A part of struct box (sandbox.h): the states of these modules, which box/ alone sees side by side.
 */

#include "gate-file/directory-move.h"
#include "gate-file/gate.h"
#include "gate-net/gate.h"

struct access_gate;
struct exec_gate;

struct box_gates {
	struct file_gate file;        /* what it counts */
	struct moves moves;           /* renames of directories that the kernel leaves to us */
	struct net_gate net;
	struct exec_gate *exec;       /* NULL: not built yet */
	struct access_gate *request;  /* where something inside asks; NULL: nobody did */
};
