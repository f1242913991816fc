/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every attempt runs in a child of its own session, so that one which is killed by the
 * filter, hangs, or changes its process for good (unshare, setuid) does not touch the others. The child
 * sends its verdict through a pipe; a child that dies without one was stopped by a signal, and that counts
 * as held only for the signals with which a kernel refuses (SIGSYS, SIGSEGV).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "base/options.h"
#include "base/str.h"
#include "probe.h"

enum { ATTEMPT_SECONDS = 5, OUTPUT_MAX = 1 << 20, EXIT_BROKE = 1, EXIT_FAILED = 125 };

static const struct attempt_group *const groups[] = {
	&probe_files, &probe_paths, &probe_procfs, &probe_process, &probe_exec, &probe_kernel, &probe_mounts,
	&probe_privilege, &probe_devices, &probe_terminal, &probe_ipc, &probe_network,
};

struct verdict_message {
	enum outcome outcome;
	struct note note;
};

struct settings {
	struct targets targets;
	const char *host_pid, *port, *sysv_key, *only;
	bool json, list, identity;
};

#define TARGET(name, field, argument, help) \
	{ 0, name, argument, help, OPTION_TEXT, offsetof(struct settings, field) }
#define TARGETS(name, field, argument, help) \
	{ 0, name, argument, help, OPTION_LIST, offsetof(struct settings, field) }
#define FLAG(name, field, help) { 0, name, NULL, help, OPTION_FLAG, offsetof(struct settings, field) }

static const struct option options[] = {
	FLAG("json", json, "print one JSON object"),
	FLAG("list", list, "print the names of the attempts and try nothing"),
	TARGET("only", only, "NAME", "try only attempts whose name begins with this"),
	TARGET("secret", targets.secret, "FILE", "a file that must not be readable"),
	TARGET("hidden", targets.hidden, "DIR", "a directory that must not be visible"),
	TARGET("readonly", targets.readonly, "DIR", "a directory that must not be writable"),
	TARGET("scratch", targets.scratch, "DIR", "a directory for the attempts' own files"),
	TARGET("socket", targets.socket, "PATH", "a stream socket of the host"),
	TARGET("datagram", targets.datagram, "PATH", "a datagram socket of the host"),
	TARGET("abstract", targets.abstract_name, "NAME", "an abstract stream socket of the host"),
	TARGET("mqueue", targets.mqueue, "/NAME", "a message queue of the host"),
	TARGET("shm-file", targets.shm_file, "NAME", "a file in the host's /dev/shm"),
	TARGET("sysv-key", sysv_key, "N", "key of a segment, a semaphore and a queue of the host"),
	TARGET("setuid-program", targets.setuid_program, "FILE", "this program, setuid root"),
	TARGET("capable-program", targets.capable_program, "FILE", "this program, with file capabilities"),
	TARGET("control", targets.control, "DIR", "atoll's control sockets"),
	TARGET("state", targets.state, "DIR", "atoll's state"),
	TARGET("host-pid", host_pid, "PID", "a process of the host"),
	TARGET("port", port, "N", "a TCP listener of the host on loopback"),
	TARGET("noexec", targets.noexec, "1", "the policy forbids new binaries"),
	TARGET("user-namespaces", targets.user_namespaces, "1", "the policy allows user namespaces"),
	TARGETS("shown", targets.shown, "NAME", "an attempt on what the policy shows, as it should"),
	TARGET("shared-network", targets.shared_network, "1", "the policy shares the host's network"),
	FLAG("print-identity", identity, "print the effective uid and capabilities (used by the attempts)"),
};

static void send_verdict(int fd, enum outcome result, const struct note *note)
{
	struct verdict_message message = { .outcome = result, .note = *note };

	if (write(fd, &message, sizeof message) != (ssize_t)sizeof message)
		_exit(EXIT_FAILED);
}

static void attempt_child(const struct attempt *attempt, const struct targets *targets, int fd)
{
	struct note note = { "" };

	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	alarm(ATTEMPT_SECONDS);
	send_verdict(fd, attempt->try(attempt, targets, &note), &note);
	_exit(0);
}

static enum outcome ended_by(int status, struct note *note)
{
	if (status == -SIGSYS || status == -SIGSEGV || status == -SIGILL)
		return outcome(note, OUTCOME_HELD, "ended by signal %d", -status);
	if (status == -SIGALRM)
		return outcome(note, OUTCOME_BROKE, "not refused: still running after %d s", ATTEMPT_SECONDS);
	return outcome(note, OUTCOME_BROKE, "ended without a verdict, status %d", status);
}

static int attempt_run(const struct attempt *attempt, const struct targets *targets, struct verdict_message *ret)
{
	int ends[2];
	pid_t pid;
	ssize_t size;
	int status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		attempt_child(attempt, targets, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -errno;
	}
	status = wait_for(pid);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	size = read(ends[0], ret, sizeof *ret);
	close(ends[0]);
	if (size != (ssize_t)sizeof *ret || ret->outcome >= OUTCOME_COUNT)
		ret->outcome = ended_by(status, &ret->note);
	ret->note.text[NOTE_SIZE - 1] = '\0';
	return 0;
}

static void print_line(struct buf *out, const struct attempt *attempt, const struct verdict_message *message)
{
	buf_put_text(out, attempt->name);
	buf_put_char(out, '\t');
	buf_put_text(out, attempt->cases);
	buf_put_char(out, '\t');
	buf_put_text(out, outcome_names[message->outcome]);
	buf_put_char(out, '\t');
	buf_put_escaped(out, message->note.text, strlen(message->note.text), 0);
	buf_put_char(out, '\t');
	buf_put_text(out, attempt->what);
	buf_put_char(out, '\n');
}

static void print_json(struct json *json, const struct attempt *attempt, const struct verdict_message *message)
{
	json_object_begin(json, NULL);
	json_string(json, "name", attempt->name);
	json_string(json, "cases", attempt->cases);
	json_string(json, "outcome", outcome_names[message->outcome]);
	json_string(json, "note", message->note.text);
	json_string(json, "what", attempt->what);
	json_object_end(json);
}

static int flush(struct buf *out)
{
	size_t at = 0;

	if (buf_error(out) < 0)
		return buf_error(out);
	while (at < out->size) {
		ssize_t size = write(STDOUT_FILENO, out->bytes + at, out->size - at);

		if (size < 0)
			return -errno;
		at += (size_t)size;
	}
	buf_reset(out);
	return 0;
}

static int probe_group(const struct attempt_group *group, const struct settings *settings, struct buf *out,
		       struct json *json, size_t *broke)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct attempt *attempt = &group->attempts[i];
		struct verdict_message message = { .outcome = OUTCOME_HELD };
		int result;

		if (settings->only && strncmp(attempt->name, settings->only, strlen(settings->only)) != 0)
			continue;
		if (settings->list) {
			buf_put_text(out, attempt->name);
			buf_put_char(out, '\n');
			continue;
		}
		result = attempt_run(attempt, &settings->targets, &message);
		if (result < 0)
			return result;
		*broke += message.outcome == OUTCOME_BROKE;
		if (settings->json)
			print_json(json, attempt, &message);
		else
			print_line(out, attempt, &message);
	}
	return settings->json ? 0 : flush(out);
}

static int probe_all(const struct settings *settings, size_t *ret_broke)
{
	cleanup_buf struct buf out;
	struct json json;
	size_t broke = 0;
	int result;

	buf_init(&out, OUTPUT_MAX);
	json_init(&json, &out);
	if (settings->json && !settings->list) {
		json_object_begin(&json, NULL);
		json_array_begin(&json, "attempts");
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		result = probe_group(groups[i], settings, &out, &json, &broke);
		if (result < 0)
			return result;
	}
	if (settings->json && !settings->list) {
		json_array_end(&json);
		json_u64(&json, "broke", broke);
		json_object_end(&json);
		buf_put_char(&out, '\n');
	}
	*ret_broke = broke;
	return flush(&out);
}

/* Executed through a setuid or capable copy of this file: what did that gain? */
static int print_identity(void)
{
	char status[4096];
	ssize_t size = raw_read_file("/proc/self/status", status, sizeof status - 1);
	const char *caps;

	if (size < 0)
		return EXIT_FAILED;
	status[size] = '\0';
	caps = strstr(status, "CapEff:\t");
	printf("%u %.16s\n", (unsigned)geteuid(), caps ? caps + 8 : "?");
	return 0;
}

static int parse_number(const char *text, long *ret)
{
	uint64_t value;

	if (!text)
		return 0;
	if (num_parse_u64(text, &value) < 0 || value > INT32_MAX)
		return -EINVAL;
	*ret = (long)value;
	return 0;
}

/* Before anything else opens a file: what did whoever started us leave open? (I4) */
static void note_open_fds(struct targets *targets)
{
	for (int fd = 0; fd < (int)sizeof targets->open_fds; fd++)
		targets->open_fds[fd] = fcntl(fd, F_GETFD) >= 0;
}

int main(int argc, char **argv)
{
	static char self[4096];
	struct settings settings = { 0 };
	struct err err = { 0 };
	size_t broke = 0;
	int rest, result;

	note_open_fds(&settings.targets);
	result = options_parse(options, ARRAY_SIZE(options), &settings, argc, argv, true, &rest, &err);
	if (result == 1)
		return options_print(options, ARRAY_SIZE(options), STDOUT_FILENO) < 0 ? EXIT_FAILED : 0;
	if (result == 0 && (parse_number(settings.host_pid, &settings.targets.host_pid) < 0 ||
			    parse_number(settings.port, &settings.targets.port) < 0 ||
			    parse_number(settings.sysv_key, &settings.targets.sysv_key) < 0))
		result = err_set(&err, ERR_USAGE, EINVAL, "options", "a number is malformed");
	if (result < 0) {
		fprintf(stderr, "atoll-probe: %s\n", err.message);
		return EXIT_FAILED;
	}
	if (settings.identity)
		return print_identity();
	if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
		settings.targets.self = self;
	result = probe_all(&settings, &broke);
	if (result < 0) {
		fprintf(stderr, "atoll-probe: cannot go on: %s\n", err_errno_name(-result));
		return EXIT_FAILED;
	}
	return broke ? EXIT_BROKE : 0;
}
