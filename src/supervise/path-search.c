/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/path-search.h"

#include <string.h>

#include "base/str.h"

static void add_text(struct hash_stream *stream, const char *text)
{
	hash_stream_add(stream, text, strlen(text) + 1);
}

struct path_search path_search_of(pid_t pid, const char *path, const char *const *argv, const char *why)
{
	struct path_search search = { .pid = argv ? pid : 0 };
	struct hash_stream stream;

	hash_stream_begin(&stream);
	for (const char *const *word = argv; word && *word; word++)
		add_text(&stream, *word);
	add_text(&stream, path_basename(path));
	add_text(&stream, why);
	hash_stream_end(&stream, &search.what);
	hash_bytes(&search.first, path, strlen(path));
	search.last = search.first;
	return search;
}

static bool is_same(const struct hash *a, const struct hash *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

bool path_search_goes_on(struct path_search *last, const struct path_search *now)
{
	/* Many hosts have a directory under two names: the place that was tried last, or first, is no next one. */
	bool goes_on = now->pid && last->pid == now->pid && is_same(&last->what, &now->what) &&
		       !is_same(&last->first, &now->first) && !is_same(&last->last, &now->last);

	if (goes_on)
		last->last = now->last;
	else
		*last = *now;
	return goes_on;
}
