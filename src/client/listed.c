/* SPDX-License-Identifier: Apache-2.0 */
#include "client/listed.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "gate-net/publish.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/publish.h"
#include "stage/layer/chain.h"

enum { PUBLISHED_MAX = 4096 };

const char *listed_state(const struct session_record *record)
{
	if (record->is_live)
		return record->is_frozen ? "frozen" : "running";
	return record->ended_ns && !str_equal(record->ended, "lost") ? "ended" : "lost";
}

void listed_find_origin(const char *state, const struct session_record *record, char out[SESSION_ID_SIZE])
{
	cleanup_stage_record struct stage_record staged = { 0 };
	cleanup_fd int fd = FD_NONE;
	struct stage_chain chain;
	char path[PATH_MAX];

	out[0] = 0;
	if (session_path(state, record->id, STAGE_DIRECTORY, path, sizeof path) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || stage_chain_load(fd, STAGE_FILE_CHAIN, true, &chain) < 0)
		return;
	for (size_t i = chain.count; i-- > 0;)
		if (!str_equal(chain.layers[i].session, record->id)) {
			memcpy(out, chain.layers[i].session, SESSION_ID_SIZE);
			return;
		}
	if (stage_record_load(fd, &staged) < 0)
		return;
	if (!str_equal(staged.origin, record->id))
		memcpy(out, staged.origin, SESSION_ID_SIZE);
}

static void put_json_time(struct json *json, const char *key, uint64_t ns)
{
	char text[CLOCK_RFC3339_SIZE];

	if (!ns) {
		json_null(json, key);
		return;
	}
	clock_format_rfc3339(ns, text);
	json_string(json, key, text);
}

static void put_json_origin(struct json *json, const char *state, const struct session_record *record)
{
	char origin[SESSION_ID_SIZE];

	listed_find_origin(state, record, origin);
	json_string(json, "origin", *origin ? origin : NULL);
}

void listed_visit_published(const char *state, const struct session_record *record, listed_port visit, void *context)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX], *at, *line;
	size_t size;

	if (!record->is_live || session_path(state, record->id, PUBLISH_FILE, path, sizeof path) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, PUBLISHED_MAX, &text, &size) < 0)
		return;
	at = text;
	while ((line = strsep(&at, "\n"))) {
		struct publish_rule rule = { 0 };
		char host[PUBLISH_TEXT_SIZE];

		if (publish_parse(line, &rule) < 0)
			continue;
		publish_host_format(&rule, host);
		visit(context, rule.port, host);
	}
}

static void put_json_port(void *context, unsigned port, const char *host)
{
	struct json *json = context;

	json_object_begin(json, NULL);
	json_u64(json, "port", port);
	json_string(json, "host", host);
	json_object_end(json);
}

static void put_json_published(struct json *json, const char *state, const struct session_record *record)
{
	json_array_begin(json, "published");
	listed_visit_published(state, record, put_json_port, json);
	json_array_end(json);
}

void listed_to_json(struct json *json, const char *state, const struct session_record *record)
{
	json_object_begin(json, NULL);
	json_string(json, "session", record->id);
	json_string(json, "name", *record->name ? record->name : NULL);
	json_string(json, "state", listed_state(record));
	json_bytes(json, "project", record->project, strlen(record->project));
	json_string(json, "policy", record->policy);
	json_string(json, "level", record->level);
	json_string(json, "command", record->command);
	json_u64(json, "pid", record->is_live ? (uint64_t)record->box_pid : 0);
	put_json_time(json, "started", record->started_ns);
	put_json_time(json, "ended_at", record->ended_ns);
	json_string(json, "ended", *record->ended ? record->ended : NULL);
	if (record->exit >= 0)
		json_i64(json, "exit", record->exit);
	else
		json_null(json, "exit");
	json_bool(json, "staged", record->is_staged);
	put_json_published(json, state, record);
	put_json_origin(json, state, record);
	json_object_end(json);
}
