/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request about files on arbitrary bytes: it is refused, or each of its values is within the table's bounds, and it
 * is the same after its encoder. And labels: a text of them has what it was made of.
 */

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "session/labels.h"
#include "wire/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void look_at(const struct files_request *request)
{
	const char *const paths[] = { request->path, request->to };

	require(request->operation >= FILES_OPEN && request->operation < FILES_OPERATION_COUNT);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		require(!paths[i] || (paths[i][0] == '/' && strlen(paths[i]) < PATH_MAX));
	require(!request->path == !(request->set & 1u << FILES_HAS_PATH) && request->flags <= 0xff &&
		request->mode <= 07777 && request->uid < UINT32_MAX && request->gid < UINT32_MAX &&
		request->mtime_ns <= INT64_MAX && request->nofollow <= 1 && request->depth <= FILES_DEPTH_MAX &&
		request->from <= UINT32_MAX && request->port <= UINT16_MAX);
}

static void try_request(struct frame *frame)
{
	struct files_request request, again;
	cleanup_buf struct buf out = { 0 };
	struct frame encoded;

	if (files_request_get(frame, &request) < 0)
		return;
	look_at(&request);
	buf_init(&out, FRAME_MESSAGE_MAX);
	frame_begin(&out, FILES_REQUEST);
	files_request_put(&out, &request);
	require(frame_end(&out) == 0 && frame_open(&encoded, out.bytes, out.size) == 0 &&
		files_request_get(&encoded, &again) == 0);
	look_at(&again);
	require(again.operation == request.operation && again.set == request.set &&
		files_request_changes(&again) == files_request_changes(&request));
	free(request.attributes);
	free(again.attributes);
}

static void try_labels(const uint8_t *bytes, size_t size)
{
	char *list[LABELS_MAX + 1];
	cleanup_free char *text = calloc(1, size + 1), *copy = NULL, *joined = NULL;

	require(text);
	if (size)
		memcpy(text, bytes, size);
	copy = labels_split(text, list);
	require(copy);
	if (labels_join((const char *const *)list, &joined) == 0)
		require(strlen(joined) <= LABELS_SIZE_MAX && labels_have(joined, (const char *const *)list));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_free uint8_t *copy = malloc(size ? size : 1);
	struct frame frame;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, bytes, size);
	if (frame_open(&frame, copy, size) == 0)
		try_request(&frame);
	else
		try_labels(bytes, size);
	return 0;
}
