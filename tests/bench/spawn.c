/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stopwatch of the benchmarks: starts commands by posix_spawn (no copy of a large parent), waits
 * for each and prints nanoseconds. bench.py orchestrates; its own weight is in no figure.
 *
 *   spawn lat PLAN ROUNDS         round-robin: one start of each command a round; prints "INDEX STATUS NS"
 *   spawn par PLAN INDEX JOBS MS  JOBS starters of one command for MS milliseconds; prints "OK FAILED NS"
 *
 * PLAN: one command a line, arguments separated by 0x1f; "{id}" becomes a name unique to the start.
 * SPAWN_FD9=PATH opens PATH as fd 9 of every command; SPAWN_STDERR=PATH collects what they say.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS_MAX = 64, ARGUMENTS_MAX = 512, JOBS_MAX = 256 };

extern char **environ;

struct command {
	char *argv[ARGUMENTS_MAX + 1];
	bool has_id;
};

static struct command commands[COMMANDS_MAX];
static size_t command_count;
static posix_spawn_file_actions_t actions;

static void die(const char *what)
{
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(125);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0') {
		errno = EINVAL;
		die(text);
	}
	return value;
}

static void read_plan(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t capacity = 0;

	if (file == NULL)
		die(path);
	while (getline(&line, &capacity, file) > 0 && command_count < COMMANDS_MAX) {
		struct command *command = &commands[command_count++];
		char *rest = line, *argument;
		size_t count = 0;

		line[strcspn(line, "\n")] = '\0';
		while ((argument = strsep(&rest, "\x1f")) != NULL && count < ARGUMENTS_MAX) {
			command->has_id |= strstr(argument, "{id}") != NULL;
			command->argv[count++] = argument;
		}
		line = NULL; /* its pieces are the arguments */
		capacity = 0;
	}
	fclose(file);
}

static void prepare_actions(void)
{
	const char *filter = getenv("SPAWN_FD9"), *errors = getenv("SPAWN_STDERR");

	if (posix_spawn_file_actions_init(&actions) != 0)
		die("posix_spawn_file_actions_init");
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, errors != NULL ? errors : "/dev/null",
					 O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (filter != NULL)
		posix_spawn_file_actions_addopen(&actions, 9, filter, O_RDONLY, 0);
}

/* One start to exit. The wait status in *ret_status, the nanoseconds as the result. */
static uint64_t start(const struct command *command, unsigned long serial, int *ret_status)
{
	static char named[ARGUMENTS_MAX][256];
	char *argv[ARGUMENTS_MAX + 1];
	char *const *arguments = command->argv;
	uint64_t begin;
	pid_t pid;
	int r;

	if (command->has_id) {
		size_t i;

		for (i = 0; command->argv[i] != NULL; i++) {
			const char *at = strstr(command->argv[i], "{id}");

			argv[i] = command->argv[i];
			if (at == NULL)
				continue;
			snprintf(named[i], sizeof named[i], "%.*sb%d-%lu%s", (int)(at - command->argv[i]),
				 command->argv[i], getpid(), serial, at + 4);
			argv[i] = named[i];
		}
		argv[i] = NULL;
		arguments = argv;
	}
	begin = now_ns();
	r = posix_spawn(&pid, arguments[0], &actions, NULL, (char **)arguments, environ);
	if (r != 0) {
		*ret_status = 127 << 8;
		return 0;
	}
	while (waitpid(pid, ret_status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid");
	}
	return now_ns() - begin;
}

static int measure_latency(unsigned long rounds)
{
	uint64_t *times = calloc(rounds * command_count, sizeof *times);
	int *statuses = calloc(rounds * command_count, sizeof *statuses);

	if (times == NULL || statuses == NULL)
		die("calloc");
	for (unsigned long round = 0; round < rounds; round++) {
		for (size_t i = 0; i < command_count; i++) {
			/* Each round begins elsewhere, so that nobody always runs after the heaviest. */
			size_t index = (i + round * 5) % command_count;
			size_t at = round * command_count + index;

			times[at] = start(&commands[index], round * command_count + index, &statuses[at]);
		}
	}
	for (unsigned long at = 0; at < rounds * command_count; at++)
		printf("%zu %d %" PRIu64 "\n", at % command_count, statuses[at], times[at]);
	return 0;
}

struct tally {
	uint64_t good, failed;
	char padding[48]; /* one cache line each */
};

static int measure_throughput(size_t index, unsigned long jobs, unsigned long duration_ms)
{
	struct tally *tallies = mmap(NULL, sizeof *tallies * JOBS_MAX, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = now_ns(), deadline = begin + duration_ms * 1000000u, good = 0, failed = 0;

	if (tallies == MAP_FAILED || index >= command_count || jobs > JOBS_MAX)
		die("par");
	for (unsigned long job = 0; job < jobs; job++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		for (unsigned long serial = 0; now_ns() < deadline; serial++) {
			int status;

			start(&commands[index], serial, &status);
			if (status == 0)
				tallies[job].good++;
			else
				tallies[job].failed++;
		}
		_exit(0);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	for (unsigned long job = 0; job < jobs; job++) {
		good += tallies[job].good;
		failed += tallies[job].failed;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", good, failed, now_ns() - begin);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "spawn: usage: spawn lat PLAN ROUNDS | spawn par PLAN INDEX JOBS MS\n");
		return 125;
	}
	read_plan(argv[2]);
	prepare_actions();
	if (strcmp(argv[1], "lat") == 0)
		return measure_latency(number(argv[3]));
	if (strcmp(argv[1], "par") == 0 && argc == 6)
		return measure_throughput(number(argv[3]), number(argv[4]), number(argv[5]));
	errno = EINVAL;
	die(argv[1]);
}
