/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/call/remote.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

/*
 * Whole pages are read: a page is there or not, so no read ends halfway, and path, argument vector and
 * strings of one exec mostly lie in two or three of them.
 *
 * A page that never comes would hang the supervisor: so the filter refuses userfaultfd, and mount refuses FUSE
 * inside. What the host itself mounts (a slow NFS) is as slow for us as for the caller.
 */

void remote_begin(struct remote *remote, pid_t pid)
{
	remote->pid = pid;
	remote->memory_fd = FD_NONE;
	for (size_t i = 0; i < REMOTE_PAGES; i++)
		remote->pages[i] = 1;
}

void remote_end(struct remote *remote)
{
	close_fd(&remote->memory_fd);
}

static int read_by_file(struct remote *remote, uint64_t page, void *bytes)
{
	ssize_t n;

	if (remote->memory_fd < 0) {
		char path[32];
		int r = str_format(path, sizeof path, "/proc/%d/mem", remote->pid);

		if (r < 0)
			return r;
		remote->memory_fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
		if (remote->memory_fd < 0)
			return remote->memory_fd == -EACCES ? -EPERM : remote->memory_fd;
	}
	n = pread(remote->memory_fd, bytes, REMOTE_PAGE_SIZE, (off_t)page);
	return n == REMOTE_PAGE_SIZE ? 0 : -EFAULT;
}

static int read_page(struct remote *remote, uint64_t page, void *bytes)
{
	struct iovec local = { .iov_base = bytes, .iov_len = REMOTE_PAGE_SIZE };
	struct iovec there = { .iov_base = (void *)(uintptr_t)page, .iov_len = REMOTE_PAGE_SIZE };

	if (process_vm_readv(remote->pid, &local, 1, &there, 1, 0) == REMOTE_PAGE_SIZE)
		return 0;
	/* Not in every kernel (CONFIG_CROSS_MEMORY_ATTACH), and not under every LSM. */
	if (errno == ENOSYS || errno == EPERM)
		return read_by_file(remote, page, bytes);
	return errno == ESRCH ? -ESRCH : -EFAULT;
}

/* The bytes at address up to the end of its page. */
static int find_bytes(struct remote *remote, uint64_t address, const uint8_t **ret_bytes, size_t *ret_size)
{
	uint64_t offset = address % REMOTE_PAGE_SIZE, page = address - offset;
	size_t slot = page / REMOTE_PAGE_SIZE % REMOTE_PAGES;

	if (remote->pages[slot] != page) {
		int r = read_page(remote, page, remote->bytes[slot]);

		remote->pages[slot] = r < 0 ? 1 : page;
		if (r < 0)
			return r;
	}
	*ret_bytes = remote->bytes[slot] + offset;
	*ret_size = REMOTE_PAGE_SIZE - offset;
	return 0;
}

int remote_read(struct remote *remote, uint64_t address, void *bytes, size_t size)
{
	uint8_t *at = bytes;

	while (size) {
		const uint8_t *found;
		size_t part;
		int r = find_bytes(remote, address, &found, &part);

		if (r < 0)
			return r;
		if (part > size)
			part = size;
		memcpy(at, found, part);
		at += part;
		address += part;
		size -= part;
	}
	return 0;
}

ssize_t remote_read_string(struct remote *remote, uint64_t address, char *out, size_t size)
{
	size_t used = 0;

	while (used + 1 < size) {
		const uint8_t *found;
		size_t part, length;
		int r = find_bytes(remote, address, &found, &part);

		if (r < 0)
			return r;
		if (part > size - 1 - used)
			part = size - 1 - used;
		length = strnlen((const char *)found, part);
		memcpy(out + used, found, length);
		used += length;
		address += length;
		if (length < part)
			break;
	}
	out[used] = 0;
	return (ssize_t)used;
}

static uint64_t find_mask(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/*
 * A caller whose notification was received can only be killed (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), which spares
 * every other call the repetition; but a connect can take minutes, and its user presses Ctrl-C. Where the handler is
 * one with SA_RESTART, the kernel would have gone on with the call: that is not to be had, and EINTR is what connect(2)
 * may say too.
 */
bool remote_is_interrupted(pid_t pid)
{
	cleanup_fd int fd = FD_NONE;
	char path[32], text[4096];
	uint64_t pending;
	ssize_t size;

	if (str_format(path, sizeof path, "/proc/%d/status", pid) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (size < 0)
		return false;
	text[size] = 0;
	pending = find_mask(text, "\nSigPnd:") | find_mask(text, "\nShdPnd:");
	return pending & find_mask(text, "\nSigCgt:") & ~find_mask(text, "\nSigBlk:");
}
