/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/sandbox.h"

#include "base/str.h"

static struct sandbox **bucket_of(const struct registry *registry, const char *id)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	/* FNV-1a. Ids are ours, so that nobody can choose those that meet. */
	for (; *id; id++)
		hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
	return (struct sandbox **)&registry->buckets[hash % REGISTRY_BUCKETS];
}

void ahead_init(struct ahead *driver)
{
	*driver = (struct ahead){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(driver->fds); i++)
		driver->fds[i] = FD_NONE;
}

void ahead_done(struct ahead *driver)
{
	for (size_t i = 0; i < ARRAY_SIZE(driver->fds); i++)
		close_fd(&driver->fds[i]);
	driver->language = NULL;
	driver->command = 0;
}

struct sandbox *registry_add(struct registry *registry, struct daemon *daemon, const char *id)
{
	struct sandbox *sandbox = calloc(1, sizeof *sandbox), **bucket = bucket_of(registry, id);

	if (!sandbox || str_copy(sandbox->id, sizeof sandbox->id, id) < 0) {
		free(sandbox);
		return NULL;
	}
	sandbox->daemon = daemon;
	sandbox->source.fd = FD_NONE;
	for (size_t i = 0; i < AHEAD_MAX; i++)
		ahead_init(&sandbox->commands.ahead[i]);
	sandbox->next_of_bucket = *bucket;
	*bucket = sandbox;
	sandbox->older = registry->newest;
	if (registry->newest)
		registry->newest->newer = sandbox;
	else
		registry->oldest = sandbox;
	registry->newest = sandbox;
	registry->count++;
	return sandbox;
}

void registry_remove(struct registry *registry, struct sandbox *sandbox)
{
	struct sandbox **at;

	if (!sandbox)
		return;
	for (at = bucket_of(registry, sandbox->id); *at != sandbox;)
		at = &(*at)->next_of_bucket;
	*at = sandbox->next_of_bucket;
	if (sandbox->older)
		sandbox->older->newer = sandbox->newer;
	else
		registry->oldest = sandbox->newer;
	if (sandbox->newer)
		sandbox->newer->older = sandbox->older;
	else
		registry->newest = sandbox->older;
	registry->count--;
	for (size_t i = 0; i < AHEAD_MAX; i++)
		ahead_done(&sandbox->commands.ahead[i]);
	kept_done(&sandbox->made);
	kept_done(&sandbox->network);
	free(sandbox->metrics);
	free(sandbox);
}

struct sandbox *registry_find(const struct registry *registry, const char *id)
{
	struct sandbox *sandbox = *bucket_of(registry, id);

	while (sandbox && !str_equal(sandbox->id, id))
		sandbox = sandbox->next_of_bucket;
	return sandbox;
}

bool sandbox_is_there(const struct sandbox *sandbox)
{
	return sandbox->state != SANDBOX_KILLING;
}

size_t registry_count_of(const struct registry *registry, const char *owner)
{
	size_t count = 0;

	for (const struct sandbox *sandbox = registry->oldest; sandbox; sandbox = sandbox->newer)
		count += sandbox_is_there(sandbox) && str_equal(sandbox->owner, owner);
	return count;
}

struct sandbox_row sandbox_to_row(const struct sandbox *sandbox)
{
	struct sandbox_row row = {
		.key = sandbox->key, .state = sandbox->state, .created_ms = sandbox->created_ms,
		.end_ms = sandbox->end_ms, .left_ms = sandbox->left_ms,
		.made = { sandbox->made.bytes, sandbox->made.size },
		.network = { sandbox->network.bytes, sandbox->network.size },
	};

	/* Each fits: they have the sizes of the row's own. */
	(void)!str_copy(row.id, sizeof row.id, sandbox->id);
	(void)!str_copy(row.session, sizeof row.session, sandbox->session);
	(void)!str_copy(row.owner, sizeof row.owner, sandbox->owner);
	return row;
}
