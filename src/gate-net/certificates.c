/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/certificates.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"
#include "build/mount-plan-parts.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "wire/gate.h"

/* A large recording takes its time to be read. */
enum { PATIENCE_MS = 30000 };

/* ---- what the host trusts ---- */

static bool is_wanted(enum certificate_file file)
{
	if (file != CERTIFICATE_JAVA)
		return true;
	for (size_t i = 0; i < certificate_place_count; i++)
		if (certificate_places[i].file == file && access(certificate_places[i].path, F_OK) == 0)
			return true;
	return false;
}

/* ---- the conversation ---- */

enum introduction { ALONE, READY, INTRODUCED };

struct conversation {
	enum introduction state;
	struct err *err;
};

static int on_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct conversation *conversation = context;

	conversation->state = READY;
	return frame_finish(frame);
}

static int on_introduced(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct conversation *conversation = context;

	conversation->state = INTRODUCED;
	return frame_finish(frame);
}

static int on_broken(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct conversation *conversation = context;
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);

	if (frame_finish(frame) < 0 || !bytes || size != sizeof *conversation->err)
		return -EBADMSG;
	memcpy(conversation->err, bytes, size);
	conversation->err->message[sizeof conversation->err->message - 1] = 0;
	conversation->err->hint[sizeof conversation->err->hint - 1] = 0;
	return -ECANCELED;
}

static const struct frame_rule rules[] = {
	{ GATE_READY, 1 << ALONE, 64, 0, 0, on_ready },
	{ GATE_INTRODUCED, 1 << READY, 64, 0, 0, on_introduced },
	{ GATE_BROKEN, 1 << ALONE | 1 << READY, 2048, 0, 0, on_broken },
};

static int converse(const struct certificates_input *input, struct err *err)
{
	uint64_t until_ns = clock_monotonic_ns() + PATIENCE_MS * (uint64_t)1000000;
	struct conversation conversation = { .err = err };

	while (conversation.state != INTRODUCED) {
		struct pollfd polled = { .fd = input->gate_fd, .events = POLLIN };
		uint64_t now_ns = clock_monotonic_ns();
		int r = now_ns < until_ns ? poll(&polled, 1, (int)((until_ns - now_ns) / 1000000) + 1) : 0;

		if (r == 0)
			return -ETIMEDOUT;
		r = frame_dispatch(input->gate_fd, input->scratch, conversation.state, rules, ARRAY_SIZE(rules),
				   &conversation);
		if (r <= 0 && r != -EAGAIN)
			return r == 0 ? -ECONNRESET : r;
	}
	return 0;
}

static int send_request(const struct certificates_input *input, const int *fds, size_t fd_count, uint32_t wanted)
{
	frame_begin(input->out, GATE_INTRODUCE);
	frame_put_u32(input->out, wanted);
	return frame_end(input->out) < 0 ? -ENOMEM : frame_send(input->gate_fd, input->out, fds, fd_count);
}

/* ---- the files ---- */

static int map_file(struct certificate_content *content)
{
	struct stat st;
	void *bytes;
	int r = fd_memfd_seal(content->fd);

	if (r < 0 || fstat(content->fd, &st) < 0)
		return r < 0 ? r : -errno;
	if (st.st_size <= 0 || st.st_size > 2 * CERTIFICATE_FILE_MAX)
		return -EFBIG;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, content->fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	content->bytes = bytes;
	content->size = (size_t)st.st_size;
	return 0;
}

static int ask_for_files(struct certificates *certificates, const struct certificates_input *input, int bundle_fd)
{
	int fds[1 + CERTIFICATE_FILE_COUNT] = { bundle_fd };
	size_t count = 1;
	uint32_t wanted = 0;
	int r;

	for (int file = 0; file < CERTIFICATE_FILE_COUNT; file++) {
		if (!is_wanted((enum certificate_file)file))
			continue;
		r = fd_memfd_new(path_basename(certificate_file_paths[file]));
		if (r < 0)
			return r;
		fds[count++] = certificates->files[file].fd = r;
		wanted |= 1u << file;
	}
	r = send_request(input, fds, count, wanted);
	/* One that broke already has said why, and the words lie here. */
	return r == -EPIPE ? 0 : r;
}

static int fail(const struct certificates_input *input, int r, struct err *err)
{
	err_set(err, ERR_STATE, -r, "network gate", "the network gate cannot make its certificate: %s",
		err_errno_name(-r));
	err_hint(err, "%s must hold PEM certificates; SSL_CERT_FILE names another bundle",
		 certificate_bundle_path(input->env));
	return r;
}

void certificates_init(struct certificates *certificates)
{
	*certificates = (struct certificates){ 0 };
	for (int file = 0; file < CERTIFICATE_FILE_COUNT; file++)
		certificates->files[file].fd = FD_NONE;
}

int certificates_begin(struct certificates *certificates, const struct certificates_input *input, struct err *err)
{
	const char *path = certificate_bundle_path(input->env);
	cleanup_fd int bundle_fd = path ? fd_open_at(AT_FDCWD, path, O_RDONLY, 0) : -ENOENT;
	int r;

	if (bundle_fd < 0) {
		err_set(err, ERR_STATE, -bundle_fd, "network gate", "the certificates that this machine trusts "
								    "cannot be read: %s: %s",
			path ? path : "no bundle", err_errno_name(-bundle_fd));
		err_hint(err, "install ca-certificates, or name a bundle by SSL_CERT_FILE; http and inject need it");
		return bundle_fd;
	}
	r = ask_for_files(certificates, input, bundle_fd);
	return r < 0 ? fail(input, r, err) : 0;
}

int certificates_finish(struct certificates *certificates, const struct certificates_input *input, struct err *err)
{
	int r = converse(input, err);

	for (int file = 0; file < CERTIFICATE_FILE_COUNT; file++) {
		struct certificate_content *content = &certificates->files[file];

		if (r == 0 && content->fd >= 0)
			r = map_file(content);
		close_fd(&content->fd);
	}
	return r == 0 || r == -ECANCELED ? r : fail(input, r, err);
}

void certificates_done(struct certificates *certificates)
{
	for (int file = 0; file < CERTIFICATE_FILE_COUNT; file++) {
		if (certificates->files[file].bytes)
			munmap(certificates->files[file].bytes, certificates->files[file].size);
		close_fd(&certificates->files[file].fd);
	}
	certificates_init(certificates);
}

/* ---- the mounts ---- */

static int add_file(const struct certificates *certificates, struct plan *plan, enum certificate_file file,
		    const char *target)
{
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_FILE,
						   .target = target,
						   .content = certificates->files[file].bytes,
						   .content_size = certificates->files[file].size,
						   .rule = "builtin.trust" });
}

/* Over the file of the system, under its real name, where the sandbox sees it. */
static int add_place(const struct certificates *certificates, struct plan *plan, const struct certificate_place *place)
{
	char real[PATH_MAX];

	if (!certificates->files[place->file].bytes || plan_real(plan, place->path, real) < 0)
		return 0;
	if (!plan_shows_file(plan, real))
		return 0;
	return add_file(certificates, plan, place->file, plan_keep(plan, str_dup(real)));
}

int certificates_plan(const struct certificates *certificates, struct plan *plan)
{
	int r = 0;

	for (int file = 0; r == 0 && file < CERTIFICATE_FILE_COUNT; file++)
		if (certificates->files[file].bytes)
			r = add_file(certificates, plan, (enum certificate_file)file, certificate_file_paths[file]);
	for (size_t i = 0; r == 0 && i < certificate_place_count; i++)
		r = add_place(certificates, plan, &certificate_places[i]);
	return r;
}
