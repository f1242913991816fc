/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/init.h"

#include "wire/layout.h"

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

static const struct layout exit_rows[] = {
	LAYOUT(init_exit, U32, id),
	LAYOUT(init_exit, U32, code),
	LAYOUT_MAX(init_exit, U32, signal, 64),
	LAYOUT(init_exit, U64, user_us),
	LAYOUT(init_exit, U64, system_us),
	LAYOUT(init_exit, U64, max_rss_bytes),
};

int init_exit_put(struct buf *out, const struct init_exit *from)
{
	return layout_put_frame(out, INIT_EXITED, exit_rows, ARRAY_SIZE(exit_rows), from);
}

int init_exit_get(struct frame *frame, struct init_exit *to)
{
	int r = layout_get_frame(frame, exit_rows, ARRAY_SIZE(exit_rows), to);

	if (r == 0 && (to->code < -1 || to->code > 255))
		return layout_refuse(frame, exit_rows, ARRAY_SIZE(exit_rows), to);
	return r;
}
