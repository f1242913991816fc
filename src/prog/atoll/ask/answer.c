/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/answer.h"

#include <string.h>

#include "approve/question-words.h"
#include "base/num.h"
#include "base/str.h"
#include "prog/atoll/ask/permanent-grant.h"
#include "prog/atoll/ask/questions.h"
#include "prog/atoll/verb/say.h"

enum { TEXT_MAX = 256 << 10, USES_MAX = 1000000 };

/* The question that was found: what is needed to answer it, and how it reads. */
struct search {
	uint32_t number;
	struct question_box *box;
	size_t found;
	char others[160];              /* what they are called, where there are more of that number */
	atoll_record *question;        /* owned; as it came */
	struct buf words;
	char **terms;                  /* the same for permanent_grant_prepare(); owned */
};

static int visit(void *context, struct question_box *box, const struct asking_question *question,
		 atoll_record **row)
{
	struct search *search = context;
	size_t used = strlen(search->others);

	if (question->number != search->number)
		return 0;
	/* An answered one gives way to one that is open in another session. */
	if (search->found && question->state == ASKING_ANSWERED)
		return 0;
	if (question->state != ASKING_ANSWERED) {
		search->found++;
		if (str_format(search->others + used, sizeof search->others - used, "%s%s:%u", used ? ", " : "",
			       box->session, question->number) < 0)
			search->others[used] = 0;
	}
	search->box = box;
	strv_free(search->terms);
	search->terms = permanent_grant_words(&question->shown);
	if (!search->terms)
		return -ENOMEM;
	buf_reset(&search->words);
	question_words_put(&search->words, &question->shown);
	atoll_record_free(search->question);
	search->question = *row;
	*row = NULL;
	return 0;
}

static int find(struct question_boxes *boxes, const char *word, struct search *search, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int r = question_open_named(boxes, word, "question", &search->number, err);

	if (r == 0)
		r = question_boxes_visit(boxes, "find", visit, search, err);
	if (r < 0)
		return r;
	if (!search->box) {
		err_set(err, ERR_NOT_FOUND, ENOENT, "ask", "there is no question %s", err_quote(shown, word));
		err_hint(err, "`atoll ask` lists those that are open");
		return -ENOENT;
	}
	if (search->found > 1) {
		err_set(err, ERR_USAGE, ENOTUNIQ, "ask", "there is more than one question %s", err_quote(shown, word));
		err_hint(err, "say which: %s", search->others);
		return -ENOTUNIQ;
	}
	return 0;
}

static int usage(struct err *err, const char *what, const char *hint)
{
	err_set(err, ERR_USAGE, EINVAL, "ask", "%s", what);
	err_hint(err, "%s", hint);
	return -EINVAL;
}

static int read_scope(const struct answer_options *given, struct asking_reply *reply, struct err *err)
{
	unsigned count = (given->uses != NULL) + (given->time != NULL) + given->session + given->forever;

	if (count > 1)
		return usage(err, "--uses, --for, --session and --forever exclude each other",
			     "give one of them, or none for once");
	reply->scope = given->forever ? ASKING_FOREVER : given->session ? ASKING_SESSION : ASKING_ONCE;
	if (given->uses) {
		reply->scope = ASKING_USES;
		if (num_parse_u64(given->uses, &reply->amount) < 0 || !reply->amount || reply->amount > USES_MAX)
			return usage(err, "--uses takes a number from 1 to 1000000", "for example --uses 3");
	}
	if (given->time) {
		reply->scope = ASKING_TIME;
		if (num_parse_duration(given->time, &reply->amount) < 0 || !reply->amount ||
		    reply->amount == NUM_UNLIMITED)
			return usage(err, "--for takes a time with its unit", "for example --for 10m");
	}
	return 0;
}

static void put_json(struct buf *text, const struct search *search, const struct asking_reply *reply, uint32_t grant)
{
	char name[QUESTION_NAME_SIZE];
	struct json json;

	json_init(&json, text);
	json_object_begin(&json, NULL);
	json_string(&json, "question", question_name(name, search->box->session, search->number));
	json_bool(&json, "allowed", reply->is_allowed);
	json_string(&json, "scope", reply->is_allowed ? asking_scope_names[reply->scope] : NULL);
	if (grant)
		json_u64(&json, "grant", grant);
	else
		json_null(&json, "grant");
	json_object_end(&json);
	buf_put_char(text, '\n');
}

static void put_people(struct buf *text, struct search *search, const struct asking_reply *reply, uint32_t grant)
{
	buf_put_text(text, reply->is_allowed ? "allowed " : "denied");
	if (reply->is_allowed)
		question_words_put_scope(text, reply->scope, reply->amount);
	buf_printf(text, ": %s\n", buf_text(&search->words));
	if (grant && reply->scope == ASKING_ONCE && reply->is_allowed)
		buf_put_text(text, "nothing waits for it: it holds for the next try within 10 minutes\n");
	if (grant)
		buf_printf(text, "`atoll grants revoke %s:%u` takes it back\n", search->box->session, grant);
}

static int send(const struct search *search, const struct asking_reply *reply, uint32_t *ret_grant, struct err *err)
{
	cleanup_record atoll_record *answer = atoll_record_new(ATOLL_ANSWER), *result = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	int r = atoll_set_u64(answer, "allow", reply->is_allowed, &error);

	if (r == 0)
		r = atoll_set_string(answer, "scope", asking_scope_names[reply->scope], &error);
	if (r == 0 && reply->amount)
		r = atoll_set_u64(answer, "amount", reply->amount, &error);
	if (r == 0)
		r = atoll_answer(search->box->sandbox, search->question, answer, NULL, &result, &error);
	*ret_grant = (uint32_t)library_number(result, "grant");
	return r < 0 ? library_fail(&error, err) : 0;
}

static int prepare(const struct search *search, struct permanent_grant *permanent, struct err *err)
{
	cleanup_session_record struct session_record session = { 0 };
	int r = library_record(search->box->sandbox, &session, err);

	return r < 0 ? r : permanent_grant_prepare(&session, search->terms, permanent, err);
}

static int answer(struct search *search, struct asking_reply *reply, bool json, struct err *err)
{
	cleanup_permanent_grant struct permanent_grant permanent = PERMANENT_GRANT_NONE;
	cleanup_buf struct buf text;
	uint32_t grant = 0;
	int r;

	buf_init(&text, TEXT_MAX);
	r = reply->scope == ASKING_FOREVER ? prepare(search, &permanent, err) : 0;
	if (r)
		return r;
	r = send(search, reply, &grant, err);
	if (r == 0 && reply->scope == ASKING_FOREVER)
		r = permanent_grant_write(&permanent, err);
	if (r < 0)
		return r;
	if (json)
		put_json(&text, search, reply, grant);
	else
		put_people(&text, search, reply, grant);
	if (!json && reply->scope == ASKING_FOREVER) {
		buf_put_escaped(&text, permanent.path, strlen(permanent.path), 0);
		buf_put_text(&text, " has it\n");
	}
	return say_out(&text, err);
}

int answer_named(const char *word, struct asking_reply *reply, bool json, struct err *err)
{
	cleanup_question_boxes struct question_boxes boxes = { 0 };
	struct search search = { 0 };
	int r;

	buf_init(&search.words, TEXT_MAX);
	r = find(&boxes, word, &search, err);
	if (r == 0)
		r = answer(&search, reply, json, err);
	buf_done(&search.words);
	strv_free(search.terms);
	atoll_record_free(search.question);
	return r;
}

int answer_run(const struct cmd *cmd, bool is_allowed, int argc, char **argv, struct err *err)
{
	struct asking_reply reply = { .is_allowed = is_allowed };
	struct answer_options given = { 0 };
	int rest, r;

	r = cmd_parse(cmd, &given, argc, argv, &rest, err);
	if (r == 0 && argc - rest != 1)
		r = usage(err, "which question?", "give its number, as `atoll ask` lists it");
	if (r == 0)
		r = read_scope(&given, &reply, err);
	return r < 0 ? r : answer_named(argv[rest], &reply, given.json, err);
}
