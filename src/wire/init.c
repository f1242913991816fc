/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/init.h"

int init_spawn_put(struct buf *out, const struct init_spawn *spawn)
{
	frame_begin(out, INIT_SPAWN);
	frame_put_u32(out, spawn->id);
	frame_put_u32(out, spawn->flags);
	frame_put_u32(out, spawn->umask);
	frame_put_u32(out, (uint32_t)spawn->rows << 16 | spawn->columns);
	frame_put_string(out, spawn->cwd);
	frame_put_strv(out, (const char *const *)spawn->argv);
	frame_put_strv(out, (const char *const *)spawn->env);
	return frame_end(out);
}

int init_spawn_get(struct frame *frame, struct init_spawn *ret_spawn)
{
	struct init_spawn spawn = { 0 };
	uint32_t size;
	int r;

	spawn.id = frame_get_u32(frame);
	spawn.flags = frame_get_u32(frame);
	spawn.umask = frame_get_u32(frame);
	size = frame_get_u32(frame);
	spawn.rows = (uint16_t)(size >> 16);
	spawn.columns = (uint16_t)size;
	spawn.cwd = frame_get_string(frame);
	spawn.argv = frame_get_strv(frame);
	spawn.env = frame_get_strv(frame);
	r = frame_finish(frame);
	if (r == 0 && (!spawn.cwd || !spawn.argv[0]))
		r = -EBADMSG;
	if (r < 0) {
		free(spawn.argv);
		free(spawn.env);
		return r;
	}
	*ret_spawn = spawn;
	return 0;
}

int init_exit_put(struct buf *out, const struct init_exit *event)
{
	frame_begin(out, INIT_EXITED);
	frame_put_u32(out, event->id);
	frame_put_u32(out, (uint32_t)event->code);
	frame_put_u32(out, (uint32_t)event->signal);
	frame_put_u64(out, event->user_us);
	frame_put_u64(out, event->system_us);
	frame_put_u64(out, event->max_rss_bytes);
	return frame_end(out);
}

int init_exit_get(struct frame *frame, struct init_exit *ret_event)
{
	struct init_exit event = { 0 };
	int r;

	event.id = frame_get_u32(frame);
	event.code = (int32_t)frame_get_u32(frame);
	event.signal = (int32_t)frame_get_u32(frame);
	event.user_us = frame_get_u64(frame);
	event.system_us = frame_get_u64(frame);
	event.max_rss_bytes = frame_get_u64(frame);
	r = frame_finish(frame);
	if (r == 0 && (event.code < -1 || event.code > 255 || event.signal < 0 || event.signal > 64))
		r = -EBADMSG;
	if (r == 0)
		*ret_event = event;
	return r;
}
