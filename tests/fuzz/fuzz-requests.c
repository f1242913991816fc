/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What clients of the service send, read as all that it could be: JSON of each operation, path, query, Host, header,
 * envelope. What is taken fits the table of frames.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "service/protocol/basic-user.h"
#include "service/protocol/connect.h"
#include "service/protocol/control.h"
#include "service/protocol/filesystem.h"
#include "service/protocol/process.h"
#include "service/protocol/query.h"
#include "service/protocol/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A frame that was made is one, or has a value that is too long or has bytes that it must not have: nothing else. */
static void check(struct buf *out)
{
	int r = service_end(out, 0);

	if (r < 0 && r != -EBADMSG && r != -EMSGSIZE && r != -ENOBUFS)
		abort();
}

static void try_control(const char *text, size_t size, struct buf *out)
{
	char why[CONTROL_WHY_SIZE] = "";
	const struct route *route;

	for (size_t i = 0; (route = route_at(i)) && route->side == ROUTE_API; i++) {
		if (route->handler != ROUTE_CONTROL)
			continue;
		service_begin_request(out, 1, route->operation);
		if (control_read_body(route, text, size, out, why) == 0)
			check(out);
		else if (!why[0])
			abort();
		service_begin_request(out, 1, route->operation);
		if (control_read_query(route, text, out, why) == 0)
			check(out);
	}
}

static void try_calls(const char *text, size_t size, struct buf *out)
{
	static const enum service_operation operations[] = {
		SERVICE_STAT, SERVICE_MOVE, SERVICE_READDIR, SERVICE_WATCH,
	};
	char why[PROCESS_WHY_SIZE] = "", id[64];
	struct process_selector selector;
	struct process_input input;
	uint32_t a, b;
	bool has_pty;

	service_begin_request(out, 1, SERVICE_EXEC);
	if (process_read_start(text, size, out, &has_pty, why) == 0)
		check(out);
	(void)!process_read_update(text, size, &selector, &a, &b, why);
	(void)!process_read_signal(text, size, &selector, &a, why);
	if (process_read_input(text, size, 4096, &input, why) == 0)
		buf_done(&input.bytes);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		service_begin_request(out, 1, operations[i]);
		if (filesystem_read(operations[i], text, size, out, why) == 0)
			check(out);
	}
	(void)!filesystem_read_watcher(text, size, id, sizeof id, why);
}

static void try_texts(const char *text)
{
	const struct host_said said = { text, NULL, NULL }, headers = { "localhost", text, text };
	static const char *const methods[] = { "GET", "POST", "DELETE" };
	struct query_signature signature;
	struct host_target target;
	struct route_match match;
	char user[BASIC_USER_SIZE];
	const char *why = NULL;
	uint64_t ms;

	if (host_route(&said, NULL, &target, &why) < 0 && !why)
		abort();
	if (host_route(&headers, NULL, &target, &why) == 0 && !host_id_is_valid(target.sandbox))
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (route_find(ROUTE_API, methods[i], text, &match) == 0 && match.value_count > 0 &&
		    (strchr(match.values[0].text, '/') || str_equal(match.values[0].text, "..")))
			abort();
	(void)!query_get_signature(text, &signature);
	(void)!basic_user_read(text, user);
	(void)host_origin_is_ours(text, text, NULL);
	if (time_parse(text, &ms) == 0) {
		char again[TIME_SIZE];
		uint64_t same;

		time_format(ms, again);
		if (time_parse(again, &same) < 0 || (same != ms && ms < UINT64_C(253402300799999)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct connect_envelope envelope;
	cleanup_buf struct buf out;
	char *text = calloc(1, size + 1);
	size_t used;

	if (!text)
		abort();
	if (size)
		memcpy(text, bytes, size);
	buf_init(&out, FRAME_MESSAGE_MAX);
	if (connect_envelope_read(bytes, size, size, &envelope, &used) == 1 && used > size)
		abort();
	if (size < FRAME_MESSAGE_MAX) {
		try_control(text, size, &out);
		try_calls(text, size, &out);
		try_texts(text);
	}
	free(text);
	return 0;
}
