/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-repository.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

int git_fail_with(struct err *err, int r, const char *what, const char *hint)
{
	err_set(err, ERR_STATE, -r, "apply", "%s", what);
	err_hint(err, "%s", hint);
	return r;
}

static const char patch_hint[] = "atoll apply --patch FILE writes a patch that `git apply` takes";

/* A linked work tree names its git directory in a file, and that one names it: only where both do it is one. */
static int open_linked(const char *root, int root_fd, int *ret_own_fd)
{
	static const char begin[] = "gitdir: ";
	cleanup_free char *text = NULL, *back = NULL;
	char path[PATH_MAX], link[PATH_MAX];
	struct stat mine, named;
	size_t size;
	int r = fd_read_regular_at(root_fd, ".git", PATH_MAX, &text, &size);

	if (r < 0 || !str_has_prefix(text, begin))
		return -ENOTSUP;
	text[strcspn(text, "\n")] = 0;
	r = path_join(path, sizeof path, root, text + sizeof begin - 1);
	if (r == 0)
		r = *ret_own_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = fd_read_regular_at(*ret_own_fd, "gitdir", PATH_MAX, &back, &size);
	if (r < 0)
		return -ENOTSUP;
	back[strcspn(back, "\n")] = 0;
	r = path_join(link, sizeof link, path, back);
	if (r < 0 || stat(link, &named) < 0 || fstatat(root_fd, ".git", &mine, 0) < 0 || named.st_ino != mine.st_ino ||
	    named.st_dev != mine.st_dev)
		return -ENOTSUP;
	return 0;
}

/* Where objects and refs are: the same directory, or what `commondir` in it names. */
static int open_common(int own_fd)
{
	cleanup_free char *text = NULL;
	size_t size;
	int r = fd_read_regular_at(own_fd, "commondir", PATH_MAX, &text, &size);

	if (r == -ENOENT)
		return fd_duplicate(own_fd);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = 0;
	return fd_open_at(own_fd, text, O_RDONLY | O_DIRECTORY, 0);
}

int git_repository_find(const char *base, struct git_repository *repository, struct err *err)
{
	int r = str_copy(repository->root, sizeof repository->root, base ? base : "/");
	bool is_found = false;
	struct stat common;

	while (r == 0 && !is_found) {
		cleanup_fd int root_fd = fd_open_at(AT_FDCWD, repository->root, O_RDONLY | O_DIRECTORY, 0);
		char *slash = strrchr(repository->root, '/');
		struct stat st;

		if (root_fd >= 0 && fstatat(root_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
			is_found = true;
			if (S_ISDIR(st.st_mode))
				r = repository->own_fd = fd_open_at(root_fd, ".git",
								    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
			else
				r = S_ISREG(st.st_mode) ? open_linked(repository->root, root_fd, &repository->own_fd) :
							  -ENOTSUP;
		} else if (!slash || !repository->root[1]) {
			return git_fail_with(err, -ENOENT, "the project lies in no git repository", patch_hint);
		} else {
			slash[slash == repository->root] = 0;
		}
	}
	if (r >= 0)
		r = repository->common_fd = open_common(repository->own_fd);
	/* git says no to these as well. What root wrote there its owner could not go on with. */
	if (r >= 0 && !(fstat(r, &common) == 0 && common.st_uid == geteuid()))
		return git_fail_with(err, -EPERM, "the project's git repository belongs to another user", patch_hint);
	if (r >= 0)
		return 0;
	return git_fail_with(err, -ENOTSUP, "the project's git repository is a submodule, or lies elsewhere, and "
			     "atoll makes no commit there", patch_hint);
}

static const struct {
	int errnum;
	const char *what, *hint;
} faults[] = {
	{ EINVAL, "git takes no branch of this name", "choose another name" },
	{ EEXIST, "there is such a branch already", "choose another name, or remove it with git branch -D" },
	{ ENOTDIR, "another branch's name stands in the way of this one", "choose another name" },
	{ ENOTSUP, "the repository has a form that atoll cannot write (SHA-256 or reftables)", patch_hint },
	{ ENOENT, "the commit that HEAD names cannot be read (a partial clone, or objects that lie elsewhere)",
	  patch_hint },
	{ ENOKEY, "git does not know who you are",
	  "say it with: git config --global user.name NAME, and user.email (files that these include are not read)" },
};

int git_fail(struct err *err, int r)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (r == -faults[i].errnum)
			return git_fail_with(err, r, faults[i].what, faults[i].hint);
	return err_set(err, ERR_STATE, r < 0 ? -r : EIO, "apply", "the commit could not be made: %s",
		       strerror(r < 0 ? -r : EIO));
}

void git_repository_done(struct git_repository *repository)
{
	close_fd(&repository->own_fd);
	close_fd(&repository->common_fd);
}
