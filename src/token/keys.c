/* SPDX-License-Identifier: Apache-2.0 */
#include "token/keys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

/* key: the seed, 32 bytes. trusted: a line for each, key and note. */
static const char key_name[] = "key", trusted_name[] = "trusted", key_prefix[] = "atoll1-key.";

enum { TRUSTED_BYTES_MAX = TOKEN_TRUSTED_MAX * (TOKEN_KEY_TEXT_SIZE + TOKEN_NOTE_SIZE + 2),
       BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING };

void token_key_format(const uint8_t key[TOKEN_KEY_SIZE], char out[TOKEN_KEY_TEXT_SIZE])
{
	memcpy(out, key_prefix, sizeof key_prefix);
	sodium_bin2base64(out + sizeof key_prefix - 1, TOKEN_KEY_TEXT_SIZE - sizeof key_prefix + 1, key, TOKEN_KEY_SIZE,
			  BASE64);
}

int token_key_parse(const char *text, uint8_t out[TOKEN_KEY_SIZE])
{
	size_t size;

	if (!str_has_prefix(text, key_prefix))
		return -EINVAL;
	text += sizeof key_prefix - 1;
	return sodium_base642bin(out, TOKEN_KEY_SIZE, text, strlen(text), NULL, &size, NULL, BASE64) == 0 &&
			       size == TOKEN_KEY_SIZE
		       ? 0 : -EINVAL;
}

/* What others can read is no secret, and what they can write is not ours. */
static int check_own(int fd, const char *path, const char *name, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_STATE, errno, "token", "%s%s: %s", path, name, strerror(errno));
	if (st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	err_set(err, ERR_STATE, EPERM, "token", "%s%s can be read or written by others", path, name);
	err_hint(err, "run chmod go= and chown on it; if others may have read the key, remove it: its tokens then "
		      "end, too");
	return -EPERM;
}

int token_directory_open(const char *path, bool make, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	int r = make ? path_make_directories(AT_FDCWD, path, 0700) : 0;

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "token", "%s cannot be made: %s", path, strerror(-r));
	fd = path_open2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
	if (fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, ENOENT, "token", "%s does not exist", path);
	if (fd < 0)
		return err_set(err, ERR_STATE, -fd, "token", "%s: %s", path, strerror(-fd));
	r = check_own(fd, path, "", err);
	return r < 0 ? r : take_fd(&fd);
}

static int fail(const struct token_keys *keys, const char *name, int r, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "token", "%s/%s: %s", keys->path, name,
		       r == -EBADMSG ? "it is damaged" : strerror(-r));
}

/* The size, or -errno; *err but for -ENOENT. */
static ssize_t read_file(const struct token_keys *keys, const char *name, void *bytes, size_t max, struct err *err)
{
	/* O_NONBLOCK: a FIFO in its place must not hold us. */
	cleanup_fd int fd = path_open2(keys->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
				       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	struct stat st;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? fd : fail(keys, name, fd, err);
	r = check_own(fd, keys->path, "", err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size > max)
		return fail(keys, name, -EBADMSG, err);
	r = fd_read_full(fd, bytes, (size_t)st.st_size);
	return r < 0 ? fail(keys, name, r, err) : st.st_size;
}

static int take_line(struct token_keys *keys, char *line)
{
	struct token_trusted *trusted = &keys->trusted[keys->trusted_count];
	char *note = strchr(line, ' ');

	if (!*line)
		return 0;
	if (note)
		*note++ = 0;
	if (keys->trusted_count == TOKEN_TRUSTED_MAX || token_key_parse(line, trusted->key) < 0 ||
	    str_copy(trusted->note, sizeof trusted->note, note ? note : "") < 0)
		return -EBADMSG;
	keys->trusted_count++;
	return 0;
}

static int load_trusted(struct token_keys *keys, struct err *err)
{
	cleanup_free char *text = malloc(TRUSTED_BYTES_MAX + 1);
	ssize_t size = text ? read_file(keys, trusted_name, text, TRUSTED_BYTES_MAX, err) : -ENOMEM;
	char *at = text, *line;
	int r = 0;

	if (size < 0)
		return size == -ENOENT ? 0 : (int)size;
	text[size] = 0;
	while (r == 0 && (line = strsep(&at, "\n")))
		r = take_line(keys, line);
	return r < 0 ? fail(keys, trusted_name, r, err) : 0;
}

static void take_seed(struct token_keys *keys)
{
	uint8_t secret[crypto_sign_SECRETKEYBYTES];

	crypto_sign_seed_keypair(keys->public, secret, keys->seed);
	sodium_memzero(secret, sizeof secret);
	keys->has_key = true;
}

int token_keys_load(struct token_keys *keys, int dir_fd, const char *path, struct err *err)
{
	ssize_t size;

	*keys = (struct token_keys){ .dir_fd = dir_fd };
	if (str_copy(keys->path, sizeof keys->path, path) < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "token", "the path of the keys is too long");
	if (dir_fd < 0)
		return 0;
	size = read_file(keys, key_name, keys->seed, sizeof keys->seed, err);
	if (size >= 0 && size != sizeof keys->seed)
		return fail(keys, key_name, -EBADMSG, err);
	if (size < 0 && size != -ENOENT)
		return (int)size;
	if (size > 0)
		take_seed(keys);
	return load_trusted(keys, err);
}

void token_keys_done(struct token_keys *keys)
{
	sodium_memzero(keys->seed, sizeof keys->seed);
	close_fd(&keys->dir_fd);
}

int token_keys_need(struct token_keys *keys, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	int r = 0;

	if (keys->has_key)
		return 0;
	randombytes_buf(keys->seed, sizeof keys->seed);
	/* Two who make the first key at once: one of them is told to try again, none has a key that is gone. */
	fd = fd_open_at(keys->dir_fd, key_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	r = fd < 0 ? fd : fd_write_full(fd, keys->seed, sizeof keys->seed);
	if (r >= 0 && (fsync(fd) < 0 || fsync(keys->dir_fd) < 0))
		r = -errno;
	if (r < 0)
		return fail(keys, key_name, r, err);
	take_seed(keys);
	return 0;
}

static struct token_trusted *find(struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE])
{
	for (size_t i = 0; i < keys->trusted_count; i++)
		if (memcmp(keys->trusted[i].key, key, TOKEN_KEY_SIZE) == 0)
			return &keys->trusted[i];
	return NULL;
}

bool token_keys_trust(const struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE])
{
	return (keys->has_key && memcmp(keys->public, key, TOKEN_KEY_SIZE) == 0) ||
	       find((struct token_keys *)keys, key);
}

static int store_trusted(const struct token_keys *keys, struct err *err)
{
	cleanup_buf struct buf text;
	int r;

	buf_init(&text, TRUSTED_BYTES_MAX);
	for (size_t i = 0; i < keys->trusted_count; i++) {
		char shown[TOKEN_KEY_TEXT_SIZE];

		token_key_format(keys->trusted[i].key, shown);
		buf_printf(&text, "%s %s\n", shown, keys->trusted[i].note);
	}
	r = buf_error(&text);
	if (r == 0)
		r = fd_replace_file_at(keys->dir_fd, trusted_name, text.bytes, text.size, 0600);
	if (r == 0 && fsync(keys->dir_fd) < 0)
		r = -errno;
	return r < 0 ? fail(keys, trusted_name, r, err) : 0;
}

int token_keys_add(struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE], const char *note, struct err *err)
{
	struct token_trusted *trusted = &keys->trusted[keys->trusted_count];

	if (token_keys_trust(keys, key))
		return 1;
	if (keys->trusted_count == TOKEN_TRUSTED_MAX)
		return err_set(err, ERR_USAGE, EDQUOT, "token", "%d keys are trusted already", TOKEN_TRUSTED_MAX);
	if (str_copy(trusted->note, sizeof trusted->note, note) < 0 || strpbrk(note, "\n\r"))
		return err_set(err, ERR_USAGE, EINVAL, "token", "the note must be one line of at most %d bytes",
			       TOKEN_NOTE_SIZE - 1);
	memcpy(trusted->key, key, TOKEN_KEY_SIZE);
	keys->trusted_count++;
	return store_trusted(keys, err);
}

int token_keys_remove(struct token_keys *keys, const uint8_t key[TOKEN_KEY_SIZE], struct err *err)
{
	struct token_trusted *trusted = find(keys, key);

	if (!trusted)
		return 1;
	*trusted = keys->trusted[--keys->trusted_count];
	return store_trusted(keys, err);
}
