/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"

#define MARK ".wh."
#define MARK_OPAQUE ".wh..wh..opq"
#define MARK_OWN ".wh..wh."      /* of aufs itself */

struct archive *layer_reader(void)
{
	struct archive *archive = archive_read_new();

	/* A filter that this libarchive has no code for would start a program: it is not asked for. */
	if (!archive || archive_read_support_format_tar(archive) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_read_support_filter_bzip2(archive) != ARCHIVE_OK ||
	    archive_read_support_filter_xz(archive) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(archive) != ARCHIVE_OK) {
		archive_read_free(archive);
		return NULL;
	}
	return archive;
}

static int fail_archive(struct archive *archive, struct err *err)
{
	const char *why = archive_error_string(archive);
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EBADMSG, "import", "the archive cannot be read: %s",
		err_quote(shown, why ? why : "it is damaged"));
	return -EBADMSG;
}

static int fail_entry(int r, const char *name, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_quote(shown, name);
	if (r == -EINVAL)
		err_set(err, ERR_USAGE, EINVAL, "import",
			"the archive has %s, which leads out of it or to no file of it", shown);
	else if (r == -E2BIG || r == -EFBIG)
		err_set(err, ERR_USAGE, -r, "import", "the archive has more than %d entries, or more than %llu GiB",
			IMAGE_ENTRIES_MAX, (unsigned long long)(IMAGE_BYTES_MAX >> 30));
	else
		err_set(err, ERR_STATE, -r, "import", "%s cannot be unpacked: %s", shown, err_errno_name(-r));
	return r;
}

static int put_data(struct image_target *target, const char *path, struct archive *archive,
		    struct archive_entry *entry)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = archive_entry_mtime(entry) } };
	mode_t mode = archive_entry_perm(entry);
	cleanup_fd int fd = image_put_file(target, path, mode);
	uint64_t end = 0;
	int r = fd < 0 ? fd : 0, got = ARCHIVE_OK;

	while (r == 0 && got == ARCHIVE_OK) {
		const void *bytes;
		size_t size;
		la_int64_t offset;

		got = archive_read_data_block(archive, &bytes, &size, &offset);
		if (got == ARCHIVE_OK)
			r = offset < 0 ? -EFBIG : image_write(target, fd, bytes, size, (uint64_t)offset, &end);
	}
	if (r == 0 && archive_entry_mtime_is_set(entry) && futimens(fd, times) < 0)
		r = -errno;
	return r < 0 ? r : got == ARCHIVE_EOF ? 0 : -EBADMSG;
}

static int put_link(struct image_target *target, const char *path, const char *name)
{
	char to[PATH_MAX];
	int r = image_path(name, to);

	return r <= 0 ? (r < 0 ? r : -EINVAL) : image_put_link(target, path, to);
}

static int put_entry(struct image_target *target, const char *path, struct archive *archive,
		     struct archive_entry *entry)
{
	const char *link = archive_entry_hardlink(entry), *text = archive_entry_symlink(entry);

	if (link)
		return put_link(target, path, link);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return put_data(target, path, archive, entry);
	case AE_IFDIR:
		return image_put_directory(target, path, archive_entry_perm(entry));
	case AE_IFLNK:
		return text && *text ? image_put_symlink(target, path, text) : -EINVAL;
	default:
		target->counts.left_out++;
		return 0;
	}
}

/* What a mark says of the layers below. path is its own, and is changed. */
static int take_away(struct image_target *target, char *path, char *name)
{
	if (str_equal(name, MARK_OPAQUE)) {
		name[name > path ? -1 : 0] = 0;
		return image_empty(target, path);
	}
	if (str_has_prefix(name, MARK_OWN))
		return 0;
	if (!name[sizeof MARK - 1] || str_equal(name + sizeof MARK - 1, ".") || str_equal(name + sizeof MARK - 1, ".."))
		return -EINVAL;
	memmove(name, name + sizeof MARK - 1, strlen(name + sizeof MARK - 1) + 1);
	return image_remove(target, path);
}

static int unpack_entry(struct image_target *target, struct archive *archive, struct archive_entry *entry,
			enum layer_pass pass)
{
	const char *given = archive_entry_pathname(entry);
	char path[PATH_MAX], *name;
	bool is_mark;
	int r = given ? image_path(given, path) : -EINVAL;

	if (r <= 0)
		return r;
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	is_mark = pass != LAYER_WHOLE && str_has_prefix(name, MARK);
	if (is_mark)
		return pass == LAYER_MARKS ? take_away(target, path, name) : 0;
	return pass == LAYER_MARKS ? 0 : put_entry(target, path, archive, entry);
}

int layer_unpack(struct image_target *target, struct archive *archive, enum layer_pass pass, struct err *err)
{
	struct archive_entry *entry;
	int got;

	while ((got = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || got == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(entry);
		int r = unpack_entry(target, archive, entry, pass);

		if (r == -EBADMSG)
			return fail_archive(archive, err);
		if (r < 0)
			return fail_entry(r, name ? name : "a name that is no text", err);
	}
	return got == ARCHIVE_EOF ? 0 : fail_archive(archive, err);
}
