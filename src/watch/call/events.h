/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the supervisor tells its owner of the calls that it is notified of, what it asks him, and how it is set up. The
 * owner is atoll-box; all strings are borrowed for the time of the call.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
	WATCH_ARGV_MAX = 256,        /* arguments kept of one exec; more are counted, and one that is cut */
	WATCH_TEXT_MAX = 32 << 10,   /* bytes kept of one exec's path and arguments together */
	WATCH_DEVICES_MAX = 64,
	WATCH_WAITING_MAX = 512,     /* connects that wait at one time; the next is EAGAIN */
	WATCH_HOST_PORTS_MAX = 8,
	WATCH_SOURCE_SIZE = 32,
	WATCH_FILES_WAITING_MAX = 64, /* file calls that wait at one time; the next is ENFILE */
};

struct watch_exec {
	uint64_t id;                 /* of the notification, for watch_answer_exec() */
	pid_t pid;                   /* host id of the calling thread: in most programs that of the process */
	int dir_fd;                  /* the caller's, that exe is relative to; AT_FDCWD: its directory */
	bool is_open_file;           /* execveat(AT_EMPTY_PATH): exe is what the open file is called */
	const char *exe;             /* what it asked to run, as given; may be cut; "": could not be read */
	const char *const *argv;     /* NULL-terminated, bounded */
	size_t argv_left_out;
	uint64_t arguments;          /* all of them, in the caller's memory: for watch_exec_left_out() */
	uint64_t environment;        /* its variables, in the caller's memory: for watch_exec_environment() */
};

struct watch_refusal {
	pid_t pid;
	const char *syscall;         /* name */
	uint64_t arguments[6];
	int errnum;                  /* what the caller got */
};

struct watch_network {
	pid_t pid;
	const char *operation;       /* "connect", "bind", "listen", "sendto" */
	const char *family;          /* "inet", "inet6", "unix", "netlink", … */
	char address[128];           /* "203.0.113.7", "::1", "/run/x.sock", "@abstract" */
	uint16_t port;
	bool is_refused;             /* the supervisor or the topology refuses it */
	int errnum;
};

/* What a mediated call is about to do, or did. */
enum watch_file_access {
	WATCH_FILE_READ,             /* open */
	WATCH_FILE_WRITE,            /* open for writing, make, link, change attributes */
	WATCH_FILE_REMOVE,
	WATCH_FILE_RENAME,           /* from path to target */
};

struct watch_file {
	uint64_t id;                 /* of the notification */
	pid_t pid;
	const char *call;            /* name of the system call */
	enum watch_file_access access;
	const char *path;            /* real, as seen inside; what is not there is named below its directory */
	const char *target;          /* rename: the new path; link: what path becomes another name of; else NULL */
	bool is_exchange;            /* rename: both names change places */
	bool is_directory;           /* rename: one of them is a directory */
	int flags;                   /* of open(2) */
	int errnum;                  /* once it was made: what the caller gets; 0: it worked */
};

enum {
	WATCH_FILE_WAITS = 4096,
	WATCH_FILE_ASKS,
	WATCH_MOVE_NEW,
};

/* A rename that the kernel refuses (EXDEV) though both names are of one mount. */
struct watch_move {
	uint64_t id;                 /* of the notification */
	pid_t pid;                   /* of the calling thread */
	int number;                  /* of the system call, and its name */
	const char *call;
	int flags;                   /* of renameat2(2) */
	const char *text[2];         /* the paths as the caller gave them */
	/* Not for on_moved: where they lead. */
	int dir_fd[2];               /* borrowed, O_PATH */
	const char *name[2], *path[2];
};

struct watch_exec_answer {
	int errnum;                  /* not 0: refused, and recorded */
	bool is_held;                /* it goes on, and on_image is called with token before the new program runs */
	bool is_later;               /* watch_answer_exec() will be called; nothing else holds */
	uint64_t token;
};

/* Called for each event, in order. A negative return ends the sandbox (the log could not be written). */
struct watch_handlers {
	int (*on_exec)(void *context, const struct watch_exec *event, struct watch_exec_answer *ret_answer);
	/* A held one has its new program, which has not run. 0: let it; 1: kill it, and that is recorded. */
	int (*on_image)(void *context, uint64_t token, pid_t pid);
	/* A held one failed, or its caller ended; nothing more is heard of the token. */
	void (*on_over)(void *context, uint64_t token);
	/*
	 * What was to be held cannot be, and is refused with errnum (ETIMEDOUT: it was held for too long, and is
	 * killed); the token is over as well.
	 */
	int (*on_unheld)(void *context, uint64_t token, pid_t pid, int errnum);
	int (*on_refusal)(void *context, const struct watch_refusal *event);
	int (*on_network)(void *context, const struct watch_network *event);
	/*
	 * With a gate: a connect beyond loopback, or to a port of loopback that leads there: then its address is
	 * 127.0.0.1, however it was named. 0: a stream goes to the gate's door; an errno: refused, and recorded;
	 * negative as above.
	 */
	int (*on_gate)(void *context, const struct watch_network *event);
	/* Whether the gate has enough notes about streams to read: then callers wait. May be NULL. */
	bool (*is_gate_behind)(void *context);
	/* A stream from this source now leads to the door; its caller has not heard of it yet. Negative as above. */
	int (*on_gated)(void *context, pid_t pid, const struct sockaddr *source, const struct sockaddr *target);
	/*
	 * With mediation: before a file call is made. 0: it is; an errno: it is refused, and recorded; WATCH_FILE_ASKS:
	 * on_file_asks() is called; negative as above. It may run with the sandbox's ids: it decides and writes to what
	 * is open, and does nothing else.
	 */
	int (*on_file)(void *context, const struct watch_file *event);
	/* 0 or an errno as above; WATCH_FILE_WAITS: the caller waits for watch_file_retry(). */
	int (*on_file_asks)(void *context, const struct watch_file *event);
	/* Nobody waits for the answer to this notification's question any more. */
	void (*on_file_gone)(void *context, uint64_t id);
	/*
	 * It was made, or the kernel refused it; its caller has not heard of it yet. With the sandbox's ids as
	 * on_file(). Negative as above.
	 */
	int (*on_file_done)(void *context, const struct watch_file *event);
	/*
	 * The kernel does not rename this directory of an overlay: somebody else may. An errno, or WATCH_FILE_WAITS:
	 * the caller waits for watch_file_retry(). NULL: nobody does.
	 */
	int (*on_move)(void *context, const struct watch_move *event);
	/*
	 * Before anything of a rename is looked at: whether this very call is one that on_move() was given before, and
	 * was sent back to be made again. WATCH_MOVE_NEW: no; else its outcome, 0 or an errno, which is told but once,
	 * or WATCH_FILE_WAITS.
	 */
	int (*on_moved)(void *context, const struct watch_move *event);
	/* Somebody is about to make a hard link, mediated or not. NULL: it does not matter. */
	void (*on_link)(void *context);
	/*
	 * Nobody listens on the socket at this path, as the caller names it. True: somebody does now, and the
	 * connection is tried again. NULL: nobody ever will.
	 */
	bool (*on_unheard)(void *context, const char *path);
	void *context;
};

/* Where the network gate listens, in the sandbox's network namespace. */
struct watch_gate {
	bool is_there, has_ipv6;
	uint16_t host_ports[WATCH_HOST_PORTS_MAX]; /* of loopback that lead to the door as well; held inside */
	size_t host_port_count;
	struct sockaddr_in door4;
	struct sockaddr_in6 door6;
};

struct watch_options {
	/* Which file calls the filter sends here is the filter's affair; these say how they are made. */
	bool mediates_files;
	bool moves_directories;      /* no file calls but renames of directories, and hard links */
	pid_t init_pid;              /* the first process of the sandbox */
	int root_fd;                 /* borrowed, O_PATH: its root */
	bool has_own_roots;          /* programs may have roots and mounts of their own (nested user namespaces) */
	/*
	 * Programs may mount: what the file systems that are mounted for them have as their source, which is nobody
	 * else's, and how large one can be. "": none is.
	 */
	char own_mount_source[WATCH_SOURCE_SIZE];
	uint64_t own_mount_bytes, own_mount_inodes;
	uid_t uid_inside;            /* what uid and gid are called inside */
	gid_t gid_inside;
	bool network_is_empty;       /* connects beyond loopback are refused with ENETUNREACH */
	struct watch_gate gate;
	uid_t uid;                   /* the sandbox's, as seen from here: connections are made as these */
	gid_t gid;
	/* st_dev of the file systems that were made for this sandbox: unix sockets elsewhere are the host's. */
	dev_t private_devices[WATCH_DEVICES_MAX];
	size_t private_device_count; /* 0: no unix socket with a path can be connected */
};
