/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/grants.h"

#include <string.h>

#include "base/str.h"

#define KIND(name) (1u << ACTION_##name)

/* What a grant of a kind covers beside itself, and what a refusal does. */
static const struct {
	uint32_t granted, refused;
} covered_kinds[ACTION_KIND_COUNT] = {
	[ACTION_FILE_READ] = { 0, KIND(FILE_WRITE) },
	[ACTION_FILE_WRITE] = { KIND(FILE_READ), 0 },
	[ACTION_NET_CONNECT] = { KIND(NET_DNS), KIND(NET_DNS) | KIND(HTTP_REQUEST) },
	[ACTION_HTTP_REQUEST] = { KIND(NET_DNS), 0 },
};

static bool covers_kind(const struct grant_terms *terms, enum action_kind kind)
{
	uint32_t kinds = 1u << terms->kind;

	if ((unsigned)terms->kind >= ACTION_KIND_COUNT || (unsigned)kind >= ACTION_KIND_COUNT ||
	    terms->flags & GRANT_VIEW)
		return false;
	kinds |= terms->flags & GRANT_REFUSES ? covered_kinds[terms->kind].refused : covered_kinds[terms->kind].granted;
	return kinds >> kind & 1;
}

static bool agrees(const struct grant_terms *terms, const char *wanted, const char *given)
{
	if (!wanted)
		return true;
	if (!given)
		return false;
	return terms->flags & GRANT_PATTERNS ? glob_match(wanted, given) : str_equal(wanted, given);
}

static bool covers_subject(const struct grant_terms *terms, const struct grant_terms *asked)
{
	if (!asked->subject || !*asked->subject)
		return false;
	if (terms->flags & GRANT_BELOW)
		return path_is_below(asked->subject, terms->subject);
	/* A directory and all below it is more than the one path. */
	return !(asked->flags & GRANT_BELOW) && agrees(terms, terms->subject, asked->subject);
}

/* How the program calls itself is no part of what was refused. */
static bool covers_argv(const struct grant_terms *terms, const char *const *argv)
{
	size_t i = terms->flags & GRANT_REFUSES ? 1 : 0;

	if (!terms->argv)
		return true;
	if (!argv || strv_count(terms->argv) != strv_count(argv))
		return false;
	for (; i < strv_count(argv); i++)
		if (!agrees(terms, terms->argv[i], argv[i]))
			return false;
	return true;
}

/* A look-up has no port, a connection no method and no path: those are judged when they come. */
static bool covers_request(const struct grant_terms *terms, const struct grant_terms *asked)
{
	if (terms->flags & GRANT_REFUSES)
		return asked->kind != ACTION_HTTP_REQUEST || agrees(terms, terms->path, asked->path);
	if (asked->kind == ACTION_NET_DNS)
		return true;
	if (terms->port && terms->port != asked->port)
		return false;
	return asked->kind == ACTION_NET_CONNECT ||
	       (agrees(terms, terms->method, asked->method) && agrees(terms, terms->path, asked->path));
}

static bool covers_actor(const struct grant_actor *wanted, const struct grant_actor *given)
{
	return (!wanted->program || str_equal(wanted->program, given->program)) &&
	       (!wanted->cwd || str_equal(wanted->cwd, given->cwd));
}

bool grant_covers(const struct grant_terms *terms, const struct grant_terms *asked)
{
	return covers_kind(terms, asked->kind) && covers_subject(terms, asked) && covers_argv(terms, asked->argv) &&
	       covers_request(terms, asked) &&
	       (terms->flags & GRANT_REFUSES || covers_actor(&terms->actor, &asked->actor));
}

/* With its length, and NULL unlike "": no two different things are the same bytes. */
static void add_text(struct hash_stream *stream, const char *text)
{
	uint32_t size = text ? (uint32_t)strlen(text) : UINT32_MAX;

	hash_stream_add(stream, &size, sizeof size);
	if (text)
		hash_stream_add(stream, text, size);
}

static void add_number(struct hash_stream *stream, uint32_t number)
{
	hash_stream_add(stream, &number, sizeof number);
}

void grant_identity(const struct grant_terms *shown, struct hash *ret_hash)
{
	size_t argc = strv_count(shown->argv);
	struct hash_stream stream;

	hash_stream_begin(&stream);
	add_number(&stream, shown->kind);
	add_number(&stream, shown->flags);
	add_text(&stream, shown->subject);
	add_number(&stream, shown->argv ? (uint32_t)argc : UINT32_MAX);
	for (size_t i = 0; i < argc; i++)
		add_text(&stream, shown->argv[i]);
	add_text(&stream, shown->method);
	add_text(&stream, shown->path);
	add_number(&stream, shown->port);
	add_text(&stream, shown->actor.program);
	add_text(&stream, shown->actor.cwd);
	hash_stream_end(&stream, ret_hash);
}
