/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A vault on disk: one directory with the key, the sealed secrets and a lock (doc/format/vault.md). Files are replaced
 * whole or not at all, and refused where another user could have read or written them. Run by atoll-secret, which
 * may reach nothing but this directory once it is open.
 */

#include "base/err.h"
#include "vault/seal.h"
#include "vault/secrets.h"

struct vault {
	int dir_fd, lock_fd;
	char path[512];                      /* shown in errors */
	bool has_key;
	enum seal_kind kind;
	uint8_t key_file[SEAL_KEY_FILE_SIZE];
	uint8_t id[SEAL_ID_SIZE];
	struct seal_key *key;                /* NULL until unlocked */
	struct secrets *secrets;             /* NULL until loaded */
};

/* Outcomes of vault_read_key() and vault_unlock(). */
enum { VAULT_NO_KEY = 1, VAULT_NEEDS_PASSPHRASE = 2, VAULT_WRONG_PASSPHRASE = 3 };

/*
 * Opens the directory, which must be the caller's own and closed to everybody else; with make, makes it where it is
 * missing (mode 0700). The last call that needs more than the directory. vault_done() in any case.
 */
int vault_open(struct vault *vault, const char *path, bool make, struct err *err) MUST_USE;
void vault_done(struct vault *vault);
#define cleanup_vault __attribute__((cleanup(vault_done)))

/*
 * Reads the key file. VAULT_NO_KEY: nothing was ever kept here. VAULT_NEEDS_PASSPHRASE: vault_unlock() wants one.
 * An error where there are secrets without a key: a new key would make them unreadable for ever.
 */
int vault_read_key(struct vault *vault, struct err *err) MUST_USE;

/* Opens the key that was read. 0 or VAULT_WRONG_PASSPHRASE (where one is needed; else passphrase is not looked at). */
int vault_unlock(struct vault *vault, const char *passphrase, size_t size, struct err *err) MUST_USE;

/* Takes the key from elsewhere (a cache); whether it is the right one shows in vault_load(). -ENOMEM. */
int vault_use_key(struct vault *vault, const uint8_t key[SEAL_KEY_SIZE], struct err *err) MUST_USE;

/* Reads the secrets with the key; none where there is no file yet. Needs no lock. -EBADMSG, -ENOKEY and so on. */
int vault_load(struct vault *vault, struct err *err) MUST_USE;

/*
 * Waits for whoever changes the vault and keeps others from it until vault_done(); reads key and secrets again, as they
 * may have changed since. Makes the first key where there is none.
 */
int vault_begin_change(struct vault *vault, struct err *err) MUST_USE;

/* Replaces the sealed secrets by what is in vault->secrets; on disk when it returns. Between begin and done. */
int vault_store(struct vault *vault, struct err *err) MUST_USE;

/* Replaces the key file: the same key, wrapped by this passphrase, or plain (NULL). Between begin and done. */
int vault_store_key(struct vault *vault, const char *passphrase, size_t size, struct err *err) MUST_USE;
