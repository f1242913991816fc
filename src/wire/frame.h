/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Typed frames between atoll's own programs (doc/format/wire.md): a header, then fields, each with a tag byte.
 * One frame is one SOCK_SEQPACKET message, or the content of one sealed memfd. Readers never trust
 * lengths: the first malformed field makes the reader fail for good.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	FRAME_VERSION = 1,
	FRAME_MESSAGE_MAX = 128 << 10,    /* over a socket: below the default wmem_max of 208 KiB */
	FRAME_STRV_MAX = 64 << 10,        /* entries of one vector */
	FRAME_FD_MAX = 4,
	FRAME_HEADER_SIZE = 16,
};

/* Starts a frame of this type in out (which is reset). */
void frame_begin(struct buf *out, uint16_t type);
void frame_put_u32(struct buf *out, uint32_t value);
void frame_put_u64(struct buf *out, uint64_t value);
void frame_put_bytes(struct buf *out, const void *bytes, size_t size);
void frame_put_string(struct buf *out, const char *text);             /* NULL is kept as NULL */
void frame_put_strv(struct buf *out, const char *const *strv);        /* NULL is an empty vector */
/* Completes the header. 0 or the buffer's sticky error. */
int frame_end(struct buf *out) MUST_USE;

struct frame {
	uint8_t *bytes;      /* borrowed; strings are NUL-terminated within it */
	size_t size, at;
	uint16_t type;
	int error;           /* sticky: 0, -EBADMSG, or -ENOMEM for a vector */
};

/* Checks the header. -EBADMSG for a wrong magic, version or length. */
int frame_open(struct frame *frame, void *bytes, size_t size) MUST_USE;
/* The type, and the size of the whole, that a header claims, before the rest was read or checked. */
uint16_t frame_peek_type(const uint8_t header[FRAME_HEADER_SIZE]);
uint32_t frame_peek_size(const uint8_t header[FRAME_HEADER_SIZE]);
uint32_t frame_get_u32(struct frame *frame);                          /* 0 after an error */
uint64_t frame_get_u64(struct frame *frame);
const char *frame_get_string(struct frame *frame);                    /* borrowed; NULL: NULL was sent, or error */
const void *frame_get_bytes(struct frame *frame, size_t *ret_size);   /* borrowed */
/* The array is owned (free()), the strings are borrowed; NULL on error. */
char **frame_get_strv(struct frame *frame);
/* 0 when everything was read without error and nothing is left; else the frame's error. */
int frame_finish(struct frame *frame) MUST_USE;

/* A receiver's table: what may come in which state. */
struct frame_rule {
	uint16_t type;
	uint32_t states;          /* bits 1u << state in which it is allowed */
	size_t size_max;
	size_t fd_min, fd_max;
	/* Takes the fds that it keeps by take_fd(). */
	int (*handle)(void *context, struct frame *frame, int *fds, size_t fd_count);
};

/*
 * Receives one message from socket_fd and hands it to its rule. 1: handled; 0: the peer closed;
 * -EPROTO: unknown type, wrong state, too big, wrong number of fds (the session must end);
 * or what the handler returned. fds that the handler left are closed. scratch: FRAME_MESSAGE_MAX bytes.
 */
int frame_dispatch(int socket_fd, struct buf *scratch, unsigned state, const struct frame_rule *rules,
		   size_t rule_count, void *context) MUST_USE;

/* Sends the frame in out with fds. -EMSGSIZE beyond FRAME_MESSAGE_MAX. Blocking sockets block. */
int frame_send(int socket_fd, const struct buf *out, const int *fds, size_t fd_count) MUST_USE;
