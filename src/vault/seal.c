/* SPDX-License-Identifier: Apache-2.0 */
#include "vault/seal.h"

#include <sodium.h>
#include <string.h>

enum {
	VERSION = 1,
	/* Argon2id, RFC 9106: more memory than its second recommendation asks for, as libsodium has one lane only. */
	PASSPHRASE_OPS = 4, PASSPHRASE_MEMORY = 128 << 20,
	OPS_LIMIT = 16, MEMORY_LIMIT = 1 << 30,
	/* Sizes of secrets do not show in the size of the file. */
	PADDING = 4096,
};

static const uint8_t key_magic[8] = { 'a', 't', 'o', 'l', 'l', 'k', 'e', 'y' };
static const uint8_t secrets_magic[8] = { 'a', 't', 'o', 'l', 'l', 's', 'e', 'c' };

/* Little-endian on disk, as on every machine that atoll runs on. */
struct key_file {
	uint8_t magic[8];
	uint32_t version, kind;
	uint8_t id[SEAL_ID_SIZE];
	uint64_t ops, memory;                                    /* 0 in a plain one */
	uint8_t salt[crypto_pwhash_SALTBYTES];                   /* 0 in a plain one */
	uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES]; /* 0 in a plain one */
	/* Plain: the key and a BLAKE2b of all before it. Passphrase: the key, sealed, all before it bound in. */
	uint8_t body[SEAL_KEY_SIZE + crypto_aead_xchacha20poly1305_ietf_ABYTES];
};
_Static_assert(sizeof(struct key_file) == SEAL_KEY_FILE_SIZE, "the size in the header");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

struct secrets_head {
	uint8_t magic[8];
	uint32_t version, size;                                  /* size: of what follows */
	uint8_t id[SEAL_ID_SIZE];
	uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
};
_Static_assert(sizeof(struct secrets_head) == 56, "no padding");

enum { BOUND_SIZE = offsetof(struct key_file, body), SUM_SIZE = crypto_aead_xchacha20poly1305_ietf_ABYTES };

struct seal_key *seal_key_new(void)
{
	struct seal_key *key = sodium_malloc(sizeof *key);

	if (key)
		randombytes_buf(key, sizeof *key);
	return key;
}

static int check_version(const uint8_t magic[8], const uint8_t wanted[8], uint32_t version)
{
	if (memcmp(magic, wanted, 8) != 0)
		return -EBADMSG;
	return version == VERSION ? 0 : -EPROTONOSUPPORT;
}

static int read_key_file(const uint8_t *file, size_t size, struct key_file *ret_file)
{
	int r;

	if (size < offsetof(struct key_file, kind))
		return -EBADMSG;
	memset(ret_file, 0, sizeof *ret_file);
	memcpy(ret_file, file, size < sizeof *ret_file ? size : sizeof *ret_file);
	r = check_version(ret_file->magic, key_magic, ret_file->version);
	if (r < 0)
		return r;
	if (size != sizeof *ret_file || ret_file->kind >= SEAL_KIND_COUNT)
		return -EBADMSG;
	if (ret_file->kind == SEAL_PASSPHRASE &&
	    (ret_file->ops < crypto_pwhash_OPSLIMIT_MIN || ret_file->ops > OPS_LIMIT ||
	     ret_file->memory < crypto_pwhash_MEMLIMIT_MIN || ret_file->memory > MEMORY_LIMIT))
		return -EBADMSG;
	return 0;
}

int seal_key_peek(const uint8_t *file, size_t size, enum seal_kind *ret_kind, uint8_t ret_id[SEAL_ID_SIZE])
{
	struct key_file parsed;
	int r = read_key_file(file, size, &parsed);

	if (r == 0) {
		*ret_kind = (enum seal_kind)parsed.kind;
		memcpy(ret_id, parsed.id, SEAL_ID_SIZE);
	}
	sodium_memzero(&parsed, sizeof parsed);
	return r;
}

static void sum_of(const struct key_file *file, uint8_t out[SUM_SIZE])
{
	crypto_generichash(out, SUM_SIZE, (const uint8_t *)file, BOUND_SIZE + SEAL_KEY_SIZE, NULL, 0);
}

static int open_plain(const struct key_file *file, uint8_t key[SEAL_KEY_SIZE])
{
	uint8_t sum[SUM_SIZE];

	sum_of(file, sum);
	if (sodium_memcmp(sum, file->body + SEAL_KEY_SIZE, SUM_SIZE) != 0)
		return -EBADMSG;
	memcpy(key, file->body, SEAL_KEY_SIZE);
	return 0;
}

static int derive(const struct key_file *file, const char *passphrase, size_t size, uint8_t **ret_wrapper)
{
	uint8_t *wrapper = sodium_malloc(crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

	if (!wrapper)
		return -ENOMEM;
	if (crypto_pwhash(wrapper, crypto_aead_xchacha20poly1305_ietf_KEYBYTES, passphrase, size, file->salt, file->ops,
			  file->memory, crypto_pwhash_ALG_ARGON2ID13) != 0) {
		sodium_free(wrapper);
		return -ENOMEM;
	}
	*ret_wrapper = wrapper;
	return 0;
}

static int open_wrapped(const struct key_file *file, const char *passphrase, size_t size, uint8_t key[SEAL_KEY_SIZE])
{
	uint8_t *wrapper;
	int r = derive(file, passphrase, size, &wrapper);

	if (r < 0)
		return r;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(key, NULL, NULL, file->body, sizeof file->body,
						       (const uint8_t *)file, BOUND_SIZE, file->nonce, wrapper) != 0)
		r = -EACCES;
	sodium_free(wrapper);
	return r;
}

int seal_key_open(const uint8_t *file, size_t size, const char *passphrase, size_t passphrase_size,
		  struct seal_key *ret_key)
{
	struct key_file parsed;
	int r = read_key_file(file, size, &parsed);

	if (r == 0 && parsed.kind == SEAL_PLAIN)
		r = open_plain(&parsed, ret_key->bytes);
	else if (r == 0)
		r = passphrase ? open_wrapped(&parsed, passphrase, passphrase_size, ret_key->bytes) : -EACCES;
	if (r == 0)
		memcpy(ret_key->id, parsed.id, SEAL_ID_SIZE);
	sodium_memzero(&parsed, sizeof parsed);
	return r;
}

int seal_key_format(const struct seal_key *key, const char *passphrase, size_t passphrase_size,
		    uint8_t file[SEAL_KEY_FILE_SIZE])
{
	struct key_file made = { .version = VERSION, .kind = passphrase ? SEAL_PASSPHRASE : SEAL_PLAIN };
	uint8_t *wrapper;
	int r = 0;

	memcpy(made.magic, key_magic, sizeof made.magic);
	memcpy(made.id, key->id, SEAL_ID_SIZE);
	if (passphrase) {
		made.ops = PASSPHRASE_OPS;
		made.memory = PASSPHRASE_MEMORY;
		randombytes_buf(made.salt, sizeof made.salt);
		randombytes_buf(made.nonce, sizeof made.nonce);
		r = derive(&made, passphrase, passphrase_size, &wrapper);
		if (r < 0)
			return r;
		crypto_aead_xchacha20poly1305_ietf_encrypt(made.body, NULL, key->bytes, SEAL_KEY_SIZE,
							   (const uint8_t *)&made, BOUND_SIZE, NULL, made.nonce,
							   wrapper);
		sodium_free(wrapper);
	} else {
		memcpy(made.body, key->bytes, SEAL_KEY_SIZE);
		sum_of(&made, made.body + SEAL_KEY_SIZE);
	}
	memcpy(file, &made, sizeof made);
	sodium_memzero(&made, sizeof made);
	return r;
}

int seal_close(const struct seal_key *key, const uint8_t *bytes, size_t size, uint8_t **ret_file, size_t *ret_size)
{
	struct secrets_head head = { .version = VERSION };
	size_t padded = (size / PADDING + 1) * PADDING;
	uint8_t *file, *plain;

	if (sizeof head + padded + SUM_SIZE > SEAL_FILE_MAX)
		return -EFBIG;
	file = malloc(sizeof head + padded + SUM_SIZE);
	plain = sodium_malloc(padded);
	if (!file || !plain) {
		free(file);
		sodium_free(plain);
		return -ENOMEM;
	}
	memcpy(head.magic, secrets_magic, sizeof head.magic);
	memcpy(head.id, key->id, SEAL_ID_SIZE);
	head.size = (uint32_t)(padded + SUM_SIZE);
	randombytes_buf(head.nonce, sizeof head.nonce);
	memcpy(file, &head, sizeof head);
	memset(plain, 0, padded);
	memcpy(plain, bytes, size);
	sodium_pad(&padded, plain, size, PADDING, padded);
	crypto_aead_xchacha20poly1305_ietf_encrypt(file + sizeof head, NULL, plain, padded, file, sizeof head, NULL,
						   head.nonce, key->bytes);
	sodium_free(plain);
	*ret_file = file;
	*ret_size = sizeof head + padded + SUM_SIZE;
	return 0;
}

int seal_open(const struct seal_key *key, const uint8_t *file, size_t size, uint8_t **ret_bytes, size_t *ret_size)
{
	struct secrets_head head;
	uint8_t *plain;
	size_t padded;
	int r;

	if (size < sizeof head)
		return -EBADMSG;
	memcpy(&head, file, sizeof head);
	r = check_version(head.magic, secrets_magic, head.version);
	if (r < 0)
		return r;
	padded = size - sizeof head - SUM_SIZE;
	if (size > SEAL_FILE_MAX || head.size != size - sizeof head || head.size < PADDING + SUM_SIZE ||
	    padded % PADDING != 0)
		return -EBADMSG;
	if (memcmp(head.id, key->id, SEAL_ID_SIZE) != 0)
		return -ENOKEY;
	plain = sodium_malloc(padded);
	if (!plain)
		return -ENOMEM;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, NULL, NULL, file + sizeof head, head.size, file,
						       sizeof head, head.nonce, key->bytes) != 0 ||
	    sodium_unpad(ret_size, plain, padded, PADDING) != 0) {
		sodium_free(plain);
		return -EBADMSG;
	}
	*ret_bytes = plain;
	return 0;
}
