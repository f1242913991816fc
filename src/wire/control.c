/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/control.h"

int control_exec_put(struct buf *out, const struct control_exec *exec)
{
	frame_begin(out, CONTROL_EXEC);
	frame_put_u32(out, exec->flags);
	frame_put_u32(out, (uint32_t)exec->rows << 16 | exec->columns);
	frame_put_string(out, exec->cwd);
	frame_put_strv(out, (const char *const *)exec->argv);
	frame_put_strv(out, (const char *const *)exec->env);
	frame_put_strv(out, (const char *const *)exec->env_added);
	return frame_end(out);
}

int control_exec_get(struct frame *frame, struct control_exec *ret_exec)
{
	struct control_exec exec = { 0 };
	uint32_t size;
	int r;

	exec.flags = frame_get_u32(frame);
	size = frame_get_u32(frame);
	exec.rows = (uint16_t)(size >> 16);
	exec.columns = (uint16_t)size;
	exec.cwd = frame_get_string(frame);
	exec.argv = frame_get_strv(frame);
	exec.env = frame_get_strv(frame);
	exec.env_added = frame_get_strv(frame);
	r = frame_finish(frame);
	if (r == 0 && !exec.argv[0])
		r = -EBADMSG;
	if (r < 0) {
		free(exec.argv);
		free(exec.env);
		free(exec.env_added);
		return r;
	}
	*ret_exec = exec;
	return 0;
}
