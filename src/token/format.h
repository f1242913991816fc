/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A capability token as bytes and as text (doc/format/token.md): blocks, each with what it allows, how long and how
 * much. Parsing trusts nothing and accepts only what formatting gives again byte for byte. Who signed it is chain.h's,
 * what it comes to check.h's. Pure; run by atoll-token.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	TOKEN_BLOCKS_MAX = 8,
	TOKEN_RIGHTS_MAX = 64,           /* of one block */
	TOKEN_WORDS_MAX = 32,            /* of one argument vector */
	TOKEN_PAYLOAD_MAX = 8 << 10,     /* bytes of one block */
	TOKEN_BYTES_MAX = 24 << 10,
	TOKEN_TEXT_MAX = 33 << 10,
	TOKEN_SERIAL_SIZE = 16,
	TOKEN_KEY_SIZE = 32,             /* Ed25519: public keys, and seeds of private ones */
	TOKEN_SIGNATURE_SIZE = 64,
	TOKEN_STRING_MAX = 4096,
};

/* Numbers of the format: they never change. */
enum token_kind {
	TOKEN_FILE_READ = 1,
	TOKEN_FILE_WRITE,
	TOKEN_EXEC,
	TOKEN_NET_CONNECT,
	TOKEN_HTTP_REQUEST,
	TOKEN_TRUST,                     /* subject: a trust level that a run is raised to */
	TOKEN_KIND_END,
};

enum token_limit {
	TOKEN_MEMORY,                    /* bytes */
	TOKEN_PROCESSES,
	TOKEN_DISK,                      /* bytes */
	TOKEN_WALL_MS,
	TOKEN_CPU_MS,
	TOKEN_NET_BYTES,                 /* both ways together */
	TOKEN_LIMIT_COUNT,
};

/* One thing that may be done. All text is borrowed from the bytes. */
struct token_right {
	enum token_kind kind;
	bool is_below;                   /* files and programs: the path and all below it */
	uint16_t port;                   /* 0: any */
	const char *subject;             /* path, or host: "*.example.org" is every name below it */
	const char *method, *path;       /* NULL: any; path may end with a component "**" */
	const char *words[TOKEN_WORDS_MAX + 1]; /* the argument vector, NULL-terminated; empty: any */
	size_t word_count;
};

struct token_block {
	uint8_t serial[TOKEN_SERIAL_SIZE]; /* random: no two blocks are the same */
	uint64_t not_before_s, expires_s;  /* CLOCK_REALTIME; 0: the block says nothing of it */
	uint32_t uses;                     /* how often it may be presented; 0: as above */
	const char *project, *agent;       /* where it may be presented; NULL: as above */
	uint64_t limits[TOKEN_LIMIT_COUNT]; /* UINT64_MAX: as above */
	struct token_right *rights;        /* owned by the token; none: what the blocks before allow */
	size_t right_count;
};

/* A block with its place in the chain. */
struct token_link {
	struct token_block block;
	const uint8_t *payload;            /* the block's bytes */
	size_t payload_size;
	const uint8_t *next;               /* public key that the following block is signed with */
	const uint8_t *signature;
};

struct token {
	uint8_t *bytes;                    /* owned; wiped when freed */
	size_t size;
	const uint8_t *issuer;             /* public key */
	struct token_link links[TOKEN_BLOCKS_MAX];
	size_t count;                      /* 1 at least */
	bool is_sealed;
	const uint8_t *proof;              /* the last next key's seed; sealed: a signature with it */
};

/* Wipes and frees what it holds. */
void token_done(struct token *token);
#define cleanup_token __attribute__((cleanup(token_done)))

/* -EBADMSG: malformed; -ENOMEM. bytes are copied. */
int token_parse(struct token *ret_token, const uint8_t *bytes, size_t size) MUST_USE;

/* The same from text, with or without blanks around it. */
int token_parse_text(struct token *ret_token, const char *text, size_t size) MUST_USE;

/* "atoll1." and base64url of the bytes. */
int token_format_text(const struct token *token, struct buf *out) MUST_USE;

/* What begins like one: what must not stand where others can read it. */
bool token_is_text(const char *text);

/* The bytes of a block. -EINVAL where it cannot be written: something in it is not valid, or there is too much. */
int token_block_format(const struct token_block *block, struct buf *out) MUST_USE;

/* A block from its bytes; rights are owned by the caller (free()). -EBADMSG, -ENOMEM. */
int token_block_parse(const uint8_t *bytes, size_t size, struct token_block *ret_block) MUST_USE;

/* A whole token from its parts; proof has the size that is_sealed says. */
struct token_parts {
	const uint8_t *issuer, *proof;
	const struct token_link *links;
	size_t count;
	bool is_sealed;
};

/* Writes the parts and reads them again as a token, which owns its bytes. No signing. -EBADMSG, -ENOBUFS, -ENOMEM. */
int token_assemble(const struct token_parts *parts, struct token *ret_token) MUST_USE;
