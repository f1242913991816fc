/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>

#include "lang/print/print.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"
#include "prog/atoll-policy/options.h"

/*
 * `atoll policy show`: everything that -p, -t and the project's own file add up to; or what a session goes by, which
 * was compiled when it started, whatever its files say since.
 */

static int print(const struct policy_options *given, const struct policy *policy, struct err *err)
{
	cleanup_buf struct buf out;
	struct json json;

	buf_init(&out, 64 << 20);
	if (given->json) {
		json_init(&json, &out);
		print_policy_json(policy, &json);
		buf_put_char(&out, '\n');
	} else {
		print_policy(policy, &out);
	}
	return policy_options_print(&out, err);
}

static int show_snapshot(const struct policy_options *given, struct err *err)
{
	cleanup_free char *bytes = NULL;
	cleanup_snapshot struct snapshot *snapshot = NULL;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, given->snapshot, SNAPSHOT_SIZE_MAX, &bytes, &size);

	if (r == 0)
		r = snapshot_load(&snapshot, bytes, size);
	return r < 0 ? err_set(err, ERR_STATE, -r, "policy", "%s cannot be read: %s", given->snapshot,
			       r == -EBADMSG ? "no policy that this version of atoll compiled" : strerror(-r))
		     : print(given, snapshot_policy(snapshot), err);
}

int cmd_show(struct policy_options *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = policy_options_request(given);
	int r;

	if (given->snapshot)
		return argc ? err_set(err, ERR_USAGE, EINVAL, "options", "show takes a policy or --snapshot")
			    : show_snapshot(given, err);
	if (argc > 1)
		return err_set(err, ERR_USAGE, EINVAL, "options", "show takes one policy");
	if (argc)
		request.policy = argv[0];
	r = policy_options_compile(given, &request, &lang, err);
	return r == 0 ? print(given, lang_policy(lang), err) : r;
}
