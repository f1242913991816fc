/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "session/directories.h"

static int make_directory(const char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	return err_set(err, ERR_STATE, errno, "serve", "%s cannot be made: %s", path, err_errno_name(errno));
}

static int find_programs(char out[PATH_MAX], struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n < 0)
		return err_set(err, ERR_STATE, errno, "serve",
		"the programs of atoll cannot be found: /proc is missing");
	self[n] = 0;
	return path_join(out, PATH_MAX, self, "..") < 0 ?
		       err_set(err, ERR_STATE, ENAMETOOLONG, "serve", "the path of atoll's programs is too long") : 0;
}

int places_find(struct service_places *ret_places, char **environment, struct err *err)
{
	struct service_places *places = ret_places;
	int r = session_state_dir(places->state, sizeof places->state, true, err);

	if (r == 0)
		r = find_programs(places->programs, err);
	if (r == 0 && (path_join(places->directory, PATH_MAX, places->state, "service") < 0 ||
		       path_join(places->store, PATH_MAX, places->directory, "service.db") < 0))
		r = err_set(err, ERR_STATE, ENAMETOOLONG, "serve", "the path of the state directory is too long");
	return r < 0 ? r : make_directory(places->directory, 0700, err);
}

int places_read_secret(struct daemon *daemon, struct err *err)
{
	cleanup_free char *bytes = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	int r = path_join(path, sizeof path, daemon->places.directory, "secret");

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, CREDENTIAL_SECRET_SIZE, &bytes, &size);
	if (r == 0 && size == CREDENTIAL_SECRET_SIZE) {
		memcpy(daemon->secret, bytes, size);
		explicit_bzero(bytes, size);
		return 0;
	}
	if (r == 0 || r == -EFBIG)
		return err_set(err, ERR_STATE, EBADMSG, "serve", "%s is no secret of the service: remove it", path);
	if (r == -ENOENT)
		r = random_bytes(daemon->secret, sizeof daemon->secret);
	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, path, daemon->secret, sizeof daemon->secret, 0600);
	return r < 0 ? err_set(err, ERR_STATE, -r, "serve", "%s cannot be written: %s", path, err_errno_name(-r)) : 0;
}

static int fail_atoll(const struct atoll_error *error, struct err *err)
{
	err_set(err, ERR_STATE, error->errnum > 0 ? error->errnum : EINVAL, "serve", "%s", error->what);
	err_hint(err, "%s", error->hint);
	return -EINVAL;
}

int places_open_context(struct daemon *daemon, const struct service_places *places, char **environment, struct err *err)
{
	const uint64_t events = 1 << ATOLL_EVENT_READY | 1 << ATOLL_EVENT_STARTED | 1 << ATOLL_EVENT_EXIT |
				1 << ATOLL_EVENT_LOST | 1 << ATOLL_EVENT_OUTPUT;
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_CONTEXT);
	int r = record ? atoll_default_places(record, (const char *const *)environment, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "state", places->state, &error);
	if (r == 0)
		r = atoll_set_string(record, "programs", places->programs, &error);
	/* Inside; of whoever runs this nothing is meant. */
	if (r == 0)
		r = atoll_set_string(record, "home", USER_HOME, &error);
	if (r == 0)
		r = atoll_set_u64(record, "events", events, &error);
	if (r == 0)
		r = atoll_context_new(record, &daemon->context, &error);
	atoll_record_free(record);
	return r < 0 ? fail_atoll(&error, err) : 0;
}

int places_make(struct daemon *daemon, struct err *err)
{
	struct daemon_places *places = &daemon->places;

	if (path_join(places->home, PATH_MAX, places->directory, "home") < 0 ||
	    path_join(places->project, PATH_MAX, places->directory, "project") < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "serve", "the path of the state directory is too long");
	return make_directory(places->home, 0755, err) < 0 ? -EIO : make_directory(places->project, 0755, err);
}

/* A child of one that was killed may have it open until it executes its program, a moment later. */
enum { LOCK_WAIT_MS = 1000 };

int places_lock(const struct service_places *places, struct err *err)
{
	char path[PATH_MAX];
	int fd, r;

	r = path_join(path, sizeof path, places->directory, "lock");
	r = fd = r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
	if (r >= 0)
		r = fd_lock_within(fd, LOCK_EX, LOCK_WAIT_MS);
	if (r >= 0)
		return fd;
	close_fd(&fd);
	if (r != -EBUSY)
		return err_set(err, ERR_STATE, -r, "serve", "%s cannot be locked: %s", path, err_errno_name(-r));
	err_set(err, ERR_STATE, EBUSY, "serve", "another atolld serves from %s", places->directory);
	err_hint(err, "end it first, or give this one a state directory of its own (XDG_STATE_HOME)");
	return -EBUSY;
}
