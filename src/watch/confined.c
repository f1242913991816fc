/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/confined.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/proc.h"

enum { GENERATIONS_MAX = 256, STATUS_MAX = 16 << 10 };

void confined_init(struct confined *confined)
{
	confined->count = 0;
	confined->is_full = false;
	confined->first = UINT64_MAX;
}

/* 0 where nobody can tell. */
static pid_t number_of(pid_t tid, const char *field)
{
	cleanup_free char *text = NULL;
	char path[32];
	const char *at;
	size_t size;

	if (str_format(path, sizeof path, "/proc/%d/status", tid) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, STATUS_MAX, &text, &size) < 0)
		return 0;
	at = strstr(text, field);
	return at ? (pid_t)strtol(at + strlen(field), NULL, 10) : 0;
}

void confined_add(struct confined *confined, pid_t tid)
{
	struct confined_process process = { .pid = number_of(tid, "\nTgid:") };

	if (!process.pid || proc_start_ticks(process.pid, &process.started) < 0)
		process.started = 0; /* then everybody may be */
	if (process.started < confined->first)
		confined->first = process.started;
	if (confined->count == CONFINED_MAX)
		confined->is_full = true;
	else
		confined->processes[confined->count++] = process;
}

void confined_add_subreaper(struct confined *confined)
{
	confined->is_full = true;
}

static bool has(const struct confined *confined, pid_t pid, uint64_t started)
{
	for (size_t i = 0; i < confined->count; i++)
		if (confined->processes[i].pid == pid && confined->processes[i].started == started)
			return true;
	return false;
}

bool confined_may_have(const struct confined *confined, pid_t tid, pid_t init_pid)
{
	pid_t pid = confined->first == UINT64_MAX ? init_pid : number_of(tid, "\nTgid:");

	for (unsigned i = 0; pid != init_pid; i++) {
		uint64_t started;

		if (i == GENERATIONS_MAX || !pid || proc_start_ticks(pid, &started) < 0)
			return true;
		/* Nobody descends from what came later. */
		if (started < confined->first)
			return false;
		if (confined->is_full || has(confined, pid, started))
			return true;
		pid = number_of(pid, "\nPPid:");
		/* A command that init started, or what a confined one left behind. */
		if (pid == init_pid)
			return true;
	}
	return false;
}
