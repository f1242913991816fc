/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"

/*
 * /proc/self/mountinfo may have hundreds of lines and every read of it takes the namespace's lock, while
 * /sys/fs/cgroup is where nearly every machine has its groups: one statfs(2) tells whether a guess is right.
 * mountinfo is read only for a hierarchy that is not where it usually is.
 */

#define USUAL_ROOT "/sys/fs/cgroup"

const char *const cgroup_kind_names[CGROUP_KIND_COUNT] = { "v2", "memory", "pids", "cpu", "cpuacct", "freezer" };

enum { TEXT_MAX = 1 << 20 };

int cgroup_layout_load(struct cgroup_layout *ret_layout, const char *fake_root)
{
	struct cgroup_layout layout = { .fake_root = fake_root };
	char path[PATH_MAX];
	size_t size;
	int r = fake_root ? str_format(path, sizeof path, "%s/self-cgroup", fake_root) :
			    str_copy(path, sizeof path, "/proc/self/cgroup");

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, TEXT_MAX, &layout.self, &size);
	if (r < 0)
		return r;
	*ret_layout = layout;
	return 0;
}

void cgroup_layout_done(struct cgroup_layout *layout)
{
	free(layout->self);
	free(layout->mounts);
	*layout = (struct cgroup_layout){ 0 };
}

/* Whether the comma list text[length] has this word. */
static bool list_has(const char *text, size_t length, const char *word)
{
	size_t word_length = strlen(word);

	while (length) {
		const char *comma = memchr(text, ',', length);
		size_t part = comma ? (size_t)(comma - text) : length;

		if (part == word_length && memcmp(text, word, part) == 0)
			return true;
		part += comma != NULL;
		text += part;
		length -= part;
	}
	return false;
}

/* The path in /proc/self/cgroup ("2:cpu,cpuacct:/a/b"), "" for the root group. */
static int own_path(const struct cgroup_layout *layout, enum cgroup_kind kind, char out[PATH_MAX])
{
	for (const char *line = layout->self; *line;) {
		const char *end = strchrnul(line, '\n');
		const char *list = memchr(line, ':', (size_t)(end - line));
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
		size_t length;

		if (path && (kind == CGROUP_V2 ? path == list + 1 :
			     list_has(list + 1, (size_t)(path - list - 1), cgroup_kind_names[kind]))) {
			path++;
			length = (size_t)(end - path);
			if (length >= PATH_MAX)
				return -ENAMETOOLONG;
			memcpy(out, path, length);
			out[length] = 0;
			if (str_equal(out, "/"))
				out[0] = 0;
			return 0;
		}
		line = *end ? end + 1 : end;
	}
	return -ENOENT;
}

bool cgroup_layout_is_v1(const struct cgroup_layout *layout, enum cgroup_kind kind)
{
	char path[PATH_MAX];

	return kind != CGROUP_V2 && own_path(layout, kind, path) == 0;
}

static bool is_cgroup(const char *path, enum cgroup_kind kind)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 &&
	       (unsigned long)fs.f_type == (kind == CGROUP_V2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC);
}

static int join_own(const char *mount, const char *path, char out[PATH_MAX], size_t *ret_top)
{
	*ret_top = strlen(mount);
	return str_format(out, PATH_MAX, "%s%s", mount, path);
}

static int guess_own(enum cgroup_kind kind, const char *path, char out[PATH_MAX], size_t *ret_top)
{
	char mount[64];
	int r;

	if (kind == CGROUP_V2 && is_cgroup(USUAL_ROOT, CGROUP_V2))
		r = str_copy(mount, sizeof mount, USUAL_ROOT);
	else
		r = str_format(mount, sizeof mount, USUAL_ROOT "/%s",
			       kind == CGROUP_V2 ? "unified" : cgroup_kind_names[kind]);
	if (r == 0)
		r = join_own(mount, path, out, ret_top);
	if (r < 0)
		return r;
	return is_cgroup(out, kind) ? 0 : -ENOENT;
}

enum { FIELD_ROOT = 3, FIELD_POINT = 4, FIELD_COUNT = 6 };

struct mount_line {
	char root[PATH_MAX];
	char point[PATH_MAX];
	char type[16];
	char options[512];
};

/* Takes the next blank-separated field into out, with \ooo undone; false where it does not fit. */
static bool take_field(const char **at, const char *end, char *out, size_t size)
{
	size_t used = 0;
	const char *p = *at;

	for (; p < end && *p != ' '; p++) {
		char c = *p;

		if (c == '\\' && end - p > 3) {
			c = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		}
		if (used + 1 >= size)
			return false;
		out[used++] = c;
	}
	out[used] = 0;
	*at = p < end ? p + 1 : p;
	return true;
}

static bool parse_mount_line(const char *line, const char *end, struct mount_line *out)
{
	char skipped[PATH_MAX];

	for (int field = 0; field < FIELD_COUNT; field++) {
		char *to = field == FIELD_ROOT ? out->root : field == FIELD_POINT ? out->point : skipped;

		if (!take_field(&line, end, to, PATH_MAX))
			return false;
	}
	/* Optional fields end with a lone "-". */
	do
		if (line >= end || !take_field(&line, end, skipped, sizeof skipped))
			return false;
	while (!str_equal(skipped, "-"));
	return take_field(&line, end, out->type, sizeof out->type) && take_field(&line, end, skipped, sizeof skipped) &&
	       take_field(&line, end, out->options, sizeof out->options);
}

static bool mount_has(const struct mount_line *mount, enum cgroup_kind kind)
{
	if (kind == CGROUP_V2)
		return str_equal(mount->type, "cgroup2");
	return str_equal(mount->type, "cgroup") &&
	       list_has(mount->options, strlen(mount->options), cgroup_kind_names[kind]);
}

static int load_mounts(struct cgroup_layout *layout)
{
	char path[PATH_MAX];
	size_t size;
	int r;

	if (layout->mounts)
		return 0;
	r = layout->fake_root ? str_format(path, sizeof path, "%s/mountinfo", layout->fake_root) :
				str_copy(path, sizeof path, "/proc/self/mountinfo");
	return r < 0 ? r : fd_read_file_at(AT_FDCWD, path, TEXT_MAX, &layout->mounts, &size);
}

/* A mount of a part of the tree (root "/docker/x", as container runtimes make them) shows only what is below it. */
static int own_below_mount(const struct cgroup_layout *layout, const struct mount_line *mount, const char *path,
			   char out[PATH_MAX], size_t *ret_top)
{
	char real[PATH_MAX];
	const char *root = str_equal(mount->root, "/") ? "" : mount->root;
	int r = 0;

	if (str_has_prefix(path, "/.."))
		return -ENOENT;
	if (*root && !path_is_below(*path ? path : "/", root))
		return -ENOENT;
	if (layout->fake_root && str_has_prefix(mount->point, USUAL_ROOT))
		r = str_format(real, sizeof real, "%s%s", layout->fake_root, mount->point + strlen(USUAL_ROOT));
	else
		r = str_copy(real, sizeof real, mount->point);
	return r < 0 ? r : join_own(real, path + strlen(root), out, ret_top);
}

int cgroup_layout_own(struct cgroup_layout *layout, enum cgroup_kind kind, char out[PATH_MAX], size_t *ret_top)
{
	char path[PATH_MAX];
	struct mount_line mount;
	int r = own_path(layout, kind, path);

	if (r < 0)
		return r;
	if (!layout->fake_root && guess_own(kind, path, out, ret_top) == 0)
		return 0;
	r = load_mounts(layout);
	if (r < 0)
		return r;
	for (const char *line = layout->mounts; *line;) {
		const char *end = strchrnul(line, '\n');

		if (parse_mount_line(line, end, &mount) && mount_has(&mount, kind) &&
		    own_below_mount(layout, &mount, path, out, ret_top) == 0)
			return 0;
		line = *end ? end + 1 : end;
	}
	return -ENOENT;
}

/* The kernel makes these files as one piece: a read gives all of it, or as much as there is room for. */
static int read_text_fd(int fd, char *out, size_t size)
{
	ssize_t n;

	do
		n = pread(fd, out, size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -EFBIG;
	out[n] = 0;
	return 0;
}

int cgroup_read_text(int dir_fd, const char *file, char *out, size_t size)
{
	cleanup_fd int fd = fd_open_at(dir_fd, file, O_RDONLY, 0);

	return fd < 0 ? fd : read_text_fd(fd, out, size);
}

static int parse_number(char *text, uint64_t *ret_value)
{
	text[strcspn(text, " \n")] = 0;
	if (str_equal(text, "max")) {
		*ret_value = UINT64_MAX;
		return 0;
	}
	return num_parse_u64(text, ret_value) < 0 ? -EBADMSG : 0;
}

int cgroup_read_u64(int dir_fd, const char *file, uint64_t *ret_value)
{
	char text[64];
	int r = cgroup_read_text(dir_fd, file, text, sizeof text);

	return r < 0 ? r : parse_number(text, ret_value);
}

int cgroup_read_key_fd(int fd, const char *key, uint64_t *ret_value)
{
	char text[4096];
	size_t length = strlen(key);
	int r = read_text_fd(fd, text, sizeof text);

	if (r < 0)
		return r;
	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');

		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return parse_number(line + length + 1, ret_value);
		line = *end ? end + 1 : end;
	}
	return -ENODATA;
}

int cgroup_read_key(int dir_fd, const char *file, const char *key, uint64_t *ret_value)
{
	cleanup_fd int fd = fd_open_at(dir_fd, file, O_RDONLY, 0);

	return fd < 0 ? fd : cgroup_read_key_fd(fd, key, ret_value);
}

int cgroup_write_u64(int dir_fd, const char *file, uint64_t value)
{
	char text[32];
	struct buf buf;

	if (value == UINT64_MAX)
		return fd_write_file_at(dir_fd, file, "max");
	buf_init_fixed(&buf, text, sizeof text);
	buf_put_u64_decimal(&buf, value);
	return fd_write_file_at(dir_fd, file, buf_text(&buf));
}
