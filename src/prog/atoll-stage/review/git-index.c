/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/git-index.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/*
 * Source: gitformat-index(5), and read-cache.c where that leaves something open: the length in the flags counts, not
 * the first NUL. Which hash a repository has stands in its configuration, not here. That of the host decides: one that
 * is staged reaches nobody unseen.
 */

enum {
	BUFFER_BYTES = 1 << 16,
	NAME_MAX_BYTES = 4096,
	CONFIG_BYTES_MAX = 1 << 16,
	STAT_BYTES = 40,
	SHA1_BYTES = 20,
	SHA256_BYTES = 32,
	FLAG_EXTENDED = 0x4000,
	LENGTH_MASK = 0xfff,
};

enum reading {
	READING_BROKEN,
	READING_CLEAN,
	READING_BAD,
};

struct reader {
	int fd;
	size_t at, filled;
	uint8_t bytes[BUFFER_BYTES];
};

struct name {
	size_t length;
	char text[NAME_MAX_BYTES + 1];
};

/* -1 at the end. */
static int next_byte(struct reader *reader)
{
	ssize_t n;

	if (reader->at == reader->filled) {
		n = read(reader->fd, reader->bytes, sizeof reader->bytes);
		if (n <= 0)
			return -1;
		reader->filled = (size_t)n;
		reader->at = 0;
	}
	return reader->bytes[reader->at++];
}

/* to: NULL to skip. */
static bool read_bytes(struct reader *reader, void *to, size_t size)
{
	uint8_t *out = to;

	for (size_t i = 0; i < size; i++) {
		int byte = next_byte(reader);

		if (byte < 0)
			return false;
		if (out)
			out[i] = (uint8_t)byte;
	}
	return true;
}

/* How many bytes of the name before are left out; not more than that has. */
static bool take_varint(struct reader *reader, size_t *ret_value)
{
	int byte = next_byte(reader);
	size_t value = byte < 0 ? 0 : (size_t)(byte & 127);

	while (byte >= 128 && value <= NAME_MAX_BYTES) {
		byte = next_byte(reader);
		value = byte < 0 ? 0 : ((value + 1) << 7) + (size_t)(byte & 127);
	}
	*ret_value = value;
	return byte >= 0 && value <= NAME_MAX_BYTES;
}

static bool is_bad_component(const char *text, size_t length)
{
	return !length || (length == 1 && text[0] == '.') || (length == 2 && memcmp(text, "..", 2) == 0) ||
	       (length == 4 && strncasecmp(text, ".git", 4) == 0);
}

/* An empty name stands for an entry of a shared index; one of a sparse directory ends in a slash. */
static bool is_bad_name(const struct name *name)
{
	const char *at = name->text;

	if (strlen(at) != name->length)
		return true;
	while (*at) {
		size_t length = strcspn(at, "/");

		if (is_bad_component(at, length))
			return true;
		at += length;
		at += *at == '/';
	}
	return false;
}

/* The rest of a name that has name->length bytes already, and the NUL behind it. */
static enum reading take_name(struct reader *reader, struct name *name, size_t length)
{
	int byte = 0;

	if (length < LENGTH_MASK && length < name->length)
		return READING_BROKEN;
	while (length == LENGTH_MASK || name->length < length) {
		byte = next_byte(reader);
		if (byte < 0)
			return READING_BROKEN;
		if (length == LENGTH_MASK && !byte)
			break;
		if (name->length == NAME_MAX_BYTES)
			return READING_BAD;
		name->text[name->length++] = (char)byte;
	}
	name->text[name->length] = 0;
	if (length < LENGTH_MASK)
		byte = next_byte(reader);
	if (byte < 0)
		return READING_BROKEN;
	return byte || is_bad_name(name) ? READING_BAD : READING_CLEAN;
}

/* name: of the entry before, and then of this one. */
static enum reading take_entry(struct reader *reader, uint32_t version, size_t hash_bytes, struct name *name)
{
	size_t size = STAT_BYTES + hash_bytes + sizeof(uint16_t), left_out = name->length;
	enum reading reading;
	uint16_t flags;

	if (!read_bytes(reader, NULL, STAT_BYTES + hash_bytes) || !read_bytes(reader, &flags, sizeof flags))
		return READING_BROKEN;
	flags = be16toh(flags);
	if (flags & FLAG_EXTENDED) {
		size += sizeof flags;
		if (!read_bytes(reader, NULL, sizeof flags))
			return READING_BROKEN;
	}
	if (version == 4 && (!take_varint(reader, &left_out) || left_out > name->length))
		return READING_BROKEN;
	name->length -= left_out;
	reading = take_name(reader, name, flags & LENGTH_MASK);
	if (version == 4 || reading != READING_CLEAN)
		return reading;
	/* One to eight NULs, of which the first is taken, make the size a multiple of eight. */
	size += name->length + 1;
	return read_bytes(reader, NULL, (8 - size % 8) % 8) ? READING_CLEAN : READING_BROKEN;
}

/* Where entries have a table of offsets, git may start reading at any of these instead. */
static bool has_offsets(int fd, off_t size, size_t hash_bytes)
{
	off_t at = size - (off_t)(hash_bytes + 3 * sizeof(uint32_t) + hash_bytes);
	char signature[4];

	return at > 0 && pread(fd, signature, sizeof signature, at) == (ssize_t)sizeof signature &&
	       memcmp(signature, "EOIE", sizeof signature) == 0;
}

static enum reading read_as(struct reader *reader, off_t size, size_t hash_bytes)
{
	enum reading reading = READING_CLEAN;
	struct name name = { 0 };
	uint32_t header[3];

	reader->at = reader->filled = 0;
	if (lseek(reader->fd, 0, SEEK_SET) != 0 || !read_bytes(reader, header, sizeof header) ||
	    memcmp(header, "DIRC", 4) != 0 || be32toh(header[1]) < 2 || be32toh(header[1]) > 4)
		return READING_BROKEN;
	if (has_offsets(reader->fd, size, hash_bytes))
		return READING_BAD;
	for (uint32_t left = be32toh(header[2]); left && reading == READING_CLEAN; left--)
		reading = take_entry(reader, be32toh(header[1]), hash_bytes, &name);
	return reading;
}

bool git_index_is_ordinary(int fd, bool has_sha256)
{
	struct reader reader = { .fd = fd };
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       read_as(&reader, st.st_size, has_sha256 ? SHA256_BYTES : SHA1_BYTES) == READING_CLEAN;
}

/* Whether the configuration in a directory above names another hash than the one of old. */
static bool names_hash(int host_fd, const char *path, int levels)
{
	char config[PATH_MAX], text[CONFIG_BYTES_MAX + 1];
	cleanup_fd int fd = FD_NONE;
	size_t length = strlen(path);
	ssize_t size;

	for (; levels > 0 && length > 0; levels--)
		while (length > 0 && path[--length] != '/')
			continue;
	if (str_format(config, sizeof config, "%.*s%sconfig", (int)length, path, length ? "/" : "") < 0)
		return false;
	fd = stage_open_beneath(host_fd, config, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	text[size > 0 ? size : 0] = 0;
	return strcasestr(text, "objectformat");
}

bool git_index_change_is_ordinary(const struct stage_stack *stack, const struct stage_change *change)
{
	cleanup_fd int fd = change->staged_exists ? stage_change_open(stack, change) : FD_NONE;
	/* A worktree's part has that of its repository, two directories above. */
	bool has_sha256 = stack->host_fd >= 0 && (names_hash(stack->host_fd, change->path, 1) ||
						  names_hash(stack->host_fd, change->path, 3));

	return fd >= 0 && git_index_is_ordinary(fd, has_sha256);
}
