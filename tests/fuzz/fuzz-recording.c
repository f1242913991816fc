/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "egress/message/http1-head.h"
#include "egress/record/replay.h"
#include "os/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What a recording has can be given to any client: no field and no reason breaks out of its line. */
static void check(const struct answer *answer)
{
	struct answer_source source = { .answer = answer };
	struct buf out;
	bool closes = false;

	buf_init(&out, 1 << 20);
	answer_put_head(&source, 1, &closes, &out);
	for (size_t i = 0; i + 1 < out.size; i++)
		if ((out.bytes[i] == '\n' && (!i || out.bytes[i - 1] != '\r')) || !out.bytes[i])
			abort();
	for (size_t i = 0; answer->trailers[i]; i += 2)
		if (!http1_field_is_valid(answer->trailers[i], answer->trailers[i + 1]))
			abort();
	buf_reset(&out);
	while (answer_put_body(&source, &out, 1000) == ANSWER_MORE)
		buf_reset(&out);
	if (answer->status < 200 || answer->status > 599)
		abort();
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct target_server server = { "a", 443, true };
	cleanup_fd int fd = memfd_create("recording", MFD_CLOEXEC);
	struct replay *replay;
	struct hash hash = { 0 };
	struct err err;

	if (fd < 0 || fd_write_full(fd, bytes, size) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    replay_new(&replay, fd, &err) < 0)
		return 0;
	for (int i = 0; i < 4; i++) {
		const char *problem;
		const struct answer *answer = replay_find(replay, "GET", &server, "/", &hash, &problem);

		if (!answer && !problem)
			abort();
		if (answer)
			check(answer);
	}
	(void)replay_is_http2(replay, &server);
	replay_free(replay);
	return 0;
}
