/* SPDX-License-Identifier: Apache-2.0 */
#include "client/recording.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/dirs.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide.h"

/* The path by which the sandbox could see it: links in its directory resolved. */
static int find_real(const char *given, const char *option, char out[PATH_MAX], struct err *err)
{
	char path[PATH_MAX], parent[PATH_MAX], real[PATH_MAX], shown[ERR_QUOTE_SIZE];
	int r;

	if (!*given)
		return err_set(err, ERR_USAGE, EINVAL, "run", "--%s needs a file, not an empty name", option);
	r = dirs_absolute(given, option, path, err);
	if (r < 0)
		return r;
	r = path_join(parent, sizeof parent, path, "..");
	if (r == 0)
		r = path_real(parent, real, sizeof real);
	if (r == 0)
		r = path_join(out, PATH_MAX, real, path_basename(path));
	return r < 0 ? err_set(err, ERR_USAGE, -r, "run", "--%s: the directory of %s cannot be used: %s", option,
			       err_quote(shown, path), strerror(-r))
		     : 0;
}

static int check_gate(const struct policy *policy, const char *option, struct err *err)
{
	if (policy->network.mode == NETWORK_GATE)
		return 0;
	err_set(err, ERR_USAGE, EOPNOTSUPP, "run",
		"--%s: under this policy no requests can be seen: %s", option,
		policy->network.mode == NETWORK_HOST ? "it shares the host's network" : "it has no network");
	err_hint(err, "list hosts under network.allow of the policy");
	return -EOPNOTSUPP;
}

/* What the sandbox sees it could read, and what it writes it could forge. */
static int check_place(const struct policy *policy, const char *path, const char *option, enum file_class first,
		       struct err *err)
{
	enum file_class class = policy_classify(policy, path, &(size_t){ 0 });
	char shown[ERR_QUOTE_SIZE];

	if (class < first || class == FILE_SCRATCH)
		return 0;
	err_set(err, ERR_USAGE, EPERM, "run", "--%s: %s lies where the sandbox can %s it", option,
		err_quote(shown, path), class == FILE_WRITE ? "change" : "read");
	err_hint(err, "name a file that the policy does not list, for example in /tmp");
	return -EPERM;
}

static int create(const char *path, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);

	if (fd >= 0)
		return fd;
	err_set(err, ERR_USAGE, -fd, "run", "--record: %s cannot be made: %s", err_quote(shown, path), strerror(-fd));
	if (fd == -EEXIST)
		err_hint(err, "an existing recording is never changed: remove it, or name another file");
	return fd;
}

static int open_regular(const char *path, struct err *err)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	char shown[ERR_QUOTE_SIZE];
	struct stat st;

	if (fd < 0)
		return err_set(err, ERR_USAGE, -fd, "run", "--replay: %s cannot be read: %s", err_quote(shown, path),
			       strerror(-fd));
	/* A pipe would keep the gate waiting. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, EINVAL, "run", "--replay: %s is not a regular file",
			       err_quote(shown, path));
	return take_fd(&fd);
}

int recording_open(const char *record, const char *replay, const struct policy *policy, int *ret_fd, struct err *err)
{
	const char *option = record ? "record" : "replay";
	char path[PATH_MAX];
	int r;

	*ret_fd = FD_NONE;
	if (!record && !replay)
		return 0;
	r = check_gate(policy, option, err);
	if (r == 0)
		r = find_real(record ? record : replay, option, path, err);
	if (r == 0)
		r = check_place(policy, path, option, record ? FILE_READ : FILE_WRITE, err);
	if (r < 0)
		return r;
	r = record ? create(path, err) : open_regular(path, err);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}

/* The gate reads what was opened to be read, and else writes. */
int recording_open_blank(int *ret_fd, struct err *err)
{
	static const char head[] = "{\"atoll\":\"recording\",\"v\":1}\n";
	cleanup_fd int made_fd = fd_memfd_sealed("recording", head, sizeof head - 1);
	char path[48];
	int r = made_fd < 0 ? made_fd : str_format(path, sizeof path, "/proc/self/fd/%d", made_fd);

	*ret_fd = FD_NONE;
	if (r == 0)
		r = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "run", "an empty recording cannot be made: %s", strerror(-r));
	*ret_fd = r;
	return 0;
}
