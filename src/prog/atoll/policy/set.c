/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/subverbs.h"

#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "client/session-policy.h"
#include "os/fd.h"
#include "prog/atoll/verb/library.h"
#include "prog/atoll/verb/say.h"

static int show(const struct session_record *record, const struct compiled *compiled, uint64_t ended, bool json,
		struct err *err)
{
	const char *name = snapshot_policy(compiled->snapshot)->name;
	cleanup_buf struct buf text;
	struct json out;

	buf_init(&text, PATH_MAX + 512);
	if (json) {
		json_init(&out, &text);
		json_object_begin(&out, NULL);
		json_string(&out, "session", record->id);
		json_bytes(&out, "policy", name, strlen(name));
		json_u64(&out, "ended", ended);
		json_object_end(&out);
	} else {
		buf_printf(&text, "%s: the network goes by ", record->id);
		buf_put_escaped(&text, name, strlen(name), 0);
		buf_printf(&text, " now; connections that it ended: %llu",
			   (unsigned long long)ended);
	}
	buf_put_char(&text, '\n');
	return say_out(&text, err);
}

static int make_policy(atoll_context *context, const struct compiled *compiled, atoll_policy **ret,
		       struct atoll_error *error)
{
	cleanup_fd int fd = fd_memfd_sealed("snapshot", compiled->bytes, compiled->size);
	cleanup_record atoll_record *request = atoll_record_new(ATOLL_POLICY);
	int r = atoll_set_fd(request, "snapshot", fd, error);

	return r < 0 ? r : atoll_policy_load(context, request, ret, error);
}

static int hand_over(atoll_context *context, atoll_sandbox *sandbox, const struct session_record *session,
		     const struct compiled *compiled, bool json, struct err *err)
{
	cleanup_policy atoll_policy *policy = NULL;
	cleanup_record atoll_record *result = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	int r = make_policy(context, compiled, &policy, &error);

	if (r == 0)
		r = atoll_change(sandbox, policy, NULL, &result, &error);
	return r < 0 ? library_fail(&error, err)
		     : show(session, compiled, library_number(result, "connections"), json, err);
}

int policy_set(char **words, bool json, struct err *err)
{
	cleanup_session_record struct session_record session = { 0 };
	cleanup_compiled struct compiled compiled = { 0 };
	cleanup_context atoll_context *context = NULL;
	cleanup_sandbox atoll_sandbox *sandbox = NULL;
	size_t count = 0;
	int r;

	while (words[count])
		count++;
	if (count < 1 || count > 2) {
		err_set(err, ERR_USAGE, EINVAL, "policy",
			"set takes a session, if not the newest of the project, and a policy");
		err_hint(err, "atoll policy set [ID] POLICY; `atoll ps` lists sessions");
		return -EINVAL;
	}
	r = library_context(0, &context, err);
	if (r == 0)
		r = library_find(context, count == 2 ? words[0] : NULL, &sandbox, err);
	if (r == 0)
		r = library_record(sandbox, &session, err);
	if (r == 0)
		r = session_policy_compile_lowered(&session, words[count - 1], &compiled, err);
	return r != 0 ? r : hand_over(context, sandbox, &session, &compiled, json, err);
}
