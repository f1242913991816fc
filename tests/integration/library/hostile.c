/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is a bad home for a library: eight threads that start sandboxes, two that wait for any child, ignored
 * SIGCHLD, 500 descriptors that are inherited, none for 0 to 2, a working directory that is gone, no environment. What
 * it finds goes to a file: hostile REPORT PROGRAMS STATE RUNTIME POLICY PROJECT MARKER COUNT.
 */
#include <atoll.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, INHERITED = 500, OWN_CHILDREN = 20, SIGNALS = 64, TEXT = 4096 };

static FILE *report;
static char **words;
static atoll_context *context;
static atoll_policy *policy;
static int left, done, is_over, foreign, foreign_wall, own_reaped, signals_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t own[OWN_CHILDREN];

static void say(const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	va_start(args, format);
	vfprintf(report, format, args);
	va_end(args);
	fflush(report);
	pthread_mutex_unlock(&lock);
}

static void check(const char *what, int r, const struct atoll_error *error)
{
	if (r >= 0)
		return;
	say("%s: %d %s: %s; %s\n", what, r, error->where, error->what, error->hint);
	_exit(1);
}

static void on_child(int number)
{
	__atomic_add_fetch(&signals_seen, 1, __ATOMIC_RELAXED);
}

static int is_own(pid_t pid)
{
	for (int i = 0; i < OWN_CHILDREN; i++)
		if (own[i] == pid)
			return 1;
	return 0;
}

static void *wait_for_any(void *option)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		pid_t pid = waitpid(-1, NULL, option ? WNOHANG | __WALL : WNOHANG);

		if (pid > 0 && is_own(pid))
			__atomic_add_fetch(&own_reaped, 1, __ATOMIC_RELAXED);
		else if (pid > 0)
			__atomic_add_fetch(option ? &foreign_wall : &foreign, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Processes beside us that have the file which our 500 descriptors are open on. */
static int count_marked(const char *marker)
{
	char path[512], target[512];
	struct dirent *process, *fd;
	DIR *processes = opendir("/proc"), *fds;
	int count = 0;
	ssize_t n;
	long pid;

	while ((process = readdir(processes))) {
		snprintf(path, sizeof path, "/proc/%.40s/fd", process->d_name);
		pid = strtol(process->d_name, NULL, 10);
		fds = pid > 0 && pid != getpid() ? opendir(path) : NULL;
		while (fds && (fd = readdir(fds))) {
			snprintf(path, sizeof path, "/proc/%.40s/fd/%.40s", process->d_name, fd->d_name);
			n = readlink(path, target, sizeof target - 1);
			target[n > 0 ? n : 0] = 0;
			count += strcmp(target, marker) == 0;
		}
		if (fds)
			closedir(fds);
	}
	closedir(processes);
	return count;
}

/* One sandbox, whose command lists its descriptors: 0, 1, 2 and that of the directory that it reads. */
static void start_one(int number)
{
	static const char *const command[] = { "sh", "-c", "echo $(ls /proc/self/fd); pwd; echo ${HOME:-none}", NULL };
	static const char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	struct atoll_error error = { .size = sizeof error };
	atoll_record *how = atoll_record_new(ATOLL_SANDBOX), *event;
	uint64_t type = 0, status = 999;
	char output[TEXT] = "";
	atoll_sandbox *sandbox;

	check("project", atoll_set_string(how, "project", words[6], &error), &error);
	check("argv", atoll_set_strings(how, "argv", command, &error), &error);
	check("env", atoll_set_strings(how, "env", environment, &error), &error);
	check("streams", atoll_set_string(how, "streams", "capture", &error), &error);
	check("create", atoll_create(context, policy, how, &sandbox, &error), &error);
	atoll_record_free(how);
	for (; type != ATOLL_EVENT_END; atoll_record_free(event)) {
		const void *bytes;
		const char *what;
		size_t size;
		int r = atoll_wait(sandbox, 60000, &event, &error);

		check("wait", r, &error);
		if (r == 0) {
			say("nothing came of %d\n", number);
			_exit(1);
		}
		atoll_get_u64(event, "event", &type);
		if (type == ATOLL_EVENT_OUTPUT && atoll_get_bytes(event, "bytes", &bytes, &size))
			snprintf(output + strlen(output), TEXT - strlen(output), "%.*s", (int)size,
				 (const char *)bytes);
		if (type == ATOLL_EVENT_FAILED && atoll_get_string(event, "what", &what))
			say("failed: %s\n", what);
		if (type == ATOLL_EVENT_STARTED && number == 0)
			say("marked %d\n", count_marked(words[7]));
		if (type == ATOLL_EVENT_END)
			atoll_get_u64(event, "status", &status);
	}
	if (status || strncmp(output, "0 1 2 3\n", 8) != 0)
		say("status %d, output %s\n", (int)status, output);
	else
		__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
	atoll_sandbox_free(sandbox);
}

static void *start_some(void *unused)
{
	sigset_t before, after;
	int number;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	while ((number = __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED)) >= 0)
		start_one(number);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i <= SIGNALS; i++)
		if (sigismember(&before, i) != sigismember(&after, i))
			say("mask of %d changed\n", i);
	return NULL;
}

static void load(void)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *places = atoll_record_new(ATOLL_CONTEXT), *what = atoll_record_new(ATOLL_POLICY);

	check("programs", atoll_set_string(places, "programs", words[2], &error), &error);
	check("state", atoll_set_string(places, "state", words[3], &error), &error);
	check("runtime", atoll_set_string(places, "runtime", words[4], &error), &error);
	check("context", atoll_context_new(places, &context, &error), &error);
	check("policy", atoll_set_string(what, "policy", words[5], &error), &error);
	check("project", atoll_set_string(what, "project", words[6], &error), &error);
	check("load", atoll_policy_load(context, what, &policy, &error), &error);
	atoll_record_free(places);
	atoll_record_free(what);
}

static void make_hostile(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT };
	char directory[] = "/tmp/atolltest-cwd-XXXXXX";
	int marker = open(words[7], O_RDONLY);

	for (int i = 0; i < INHERITED; i++)
		if (dup(marker) < 0)
			_exit(2);
	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	if (!mkdtemp(directory) || chdir(directory) < 0 || rmdir(directory) < 0)
		_exit(2);
	clearenv();
	umask(0137);
	sigaction(SIGCHLD, &action, NULL);
	action.sa_handler = on_child;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
}

static void compare(const struct sigaction before[SIGNALS + 1], int fds)
{
	struct sigaction after;
	char path[64];
	mode_t mask = umask(0);

	for (int i = 1; i <= SIGNALS; i++)
		if (sigaction(i, NULL, &after) == 0 &&
		    (after.sa_handler != before[i].sa_handler || after.sa_flags != before[i].sa_flags))
			say("disposition of %d changed\n", i);
	if (mask != 0137)
		say("umask is %o\n", (unsigned)mask);
	if (getcwd(path, sizeof path) || errno != ENOENT)
		say("the working directory changed\n");
	if (count_fds() != fds)
		say("%d descriptors, before %d\n", count_fds(), fds);
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			say("%d is open\n", fd);
}

/* The same with a handler of SIGCHLD and children of our own: their statuses are ours, and so are the signals. */
static void with_own_children(void)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	int count = 0;

	sigaction(SIGCHLD, &action, NULL);
	for (int i = 0; i < OWN_CHILDREN; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			usleep(20000 * (unsigned)i);
			_exit(i);
		}
		__atomic_store_n(&own[i], pid, __ATOMIC_SEQ_CST);
	}
	for (int i = 0; i < 10; i++)
		start_one(1000 + i);
	while (__atomic_load_n(&own_reaped, __ATOMIC_RELAXED) < OWN_CHILDREN && count++ < 500)
		usleep(10000);
	say("own %d signals %d\n", own_reaped, signals_seen <= OWN_CHILDREN && signals_seen > 0);
}

int main(int argc, char **argv)
{
	struct sigaction before[SIGNALS + 1];
	pthread_t threads[THREADS], waiters[2];
	int fds;

	words = argv;
	if (argc != 9)
		return 2;
	report = fopen(argv[1], "we");
	left = (int)strtol(argv[8], NULL, 10);
	make_hostile();
	load();
	for (int i = 1; i <= SIGNALS; i++)
		sigaction(i, NULL, &before[i]);
	fds = count_fds();
	pthread_create(&waiters[0], NULL, wait_for_any, NULL);
	pthread_create(&waiters[1], NULL, wait_for_any, "all");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, start_some, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	compare(before, fds);
	umask(0137);
	say("foreign %d\n", foreign);
	with_own_children();
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	pthread_join(waiters[0], NULL);
	pthread_join(waiters[1], NULL);
	atoll_policy_free(policy);
	atoll_context_free(context);
	say("done %d foreign %d\n", done, foreign);
	return 0;
}
