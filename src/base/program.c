/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program.h"

#include <stdio.h>
#include <unistd.h>

int program_status(int r, const struct err *err)
{
	struct err unsaid = { 0 };
	const char *advice;

	if (r >= 0)
		return r;
	if (err->code == ERR_NONE) {
		err_set(&unsaid, ERR_INTERNAL, -r, "start", "failed with %s", err_errno_name(-r));
		err = &unsaid;
	}
	advice = err_advice(err);
	dprintf(STDERR_FILENO, "atoll: %s: %s%s%s\n", err->stage, err->message, err_joint(err), advice);
	return err_exit_status(err);
}

int program_main(int argc, char **argv, int (*begin)(void), int (*run)(int argc, char **argv, struct err *err))
{
	struct err err = { 0 };
	int r = begin();

	if (r == 0)
		r = run(argc, argv, &err);
	return program_status(r, &err);
}
