/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/print/print.h"
#include "prog/atoll-policy/options.h"

/* `atoll policy diff A B`: what B newly allows and newly denies. 0 also when they differ. */
int cmd_diff(struct policy_options *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *a = NULL, *b = NULL;
	cleanup_buf struct buf out;
	struct lang_request request;
	struct json json;
	int r, second;

	buf_init(&out, 64 << 20);
	if (argc != 2)
		return err_set(err, ERR_USAGE, EINVAL, "options", "diff takes two policies");
	request = policy_options_request_for(given, argv[0]);
	r = policy_options_compile(given, &request, &a, err);
	if (r < 0)
		return r;
	request = policy_options_request_for(given, argv[1]);
	second = policy_options_compile(given, &request, &b, err);
	if (r != 0 || second != 0)
		return second < 0 ? second : 1;
	if (given->json) {
		json_init(&json, &out);
		print_diff_json(lang_policy(a), lang_policy(b), &json);
		buf_put_char(&out, '\n');
	} else if (!print_diff(lang_policy(a), lang_policy(b), &out)) {
		buf_put_text(&out, "no difference\n");
	}
	return policy_options_print(&out, err);
}
