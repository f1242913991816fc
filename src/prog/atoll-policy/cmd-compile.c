/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "os/fd.h"
#include "prog/atoll-policy/given.h"

/* `atoll-policy compile`: for `atoll`, which reads the snapshot from the descriptor that it gave. */
int cmd_compile(struct given *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = given_request(given);
	const struct snapshot_source *sources;
	cleanup_buf struct buf out;
	size_t count;
	uint64_t fd;
	int r;

	buf_init(&out, SNAPSHOT_SIZE_MAX);
	if (argc || !given->output_fd || num_parse_u64(given->output_fd, &fd) < 0 || fd > INT_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "options",
			       "compile takes --output-fd N and no arguments");
	r = given_compile(given, &request, &lang, err);
	if (r != 0)
		return r;
	sources = lang_sources(lang, &count);
	r = snapshot_store(&out, lang_policy(lang), sources, count);
	if (r < 0)
		return err_set(err, ERR_POLICY, -r, "policy", "the compiled policy is too large (%s)",
			       strerror(-r));
	r = fd_write_full((int)fd, out.bytes, out.size);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "output", "the snapshot cannot be written: %s",
			       strerror(-r))
		     : 0;
}
