/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "gate-exec/file.h"
#include "os/fd.h"

void exec_words_take(struct exec_words *words, const char *const *argv, bool is_cut)
{
	words->is_cut = is_cut;
	for (words->count = 0; argv[words->count]; words->count++)
		words->list[words->count] = argv[words->count];
	if (!words->count)
		words->list[words->count++] = "";
	words->list[words->count] = NULL;
}

void exec_words_interpret(struct exec_words *words, const struct exec_file *script, const char *called)
{
	size_t added = script->argument ? 2 : 1;

	if (!words->count)
		words->count = 1;
	if (words->count + added > EXEC_WORDS_MAX) {
		words->count = EXEC_WORDS_MAX - added;
		words->is_cut = true;
	}
	memmove(words->list + added, words->list, words->count * sizeof *words->list);
	words->list[added] = called;
	words->list[0] = script->line;
	if (script->argument)
		words->list[1] = script->argument;
	words->count += added;
	words->list[words->count] = NULL;
}

int exec_words_read(pid_t pid, char memory[WATCH_TEXT_MAX], struct exec_words *words)
{
	cleanup_fd int fd = FD_NONE;
	char path[32];
	size_t size = 0, at = 0;
	ssize_t n = 1;

	if (str_format(path, sizeof path, "/proc/%d/cmdline", pid) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	while (fd >= 0 && n > 0 && size < WATCH_TEXT_MAX - 1) {
		n = read(fd, memory + size, WATCH_TEXT_MAX - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		return -ESRCH;
	memory[size] = 0;
	for (words->count = 0; at < size && words->count < EXEC_WORDS_MAX; at += strlen(memory + at) + 1)
		words->list[words->count++] = memory + at;
	words->list[words->count] = NULL;
	words->is_cut = at < size || size == WATCH_TEXT_MAX - 1;
	return 0;
}
