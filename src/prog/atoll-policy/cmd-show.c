/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/print.h"
#include "prog/atoll-policy/given.h"

/* `atoll policy show`: everything that -p, -t and the project's own file add up to. */
int cmd_show(struct given *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = given_request(given);
	cleanup_buf struct buf out;
	struct json json;
	int r;

	buf_init(&out, 64 << 20);
	if (argc > 1)
		return err_set(err, ERR_USAGE, EINVAL, "options", "show takes one policy");
	if (argc)
		request.policy = argv[0];
	r = given_compile(given, &request, &lang, err);
	if (r != 0)
		return r;
	if (given->json) {
		json_init(&json, &out);
		print_policy_json(lang_policy(lang), &json);
		buf_put_char(&out, '\n');
	} else {
		print_policy(lang_policy(lang), &out);
	}
	return given_print(&out, err);
}
