/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/link.h"

#include <string.h>

void notify_link_init(struct notify_link *link, int fd)
{
	*link = (struct notify_link){ .fd = fd };
	buf_init(&link->out, FRAME_MESSAGE_MAX);
	buf_init(&link->scratch, FRAME_MESSAGE_MAX);
}

void notify_link_done(struct notify_link *link)
{
	buf_done(&link->out);
	buf_done(&link->scratch);
}

static int send_frame(struct notify_link *link, int r)
{
	return r < 0 ? r : frame_send(link->fd, &link->out, NULL, 0);
}

int notify_tell_state(struct notify_link *link, bool is_heard, const char *trouble)
{
	if (link->is_told && link->is_heard == is_heard && !trouble)
		return 0;
	link->is_told = true;
	link->is_heard = is_heard;
	return send_frame(link, notify_state_put(&link->out, is_heard, trouble));
}

int notify_tell_answer(struct notify_link *link, const struct asking_reply *reply)
{
	return send_frame(link, notify_answer_put(&link->out, reply));
}
