/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-egress: the network gate of one sandbox. Started by the box when something inside first uses the network, with
 * the socket to the box as fd 3 and the policy snapshot, a sealed memfd, as fd 4; a recording,
 * where there is one, is fd 5. Takes nothing from the command line or the environment.
 */

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "egress/flow/gate.h"
#include "egress/flow/sealed.h"
#include "os/fd.h"
#include "wire/gate.h"

static int find_recording(void)
{
	return fcntl(GATE_RECORDING_FD, F_GETFL) < 0 ? FD_NONE : GATE_RECORDING_FD;
}

int main(void)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	struct err err = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (fd_secure_standard() < 0 || sealed_snapshot_load(GATE_SNAPSHOT_FD, &snapshot) < 0)
		return 125;
	close(GATE_SNAPSHOT_FD);
	return gate_run(GATE_FD, snapshot_policy(snapshot), find_recording(), &err) < 0 ? 125 : 0;
}
