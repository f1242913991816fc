/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

static int is_log(const struct dirent *entry)
{
	return str_has_suffix(entry->d_name, ".jsonl");
}

/* Their names are times, so that the oldest stands first. */
static void remove_oldest(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_log, alphasort);

	for (int i = 0; i < count; i++) {
		char file[PATH_MAX];

		if (i < count - JOURNAL_FILES_MAX && path_join(file, sizeof file, path, entries[i]->d_name) == 0)
			unlink(file);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

int journal_open(const char *directory, struct audit_writer *ret_writer, struct err *err)
{
	char path[PATH_MAX], file[PATH_MAX], when[CLOCK_RFC3339_SIZE], session[SESSION_ID_SIZE];
	int fd = FD_NONE, r = random_session_id(session);

	clock_format_rfc3339(clock_realtime_ns(), when);
	if (r == 0)
		r = path_join(path, sizeof path, directory, "audit");
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = str_format(file, sizeof file, "%s/%s.jsonl", path, when);
	if (r == 0)
		r = fd = fd_open_at(AT_FDCWD, file, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
	if (r >= 0)
		r = audit_writer_init(ret_writer, fd, session);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "serve", "the audit log in %s/audit cannot be written: %s",
			       directory, err_errno_name(-r));
	remove_oldest(path);
	return 0;
}

int journal_turn(const char *directory, struct audit_writer *writer)
{
	struct audit_writer next;
	struct err err = { 0 };
	struct stat st;
	int r;

	if (fstat(writer->fd, &st) < 0 || st.st_size < JOURNAL_BYTES_MAX)
		return 0;
	r = journal_open(directory, &next, &err);
	if (r < 0)
		return r;
	r = audit_writer_done(writer);
	*writer = next;
	return r;
}
