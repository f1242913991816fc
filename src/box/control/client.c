/* SPDX-License-Identifier: Apache-2.0 */
#include "box/control/client.h"

#include <sys/socket.h>

#include "box/state/sandbox.h"
#include "wire/control.h"

void client_reply(struct client *client, int r, const int *fds, size_t fd_count)
{
	if (r == 0)
		r = frame_send(client->fd, &client->box->run.out, fds, fd_count);
	if (r < 0)
		shutdown(client->fd, SHUT_RDWR);
}

void client_reply_u32(struct client *client, uint16_t type, uint32_t value)
{
	frame_begin(&client->box->run.out, type);
	frame_put_u32(&client->box->run.out, value);
	client_reply(client, frame_end(&client->box->run.out), NULL, 0);
}

void client_reply_error(struct client *client, const struct err *err)
{
	frame_begin(&client->box->run.out, CONTROL_ERROR);
	frame_put_bytes(&client->box->run.out, err, sizeof *err);
	client_reply(client, frame_end(&client->box->run.out), NULL, 0);
}
