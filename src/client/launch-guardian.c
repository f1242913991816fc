/* SPDX-License-Identifier: Apache-2.0 */
#include "client/launch-guardian.h"

#include "base/str.h"
#include "build/guardian.h"
#include "os/fd.h"

bool launch_guardian(int argc, char **argv, int *ret_status)
{
	if (argc < 1 || !str_equal(argv[0], guardian_name))
		return false;
	*ret_status = fd_secure_standard() < 0 ? 125 : guardian_work(argc, argv);
	return true;
}
