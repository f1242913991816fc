/* SPDX-License-Identifier: Apache-2.0 */
#include "accounts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "place.h"

/*
 * Names of users and groups as the sandbox's own passwd(5) and group(5) have them, which a program inside may have
 * written: they are read anew when they changed, and no more than this much of them.
 */

enum { TEXT_MAX = 256 << 10, NAME_SIZE = 64 };

struct accounts {
	const char *path;
	char *text;              /* owned */
	size_t size;
	struct stat status;
	uint64_t looked;         /* for which request: once for each */
	char name[NAME_SIZE];
};

static struct accounts users = { .path = "/etc/passwd" }, groups = { .path = "/etc/group" };

static bool has_changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_dev != b->st_dev || a->st_size != b->st_size ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void read_anew(struct accounts *accounts, int fd, const struct stat *status)
{
	size_t size = status->st_size > TEXT_MAX ? TEXT_MAX : (size_t)status->st_size;
	ssize_t n;

	free(accounts->text);
	accounts->size = 0;
	accounts->text = malloc(size + 1);
	n = accounts->text ? read(fd, accounts->text, size) : 0;
	if (n > 0)
		accounts->size = (size_t)n;
	accounts->status = *status;
}

static void look_again(const struct inside *inside, struct accounts *accounts)
{
	struct place place = { .fd = FD_NONE };
	cleanup_fd int fd = FD_NONE;
	struct stat status;
	int r;

	if (accounts->looked == inside->ticket)
		return;
	accounts->looked = inside->ticket;
	r = place_find(inside, accounts->path, 0, &place);
	if (r == 0 && S_ISREG(place.status.st_mode) && has_changed(&place.status, &accounts->status)) {
		fd = judged_open(inside, accounts->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
			read_anew(accounts, fd, &status);
	}
	close_fd(&place.fd);
}

/* "NAME:PASSWORD:ID:…" */
static bool find(struct accounts *accounts, uint32_t id)
{
	const char *at = accounts->text, *end = at + accounts->size;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at)), *name_end, *id_at, *colon;
		unsigned long number = 0;

		line_end = line_end ? line_end : end;
		name_end = memchr(at, ':', (size_t)(line_end - at));
		colon = name_end ? memchr(name_end + 1, ':', (size_t)(line_end - name_end - 1)) : NULL;
		id_at = colon ? colon + 1 : line_end;
		while (id_at < line_end && *id_at >= '0' && *id_at <= '9' && number <= UINT32_MAX)
			number = number * 10 + (unsigned long)(*id_at++ - '0');
		if (colon && id_at > colon + 1 && number == id && name_end > at && name_end - at < NAME_SIZE) {
			memcpy(accounts->name, at, (size_t)(name_end - at));
			accounts->name[name_end - at] = 0;
			return true;
		}
		at = line_end + 1;
	}
	return false;
}

static const char *name_of(const struct inside *inside, struct accounts *accounts, uint32_t id)
{
	look_again(inside, accounts);
	if (!accounts->text || !find(accounts, id))
		(void)!str_format(accounts->name, sizeof accounts->name, "%u", (unsigned)id);
	return accounts->name;
}

const char *accounts_user(const struct inside *inside, uint32_t uid)
{
	return name_of(inside, &users, uid);
}

const char *accounts_group(const struct inside *inside, uint32_t gid)
{
	return name_of(inside, &groups, gid);
}
