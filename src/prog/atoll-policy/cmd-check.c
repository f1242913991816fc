/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "prog/atoll-policy/options.h"

static void put_json(const struct lang *lang, struct buf *out)
{
	struct json json;
	const struct policy *policy = lang_policy(lang);

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_bool(&json, "valid", policy != NULL);
	lang_put_errors_json(lang, &json);
	lang_put_warnings_json(lang, &json);
	json_array_begin(&json, "unenforced");
	for (size_t i = 0; policy && i < policy->unenforced_count; i++) {
		json_object_begin(&json, NULL);
		json_string(&json, "what", policy->unenforced[i].what);
		json_string(&json, "file", policy->unenforced[i].origin.file);
		json_u64(&json, "line", policy->unenforced[i].origin.line);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

/* tightening: the project's own file that was checked, and policy is what it was checked on; NULL: none was named. */
static void put_text(const struct lang *lang, const char *tightening, struct buf *out)
{
	const struct policy *policy = lang_policy(lang);

	if (tightening) {
		buf_put_escaped(out, tightening, strlen(tightening), 0);
		buf_printf(out, " only tightens, as a project's own file may: with it the policy is ");
	} else {
		buf_printf(out, "the policy is valid: ");
	}
	buf_put_escaped(out, policy->name, strlen(policy->name), 0);
	buf_printf(out, ", trust level %s, %zu file rules, %zu mounts\n", trust_level_names[policy->level],
		   policy->files.count, policy->files.plan_count);
	for (size_t i = 0; i < policy->unenforced_count; i++)
		buf_printf(out, "this atoll cannot enforce %s yet (%s:%u); a run is refused\n",
			   policy->unenforced[i].what, policy->unenforced[i].origin.file,
			   policy->unenforced[i].origin.line);
	lang_put_warnings(lang, out);
}

/* A project's own file is checked where it counts: on top of the policy that it tightens. */
static int choose(struct policy_options *given, const char *text, struct lang_request *request, char project[PATH_MAX])
{
	int r;

	if (!str_equal(path_basename(text), ".atoll.yaml")) {
		request->policy = text;
		request->without_project_file = true;
		return 0;
	}
	r = path_join(project, PATH_MAX, given->cwd, text);
	if (r < 0)
		return r;
	strrchr(project, '/')[strrchr(project, '/') == project ? 1 : 0] = 0;
	request->project = project;
	return 0;
}

int cmd_check(struct policy_options *given, int argc, char **argv, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = policy_options_request(given);
	cleanup_buf struct buf out;
	char project[PATH_MAX];
	int r = 0, written;

	buf_init(&out, 4 << 20);
	if (argc > 1)
		return err_set(err, ERR_USAGE, EINVAL, "options", "check takes one policy");
	if (argc)
		r = choose(given, argv[0], &request, project);
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "options", "the path of the policy is too long");
	if (!given->json) {
		r = policy_options_compile(given, &request, &lang, err);
		if (r == 0)
			put_text(lang, request.without_project_file || !argc ? NULL : argv[0], &out);
	} else {
		r = lang_compile(&request, &lang);
		if (r < 0)
			return err_set(err, ERR_INTERNAL, -r, "policy", "the policy cannot be compiled: %s",
				       strerror(-r));
		put_json(lang, &out);
	}
	if (r < 0)
		return r;
	written = policy_options_print(&out, err);
	return written < 0 ? written : r;
}
