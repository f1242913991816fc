/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "os/clock.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "prog/atoll/watch/trust-show.h"
#include "session/directories.h"
#include "session/record.h"

enum { TEXT_MAX = 8 << 20 };

struct trust_options {
	const char *raise, *lower, *reason;
	bool reset, json;
};

static const struct option options[] = {
#define AT(field) offsetof(struct trust_options, field)
	{ 0, "raise", "LEVEL", "grant the agent this level, and forget what was held against it", OPTION_TEXT,
	  AT(raise) },
	{ 0, "lower", "LEVEL", "leave the agent no more than this level", OPTION_TEXT, AT(lower) },
	{ 0, "reset", NULL, "begin the record again: the agent is unknown, and starts where its policy says",
	  OPTION_FLAG, AT(reset) },
	{ 0, "reason", "TEXT", "why, for the record; --raise needs it", OPTION_TEXT, AT(reason) },
	{ 0, "json", NULL, "one JSON object, or an array without AGENT", OPTION_FLAG, AT(json) },
#undef AT
};

struct homes {
	char state[PATH_MAX], runtime[PATH_MAX];
	struct trust_home home;
};

static int find_home(struct homes *homes, struct err *err)
{
	int r = session_state_dir(homes->state, sizeof homes->state, true, err);

	if (r == 0)
		r = session_runtime_dir(homes->runtime, sizeof homes->runtime, true, err);
	homes->home = (struct trust_home){ homes->state, homes->runtime };
	return r;
}

/* ---- list and show ---- */

static int read_book(const struct trust_home *home, const char *agent, struct trust_book *book, struct err *err)
{
	int r = trust_book_read(home, agent, book);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "trust", "the record of %s cannot be read: %s", agent,
			       strerror(-r))
		     : 0;
}

static int put_all(const struct trust_home *home, char **agents, bool is_json, struct buf *out, struct err *err)
{
	struct json json;
	int r = 0;

	json_init(&json, out);
	if (is_json)
		json_array_begin(&json, NULL);
	else if (!*agents)
		buf_put_text(out, "no agent has a record yet: atoll run --agent NAME -- CMD begins one\n");
	else
		trust_put_heading(out);
	for (; r == 0 && *agents; agents++) {
		cleanup_trust_book struct trust_book book;

		r = read_book(home, *agents, &book, err);
		if (r == 0 && is_json)
			trust_put_json(&book, &json, false);
		else if (r == 0)
			trust_put_line(&book, out);
	}
	if (is_json) {
		json_array_end(&json);
		buf_put_char(out, '\n');
	}
	return r;
}

static int list(const struct trust_home *home, bool is_json, struct err *err)
{
	char **agents = NULL;
	struct buf out;
	int r = trust_agents(home, &agents);

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "trust", "the records below %s cannot be listed: %s",
			       home->state_dir, strerror(-r));
	buf_init(&out, TEXT_MAX);
	r = put_all(home, agents, is_json, &out, err);
	if (r == 0)
		r = say_out(&out, err);
	buf_done(&out);
	strv_free(agents);
	return r;
}

static int unknown_agent(const struct trust_home *home, const char *agent, struct err *err)
{
	char **agents = NULL;
	const char *nearest = NULL;

	if (trust_agents(home, &agents) == 0)
		nearest = names_nearest((const char *const *)agents, strv_count((const char *const *)agents), agent);
	err_set(err, ERR_NOT_FOUND, ENOENT, "trust", "there is no record of an agent %s", agent);
	if (nearest)
		err_hint(err, "did you mean %s?", nearest);
	else
		err_hint(err, "`atoll trust` lists the agents with a record; a run with --agent %s begins one", agent);
	strv_free(agents);
	return -ENOENT;
}

static int show(const struct trust_home *home, const char *agent, bool is_json, struct err *err)
{
	cleanup_trust_book struct trust_book book;
	struct json json;
	struct buf out;
	int r = read_book(home, agent, &book, err);

	if (r == 0 && book.fault == TRUST_FINE && book.exists && !trust_book_is_chained(&book))
		book.fault = TRUST_DAMAGED;
	if (r == 0 && !book.exists && book.fault == TRUST_FINE)
		return unknown_agent(home, agent, err);
	if (r < 0)
		return r;
	buf_init(&out, TEXT_MAX);
	json_init(&json, &out);
	if (is_json) {
		trust_put_json(&book, &json, true);
		buf_put_char(&out, '\n');
	} else {
		trust_put_all(&book, home, &out);
	}
	r = say_out(&out, err);
	buf_done(&out);
	return r;
}

/* ---- change ---- */

static int parse_level(const char *text, enum trust_level *ret_level, struct err *err)
{
	int level = names_find(trust_level_names, TRUST_COUNT, text);

	if (level < 0)
		return trust_level_set_unknown("trust", text, err);
	*ret_level = (enum trust_level)level;
	return 0;
}

static int what_to_do(const struct trust_options *given, struct trust_news *news, struct err *err)
{
	if (!!given->raise + !!given->lower + given->reset > 1)
		return err_set(err, ERR_USAGE, EINVAL, "trust", "--raise, --lower and --reset exclude each other");
	if (given->raise && (!given->reason || !*given->reason)) {
		err_set(err, ERR_USAGE, EINVAL, "trust", "--raise needs --reason, which is kept in the record");
		err_hint(err, "atoll trust AGENT --raise LEVEL --reason \"…\"");
		return -EINVAL;
	}
	*news = (struct trust_news){ .event = given->raise ? TRUST_RAISED : given->lower ? TRUST_LOWERED : TRUST_RESET,
				     .cause = given->reason, .now_ns = clock_realtime_ns() };
	return given->reset ? 0 : parse_level(given->raise ? given->raise : given->lower, &news->level, err);
}

static int refuse_unusable(const struct trust_book *book, struct err *err)
{
	err_set(err, ERR_STATE, EBADMSG, "trust", "the record of %s cannot be used: %s", book->agent,
		trust_fault_texts[book->fault]);
	err_hint(err, "atoll trust %s --reset begins it again, and --raise can follow", book->agent);
	return -EBADMSG;
}

/* A raise that lowers, or the other way round, is a slip of the hand. */
static int check_direction(const struct trust_book *book, const struct trust_news *news, struct err *err)
{
	struct trust_state state = trust_book_state(book);
	enum trust_level now = trust_level_of(&state, &book->settings);
	bool is_raise = news->event == TRUST_RAISED;

	if (news->event == TRUST_RESET || !state.has_grant || (is_raise ? news->level >= now : news->level <= now))
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "trust", "%s is at %s, which is %s than %s", book->agent,
		trust_level_names[now], is_raise ? "more" : "less", trust_level_names[news->level]);
	err_hint(err, "%s", is_raise ? "to take trust away: --lower" : "to give trust: --raise, with a --reason");
	return -EINVAL;
}

static void hint_writing(struct err *err, int r, const struct trust_home *home)
{
	if (r == -EBUSY)
		err_hint(err, "another process is writing to it; try again");
	else
		err_hint(err, r == -ENOSPC || r == -EDQUOT ? "free some space below %s" : "check whether you may "
											  "write %s",
			 home->state_dir);
}

static int change_book(const struct trust_home *home, struct trust_book *book, const struct trust_news *news,
		       struct err *err)
{
	int r;

	if (news->event == TRUST_RESET)
		trust_book_reset(book);
	if (book->fault != TRUST_FINE)
		return refuse_unusable(book, err);
	r = check_direction(book, news, err);
	if (r < 0)
		return r;
	if (!trust_book_add(book, news))
		return err_set(err, ERR_INTERNAL, ENOMEM, "trust", "no memory");
	r = trust_book_write(home, book, true);
	if (r < 0) {
		err_set(err, ERR_STATE, -r, "trust", "the record of %s cannot be written: %s", book->agent,
			strerror(-r));
		hint_writing(err, r, home);
	}
	return r;
}

static int change(const struct trust_home *home, const char *agent, const struct trust_options *given, struct err *err)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = -1 };
	struct trust_news news;
	struct buf out;
	char memory[512];
	int r = what_to_do(given, &news, err);

	if (r < 0)
		return r;
	r = trust_book_lock(home, agent, TRUST_LOCK_MS, &book);
	if (r < 0) {
		err_set(err, ERR_STATE, -r, "trust", "the record of %s cannot be locked: %s", agent, strerror(-r));
		hint_writing(err, r, home);
		return r;
	}
	r = change_book(home, &book, &news, err);
	if (r < 0)
		return r;
	if (given->json)
		return show(home, agent, true, err);
	buf_init_fixed(&out, memory, sizeof memory);
	trust_put_short(&book, &news, &out);
	return say_out(&out, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct trust_options given = { 0 };
	static struct homes homes;
	char shown[ERR_QUOTE_SIZE];
	int rest, r = cmd_parse(&cmd_trust, &given, argc, argv, &rest, err);
	bool changes = given.raise || given.lower || given.reset;

	if (r < 0)
		return r;
	if (argc - rest > 1 || (changes && argc - rest != 1)) {
		err_set(err, ERR_USAGE, EINVAL, "trust",
			changes ? "name the agent whose level shall change" : "trust takes at most one agent");
		err_hint(err, "atoll trust [AGENT] [--raise LEVEL --reason TEXT | --lower LEVEL | --reset]");
		return -EINVAL;
	}
	if (rest < argc && !trust_agent_is_valid(argv[rest]))
		return err_set(err, ERR_USAGE, EINVAL, "trust", "%s cannot be the name of an agent",
			       err_quote(shown, argv[rest]));
	r = find_home(&homes, err);
	if (r < 0)
		return r;
	if (changes)
		return change(&homes.home, argv[rest], &given, err);
	return rest < argc ? show(&homes.home, argv[rest], given.json, err) : list(&homes.home, given.json, err);
}

const struct cmd cmd_trust = {
	"trust", "[AGENT] [--raise LEVEL --reason TEXT | --lower LEVEL | --reset] [--json]",
	"show how far agents are trusted, and why; change it",
	CMD_OPTIONS(options), .run = run_verb,
};
