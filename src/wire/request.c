/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request.h"

#include <stddef.h>

#include "base/cleanup.h"

/* The string fields in the order in which they travel. */
static const struct {
	size_t offset;
	bool is_required;
} strings[] = {
#define FIELD(name, required) { offsetof(struct run_request, name), required }
	FIELD(session, true),       FIELD(name, false),        FIELD(project, true),
	FIELD(cwd, true),           FIELD(home, true),         FIELD(state_dir, true),
	FIELD(runtime_dir, true),   FIELD(report_path, false), FIELD(init_path, true),
	FIELD(notes, false),        FIELD(test_break, false),  FIELD(test_limits, false),
	FIELD(origin, false),
#undef FIELD
};

static const char **string_at(struct run_request *request, size_t field)
{
	return (const char **)((char *)request + strings[field].offset);
}

int run_request_put(struct buf *out, const struct run_request *request)
{
	struct run_request copy = *request;

	frame_begin(out, REQUEST_FRAME);
	frame_put_u32(out, request->flags);
	frame_put_u64(out, request->started_ns);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		frame_put_string(out, *string_at(&copy, i));
	frame_put_strv(out, (const char *const *)request->argv);
	frame_put_strv(out, (const char *const *)request->env);
	frame_put_strv(out, (const char *const *)request->env_added);
	frame_put_strv(out, (const char *const *)request->chain);
	return frame_end(out);
}

int run_request_get(struct frame *frame, struct run_request *ret_request)
{
	struct run_request request = { 0 };
	int r;

	request.flags = frame_get_u32(frame);
	request.started_ns = frame_get_u64(frame);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		*string_at(&request, i) = frame_get_string(frame);
		if (strings[i].is_required && !*string_at(&request, i))
			frame->error = -EBADMSG;
	}
	request.argv = frame_get_strv(frame);
	request.env = frame_get_strv(frame);
	request.env_added = frame_get_strv(frame);
	request.chain = frame_get_strv(frame);
	r = frame_finish(frame);
	if (r == 0 && frame->type != REQUEST_FRAME)
		r = -EBADMSG;
	if (r == 0 && !request.origin && request.chain[0])
		r = -EBADMSG; /* layers mean nothing without the trees that they belong to */
	if (r == 0 && !request.argv[0] && !(request.flags & (REQUEST_DETACH | REQUEST_CHECK)))
		r = -EBADMSG;
	if (r < 0) {
		free(request.argv);
		free(request.env);
		free(request.env_added);
		free(request.chain);
		return r;
	}
	*ret_request = request;
	return 0;
}
