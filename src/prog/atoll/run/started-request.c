/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/run/started.h"
#include "wire/link.h"

void start_request_done(struct start_request *request)
{
	free(request->bytes);
	*request = (struct start_request){ 0 };
}

static int read_sealed(struct start_request *request)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	struct stat st;
	int r;

	if ((fcntl(LINK_START_FD, F_GET_SEALS) & seals) != seals || fstat(LINK_START_FD, &st) < 0)
		return -EBADMSG;
	if (st.st_size <= 0 || st.st_size > LINK_START_SIZE_MAX)
		return -EMSGSIZE;
	request->bytes = malloc((size_t)st.st_size);
	if (!request->bytes)
		return -ENOMEM;
	r = lseek(LINK_START_FD, 0, SEEK_SET) < 0 ? -errno : 0;
	if (r == 0)
		r = fd_read_full(LINK_START_FD, request->bytes, (size_t)st.st_size);
	if (r == 0)
		r = frame_open(&request->frame, request->bytes, (size_t)st.st_size);
	return r == 0 && request->frame.type != LINK_START ? -EBADMSG : r;
}

int start_request_read(struct start_request *request, struct err *err)
{
	int r = syscall(SYS_close_range, 3u, ~0u, (unsigned)CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;

	if (r == 0)
		r = read_sealed(request);
	while (r == 0 && request->fd_count < LINK_FDS_MAX &&
	       fcntl(LINK_FIRST_FD + (int)request->fd_count, F_GETFD) >= 0) {
		request->fds[request->fd_count] = LINK_FIRST_FD + (int)request->fd_count;
		request->fd_count++;
	}
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "start", "the request cannot be read: %s", err_errno_name(-r))
		     : 0;
}

int start_request_copy(struct start_request *request, const struct frame *frame, int *fds, size_t fd_count,
		       struct err *err)
{
	*request = (struct start_request){ .bytes = malloc(frame->size) };
	if (!request->bytes)
		return err_set(err, ERR_INTERNAL, ENOMEM, "start", "no memory");
	memcpy(request->bytes, frame->bytes, frame->size);
	if (fd_count > LINK_FDS_MAX || frame_open(&request->frame, request->bytes, frame->size) < 0)
		return err_set(err, ERR_INTERNAL, EBADMSG, "start", "the request is malformed");
	for (; request->fd_count < fd_count; request->fd_count++)
		request->fds[request->fd_count] = take_fd(&fds[request->fd_count]);
	return 0;
}

static const struct start_field *find_field(const struct start_field *fields, size_t count, const struct field *field)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(fields[i].key, field->key))
			return fields[i].kind == field->kind ? &fields[i] : NULL;
	return NULL;
}

static int store(const struct start_request *request, const struct field *field, void *at)
{
	switch (field->kind) {
	case FIELD_U64:
		*(uint64_t *)at = field->number;
		return 0;
	case FIELD_FD:
		if (field->number >= request->fd_count)
			return -EBADMSG;
		*(int *)at = request->fds[field->number];
		return 0;
	case FIELD_STRING:
		*(const char **)at = field->bytes;
		return 0;
	case FIELD_STRINGS:
		free(*(char ***)at);
		*(char ***)at = field->strings;
		return 0;
	default:
		return -EBADMSG;
	}
}

int start_request_get(struct start_request *request, const struct start_field *fields, size_t count, void *target,
		      struct err *err)
{
	const struct start_field *known;
	struct field field = { 0 };
	int r;

	while ((r = field_get(&request->frame, &field)) == 1) {
		known = find_field(fields, count, &field);
		r = known ? store(request, &field, (char *)target + known->offset) : -EBADMSG;
		if (r < 0) {
			err_set(err, ERR_USAGE, -r, "start", "this version of atoll does not know %.40s", field.key);
			err_hint(err, "libatoll and the programs are of different versions; install atoll again");
			if (field.kind == FIELD_STRINGS)
				free(field.strings);
			return r;
		}
		field = (struct field){ 0 };
	}
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "start", "the request is malformed") : 0;
}
