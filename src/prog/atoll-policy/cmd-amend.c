/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "lang/compile/amend.h"
#include "lang/yaml/node.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll-policy/options.h"

/*
 * `atoll-policy amend`, for `atoll approve --forever`: the text of -p FILE with one more rule, checked as the policy
 * that it then is, goes to --output-fd. Nothing is written here: this program cannot. A file that is not there is
 * one that extends the level of -t.
 */

enum { WORD_NOTE, WORD_KIND, WORD_SUBJECT, WORD_PORT, WORD_METHOD, WORD_PATH, WORD_ARGV };

/* The reader of the files, but for the one that is amended. */
struct amended {
	struct lang_reader reader;
	const char *path;
	const struct buf *text;
};

static int read_amended(void *context, const char *path, char **ret_bytes, size_t *ret_size,
			struct snapshot_source *ret_source)
{
	const struct amended *amended = context;
	char *copy;

	if (!str_equal(path, amended->path))
		return amended->reader.read(amended->reader.context, path, ret_bytes, ret_size, ret_source);
	copy = malloc(amended->text->size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, amended->text->bytes, amended->text->size);
	*ret_source = (struct snapshot_source){ .path = path, .exists = 1 };
	*ret_bytes = copy;
	*ret_size = amended->text->size;
	return 0;
}

static int real_amended(void *context, const char *path, char *out, size_t size)
{
	const struct amended *amended = context;

	if (str_equal(path, amended->path))
		return str_copy(out, size, path);
	return amended->reader.real(amended->reader.context, path, out, size);
}

static int parse_terms(int argc, char **argv, struct grant_terms *ret_terms, struct err *err)
{
	int kind = argc >= WORD_ARGV ? names_find(action_kind_names, ACTION_KIND_COUNT, argv[WORD_KIND]) : -1;
	uint64_t port;

	if (kind < 0 || num_parse_u64(argv[WORD_PORT], &port) < 0 || port > UINT16_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "options",
			       "amend takes NOTE KIND SUBJECT PORT METHOD PATH [ARGUMENT…]");
	*ret_terms = (struct grant_terms){
		.kind = (enum action_kind)kind, .subject = argv[WORD_SUBJECT], .port = (uint16_t)port,
		.method = *argv[WORD_METHOD] ? argv[WORD_METHOD] : NULL,
		.path = *argv[WORD_PATH] ? argv[WORD_PATH] : NULL,
		.argv = argc > WORD_ARGV ? (const char *const *)argv + WORD_ARGV : NULL,
	};
	return 0;
}

static int read_base(struct lang_request *request, char **ret_bytes, size_t *ret_size, struct err *err)
{
	struct snapshot_source source;
	int r = request->reader.read(request->reader.context, request->policy, ret_bytes, ret_size, &source);

	if (r == -ENOENT && request->level) {
		*ret_bytes = str_printf("atoll: 1\nextends: %s\n", request->level);
		*ret_size = *ret_bytes ? strlen(*ret_bytes) : 0;
		r = *ret_bytes ? 0 : -ENOMEM;
	}
	request->level = NULL;
	return r < 0 ? err_set(err, ERR_POLICY, -r, "policy", "%s cannot be read: %s", request->policy, strerror(-r))
		     : 0;
}

static int refuse(const struct lang_request *request, const struct amendment *amendment, const char *why,
		  struct err *err)
{
	err_set(err, ERR_POLICY, EINVAL, "policy", "%s %s", request->policy, why);
	err_hint(err, "add it by hand, under %s.%s: - %s", amendment->section, amendment->list, amendment->item);
	return -EINVAL;
}

/* A line of its own would change nothing as long as that rule stands as it is. */
static int refuse_for(const struct lang_request *request, const struct rule_origin *rule, struct err *err)
{
	err_set(err, ERR_POLICY, EINVAL, "policy", "%s has another rule that asks about it or denies it: %s",
		request->policy, rule->id);
	err_hint(err, "change that rule by hand: add this to its `except`, or remove it");
	return -EINVAL;
}

/* It must be a policy, and allow what was granted. */
static int check(struct lang_request *request, const struct grant_terms *terms,
		 const struct amendment *amendment, struct err *err)
{
	cleanup_lang struct lang *lang = NULL;
	struct action action = { .kind = terms->kind, .subject = terms->subject, .argv = terms->argv,
				 .method = terms->method, .path = terms->path, .port = terms->port };
	struct decision decision;
	int r = lang_compile(request, &lang);

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "the policy cannot be compiled: %s", strerror(-r));
	if (r > 0)
		return refuse(request, amendment, "would have errors with the rule in it", err);
	/* A connection whose port nobody knew yet is allowed where any is. */
	if (!action.port && action.kind == ACTION_NET_CONNECT)
		action.kind = ACTION_NET_DNS;
	decision = policy_decide(lang_policy(lang), &action);
	if (decision.verdict != VERDICT_ALLOW)
		return refuse_for(request, &decision.rule, err);
	return 0;
}

static int write_out(const struct policy_options *given, const struct buf *text, struct err *err)
{
	uint64_t fd;
	int r = given->output_fd ? num_parse_u64(given->output_fd, &fd) : -EINVAL;

	if (r == 0 && fd <= INT_MAX)
		r = fd_write_full((int)fd, text->bytes, text->size);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "output", "the policy cannot be written: %s", strerror(-r)) : 0;
}

int cmd_amend(struct policy_options *given, int argc, char **argv, struct err *err)
{
	struct lang_request request = policy_options_request(given);
	cleanup_free char *bytes = NULL;
	char item[AMEND_ITEM_SIZE];
	struct amendment amendment;
	struct amended amended;
	struct grant_terms terms;
	cleanup_buf struct buf text;
	size_t size;
	int r = parse_terms(argc, argv, &terms, err);

	buf_init(&text, NODE_TEXT_MAX);
	if (r == 0 && (!request.policy || request.policy[0] != '/'))
		r = err_set(err, ERR_USAGE, EINVAL, "options", "amend needs the path of a policy (-p)");
	if (r == 0)
		r = read_base(&request, &bytes, &size, err);
	if (r < 0)
		return r;
	if (amend_rule(&terms, argv[WORD_NOTE], item, &amendment) < 0)
		return err_set(err, ERR_POLICY, EOPNOTSUPP, "policy", "a policy rule cannot express this");
	r = amend_text(bytes, size, &amendment, &text);
	if (r)
		return refuse(&request, &amendment, "has no line of its own where the rule belongs", err);
	amended = (struct amended){ request.reader, request.policy, &text };
	request.reader = (struct lang_reader){ read_amended, real_amended, &amended };
	request.without_project_file = true;
	r = check(&request, &terms, &amendment, err);
	return r == 0 ? write_out(given, &text, err) : r;
}
