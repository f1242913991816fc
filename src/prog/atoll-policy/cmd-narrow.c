/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "lang/print/print.h"
#include "lang/yaml/node.h"
#include "prog/atoll-policy/options.h"

/*
 * `atoll-policy narrow`, for `atoll run --narrow`: the policy of -p and -t without what the narrowing on stdin takes
 * away. The narrowing is hostile: it is read here, where nothing can be reached, and by the compiler that knows what
 * the policy gives. The snapshot goes to --output-fd; what the difference is goes to stdout, for people: in a few
 * lines, and behind a NUL all of it. Nothing is written there where there is none.
 */

static int read_narrowing(struct buf *text)
{
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0)
		buf_put(text, bytes, (size_t)n);
	return n < 0 ? -errno : buf_error(text);
}

int cmd_narrow(struct policy_options *given, int argc, char **argv, struct err *err)
{
	struct lang_request request = policy_options_request(given);
	cleanup_lang struct lang *lang = NULL;
	cleanup_buf struct buf text, out;
	int r;

	buf_init(&text, NODE_TEXT_MAX);
	buf_init(&out, 64 << 20);
	if (argc || !given->output_fd)
		return err_set(err, ERR_USAGE, EINVAL, "options", "narrow takes --output-fd N and no arguments");
	r = read_narrowing(&text);
	if (r < 0)
		return err_set(err, ERR_POLICY, -r, "narrow", "the narrowing cannot be read: %s", strerror(-r));
	request.narrowing = buf_text(&text);
	request.narrowing_size = text.size;
	r = policy_options_compile(given, &request, &lang, err);
	if (r != 0)
		return r;
	if (print_diff_brief(lang_policy_before(lang), lang_policy(lang), &out)) {
		buf_put_char(&out, 0);
		(void)print_diff(lang_policy_before(lang), lang_policy(lang), &out);
	}
	r = policy_options_write_snapshot(given, lang, err);
	return r == 0 ? policy_options_print(&out, err) : r;
}
