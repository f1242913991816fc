/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-egress: the network gate of one sandbox. Started by the box when something inside first uses the network, with
 * the socket to the box as fd 3 and the policy snapshot, a sealed memfd, as fd 4. Takes nothing from the command line
 * or the environment.
 */

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "egress/gate.h"
#include "os/fd.h"
#include "policy/snapshot.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int load_policy(struct snapshot **ret_snapshot)
{
	struct stat st;
	void *bytes;
	size_t size;

	/* Sealed: nobody can change or cut off what was validated. */
	if (fcntl(GATE_SNAPSHOT_FD, F_GET_SEALS) != SEALS || fstat(GATE_SNAPSHOT_FD, &st) < 0)
		return -EPERM;
	size = (size_t)st.st_size;
	if (!size || size > SNAPSHOT_SIZE_MAX)
		return -EFBIG;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, GATE_SNAPSHOT_FD, 0);
	close(GATE_SNAPSHOT_FD);
	return bytes == MAP_FAILED ? -errno : snapshot_load(ret_snapshot, bytes, size);
}

int main(void)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	struct err err = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (fd_secure_standard() < 0 || load_policy(&snapshot) < 0)
		return 125;
	return gate_run(GATE_FD, snapshot_policy(snapshot), &err) < 0 ? 125 : 0;
}
