/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-policy/options.h"

/* `atoll-policy compile`: for `atoll`, which reads the snapshot from the descriptor that it gave. */
int cmd_compile(struct policy_options *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = policy_options_request(given);
	int r;

	if (argc || !given->output_fd)
		return err_set(err, ERR_USAGE, EINVAL, "options",
			       "compile takes --output-fd N and no arguments");
	r = policy_options_compile(given, &request, &lang, err);
	return r == 0 ? policy_options_write_snapshot(given, lang, err) : r;
}
