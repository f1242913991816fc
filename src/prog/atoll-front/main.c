/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-front: speaks HTTP with the clients of the service. Started by atolld with the socket to it as fd 3. Takes
 * nothing from the command line or the environment.
 */

#include <string.h>

#include "base/program.h"
#include "os/fd.h"
#include "os/identity.h"
#include "service/archive/archive.h"
#include "service/front/extension.h"
#include "service/front/front.h"
#include "service/function/function.h"
#include "service/interpreter/interpreter.h"
#include "supervise/peer-process.h"
#include "wire/service.h"

/* Root's rights go before anything is read; each front has a uid that nobody else has. */
static int leave_identity(struct err *err)
{
	uid_t uid;
	int r = peer_uid_choose(&uid);

	if (r == 0)
		r = identity_leave(uid);
	return r < 0 ? err_set(err, ERR_WALL, -r, "front", "it cannot give up its user and its capabilities: %s",
			       strerror(-r)) : 0;
}

int main(void)
{
	struct front_extension extension = interpreter_extension;
	struct err err = { 0 };
	int r;

	extension.function = &function_handler;
	extension.archive = &archive_handler;
	if (fd_secure_standard() < 0)
		return 125;
	r = leave_identity(&err);
	return program_status(r < 0 ? r : front_run(SERVICE_FD, &extension, &err), &err);
}
