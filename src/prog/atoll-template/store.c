/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-template/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json-reader.h"
#include "base/json.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"

#define NEW_TREE "trees/.new"
#define RECORD "record.json"

enum { RECORD_MAX = 16 << 10, LOCK_WAIT_MS = 600000 };

static int fail(int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "template", "%s: %s", what, err_errno_name(-r));
}

int store_open(struct store *store, const char *state_dir, bool to_change, struct err *err)
{
	static const char *const directories[] = { ROOTS_NAMES, ROOTS_TREES };
	char path[PATH_MAX];
	int r = 0;

	*store = (struct store){ .fd = FD_NONE, .sessions_fd = FD_NONE, .lock_fd = FD_NONE };
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++) {
		r = path_join(path, sizeof path, state_dir, directories[i]);
		r = r < 0 ? r : path_make_directories(AT_FDCWD, path, 0700);
	}
	if (r == 0)
		r = path_join(path, sizeof path, state_dir, ROOTS_DIRECTORY);
	if (r == 0)
		r = store->fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0 && path_join(path, sizeof path, state_dir, "sessions") == 0)
		store->sessions_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0 && to_change)
		r = store->lock_fd = fd_open_at(store->fd, "lock", O_RDWR | O_CREAT, 0600);
	if (r >= 0 && to_change)
		r = fd_lock_within(store->lock_fd, LOCK_EX, LOCK_WAIT_MS);
	return r < 0 ? fail(r, "the directory of the templates cannot be used", err) : 0;
}

void store_close(struct store *store)
{
	close_fd(&store->fd);
	close_fd(&store->sessions_fd);
	close_fd(&store->lock_fd);
}

int store_begin(struct store *store, struct err *err)
{
	int fd, r = path_remove_tree(store->fd, NEW_TREE);

	if (r == 0 && (mkdirat(store->fd, NEW_TREE, 0700) < 0 || mkdirat(store->fd, NEW_TREE "/" ROOTS_TREE, 0755) < 0))
		r = -errno;
	fd = r < 0 ? r : fd_open_at(store->fd, NEW_TREE "/" ROOTS_TREE, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? fail(fd, "a directory for the template cannot be made", err) : fd;
}

void store_abandon(struct store *store)
{
	(void)!path_remove_tree(store->fd, NEW_TREE);
}

static int write_record(struct store *store, const struct tree_record *record)
{
	const struct image_counts *counts = &record->counts;
	cleanup_buf struct buf out;
	struct json json;
	int fd, r;

	buf_init(&out, RECORD_MAX);
	json_init(&json, &out);
	json_object_begin(&json, NULL);
	json_string(&json, "source", record->source);
	json_u64(&json, "layers", record->layers);
	json_u64(&json, "files", counts->files);
	json_u64(&json, "directories", counts->directories);
	json_u64(&json, "links", counts->links);
	json_u64(&json, "bytes", counts->bytes);
	json_u64(&json, "left_out", counts->left_out);
	json_u64(&json, "made_ms", record->made_ms);
	json_object_end(&json);
	if (buf_error(&out))
		return buf_error(&out);
	fd = fd_open_at(store->fd, NEW_TREE "/" RECORD, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	r = fd_write_full(fd, out.bytes, out.size);
	close(fd);
	return r;
}

static int put_file(struct store *store, const char *path, const void *bytes, size_t size)
{
	int r, fd = size ? fd_open_at(store->fd, path, O_WRONLY | O_CREAT | O_EXCL, 0600) : FD_NONE;

	if (!size || fd < 0)
		return size ? fd : 0;
	r = fd_write_full(fd, bytes, size);
	close(fd);
	return r;
}

int store_put_config(struct store *store, const struct image_config *config, struct err *err)
{
	int r = put_file(store, NEW_TREE "/" ROOT_ENV, config->env.bytes, config->env.size);

	if (r == 0)
		r = put_file(store, NEW_TREE "/" ROOT_CWD, config->cwd, strlen(config->cwd));
	return r < 0 ? fail(r, "how commands run in the template cannot be kept", err) : 0;
}

/* The name is the new tree's from one moment to the next. */
static int put_name(struct store *store, const char *name, const char *id)
{
	char target[64], path[ROOT_NAME_SIZE + 8];
	int r = str_format(target, sizeof target, "../trees/%s", id);

	if (r == 0)
		r = str_format(path, sizeof path, "names/%s", name);
	if (r < 0)
		return r;
	if ((unlinkat(store->fd, "names/.new", 0) < 0 && errno != ENOENT) ||
	    symlinkat(target, store->fd, "names/.new") < 0 || renameat(store->fd, "names/.new", store->fd, path) < 0)
		return -errno;
	return 0;
}

int store_finish(struct store *store, const char *name, const struct hash *identity, struct tree_record *record,
		 struct err *err)
{
	char hex[HASH_HEX_SIZE], path[64];
	struct stat st;
	int r;

	hash_to_hex(identity, hex);
	memcpy(record->id, hex, TREE_ID_SIZE - 1);
	record->id[TREE_ID_SIZE - 1] = 0;
	r = str_format(path, sizeof path, "trees/%s", record->id);
	if (r == 0)
		r = write_record(store, record);
	if (r == 0 && fstatat(store->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		store_abandon(store);
	else if (r == 0 && renameat(store->fd, NEW_TREE, store->fd, path) < 0)
		r = -errno;
	if (r == 0)
		r = put_name(store, name, record->id);
	return r < 0 ? fail(r, "the template cannot be kept", err) : 0;
}

static int take_member(struct json_reader *reader, const char *name, struct tree_record *record)
{
	struct image_counts *counts = &record->counts;
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{ "layers", &record->layers },      { "made_ms", &record->made_ms },
		{ "files", &counts->files },	    { "directories", &counts->directories },
		{ "links", &counts->links },	    { "bytes", &counts->bytes },
		{ "left_out", &counts->left_out },
	};
	struct buf text;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (str_equal(name, numbers[i].name))
			return json_read_number(reader, numbers[i].value) ? 0 : -EBADMSG;
	if (!str_equal(name, "source")) {
		json_skip(reader);
		return 0;
	}
	buf_init_fixed(&text, record->source, sizeof record->source - 1);
	json_read_string(reader, &text);
	record->source[text.size] = 0;
	return buf_error(&text) ? -EBADMSG : 0;
}

static int take_record(const char *bytes, size_t size, struct tree_record *record)
{
	struct json_reader reader = { .at = bytes, .end = bytes + size };
	char memory[32];
	int r = 0;

	json_expect(&reader, '{');
	do {
		struct buf name;

		buf_init_fixed(&name, memory, sizeof memory);
		json_read_string(&reader, &name);
		json_expect(&reader, ':');
		r = take_member(&reader, buf_text(&name), record);
	} while (r == 0 && json_accept(&reader, ','));
	json_expect(&reader, '}');
	return r < 0 || reader.is_broken ? -EBADMSG : 0;
}

static int read_record(const struct store *store, const char *id, struct tree_record *record)
{
	cleanup_free char *text = NULL;
	char path[96];
	size_t size;
	int r = str_copy(record->id, sizeof record->id, id);

	if (r == 0)
		r = str_format(path, sizeof path, "trees/%s/" RECORD, record->id);
	if (r == 0)
		r = fd_read_file_at(store->fd, path, RECORD_MAX, &text, &size);
	return r < 0 ? r : take_record(text, size, record);
}

/* The tree that a name leads to; "" where it leads elsewhere. */
static int find_id(const struct store *store, const char *name, char out[TREE_ID_SIZE])
{
	static const char before[] = "../trees/";
	char path[ROOT_NAME_SIZE + 8], text[64];
	ssize_t size;
	int r = session_root_name_is_valid(name) ? str_format(path, sizeof path, "names/%s", name) : -ENOENT;

	out[0] = 0;
	if (r < 0)
		return r;
	size = readlinkat(store->fd, path, text, sizeof text - 1);
	if (size < 0)
		return -errno;
	text[size] = 0;
	return str_has_prefix(text, before) ? str_copy(out, TREE_ID_SIZE, text + sizeof before - 1) : -EBADMSG;
}

int store_find(const struct store *store, const char *name, struct tree_record *ret_record)
{
	char id[TREE_ID_SIZE];
	int r = find_id(store, name, id);

	*ret_record = (struct tree_record){ .id = "" };
	return r < 0 ? r : read_record(store, id, ret_record);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int each_in(int dir_fd, const char *directory, int (*each)(void *context, const char *name), void *context)
{
	struct dirent **names = NULL;
	int count = scandirat(dir_fd, directory, &names, is_visible, by_name), r = count < 0 ? -errno : 0;

	for (int i = 0; i < count; i++) {
		if (r >= 0)
			r = each(context, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return r < 0 ? r : 0;
}

int store_each(const struct store *store, int (*each)(void *context, const char *name), void *context)
{
	return each_in(store->fd, "names", each, context);
}

int store_remove(struct store *store, const char *name)
{
	char id[TREE_ID_SIZE], path[ROOT_NAME_SIZE + 8];
	int r = find_id(store, name, id);

	if (r == -ENOENT || str_format(path, sizeof path, "names/%s", name) < 0)
		return -ENOENT;
	return unlinkat(store->fd, path, 0) < 0 ? -errno : 0;
}

/* ---- what nobody has ---- */

struct search {
	struct store *store;
	const char *id;
	bool is_found;
	uint64_t *bytes;
};

static int is_named(void *context, const char *name)
{
	struct search *search = context;
	char id[TREE_ID_SIZE];

	if (find_id(search->store, name, id) == 0)
		search->is_found |= str_equal(id, search->id);
	return 0;
}

/* A link that cannot be read may lead to any. */
static int is_of_session(void *context, const char *name)
{
	char path[NAME_MAX + sizeof "/" SESSION_ROOT], root[PATH_MAX];
	struct search *search = context;
	ssize_t size;

	if (str_format(path, sizeof path, "%s/" SESSION_ROOT, name) < 0)
		return 0;
	size = readlinkat(search->store->sessions_fd, path, root, sizeof root - 1);
	if (size < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	root[size < 0 ? 0 : size] = 0;
	search->is_found |= size < 0 || strstr(root, search->id);
	return 0;
}

static int collect_one(void *context, const char *id)
{
	struct search *all = context, search = { .store = all->store, .id = id };
	struct tree_record record = { .id = "" };
	char path[NAME_MAX + 8];
	int r = store_each(search.store, is_named, &search);

	if (r == 0 && search.store->sessions_fd >= 0)
		r = each_in(search.store->sessions_fd, ".", is_of_session, &search);
	if (r < 0 || search.is_found || str_format(path, sizeof path, "trees/%s", id) < 0)
		return r;
	if (read_record(search.store, id, &record) == 0)
		*all->bytes += record.counts.bytes;
	return path_remove_tree(search.store->fd, path);
}

int store_collect(struct store *store, uint64_t *ret_bytes)
{
	struct search all = { .store = store, .bytes = ret_bytes };

	*ret_bytes = 0;
	return each_in(store->fd, "trees", collect_one, &all);
}
