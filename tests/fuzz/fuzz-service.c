/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frame between the service's front and atolld: it is refused with a word, or each of its values is within the
 * table's bounds, its rows too.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/service.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void look_at_values(const struct service_message *message)
{
	for (size_t i = 0; i < message->field_count; i++) {
		const struct field *field = &message->fields[i];

		require(field->key && service_get(message, field->key) && field->size <= FRAME_MESSAGE_MAX);
		if (field->kind == FIELD_STRING)
			require(strlen(field->bytes) == field->size);
		if (field->kind == FIELD_FD)
			require(field->number < FRAME_FD_MAX);
	}
}

static void look_at_rows(const struct service_message *message)
{
	struct service_message *row = malloc(sizeof *row);
	size_t at = 0;

	while (row && service_next_row(message, &at, row) > 0) {
		look_at_values(row);
		service_message_done(row);
	}
	free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const int fds[FRAME_FD_MAX] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	cleanup_free uint8_t *copy = malloc(size ? size : 1);
	cleanup_free struct service_message *message = malloc(sizeof *message);

	if (!copy || !message)
		return 0;
	memcpy(copy, bytes, size);
	for (size_t fd_count = 0; fd_count <= FRAME_FD_MAX; fd_count++) {
		const char *problem = NULL;
		struct frame frame;

		if (frame_open(&frame, copy, size) < 0)
			continue;
		if (service_read(&frame, fds, fd_count, message, &problem) < 0) {
			require(problem && !message->field_count);
			continue;
		}
		look_at_values(message);
		look_at_rows(message);
		service_message_done(message);
	}
	return 0;
}
