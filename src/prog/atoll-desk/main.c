/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-desk: reads what something inside one sandbox asks for, lines of JSON on /run/atoll/ask.sock, and passes it on
 * to the box. Started by the box with the socket to it as fd 3. Takes nothing from the command line or the environment.
 */

#include "desk/desk.h"
#include "os/fd.h"
#include "wire/desk.h"

int main(void)
{
	struct err err = { 0 };

	if (fd_secure_standard() < 0)
		return 125;
	return desk_run(DESK_FD, &err) < 0 ? 125 : 0;
}
