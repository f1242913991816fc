/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/question-words.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "prog/atoll/ask/questions.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

enum { TEXT_MAX = 64 << 20 };

struct grants_options {
	bool json;
};

static const struct option options[] = {
	{ 0, "json", NULL, "one JSON array", OPTION_FLAG, offsetof(struct grants_options, json) },
};

struct listing {
	bool is_json;
	struct buf text;
	struct json json;
};

static void put_bounded(struct json *json, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		json_null(json, key);
	else
		json_u64(json, key, value);
}

static void put_json(struct json *json, const struct question_box *box, const struct asking_grant *grant)
{
	char name[QUESTION_NAME_SIZE], time[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(grant->given_ns, time);
	json_object_begin(json, NULL);
	json_string(json, "grant", question_name(name, box->session, grant->number));
	json_string(json, "session", box->session);
	json_u64(json, "number", grant->number);
	json_bool(json, "allows", !grant->is_refusal);
	json_string(json, "scope", asking_scope_names[grant->scope]);
	json_u64(json, "used", grant->used);
	put_bounded(json, "uses_left", grant->uses_left);
	put_bounded(json, "left_ms", grant->left_ms);
	json_string(json, "given", time);
	json_string(json, "by", grant->by);
	json_u64(json, "question", grant->question);
	question_words_to_json(json, &grant->shown);
	json_object_end(json);
}

static void put_people(struct buf *text, const struct question_box *box, const struct asking_grant *grant)
{
	char name[QUESTION_NAME_SIZE], left[32];

	buf_printf(text, "%s  %s to ", question_name(name, box->session, grant->number),
		   grant->is_refusal ? "refused" : "allowed");
	question_words_put(text, &grant->shown);
	buf_printf(text, "\n    %s, used %llu time%s", asking_scope_names[grant->scope],
		   (unsigned long long)grant->used, grant->used == 1 ? "" : "s");
	if (grant->uses_left != UINT64_MAX)
		buf_printf(text, ", %llu left", (unsigned long long)grant->uses_left);
	if (grant->left_ms != UINT64_MAX) {
		num_format_duration_human(grant->left_ms, left);
		buf_printf(text, ", for another %s", left);
	}
	buf_printf(text, "; given by %s\n", grant->by);
}

static int visit(void *context, struct question_box *box, const struct asking_grant *grant)
{
	struct listing *listing = context;

	if (listing->is_json)
		put_json(&listing->json, box, grant);
	else
		put_people(&listing->text, box, grant);
	return 0;
}

static int list(bool is_json, const char *session, struct err *err)
{
	cleanup_question_boxes struct question_boxes boxes = { 0 };
	struct listing listing = { .is_json = is_json };
	int r;

	buf_init(&listing.text, TEXT_MAX);
	json_init(&listing.json, &listing.text);
	if (is_json)
		json_array_begin(&listing.json, NULL);
	r = question_boxes_open(&boxes, session, err);
	if (r == 0)
		r = question_boxes_visit_grants(&boxes, visit, &listing, err);
	if (is_json) {
		json_array_end(&listing.json);
		buf_put_char(&listing.text, '\n');
	} else if (!listing.text.size && isatty(STDOUT_FILENO)) {
		buf_put_text(&listing.text, "nothing was allowed or refused by a person\n");
	}
	if (r == 0)
		r = say_out(&listing.text, err);
	buf_done(&listing.text);
	return r;
}

/* ---- revoke ---- */

struct search {
	uint32_t number;
	struct question_box *box;
	size_t found;
};

static int search_visit(void *context, struct question_box *box, const struct asking_grant *grant)
{
	struct search *search = context;

	if (grant->number != search->number)
		return 0;
	search->box = box;
	search->found++;
	return 0;
}

static int take_back(const char *word, bool is_json, struct err *err)
{
	cleanup_question_boxes struct question_boxes boxes = { 0 };
	struct atoll_error error = LIBRARY_ERROR;
	char shown[ERR_QUOTE_SIZE], name[QUESTION_NAME_SIZE];
	cleanup_buf struct buf message;
	struct search search = { 0 };
	int r;

	buf_init(&message, 512);
	r = question_open_named(&boxes, word, "grant", &search.number, err);
	if (r == 0)
		r = question_boxes_visit_grants(&boxes, search_visit, &search, err);
	if (r < 0)
		return r;
	if (search.found != 1) {
		err_set(err, ERR_NOT_FOUND, search.found ? ENOTUNIQ : ENOENT, "ask", "there is %s grant %s",
			search.found ? "more than one" : "no", err_quote(shown, word));
		err_hint(err, search.found ? "write it as SESSION:NUMBER; `atoll grants` lists them"
					   : "`atoll grants` lists those that hold");
		return -ENOENT;
	}
	if (atoll_revoke(search.box->sandbox, search.number, NULL, NULL, &error) < 0)
		return library_fail(&error, err);
	question_name(name, search.box->session, search.number);
	buf_printf(&message, is_json ? "{\"revoked\":\"%s\"}\n" : "%s is taken back\n", name);
	return say_out(&message, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct grants_options given = { 0 };
	int rest, r = cmd_parse(&cmd_grants, &given, argc, argv, &rest, err);
	bool is_revoke = r == 0 && rest < argc && str_equal(argv[rest], "revoke");

	if (r < 0)
		return r;
	if (argc - rest != (is_revoke ? 2 : argc - rest > 0)) {
		err_set(err, ERR_USAGE, EINVAL, "grants",
			is_revoke ? "revoke takes one grant" : "ask takes at most one session");
		err_hint(err, "atoll grants [ID], or atoll grants revoke G");
		return -EINVAL;
	}
	return is_revoke ? take_back(argv[rest + 1], given.json, err) : list(given.json, argv[rest], err);
}

const struct cmd cmd_grants = {
	"grants", "[ID] [--json] | revoke G", "list what was allowed and refused, and take it back",
	CMD_OPTIONS(options), .run = run_verb,
};
