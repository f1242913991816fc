/* SPDX-License-Identifier: Apache-2.0 */
#include "owner/watches.h"

#include <errno.h>

#include "base/str.h"

struct owner_watch *watches_find(struct owner_watch *watches, uint64_t number)
{
	for (size_t i = 0; i < FILES_WATCHES_MAX; i++)
		if (watches[i].number == number)
			return &watches[i];
	return NULL;
}

bool watches_has_any(const struct owner_watch *watches)
{
	for (size_t i = 0; i < FILES_WATCHES_MAX; i++)
		if (watches[i].number)
			return true;
	return false;
}

void watches_lose(struct owner_watch *watches)
{
	for (size_t i = 0; i < FILES_WATCHES_MAX; i++) {
		struct owner_watch gone = watches[i];

		watches[i].number = 0;
		if (gone.number && gone.asker.changed)
			gone.asker.changed(gone.asker.context, gone.number, NULL);
	}
}

static bool is_gone(const struct frame *frame)
{
	struct frame copy = *frame;
	struct field field = { 0 };
	bool is_found = false;

	while (!is_found && field_get(&copy, &field) == 1) {
		is_found = str_equal(field.key, "change") && field.kind == FIELD_STRING &&
			   str_equal(field.bytes, "gone");
		field_done(&field);
	}
	return is_found;
}

int watches_pass_on(struct owner_watch *watches, struct frame *frame)
{
	uint64_t number = frame_get_u64(frame);
	struct owner_watch *watch = number ? watches_find(watches, number) : NULL;
	struct owner_asker asker;

	if (frame->error)
		return -EBADMSG;
	if (!watch)
		return 0;
	asker = watch->asker;
	if (is_gone(frame))
		watch->number = 0;
	if (asker.changed)
		asker.changed(asker.context, number, frame);
	return 0;
}
