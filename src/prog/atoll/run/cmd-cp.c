/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/library.h"

/*
 * One file in or out of a running sandbox, as the sandbox sees it: its user, its links, its policy. What is outside is
 * opened by us, what is inside by the sandbox's own rules; then bytes go from one descriptor to the other.
 */

enum { CHUNK_SIZE = 256 << 10 };

struct cp_options {
	bool parents;
};

static const struct option options[] = {
	{ 'p', "parents", NULL, "make directories inside that are missing", OPTION_FLAG,
	  offsetof(struct cp_options, parents) },
};

/* "ID:PATH" in two; NULL: it is a file out here. A path with a slash before its colon is one. */
static const char *path_inside(char *word)
{
	char *colon = strchr(word, ':'), *slash = strchr(word, '/');

	if (!colon || colon == word || (slash && slash < colon))
		return NULL;
	*colon = 0;
	return colon + 1;
}

struct copy {
	atoll_sandbox *sandbox;
	const char *inside, *outside;
	bool parents;
};

/* Below the project where it is not absolute; with the file's name where it ends in a slash. */
static int name_inside(const struct copy *copy, bool is_in, char out[PATH_MAX], struct err *err)
{
	cleanup_record atoll_record *info = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	const char *name = is_in && str_has_suffix(copy->inside, "/") ? path_basename(copy->outside) : "";
	const char *project = "";
	int r = 0;

	if (copy->inside[0] != '/') {
		r = atoll_info(copy->sandbox, &info, &error);
		if (r < 0)
			return library_fail(&error, err);
		project = library_text(info, "project");
	}
	if (str_format(out, PATH_MAX, "%s%s%s%s", project, *project ? "/" : "", copy->inside, name) < 0)
		return err_set(err, ERR_USAGE, ENAMETOOLONG, "cp", "the path inside is too long");
	return 0;
}

/* The caller's descriptor. */
static int open_inside(const struct copy *copy, uint64_t flags, mode_t mode, mode_t *ret_mode, struct err *err)
{
	cleanup_record atoll_record *how = atoll_record_new(ATOLL_OPEN), *result = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	char path[PATH_MAX];
	int r = name_inside(copy, flags & ATOLL_OPEN_WRITE, path, err);

	if (r < 0)
		return r;
	r = atoll_set_u64(how, "flags", flags, &error);
	if (r == 0)
		r = atoll_set_u64(how, "mode", mode & 0777, &error);
	if (r == 0)
		r = atoll_open(copy->sandbox, path, how, NULL, &result, &error);
	if (r < 0) {
		r = library_fail(&error, err);
		/* It is no program that was not found. */
		err->code = ERR_STATE;
		return r;
	}
	if (ret_mode)
		*ret_mode = (mode_t)library_number(result, "mode");
	return atoll_take_fd(result, "file");
}

static int open_outside(const struct copy *copy, bool is_in, mode_t mode, struct err *err)
{
	bool is_stream = str_equal(copy->outside, "-");
	int fd = is_stream ? fd_duplicate(is_in ? STDIN_FILENO : STDOUT_FILENO)
		 : is_in   ? fd_open_at(AT_FDCWD, copy->outside, O_RDONLY, 0)
			   : fd_open_at(AT_FDCWD, copy->outside, O_WRONLY | O_CREAT | O_TRUNC, mode & 0777);

	if (fd < 0)
		return err_set(err, ERR_STATE, -fd, "cp", "cannot open %s: %s", copy->outside, err_errno_name(-fd));
	return fd;
}

static int move_bytes(int from, int to, struct err *err)
{
	cleanup_free char *bytes = malloc(CHUNK_SIZE);
	ssize_t n = bytes ? 1 : -1;
	int r = bytes ? 0 : -ENOMEM;

	while (r == 0 && n != 0) {
		n = read(from, bytes, CHUNK_SIZE);
		if (n < 0 && errno != EINTR)
			r = -errno;
		else if (n > 0)
			r = fd_write_full(to, bytes, (size_t)n);
	}
	return r < 0 ? err_set(err, ERR_STATE, -r, "cp", "cannot copy: %s", err_errno_name(-r)) : 0;
}

static int copy_in(const struct copy *copy, struct err *err)
{
	cleanup_fd int from = open_outside(copy, true, 0, err), to = FD_NONE;
	uint64_t flags = ATOLL_OPEN_WRITE | ATOLL_OPEN_CREATE | ATOLL_OPEN_TRUNCATE;
	struct stat status;

	if (from < 0)
		return from;
	if (fstat(from, &status) < 0 || S_ISDIR(status.st_mode))
		return err_set(err, ERR_USAGE, EISDIR, "cp", "%s is a directory: it can be piped in as an archive",
			       copy->outside);
	to = open_inside(copy, flags | (copy->parents ? ATOLL_OPEN_PARENTS : 0),
			 S_ISREG(status.st_mode) ? status.st_mode : 0644, NULL, err);
	return to < 0 ? to : move_bytes(from, to, err);
}

static int copy_out(const struct copy *copy, struct err *err)
{
	mode_t mode = 0644;
	cleanup_fd int from = open_inside(copy, ATOLL_OPEN_READ, 0, &mode, err), to = FD_NONE;

	if (from < 0)
		return from;
	to = open_outside(copy, false, mode, err);
	return to < 0 ? to : move_bytes(from, to, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_context atoll_context *context = NULL;
	cleanup_sandbox atoll_sandbox *sandbox = NULL;
	struct cp_options given = { 0 };
	struct copy copy = { 0 };
	const char *from, *to;
	int rest, r = cmd_parse(&cmd_cp, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	from = argc - rest == 2 ? path_inside(argv[rest]) : NULL;
	to = argc - rest == 2 ? path_inside(argv[rest + 1]) : NULL;
	if (!from == !to) {
		err_set(err, ERR_USAGE, EINVAL, "cp", "one of two words is a path inside");
		err_hint(err, "atoll cp FILE ID:PATH, or atoll cp ID:PATH FILE; - is standard input or output");
		return -EINVAL;
	}
	copy = (struct copy){ NULL, from ? from : to, from ? argv[rest + 1] : argv[rest], given.parents };
	r = library_context(LIBRARY_EVENT(END), &context, err);
	if (r == 0)
		r = library_find(context, from ? argv[rest] : argv[rest + 1], &sandbox, err);
	if (r < 0)
		return r;
	copy.sandbox = sandbox;
	return from ? copy_out(&copy, err) : copy_in(&copy, err);
}

const struct cmd cmd_cp = {
	"cp", "FILE ID:PATH | ID:PATH FILE", "copy a file into a running sandbox, or out of it",
	CMD_OPTIONS(options), .run = run_verb,
};
