/* SPDX-License-Identifier: Apache-2.0 */
#include "vault/store.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

static const char key_name[] = "key", secrets_name[] = "secrets", lock_name[] = "lock";

static int fail(struct vault *vault, int errnum, const char *name, struct err *err)
{
	return err_set(err, ERR_STATE, errnum, "secret", "%s/%s: %s", vault->path, name, strerror(errnum));
}

/* What others can read is no secret, and what they can write is not ours. */
static int check_own(struct vault *vault, const struct stat *st, const char *name, struct err *err)
{
	const char *slash = *name ? "/" : "";

	if (st->st_uid != geteuid()) {
		err_set(err, ERR_STATE, EPERM, "secret", "%s%s%s belongs to uid %u, not to you", vault->path, slash,
			name, (unsigned)st->st_uid);
		err_hint(err, "remove it, or make it your own (chown)");
		return -EPERM;
	}
	if (st->st_mode & 077) {
		err_set(err, ERR_STATE, EPERM, "secret", "%s%s%s is open to others", vault->path, slash, name);
		err_hint(err, "chmod %s %s%s%s, and replace the secrets that others may have read",
			 S_ISDIR(st->st_mode) ? "700" : "600", vault->path, slash, name);
		return -EPERM;
	}
	return 0;
}

int vault_open(struct vault *vault, const char *path, bool make, struct err *err)
{
	struct stat st;
	int r;

	*vault = (struct vault){ .dir_fd = FD_NONE, .lock_fd = FD_NONE };
	if (str_copy(vault->path, sizeof vault->path, path) < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "secret", "the path of the vault is too long");
	if (make) {
		r = path_make_directories(AT_FDCWD, path, 0700);
		if (r < 0) {
			err_set(err, ERR_STATE, -r, "secret", "%s cannot be made: %s", path, strerror(-r));
			err_hint(err, "make it, or set XDG_CONFIG_HOME to a directory that you can write");
			return r;
		}
	}
	vault->dir_fd = path_open2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
	if (vault->dir_fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, ENOENT, "secret", "there are no secrets yet: %s does not exist",
			       path);
	if (vault->dir_fd < 0 || fstat(vault->dir_fd, &st) < 0)
		return err_set(err, ERR_STATE, vault->dir_fd < 0 ? -vault->dir_fd : errno, "secret", "%s: %s", path,
			       strerror(vault->dir_fd < 0 ? -vault->dir_fd : errno));
	return check_own(vault, &st, "", err);
}

static void forget(struct vault *vault)
{
	sodium_free(vault->key);
	secrets_free(vault->secrets);
	vault->key = NULL;
	vault->secrets = NULL;
}

void vault_done(struct vault *vault)
{
	forget(vault);
	sodium_memzero(vault->key_file, sizeof vault->key_file);
	close_fd(&vault->lock_fd);
	close_fd(&vault->dir_fd);
}

/* The whole file into bytes[max]; its size, or -errno with *err but for -ENOENT. */
static ssize_t read_file(struct vault *vault, const char *name, uint8_t *bytes, size_t max, struct err *err)
{
	/* O_NONBLOCK: a FIFO in its place must not hold us. */
	cleanup_fd int fd = path_open2(vault->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
				       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat st;
	int r;

	if (fd == -ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(vault, fd < 0 ? -fd : errno, name, err);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(err, ERR_STATE, EPERM, "secret", "%s/%s is not a regular file, or has other hard "
								"links", vault->path,
			       name);
	r = check_own(vault, &st, name, err);
	if (r < 0)
		return r;
	if ((size_t)st.st_size > max)
		return fail(vault, EFBIG, name, err);
	r = fd_read_full(fd, bytes, (size_t)st.st_size);
	return r < 0 ? fail(vault, -r, name, err) : (ssize_t)st.st_size;
}

static bool has_secrets(const struct vault *vault)
{
	return faccessat(vault->dir_fd, secrets_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static int fail_format(struct vault *vault, int errnum, const char *name, struct err *err)
{
	if (errnum == EPROTONOSUPPORT) {
		err_set(err, ERR_STATE, errnum, "secret", "%s/%s was written by a later version of atoll", vault->path,
			name);
		err_hint(err, "use that version");
	} else if (errnum == ENOKEY) {
		err_set(err, ERR_STATE, errnum, "secret", "%s/%s was sealed with another key than %s/%s", vault->path,
			name, vault->path, key_name);
		err_hint(err, "put back the key that belongs to it, or remove both and set the secrets again");
	} else if (errnum == EBADMSG) {
		err_set(err, ERR_STATE, errnum, "secret", "%s/%s is damaged", vault->path, name);
		err_hint(err, "put back a copy, or remove key and secrets there and set the secrets again");
	} else {
		fail(vault, errnum, name, err);
	}
	return -errnum;
}

int vault_read_key(struct vault *vault, struct err *err)
{
	ssize_t size = read_file(vault, key_name, vault->key_file, sizeof vault->key_file, err);
	int r;

	vault->has_key = size >= 0;
	if (size == -EFBIG)
		return fail_format(vault, EBADMSG, key_name, err);
	if (size < 0 && size != -ENOENT)
		return (int)size;
	if (size == -ENOENT && has_secrets(vault)) {
		err_set(err, ERR_STATE, ENOKEY, "secret", "%s/%s is missing: the secrets beside it cannot be read",
			vault->path, key_name);
		err_hint(err, "put it back, or remove %s/%s and set the secrets again", vault->path, secrets_name);
		return -ENOKEY;
	}
	if (size == -ENOENT)
		return VAULT_NO_KEY;
	r = seal_key_peek(vault->key_file, (size_t)size, &vault->kind, vault->id);
	if (r < 0)
		return fail_format(vault, -r, key_name, err);
	return vault->kind == SEAL_PASSPHRASE ? VAULT_NEEDS_PASSPHRASE : 0;
}

static int need_key(struct vault *vault, struct err *err)
{
	sodium_free(vault->key);
	vault->key = seal_key_new();
	return vault->key ? 0 : fail(vault, ENOMEM, key_name, err);
}

int vault_unlock(struct vault *vault, const char *passphrase, size_t size, struct err *err)
{
	int r = need_key(vault, err);

	if (r < 0)
		return r;
	r = seal_key_open(vault->key_file, sizeof vault->key_file, passphrase, size, vault->key);
	if (r == 0)
		return 0;
	sodium_free(take_ptr(vault->key));
	return r == -EACCES ? VAULT_WRONG_PASSPHRASE : fail_format(vault, -r, key_name, err);
}

int vault_use_key(struct vault *vault, const uint8_t key[SEAL_KEY_SIZE], struct err *err)
{
	int r = need_key(vault, err);

	if (r < 0)
		return r;
	memcpy(vault->key->id, vault->id, SEAL_ID_SIZE);
	memcpy(vault->key->bytes, key, SEAL_KEY_SIZE);
	return 0;
}

static int open_secrets(struct vault *vault, const uint8_t *file, size_t size)
{
	uint8_t *bytes;
	size_t used;
	int r = seal_open(vault->key, file, size, &bytes, &used);

	if (r < 0)
		return r;
	r = secrets_parse(bytes, used, &vault->secrets);
	sodium_free(bytes);
	return r;
}

int vault_load(struct vault *vault, struct err *err)
{
	cleanup_free uint8_t *file = malloc(SEAL_FILE_MAX);
	ssize_t size;
	int r;

	secrets_free(take_ptr(vault->secrets));
	if (!file)
		return fail(vault, ENOMEM, secrets_name, err);
	size = read_file(vault, secrets_name, file, SEAL_FILE_MAX, err);
	if (size == -ENOENT) {
		vault->secrets = secrets_new();
		return vault->secrets ? 0 : fail(vault, ENOMEM, secrets_name, err);
	}
	if (size < 0)
		return (int)size;
	r = open_secrets(vault, file, (size_t)size);
	return r < 0 ? fail_format(vault, -r, secrets_name, err) : 0;
}

/* Under the lock: one temporary name is enough, and what a crash left behind under it goes first. */
static int replace(struct vault *vault, const char *name, const uint8_t *bytes, size_t size, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	char temporary[32];
	int r = str_format(temporary, sizeof temporary, "%s.new", name);

	if (r == 0 && unlinkat(vault->dir_fd, temporary, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0) {
		fd = fd_open_at(vault->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		r = fd < 0 ? fd : fd_write_full(fd, bytes, size);
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(vault->dir_fd, temporary, vault->dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(vault->dir_fd, temporary, 0);
		err_set(err, ERR_STATE, -r, "secret", "%s/%s cannot be written: %s; nothing was changed", vault->path,
			name, strerror(-r));
		return r;
	}
	return fsync(vault->dir_fd) < 0 ? fail(vault, errno, name, err) : 0;
}

static int make_key(struct vault *vault, struct err *err)
{
	int r = need_key(vault, err);

	if (r == 0)
		memcpy(vault->id, vault->key->id, SEAL_ID_SIZE);
	return r < 0 ? r : vault_store_key(vault, NULL, 0, err);
}

/* The key as it is now; what was unlocked before stays, for a new passphrase does not change the key. */
static int read_key_again(struct vault *vault, struct err *err)
{
	int r = vault_read_key(vault, err);

	if (r == VAULT_NO_KEY)
		return make_key(vault, err);
	if (r < 0 || (vault->key && memcmp(vault->key->id, vault->id, SEAL_ID_SIZE) == 0))
		return r < 0 ? r : 0;
	r = vault_unlock(vault, NULL, 0, err);
	if (r != VAULT_WRONG_PASSPHRASE)
		return r;
	err_set(err, ERR_STATE, EAGAIN, "secret", "somebody else has changed the vault in the meantime");
	err_hint(err, "try again");
	return -EAGAIN;
}

int vault_begin_change(struct vault *vault, struct err *err)
{
	int r;

	vault->lock_fd = fd_open_at(vault->dir_fd, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (vault->lock_fd < 0)
		return fail(vault, -vault->lock_fd, lock_name, err);
	if (flock(vault->lock_fd, LOCK_EX) < 0)
		return fail(vault, errno, lock_name, err);
	r = read_key_again(vault, err);
	return r < 0 ? r : vault_load(vault, err);
}

int vault_store(struct vault *vault, struct err *err)
{
	cleanup_free uint8_t *file = NULL;
	uint8_t *bytes;
	size_t size, file_size;
	int r = secrets_format(vault->secrets, &bytes, &size);

	if (r == 0) {
		r = seal_close(vault->key, bytes, size, &file, &file_size);
		sodium_free(bytes);
	}
	return r < 0 ? fail(vault, -r, secrets_name, err) : replace(vault, secrets_name, file, file_size, err);
}

int vault_store_key(struct vault *vault, const char *passphrase, size_t size, struct err *err)
{
	uint8_t file[SEAL_KEY_FILE_SIZE];
	int r = seal_key_format(vault->key, passphrase, size, file);

	if (r == -ENOMEM)
		return err_set(err, ERR_INTERNAL, ENOMEM, "secret", "a passphrase needs 128 MiB of free memory");
	r = r < 0 ? fail(vault, -r, key_name, err) : replace(vault, key_name, file, sizeof file, err);
	sodium_memzero(file, sizeof file);
	return r;
}
