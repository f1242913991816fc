/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_buf struct buf text = { 0 };
	int rest, r = cmd_parse(&cmd_version, NULL, argc, argv, &rest, err);

	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "version", "it takes no arguments");
	if (r < 0)
		return r;
	buf_init(&text, 256);
	buf_put_text(&text, "atoll " ATOLL_VERSION "\n");
	return say_out(&text, err);
}

const struct cmd cmd_version = {
	"version", "", "print the version",
	.run = run_verb,
};
