/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/notify.h"

#include <string.h>

#include "notify/link.h"
#include "os/fd.h"

struct beginning {
	struct notify_given given;
	char *session, *address;     /* owned: the frame is gone when they are used */
};

static int on_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct beginning *beginning = context;
	struct notify_start *start = &beginning->given.start;
	size_t at = 0;
	int r = notify_start_get(frame, start);

	if (r < 0)
		return r;
	if (fd_count != (size_t)((start->flags & NOTIFY_HAS_BUNDLE) != 0) + ((start->flags & NOTIFY_HAS_KEY) != 0))
		return -EPROTO;
	if (start->flags & NOTIFY_HAS_BUNDLE)
		beginning->given.bundle_fd = take_fd(&fds[at++]);
	if (start->flags & NOTIFY_HAS_KEY)
		beginning->given.key_fd = take_fd(&fds[at++]);
	start->session = beginning->session = strdup(start->session);
	start->address = beginning->address = strdup(start->address);
	return start->session && start->address ? 0 : -ENOMEM;
}

static const struct frame_rule rules[] = {
	{ NOTIFY_START, 1, NOTIFY_START_MAX, 0, 2, on_start },
};

int notify_run(int box_fd, struct err *err)
{
	static int (*const run[NOTIFY_KIND_COUNT])(struct notify_link *link, const struct notify_given *given,
						   struct err *err) = {
		[NOTIFY_DESKTOP] = desktop_run, [NOTIFY_WEBHOOK] = webhook_run,
	};
	struct beginning beginning = { .given = { .bundle_fd = FD_NONE, .key_fd = FD_NONE } };
	struct notify_link link;
	int r;

	notify_link_init(&link, box_fd);
	r = frame_dispatch(box_fd, &link.scratch, 0, rules, ARRAY_SIZE(rules), &beginning);
	if (r > 0)
		r = run[beginning.given.start.kind](&link, &beginning.given, err);
	close_fd(&beginning.given.bundle_fd);
	close_fd(&beginning.given.key_fd);
	free(beginning.session);
	free(beginning.address);
	notify_link_done(&link);
	return r;
}
