/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-notify: tells people of the questions of one sandbox, on the desktop or at a webhook, and brings their answers
 * back to the box. Started by the box with the socket to it as fd 3. Takes nothing from the command line or the
 * environment.
 */

#include "notify/notify.h"
#include "os/fd.h"
#include "wire/notify.h"

int main(void)
{
	struct err err = { 0 };

	if (fd_secure_standard() < 0)
		return 125;
	return notify_run(NOTIFY_FD, &err) < 0 ? 125 : 0;
}
