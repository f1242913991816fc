/* SPDX-License-Identifier: Apache-2.0 */
#include "box/control/link-state.h"

#include <stdlib.h>

#include "base/str.h"
#include "os/fd.h"

/* What a linked client asks about files and ports inside: passed on to owner/, and its answers back. */

/* For people, where the errno's own name is a riddle. */
static const char *what_of(enum files_operation operation, int errnum)
{
	if (operation == FILES_CONNECT)
		return errnum == EOPNOTSUPP ? "this sandbox has no network of its own"
					    : "nothing answers at this port inside";
	switch (errnum) {
	case ETIMEDOUT:
		return "a file system inside does not answer";
	case EIO:
		return "what looks at the files of this sandbox failed";
	case EROFS:
		return "it lies where this sandbox may only read";
	case EBUSY:
		return "the files of this sandbox cannot be looked at: file systems inside do not answer";
	case EINVAL:
		return "it is no regular file";
	case EXDEV:
		return "both names are not in one file system, or it is a directory that is staged";
	case ENOTEMPTY:
		return "there is still something in it";
	case EAGAIN:
		return "something inside changed the path meanwhile";
	default:
		return "the file system inside refuses it";
	}
}

static void reply_error(struct client *client, uint64_t ticket, enum files_operation operation, int errnum)
{
	struct err err = { 0 };

	err_set(&err, ERR_STATE, errnum, "files", "%s: %s: %s", files_operation_names[operation],
		what_of(operation, errnum), err_errno_name(errnum));
	(void)link_reply_error(client, ticket, &err);
}

static void on_done(void *context, uint64_t ticket, enum files_operation operation, const struct owner_answer *answer)
{
	struct client *client = context;
	struct buf *out;

	if (answer->errnum) {
		reply_error(client, ticket, operation, answer->errnum);
		return;
	}
	out = link_reply_begin(client, ticket, ERR_NONE);
	if (answer->fields)
		field_put_rest(out, answer->fields);
	if (*answer->fd >= 0)
		field_put_fd(out, operation == FILES_CONNECT ? "socket" : "file", 0);
	link_reply_send(client, answer->fd, *answer->fd >= 0);
}

static void on_changed(void *context, uint64_t watch, struct frame *fields)
{
	const struct link_change change = { watch, fields };

	link_watch_changed(context, &change);
}

void link_put_change(struct buf *out, const struct link_change *change)
{
	if (change->fields) {
		field_put_rest(out, change->fields);
		return;
	}
	field_put_u64(out, "watch", change->watch);
	field_put_string(out, "change", "gone");
}

/* A freeze that no person sees is for somebody who looks at the files: what he sees must be of one moment. */
static bool is_being_copied(const struct box *box)
{
	return freeze_is_on(box->run.freeze) && !box->store.record.is_frozen;
}

int link_on_file(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	const struct owner_asker asker = { on_done, client, on_changed, client->uid, client->pid };
	uint64_t ticket = frame_get_u64(frame);
	struct files_request request;
	struct err err = { 0 };
	int r = files_request_get(frame, &request);

	if (r < 0)
		return r;
	if (files_request_changes(&request) && is_being_copied(client->box)) {
		free(request.attributes);
		err_set(&err, ERR_STATE, EBUSY, "files", "everything stands still for a moment, for a snapshot");
		err_hint(&err, "try again");
		return link_reply_error(client, ticket, &err);
	}
	r = link_is_ending(client, ticket) ? 0 : owner_ask(&client->box->owner, &request, ticket, &asker);
	free(request.attributes);
	if (r == -ENOENT) {
		err_set(&err, ERR_STATE, ENOENT, "files", "there is no such watch");
		return link_reply_error(client, ticket, &err);
	}
	if (r == -EAGAIN || r == -ESHUTDOWN)
		return link_reply_errno(client, ticket, "files", -r, r == -EAGAIN ? "too many requests wait"
										  : "this sandbox does not live");
	return r < 0 ? link_reply_failure(client, ticket, r, &err) : 0;
}
