/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-policy/options.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/yaml/node.h"
#include "os/fd.h"
#include "os/path.h"

#define AT(field) offsetof(struct policy_options, field)

static const struct option options[] = {
	{ 't', "level", "LEVEL", "trust level: none, low, medium, high, full", OPTION_TEXT, AT(level) },
	{ 0, "lowered", NULL, "--level stands in the place of a higher one, for an agent that is trusted less",
	  OPTION_FLAG, AT(is_lowered) },
	{ 'p', "policy", "POLICY", "a shipped policy, one of your own, or a path", OPTION_TEXT, AT(policy) },
	{ 0, "project", "DIR", "what relative paths are relative to", OPTION_TEXT, AT(project) },
	{ 0, "home", "DIR", "what ~ means", OPTION_TEXT, AT(home) },
	{ 0, "config-home", "DIR", "where your own policies are: DIR/atoll/policy.yaml, DIR/atoll/policies/",
	  OPTION_TEXT, AT(config_home) },
	{ 0, "policies", "DIR", "where the shipped policies are", OPTION_TEXT, AT(policies) },
	{ 0, "private", "DIR", "one more directory of atoll's own, out of reach for every policy",
	  OPTION_LIST, AT(private_dirs) },
	{ 0, "unmask", "PATH", "leave out the mask of exactly this path, which is absolute", OPTION_LIST, AT(unmask) },
	{ 0, "output-fd", "N", "compile: where the snapshot goes", OPTION_TEXT, AT(output_fd) },
	{ 0, "snapshot", "FILE", "show: what this snapshot holds, in place of --policy", OPTION_TEXT, AT(snapshot) },
	{ 0, "json", NULL, "print JSON", OPTION_FLAG, AT(json) },
};

static int set_policies(struct policy_options *given)
{
	ssize_t length = readlink("/proc/self/exe", given->policies_default, PATH_MAX - 16);

	if (length < 0)
		return -errno;
	given->policies_default[length] = 0;
	return path_join(given->policies_normal, PATH_MAX, given->policies_default, "../policies");
}

/* Directories of atoll's own that the environment moves away from their usual places. */
static void add_private(struct policy_options *given)
{
	static const char *const names[] = { "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR" };
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *dir = getenv(names[i]);

		if (dir && dir[0] == '/' && path_join(given->private_paths[i], PATH_MAX, dir, "atoll") == 0)
			given->private_list[count++] = given->private_paths[i];
	}
	for (size_t i = 0; i < given->private_dirs.count; i++)
		given->private_list[count++] = given->private_dirs.values[i];
}

static int check_directory(const char *path, const char *option, struct err *err)
{
	if (!path[0] || path[0] == '/')
		return 0;
	return err_set(err, ERR_USAGE, EINVAL, "options", "--%s needs an absolute path, not %s", option,
		       path);
}

static int fill(struct policy_options *given, struct err *err)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	int r = 0;

	if (!getcwd(given->cwd, sizeof given->cwd))
		r = str_copy(given->cwd, sizeof given->cwd, "/");
	if (!given->home)
		given->home = getenv("HOME") && getenv("HOME")[0] == '/' ? getenv("HOME") : "";
	if (!given->project)
		given->project = given->cwd;
	if (!given->config_home && xdg && xdg[0] == '/')
		given->config_home = xdg;
	if (r == 0 && !given->config_home) {
		given->config_home = given->config_default;
		if (given->home[0] == '/')
			r = path_join(given->config_default, PATH_MAX, given->home, ".config");
	}
	if (r == 0 && given->policies)
		r = path_join(given->policies_normal, PATH_MAX, given->cwd, given->policies);
	else if (r == 0)
		r = set_policies(given);
	if (r == 0 && given->project[0] == '/')
		r = path_normalise(given->project_normal, PATH_MAX, given->project);
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "options", "a directory cannot be used: %s", strerror(-r));
	add_private(given);
	r = check_directory(given->home, "home", err);
	if (r == 0)
		r = check_directory(given->config_home, "config-home", err);
	return r == 0 ? check_directory(given->project, "project", err) : r;
}

int policy_options_parse(struct policy_options *given, int argc, char **argv, int *ret_rest, struct err *err)
{
	int r = options_parse(options, ARRAY_SIZE(options), given, argc, argv, true, ret_rest, err);

	if (r == 1) {
		r = options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
		return r < 0 ? r : 1;
	}
	return r < 0 ? r : fill(given, err);
}

static void describe(const struct stat *st, struct snapshot_source *ret_source)
{
	ret_source->exists = 1;
	ret_source->device = st->st_dev;
	ret_source->inode = st->st_ino;
	ret_source->size = (uint64_t)st->st_size;
	ret_source->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	ret_source->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

/* A pipe or a device in the place of a policy must not hold the compiler up: regular files only. */
static int read_source(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		       struct snapshot_source *ret_source)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	ret_source->path = path;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	describe(&st, ret_source);
	return fd_read_sized(fd, st.st_size, NODE_TEXT_MAX, ret_bytes, ret_size);
}

static int real_source(void *context, const char *path, char *out, size_t size)
{
	return path_real(path, out, size);
}

struct lang_request policy_options_request(const struct policy_options *given)
{
	return (struct lang_request){
		.level = given->level,
		.is_lowered = given->is_lowered,
		.policy = given->policy,
		.project = given->project_normal,
		.home = given->home,
		.config_home = given->config_home,
		.policies_dir = given->policies_normal,
		.cwd = given->cwd,
		.private_dirs = given->private_list,
		.unmask = given->unmask.count < OPTION_LIST_MAX ? given->unmask.values : NULL,
		.reader = { read_source, real_source, NULL },
	};
}

struct lang_request policy_options_request_for(const struct policy_options *given, const char *policy)
{
	struct lang_request request = policy_options_request(given);

	request.policy = policy;
	request.level = NULL;
	request.without_project_file = true;
	return request;
}

int policy_options_print(struct buf *buf, struct err *err)
{
	int r = buf_error(buf);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, buf->bytes, buf->size);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "output", "the result cannot be written: %s",
			       strerror(-r))
		     : 0;
}

int policy_options_compile(const struct policy_options *given, const struct lang_request *request,
			   struct lang **ret_lang,
		  struct err *err)
{
	cleanup_buf struct buf out;
	int r = lang_compile(request, ret_lang);

	buf_init(&out, 1 << 20);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "the policy cannot be compiled: %s",
			       strerror(-r));
	if (r == 0)
		return 0;
	lang_put_errors(*ret_lang, &out);
	r = fd_write_full(STDERR_FILENO, out.bytes, out.size);
	return r < 0 ? r : 1;
}

int policy_options_write_snapshot(const struct policy_options *given, const struct lang *lang, struct err *err)
{
	const struct snapshot_source *sources;
	cleanup_buf struct buf out;
	size_t count;
	uint64_t fd;
	int r;

	buf_init(&out, SNAPSHOT_SIZE_MAX);
	if (num_parse_u64(given->output_fd, &fd) < 0 || fd > INT_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "options", "--output-fd needs the number of a descriptor");
	sources = lang_sources(lang, &count);
	r = snapshot_store(&out, lang_policy(lang), sources, count);
	if (r < 0)
		return err_set(err, ERR_POLICY, -r, "policy", "the policy cannot be written in compiled form: %s",
			       strerror(-r));
	r = fd_write_full((int)fd, out.bytes, out.size);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "output", "the snapshot cannot be written: %s",
			       strerror(-r))
		     : 0;
}
