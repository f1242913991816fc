/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-front: speaks HTTP with the clients of the service. Started by atolld with the socket to it as fd 3. Takes
 * nothing from the command line or the environment.
 */

#include "base/program.h"
#include "os/fd.h"
#include "service/front/front.h"
#include "wire/service.h"

int main(void)
{
	struct err err = { 0 };

	if (fd_secure_standard() < 0)
		return 125;
	return program_status(front_run(SERVICE_FD, &err), &err);
}
