/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-judge: brings what one sandbox is about to do before the external verifier of its policy, a command or a model,
 * and tells the box what that says. Started by the box with the socket to it as fd 3. Takes nothing from the command
 * line or the environment.
 */

#include "judge/judge.h"
#include "os/fd.h"
#include "wire/judge.h"

int main(void)
{
	struct err err = { 0 };

	if (fd_secure_standard() < 0)
		return 125;
	return judge_run(JUDGE_FD, &err) < 0 ? 125 : 0;
}
