/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atoll-front, which speaks HTTP with clients, and atolld, which has the sandboxes, tell each other: frames of
 * named values (wire/field.h) on one SOCK_SEQPACKET pair. One table (service-table.c) says which values an operation
 * has, of which kind and how large; both ends write and check by it, and a frame that does not fit it ends the front.
 * Nothing here knows HTTP or JSON, or decides whether somebody may do a thing.
 *
 * SERVICE_SETUP (atolld's, first), SERVICE_READY (the front is confined; it has read nothing before), then requests,
 * each with a ticket of the front's choice that its one reply brings back, and events. "Ticket 0" does not exist.
 */

#include <stdbool.h>

#include "wire/field.h"

enum {
	SERVICE_FD = 3,                /* the front's end of the pair, in the front */
	SERVICE_PENDING_MAX = 4096,    /* requests that wait for a reply */
	SERVICE_FIELDS_MAX = 128,      /* of one frame; rows are fields */
	SERVICE_TEXT_MAX = 48 << 10,   /* bytes of one text */
	SERVICE_ID_MAX = 63,           /* of a sandbox's id: a label of DNS */
	SERVICE_ROWS_MAX = 64,         /* of one page */
};

enum service_message_type {
	SERVICE_SETUP = 160,           /* fields of service_setup_fields */
	SERVICE_READY,                 /* no fields */
	SERVICE_REQUEST,               /* u64 ticket, u32 enum service_operation, fields */
	SERVICE_REPLY,                 /* u64 ticket, u32 enum service_operation, u32 status, fields */
	SERVICE_EVENT,                 /* u32 enum service_event, fields */
};

enum service_operation {
	SERVICE_WHOAMI = 1,            /* whose key this is */
	SERVICE_CREATE,
	SERVICE_CONNECT,               /* takes it on, and wakes it where it is paused: 200 it ran, 201 it was paused */
	SERVICE_GET,
	SERVICE_LIST,
	SERVICE_KILL,
	SERVICE_TIMEOUT,
	SERVICE_PAUSE,
	SERVICE_FORK,                  /* rows: a sandbox each, or status and message */
	SERVICE_SNAPSHOT,
	SERVICE_SNAPSHOTS,
	SERVICE_TEMPLATES,
	SERVICE_TEMPLATE_DELETE,
	SERVICE_NETWORK,
	SERVICE_METRICS,
	SERVICE_LOGS,
	SERVICE_VOLUME_CREATE,
	SERVICE_VOLUMES,
	SERVICE_VOLUME_GET,
	SERVICE_VOLUME_DELETE,
	SERVICE_SECRET_CREATE,
	SERVICE_SECRETS,
	SERVICE_SECRET_GET,
	SERVICE_SECRET_UPDATE,
	SERVICE_SECRET_DELETE,
	/* inside of a sandbox */
	SERVICE_HEALTH,                /* 204, or 502: it is gone */
	SERVICE_EXEC,
	SERVICE_COMMANDS,
	SERVICE_ATTACH,                /* the streams of a command once more; one that ended has "exited" */
	SERVICE_SIGNAL,
	SERVICE_RESIZE,
	SERVICE_CLOSE,                 /* nobody reads this command's streams any more; it goes on */
	SERVICE_OPEN,                  /* a regular file; parents are made for one that is written */
	SERVICE_STAT,
	SERVICE_READDIR,
	SERVICE_MKDIR,
	SERVICE_MOVE,
	SERVICE_REMOVE,
	SERVICE_SETATTR,
	SERVICE_WATCH,
	SERVICE_UNWATCH,
	SERVICE_CLOSE_INPUT,           /* the end of what a command reads; closing "stdin" says nothing to it */
	SERVICE_DIAL,                  /* a socket that is connected with a port inside */
	SERVICE_INTERPRET,             /* may who asks use the code interpreter? 204; the sandbox wakes for it */
	/* functions */
	SERVICE_FUNCTION_DEPLOY,       /* begins one: its archive is written to "file", then it is committed */
	SERVICE_FUNCTION_COMMIT,       /* 201 when it was loaded once; 400: it cannot be */
	SERVICE_FUNCTIONS,
	SERVICE_FUNCTION_GET,
	SERVICE_FUNCTION_DELETE,
	SERVICE_FUNCTION_INVOKE,       /* the streams of a sandbox that waits for one event */
	SERVICE_FUNCTION_END,          /* the front has read them to the end: what came of it */
	SERVICE_FUNCTION_LOGS,
	/* templates that are built (service/launcher/build/builds.h) */
	SERVICE_BUILD_REQUEST,         /* a name and an id for what will be built */
	SERVICE_BUILD_FILE,            /* is an archive there? else where it is sent to */
	SERVICE_BUILD_UPLOAD,          /* a descriptor to write it to; part: what became of it */
	SERVICE_BUILD_START,
	SERVICE_BUILD_STATUS,          /* rows: what the build said, from an offset on */
	SERVICE_ALIAS,                 /* whose a name is */
	SERVICE_TAGS,                  /* rows: the tags of a template */
	SERVICE_TAGS_ADD,
	SERVICE_TAGS_REMOVE,
	SERVICE_OPERATION_COUNT,
};

enum service_event {
	SERVICE_EXIT = 1,              /* a command has ended */
	SERVICE_CHANGED,               /* WATCH: something below a watched directory changed */
	SERVICE_LOST,                  /* WATCH: changes that nobody read in time; watch again */
	SERVICE_GONE,                  /* a sandbox has ended: close its streams, then answer 502 */
	SERVICE_PAUSED,                /* it stands still; its streams stay */
	SERVICE_RESUMED,
	SERVICE_EVENT_COUNT,
};

/* What a request may be signed with: bits, of which one suffices. */
enum service_credential {
	SERVICE_BY_KEY = 1,            /* "key" */
	SERVICE_BY_TOKEN = 2,          /* "sandbox" and "token" */
	SERVICE_BY_SIGNATURE = 4,      /* "signature", "signed", "expires", and "sandbox" where the URL says it */
	SERVICE_BY_NOTHING = 8,        /* a sandbox's own settings decide */
};

/* Types of SERVICE_STAT and rows of SERVICE_READDIR, as the protocol has them. */
enum service_file_type { SERVICE_FILE_OTHER, SERVICE_FILE_REGULAR, SERVICE_FILE_DIRECTORY, SERVICE_FILE_SYMLINK };

/* "type" of SERVICE_CHANGED, as the protocol has them. */
enum service_change { SERVICE_CHANGE_CREATE = 1, SERVICE_CHANGE_WRITE, SERVICE_CHANGE_REMOVE, SERVICE_CHANGE_RENAME,
	SERVICE_CHANGE_CHMOD };

enum service_flag {
	SERVICE_REQUIRED = 1,
	SERVICE_REPEATED = 2,          /* any number of times: rows */
	SERVICE_IS_ID = 4,             /* a string of [a-z0-9], not empty */
	SERVICE_IS_LINE = 8,           /* no control characters in any of its texts, and not empty */
	SERVICE_PAIRS = 16,            /* a vector whose number of entries is even: name, value, name, value … */
	SERVICE_TRIPLES = 32,          /* the same by three */
};

/* One value that a frame may have. */
struct service_field {
	const char *key;               /* NULL ends a list */
	enum field_kind kind;
	uint32_t flags;                /* enum service_flag */
	uint64_t max;                  /* number: the largest; text, bytes: bytes; vector: entries */
	const char *meaning;
};

struct service_rule {
	const char *name;              /* "sandbox.create": for the log */
	uint32_t credentials;          /* enum service_credential */
	const struct service_field *request, *reply, *row;   /* row NULL: there are none */
};

/* The rule of an operation; NULL: there is no such operation. Static. */
const struct service_rule *service_rule(uint32_t operation);
/* Fields that every request, and every reply that is an error, may have beside its own. */
extern const struct service_field service_credential_fields[], service_error_fields[];
extern const struct service_field service_setup_fields[];
/* The fields of an event; NULL: there is no such event. */
const struct service_field *service_event_fields(uint32_t event);
/* Whether this is one of the statuses that a reply may have. */
bool service_is_status(uint32_t status);

/* One frame, read and checked. Texts are borrowed from the bytes that it was read from. */
struct service_message {
	enum service_message_type type;
	uint64_t ticket;               /* request, reply */
	uint32_t operation;            /* request, reply */
	uint32_t status;               /* reply */
	uint32_t event;                /* event */
	size_t field_count;
	struct field fields[SERVICE_FIELDS_MAX];
	int fds[FRAME_FD_MAX];         /* owned; FD_NONE where there is none */
};

/*
 * Reads a whole frame of any of the types, by the table. 0, and service_message_done() frees; or -EBADMSG with
 * *ret_problem set to a static word or a key of the table: unknown type, operation, event or status, a value that the
 * table does not have, of another kind, too large, twice, or missing; -ENOMEM. fds are the caller's then.
 * fd_count: how many came; each must be meant by exactly one value.
 */
int service_read(struct frame *frame, const int *fds, size_t fd_count, struct service_message *ret_message,
		 const char **ret_problem) MUST_USE;

/* Frees what a message holds, and closes the descriptors that nobody took. */
void service_message_done(struct service_message *message);

/* The value of a key; NULL: it is not there. Which kind it is, the table says. */
const struct field *service_get(const struct service_message *message, const char *key);
/* The same by kind; what stands in `missing`, NULL, or -ENOENT where it is not there. */
uint64_t service_number(const struct service_message *message, const char *key, uint64_t missing);
const char *service_string(const struct service_message *message, const char *key);
const char *const *service_strings(const struct service_message *message, const char *key);
int service_take_fd(struct service_message *message, const char *key);

/*
 * The row behind *at, which begins with 0 and is moved on: 1, and service_message_done() frees *ret_row, whose values
 * service_get() finds; 0: there are no more. A row was checked with its message. -ENOMEM.
 */
int service_next_row(const struct service_message *message, size_t *at, struct service_message *ret_row) MUST_USE;

/* Begin a frame in out, which is reset; values follow by field_put_*() (service_put_row() for a row). */
void service_begin_setup(struct buf *out);
void service_begin_ready(struct buf *out);
void service_begin_request(struct buf *out, uint64_t ticket, enum service_operation operation);
void service_begin_reply(struct buf *out, uint64_t ticket, enum service_operation operation, uint32_t status);
void service_begin_event(struct buf *out, enum service_event event);

/*
 * Ends a frame, and checks it by the table as the other end will. 0; -EBADMSG: our own mistake; -ENOBUFS, -ENOMEM,
 * -EMSGSIZE: it is too large. fd_count: of the descriptors that will go with it.
 */
int service_end(struct buf *out, size_t fd_count) MUST_USE;

/* A row is a frame of its own: begin it in another buffer, put its values, and put it as one more value. */
void service_begin_row(struct buf *row);
void service_put_row(struct buf *out, struct buf *row);
