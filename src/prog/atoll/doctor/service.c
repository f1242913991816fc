/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/doctor/doctor.h"
#include "session/directories.h"
#include "session/record.h"

/* 1: a daemon holds the lock of the service; 0: none does; -ENOENT: there never was one. */
static int is_served(const char *state)
{
	cleanup_fd int fd = FD_NONE;
	char path[PATH_MAX];

	if (path_join(path, sizeof path, state, "service/lock") < 0)
		return -ENAMETOOLONG;
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	return flock(fd, LOCK_SH | LOCK_NB) < 0 ? errno == EWOULDBLOCK : 0;
}

/* Its control socket is there, and its record is empty: nobody has taken it. */
static bool is_parked(const char *state, const char *name)
{
	cleanup_session_record struct session_record record = { 0 };
	char id[SESSION_ID_SIZE], path[PATH_MAX];

	if (strlen(name) != SESSION_ID_SIZE - 1 + strlen(".sock") || !str_has_suffix(name, ".sock"))
		return false;
	memcpy(id, name, SESSION_ID_SIZE - 1);
	id[SESSION_ID_SIZE - 1] = 0;
	return session_id_is_valid(id) && session_path(state, id, "policy.bin", path, sizeof path) == 0 &&
	       access(path, F_OK) == 0 && session_load_id(state, id, &record) < 0;
}

static unsigned count_parked(const char *state, const char *runtime)
{
	DIR *directory = opendir(runtime);
	const struct dirent *entry;
	unsigned count = 0;

	while (directory && (entry = readdir(directory)))
		count += is_parked(state, entry->d_name);
	if (directory)
		closedir(directory);
	return count;
}

void doctor_service(struct findings *findings)
{
	char state[PATH_MAX], runtime[PATH_MAX];
	struct err unheard;
	unsigned parked;
	int r;

	if (session_state_dir(state, sizeof state, false, &unheard) < 0 ||
	    session_runtime_dir(runtime, sizeof runtime, false, &unheard) < 0)
		return;
	r = is_served(state);
	if (r == 0)
		findings_add(findings, FINDING_NOTE, "service", "atolld does not run now; `atoll serve` starts it");
	if (r != 1)
		return;
	parked = count_parked(state, runtime);
	findings_add(findings, FINDING_OK, "service", "atolld runs; %u %s, built ahead of %s use", parked,
		     parked == 1 ? "sandbox waits" : "sandboxes wait", parked == 1 ? "its" : "their");
}
