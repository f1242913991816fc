/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The posture probes: a table of attempts to leave the sandbox, each a small function that tries one thing and
 * says whether it was refused. Run inside by `atoll doctor --probe` and the escape tests; run outside as the
 * same user it is the positive control. Attempts do no harm where they succeed: they ask for access, use
 * arguments that the kernel rejects behind its permission check, or touch only files made for them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/options.h"

enum outcome {
	OUTCOME_HELD,            /* refused */
	OUTCOME_BROKE,           /* the attempt worked, or got behind the boundary */
	OUTCOME_NOT_APPLICABLE,  /* it cannot be tried here, or no target was named */
	OUTCOME_COUNT,
};

extern const char *const outcome_names[OUTCOME_COUNT]; /* "held", "broke", "n/a" */

enum { NOTE_SIZE = 200 };

/* What was seen: one line, "EPERM" or "opened /dev/mem". */
struct note {
	char text[NOTE_SIZE];
};

/* What lies outside and is attacked; NULL or 0 where the caller named none. All borrowed from argv. */
struct targets {
	const char *secret;         /* a file outside the view that this user could read without a sandbox */
	const char *hidden;         /* a directory outside the view, with victim files (see victim_path) */
	const char *readonly;       /* a directory in the view that this user may write outside only; victims */
	const char *scratch;        /* a directory where files can be made */
	const char *socket;         /* a listening SOCK_STREAM unix socket of a host process */
	const char *datagram;       /* the same, SOCK_DGRAM */
	const char *abstract_name;  /* an abstract SOCK_STREAM socket of a host process, without the leading NUL */
	const char *mqueue;         /* "/name" of a host's POSIX message queue */
	const char *shm_file;       /* name of a host's file in /dev/shm */
	const char *setuid_program; /* atoll-probe itself, setuid root: `--print-identity` says who it runs as */
	const char *capable_program;/* the same with file capabilities */
	const char *control;        /* directory of atoll's control sockets */
	const char *state;          /* directory of atoll's state */
	const char *user_namespaces;/* "1": the policy lets programs make their own */
	const char *noexec;         /* "1": the policy forbids new binaries */
	struct option_list shown;   /* names of attempts on what the policy shows, as it should */
	const char *shared_network; /* "1": the policy shares the host's network */
	long host_pid;              /* a host process of the same user */
	long port;                  /* a TCP listener of the host on 127.0.0.1 and ::1 */
	long sysv_key;              /* a shared memory segment, semaphore set and message queue of the host */
	const char *self;           /* path of this program */
	unsigned char open_fds[128];/* open_fds[n]: fd n was open when the program started */
};

struct attempt {
	const char *name;           /* stable, "mount.tmpfs" */
	const char *cases;          /* "X13" */
	const char *what;           /* one line for people */
	enum outcome (*try)(const struct attempt *attempt, const struct targets *targets, struct note *note);
	long number;                /* used by table-driven attempts: system call, flags, family … */
	long arguments[6];
	const char *text;           /* used by table-driven attempts: a path, a place */
};

struct attempt_group {
	const struct attempt *attempts;
	size_t count;
};

extern const struct attempt_group probe_devices, probe_files, probe_ipc, probe_kernel, probe_mounts, probe_network,
	probe_paths,
	probe_privilege, probe_process, probe_procfs, probe_terminal, probe_exec;

/* Fills *note, then gives the outcome back, so that an attempt can end with `return outcome(…)`. */
enum outcome outcome(struct note *note, enum outcome result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ret < 0: held, with errno's name. Otherwise broke. The call is to have an effect only where it succeeds. */
enum outcome outcome_of_call(struct note *note, long ret, const char *broke);

/*
 * For calls with arguments that the kernel rejects: EPERM, EACCES, ENOSYS and ENODEV… are refusals, every
 * other answer (EFAULT, EINVAL, success) means that the call's own code was reached.
 */
enum outcome outcome_of_reach(struct note *note, long ret);

/* n/a: the target that this attempt needs was not named. */
enum outcome outcome_no_target(struct note *note, const char *option);

/* One raw system call (attempt->number, attempt->arguments); success is a breach. */
enum outcome try_syscall(const struct attempt *attempt, const struct targets *targets, struct note *note);

/* The same, where reaching the kernel's argument checks is a breach. */
enum outcome try_reach(const struct attempt *attempt, const struct targets *targets, struct note *note);

/* Raw openat(2) with O_CLOEXEC; the fd or -1 with errno. Raw: the attempt is the system call. */
int raw_open(const char *path, int flags, mode_t mode);

/* Opens and reads; bytes read (>= 0) or -1 with errno. */
ssize_t raw_read_file(const char *path, void *bytes, size_t size);

/*
 * The file made for this attempt in DIR/victim-NAME (the caller of the program makes one for each name of
 * --list), so that attempts that remove or rename do not spoil each other. Static memory.
 */
const char *victim_path(const char *directory, const struct attempt *attempt, const char *suffix);

/* "a joined path" in static memory, one of 4 in turn. */
const char *joined(const char *a, const char *b);

/* How a child of an attempt ended: exit code, or -signal. */
int wait_for(pid_t pid);
