/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members of a bundle are read by their names, each by one walk through it: a layer is an archive in an archive, whose
 * bytes go from one reader to the next. A member whose name says its SHA-256 (blobs/sha256/HEX) must have it.
 */
#include "image/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "image/layer.h"
#include "image/tree.h"
#include "os/fd.h"
#include "os/path.h"

enum { BLOCK_SIZE = 64 << 10, JSON_SIZE_MAX = 4 << 20, INDEX_DEPTH_MAX = 4 };

struct bundle {
	int fd;                      /* borrowed */
	bool is_directory;
	bool has_manifest, has_index;
	struct err *err;
};

/* A member that is being read. */
struct member {
	struct archive *outer;       /* owned; NULL: it is a file */
	int fd;                      /* owned; FD_NONE: it lies in outer */
	struct hash_stream hash;
	const char *name;            /* borrowed */
	char block[BLOCK_SIZE];
	bool has_failed;
};

static int fail(const struct bundle *bundle, const char *name, const char *what)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(bundle->err, ERR_USAGE, EBADMSG, "import", "the image is damaged: %s %s", err_quote(shown, name), what);
	return -EBADMSG;
}

static void member_done(struct member *member)
{
	archive_read_free(member->outer);
	close_fd(&member->fd);
	free(member);
}

/* Positioned at the beginning of the bundle. NULL: it is no archive. */
static struct archive *open_outer(const struct bundle *bundle)
{
	struct archive *archive = lseek(bundle->fd, 0, SEEK_SET) < 0 ? NULL : layer_reader();

	if (archive && archive_read_open_fd(archive, bundle->fd, BLOCK_SIZE) == ARCHIVE_OK)
		return archive;
	archive_read_free(archive);
	return NULL;
}

static bool find_entry(struct archive *archive, const char *name)
{
	struct archive_entry *entry;
	char path[PATH_MAX];

	while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
		const char *given = archive_entry_pathname(entry);

		if (given && image_path(given, path) == 1 && str_equal(path, name))
			return archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
	}
	return false;
}

static int open_member(const struct bundle *bundle, const char *name, struct member **ret_member)
{
	struct member *member = calloc(1, sizeof *member);
	char path[PATH_MAX];
	int r = member ? image_path(name, path) : -ENOMEM;

	if (r != 1) {
		free(member);
		return r == -ENOMEM ? r : fail(bundle, name, "is no name of a part of it");
	}
	member->fd = FD_NONE;
	member->name = name;
	hash_stream_begin(&member->hash);
	if (bundle->is_directory)
		member->fd = path_open2(bundle->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	else
		member->outer = open_outer(bundle);
	if (bundle->is_directory ? member->fd < 0 : !member->outer || !find_entry(member->outer, path)) {
		member_done(member);
		return fail(bundle, name, "is missing");
	}
	*ret_member = member;
	return 0;
}

/* As read(2). */
static ssize_t read_member(struct member *member, void *bytes, size_t size)
{
	ssize_t n = member->outer ? archive_read_data(member->outer, bytes, size) : read(member->fd, bytes, size);

	member->has_failed |= n < 0;
	if (n > 0)
		hash_stream_add(&member->hash, bytes, (size_t)n);
	return n;
}

/* Reads what is left of it, and compares. */
static int check_member(const struct bundle *bundle, struct member *member)
{
	static const char blobs[] = "blobs/sha256/";
	char hex[HASH_HEX_SIZE];
	struct hash hash;

	while (read_member(member, member->block, sizeof member->block) > 0)
		;
	if (member->has_failed)
		return fail(bundle, member->name, "cannot be read");
	hash_stream_end(&member->hash, &hash);
	hash_to_hex(&hash, hex);
	return !str_has_prefix(member->name, blobs) || str_equal(member->name + sizeof blobs - 1, hex)
		       ? 0 : fail(bundle, member->name, "does not have the SHA-256 that it is named by");
}

/* *ret_json is released with json_decref(). */
static int read_json(const struct bundle *bundle, const char *name, json_t **ret_json)
{
	struct member *member;
	size_t size = 0;
	json_error_t why;
	char *text;
	ssize_t n;
	int r = open_member(bundle, name, &member);

	if (r < 0)
		return r;
	text = malloc(JSON_SIZE_MAX);
	while (text && size < JSON_SIZE_MAX && (n = read_member(member, text + size, JSON_SIZE_MAX - size)) > 0)
		size += (size_t)n;
	r = !text ? -ENOMEM : size == JSON_SIZE_MAX ? fail(bundle, name, "is too large") : check_member(bundle, member);
	*ret_json = r == 0 ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &why) : NULL;
	member_done(member);
	free(text);
	return r < 0 ? r : *ret_json ? 0 : fail(bundle, name, "is no JSON");
}

/* ---- layers ---- */

static la_ssize_t on_read(struct archive *archive, void *context, const void **ret_bytes)
{
	struct member *member = context;
	ssize_t n = read_member(member, member->block, sizeof member->block);

	*ret_bytes = member->block;
	if (n < 0)
		archive_set_error(archive, EIO, "a layer cannot be read");
	return n;
}

static int go_through(struct image_target *target, const struct bundle *bundle, const char *name, enum layer_pass pass)
{
	struct archive *inner;
	struct member *member;
	int r = open_member(bundle, name, &member);

	if (r < 0)
		return r;
	inner = layer_reader();
	if (!inner)
		r = -ENOMEM;
	else if (archive_read_open(inner, member, NULL, on_read, NULL) != ARCHIVE_OK)
		r = fail(bundle, name, "is no archive");
	else
		r = layer_unpack(target, inner, pass, bundle->err);
	archive_read_free(inner);
	if (r == 0)
		r = check_member(bundle, member);
	member_done(member);
	return r;
}

/* Marks speak of the layers below, wherever in their own layer they stand. */
static int unpack_layer(struct image_target *target, const struct bundle *bundle, const char *name, bool is_first)
{
	int r = is_first ? 0 : go_through(target, bundle, name, LAYER_MARKS);

	return r < 0 ? r : go_through(target, bundle, name, LAYER_ENTRIES);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* "sha256:HEX" as the name of a blob. */
static int blob_name(const struct bundle *bundle, const json_t *descriptor, char out[128])
{
	static const char algorithm[] = "sha256:";
	const char *digest = text_of(descriptor, "digest");

	if (!str_has_prefix(digest, algorithm) || strlen(digest) != sizeof algorithm - 1 + HASH_HEX_SIZE - 1 ||
	    strspn(digest + sizeof algorithm - 1, "0123456789abcdef") != HASH_HEX_SIZE - 1)
		return fail(bundle, digest, "is no SHA-256");
	return str_format(out, 128, "blobs/sha256/%s", digest + sizeof algorithm - 1);
}

/* Each by its name; of_oci: the array has descriptors, else the names themselves. */
static int unpack_layers(struct image_target *target, const struct bundle *bundle, const json_t *layers, bool of_oci)
{
	size_t count = json_array_size(layers);

	if (!count || count > IMAGE_LAYERS_MAX)
		return fail(bundle, "its manifest", "has no layers, or too many");
	for (size_t i = 0; i < count; i++) {
		const json_t *layer = json_array_get(layers, i);
		char name[128];
		int r = 0;

		if (of_oci)
			r = blob_name(bundle, layer, name);
		else if (!json_is_string(layer) || str_copy(name, sizeof name, json_string_value(layer)) < 0)
			r = fail(bundle, "its manifest", "names a layer by no text");
		if (r == 0)
			r = unpack_layer(target, bundle, name, i == 0);
		if (r < 0)
			return r;
	}
	return (int)count;
}

/* ---- how commands run in it ---- */

static bool is_variable(const char *text)
{
	return text && *text && *text != '=' && strchr(text, '=');
}

static int take_config(struct image_target *target, const struct bundle *bundle, const json_t *config)
{
	const json_t *env = json_object_get(config, "Env");
	const char *cwd = text_of(config, "WorkingDir");
	struct image_config *into = target->config;

	for (size_t i = 0; i < json_array_size(env); i++) {
		const char *text = json_string_value(json_array_get(env, i));

		if (is_variable(text))
			buf_put(&into->env, text, strlen(text) + 1);
	}
	if (buf_error(&into->env) < 0)
		return fail(bundle, "its config", "has too many variables");
	if (cwd[0] == '/' && path_normalise(into->cwd, sizeof into->cwd, cwd) < 0)
		return fail(bundle, "its config", "has a directory that is none");
	/* Two images with the same files are two systems, if commands run in another way in them. */
	hash_stream_add(&target->identity, into->env.bytes ? (const void *)into->env.bytes : "", into->env.size);
	hash_stream_add(&target->identity, into->cwd, strlen(into->cwd));
	return 0;
}

/* name: of the member that describes the image. */
static int read_config(struct image_target *target, const struct bundle *bundle, const char *name)
{
	json_t *json = NULL;
	int r = target->config ? read_json(bundle, name, &json) : 0;

	if (r == 0 && json)
		r = take_config(target, bundle, json_object_get(json, "config"));
	json_decref(json);
	return r;
}

static bool is_for_this_machine(const json_t *descriptor)
{
	const json_t *platform = json_object_get(descriptor, "platform");
#if defined(__aarch64__)
	const char *own = "arm64";
#else
	const char *own = "amd64";
#endif

	return !platform || (str_equal(text_of(platform, "os"), "linux") &&
			     str_equal(text_of(platform, "architecture"), own));
}

/* The one image of an index: where it has several platforms, that of this machine. Borrowed; NULL: *err says why. */
static const json_t *choose_image(const struct bundle *bundle, const json_t *index)
{
	const json_t *manifests = json_object_get(index, "manifests"), *found = NULL;

	for (size_t i = 0; i < json_array_size(manifests); i++) {
		const json_t *descriptor = json_array_get(manifests, i);

		if (!is_for_this_machine(descriptor))
			continue;
		if (found) {
			err_set(bundle->err, ERR_USAGE, EINVAL, "import",
				"there is more than one image for this machine");
			err_hint(bundle->err, "save one image alone");
			return NULL;
		}
		found = descriptor;
	}
	if (!found)
		err_set(bundle->err, ERR_USAGE, ENOENT, "import", "there is no image for this machine");
	return found;
}

/* count: what it returns where all is well. */
static int read_oci_config(struct image_target *target, const struct bundle *bundle, const json_t *descriptor,
			   int count)
{
	char name[128];
	int r = blob_name(bundle, descriptor, name);

	if (r == 0)
		r = read_config(target, bundle, name);
	return r < 0 ? r : count;
}

static int unpack_oci(struct image_target *target, const struct bundle *bundle)
{
	const json_t *descriptor;
	json_t *json = NULL;
	int r = read_json(bundle, "index.json", &json);

	for (int depth = 0; r == 0 && json_object_get(json, "manifests"); depth++) {
		json_t *next = NULL;
		char name[128];

		descriptor = depth < INDEX_DEPTH_MAX ? choose_image(bundle, json) : NULL;
		r = descriptor ? blob_name(bundle, descriptor, name) : -EINVAL;
		if (r == 0)
			r = read_json(bundle, name, &next);
		json_decref(json);
		json = next;
	}
	if (r == 0)
		r = unpack_layers(target, bundle, json_object_get(json, "layers"), true);
	if (r >= 0 && json_object_get(json, "config"))
		r = read_oci_config(target, bundle, json_object_get(json, "config"), r);
	json_decref(json);
	if (r == -EINVAL && bundle->err->code == ERR_NONE)
		return fail(bundle, "index.json", "leads to no image");
	return r;
}

static int unpack_docker(struct image_target *target, const struct bundle *bundle)
{
	const char *config;
	json_t *json = NULL;
	int count = 0, r = read_json(bundle, "manifest.json", &json);

	if (r == 0 && json_array_size(json) != 1) {
		err_set(bundle->err, ERR_USAGE, EINVAL, "import", "the file has %zu images", json_array_size(json));
		err_hint(bundle->err, "save one image alone");
		r = -EINVAL;
	}
	if (r == 0)
		r = count = unpack_layers(target, bundle, json_object_get(json_array_get(json, 0), "Layers"), false);
	config = text_of(json_array_get(json, 0), "Config");
	if (r >= 0 && *config)
		r = read_config(target, bundle, config);
	json_decref(json);
	return r < 0 ? r : count;
}

/* ---- what it is ---- */

static int look_into(struct bundle *bundle)
{
	struct archive *archive = open_outer(bundle);
	struct archive_entry *entry;
	char path[PATH_MAX];
	int got = ARCHIVE_FATAL;

	while (archive && ((got = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || got == ARCHIVE_WARN)) {
		const char *name = archive_entry_pathname(entry);

		if (!name || image_path(name, path) != 1)
			continue;
		bundle->has_manifest |= str_equal(path, "manifest.json");
		bundle->has_index |= str_equal(path, "index.json");
	}
	if (got != ARCHIVE_EOF) {
		err_set(bundle->err, ERR_USAGE, EBADMSG, "import", "this is no tarball%s",
			archive ? ", or one that is damaged" : "");
		err_hint(bundle->err, "give a directory, a tarball, an OCI image layout or a file of `docker save`");
	}
	archive_read_free(archive);
	return got == ARCHIVE_EOF ? 0 : -EBADMSG;
}

static int unpack_file(struct image_target *target, const struct bundle *bundle)
{
	struct archive *archive = open_outer(bundle);
	int r = archive ? layer_unpack(target, archive, LAYER_WHOLE, bundle->err) : -ENOMEM;

	archive_read_free(archive);
	return r < 0 ? r : 1;
}

static int unpack_directory(struct image_target *target, struct bundle *bundle)
{
	struct stat st;
	int r;

	if (fstatat(bundle->fd, "oci-layout", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(bundle->fd, "index.json", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return unpack_oci(target, bundle);
	r = tree_copy(target, bundle->fd, bundle->err);
	return r < 0 ? r : 1;
}

int bundle_unpack(struct image_target *target, int fd, struct err *err)
{
	struct bundle bundle = { .fd = fd, .err = err };
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	bundle.is_directory = r == 0 && S_ISDIR(st.st_mode);
	if (bundle.is_directory)
		return unpack_directory(target, &bundle);
	if (r == 0)
		r = look_into(&bundle);
	if (r < 0)
		return r;
	/* Newer files of `docker save` have both. */
	return bundle.has_manifest ? unpack_docker(target, &bundle) :
	       bundle.has_index ? unpack_oci(target, &bundle) : unpack_file(target, &bundle);
}
