/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /proc tells about all processes of a PID namespace: the supervised stand-in for a cgroup's
 * counters. Figures of processes that end while being read are left out. proc(5).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct proc_stat {
	pid_t pid;       /* as numbered in the procfs it was read from */
	pid_t parent;
	char state;      /* 'R', 'S', 'Z', … */
	uint32_t threads;
	uint64_t cpu_ns; /* own, and of the children that it has waited for */
};

struct proc_memory {
	uint64_t anonymous; /* bytes, all four */
	uint64_t shmem;     /* mapped pages of tmpfs, memfd, System V and shared anonymous memory */
	uint64_t swap;
	uint64_t tables;    /* page tables; 0 in the shared-aware figures */
};

struct proc_list {
	int proc_fd;              /* owned: the procfs whose numbers these are */
	struct proc_stat *stats;  /* owned */
	size_t count;
};

/* Closes the procfs and frees the figures; a zeroed list with proc_fd FD_NONE is fine. */
void proc_list_done(struct proc_list *list);
#define cleanup_proc_list __attribute__((cleanup(proc_list_done)))

/* "/proc/PID/WHAT", for whoever asks a hundred thousand times a second: without printf(3). -ENAMETOOLONG. */
int proc_path(pid_t pid, const char *what, char *out, size_t size) MUST_USE;

/*
 * The path of the program that this process of ours runs, as its own root has it where that is another. For people: it
 * may run another by now. -ENOENT, -EACCES, -ENAMETOOLONG.
 */
int proc_program(pid_t pid, char *out, size_t size) MUST_USE;

/* Whether it runs no program any more: it has ended, reaped or not. Of a process of ours; its number may be reused. */
bool proc_is_over(pid_t pid);

/* /proc/PID/stat below proc_fd. -ESRCH or -ENOENT when it is gone. */
int proc_stat_read(int proc_fd, pid_t pid, struct proc_stat *ret_stat) MUST_USE;

/* When a thread of ours began, in clock ticks since the machine did: its number may be another's by now. */
int proc_start_ticks(pid_t tid, uint64_t *ret_ticks) MUST_USE;

/*
 * Every process of the PID namespace whose first process is init_pid, daemons and nested namespaces included.
 * Reads init's own procfs where there is one (it lists nothing else), else finds the descendants of init_pid
 * in ours. -ESRCH when init_pid is gone.
 */
int proc_list_namespace(pid_t init_pid, struct proc_list *ret_list) MUST_USE;

/* The same by our own numbers, for calls that take one: looks at every process of this machine. */
int proc_list_descendants(pid_t init_pid, struct proc_list *ret_list) MUST_USE;

/*
 * Whether a process can run no code of its own now: all of its threads are stopped or dead, or wait in a vfork(2) for a
 * child. 1, 0, -ESRCH or -ENOENT when it is gone. stat: as just read from this proc_fd.
 */
int proc_is_still(int proc_fd, const struct proc_stat *stat) MUST_USE;

/* Whether the process, which has one thread, has children, also dead ones. True where the kernel does not say. */
bool proc_has_children(pid_t pid);

/* A signal to the process that has this number in this procfs, whatever its number is in our own. */
int proc_signal(int proc_fd, pid_t pid, int signal_number) MUST_USE;

/* Sums of resident pages (fast; pages that several processes share count in each): an upper bound. */
int proc_memory_resident(int proc_fd, pid_t pid, struct proc_memory *ret_memory) MUST_USE;

/* Proportional shares (smaps_rollup; walks the page tables): exact over a whole namespace. */
int proc_memory_share(int proc_fd, pid_t pid, struct proc_memory *ret_memory) MUST_USE;

/* Bytes in the tmpfs mounts of init_pid's mount namespace that are not of ours: pages that no process need map. */
int proc_tmpfs_bytes(pid_t init_pid, uint64_t *ret_bytes) MUST_USE;

/* Bytes of the memfds that these processes hold open, each file once; looks at 65,536 descriptors at most. */
uint64_t proc_memfd_bytes(const struct proc_list *list);

/*
 * Bytes of regular files that were unlinked but are still open somewhere in the PID namespace of init_pid: space of a
 * disk that no walk finds. Bounded as above; what is only mapped is not seen. 0 where it cannot be read.
 */
uint64_t proc_unlinked_bytes(pid_t init_pid);

enum { PROC_NAME_SIZE = 16 };

/* The name that a thread gives itself (proc_pid_comm(5)), in out, which is returned; "" where it cannot be read. */
const char *proc_name(pid_t pid, char out[PROC_NAME_SIZE]);
