/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/writer.h"
#include "base/str.h"
#include "gate-file/gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "owner/owner.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * The process inside is this program once more, as one that was taken over: the last name of the path that it is asked
 * about says what it does wrong.
 */

/* ---- the process ---- */

static struct buf says;
static uint64_t ticket;
static struct files_request asked;
static char asked_path[256];
static unsigned turn;

static void say(const int *fds, size_t fd_count)
{
	if (frame_end(&says) < 0 || frame_send(FILES_FD, &says, fds, fd_count) < 0)
		_exit(1);
}

static void say_place(uint64_t of, const char *rest)
{
	int fds[2] = { open("/", O_PATH | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC) };

	frame_begin(&says, FILES_PLACE);
	frame_put_u64(&says, of);
	frame_put_string(&says, rest);
	frame_put_string(&says, asked.to ? "to" : "");
	say(fds, asked.to ? 2 : 1);
	close(fds[0]);
	close(fds[1]);
}

static void say_reply(uint64_t of, uint32_t errnum, const char *key, size_t fd_count)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	frame_begin(&says, FILES_REPLY);
	frame_put_u64(&says, of);
	frame_put_u32(&says, errnum);
	if (key)
		field_put_u64(&says, key, 1);
	say(&fd, fd_count);
	close(fd);
}

/* A reply of just this size. */
static void say_sized(size_t size, size_t fd_count)
{
	enum { FIELD_SIZE = 64 };
	static const uint8_t bytes[FRAME_MESSAGE_MAX];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t count = size - FIELD_SIZE * 2; count < size && says.size != size; count++) {
		frame_begin(&says, FILES_REPLY);
		frame_put_u64(&says, ticket);
		frame_put_u32(&says, 0);
		field_put_bytes(&says, "size", bytes, count);
	}
	if (says.size != size)
		_exit(1);
	say(&fd, fd_count);
	close(fd);
}

static void say_change(uint64_t watch, const char *change)
{
	frame_begin(&says, FILES_CHANGE);
	frame_put_u64(&says, watch);
	field_put_string(&says, "change", change);
	say(NULL, 0);
}

static bool does(const char *what)
{
	return str_equal(asked_path, what);
}

static void do_request(void)
{
	if (asked.operation == FILES_UNWATCH)
		say_reply(ticket, 0, NULL, 0);
	else if (does("/silent"))
		return;
	else if (does("/dies-before"))
		_exit(0);
	else if (does("/nonsense"))
		(void)!write(FILES_FD, "hello", 5);
	else if (does("/unjudged"))
		say_reply(ticket, 0, NULL, asked.operation == FILES_OPEN);
	else if (does("/other-ticket"))
		say_place(ticket + 1, "other-ticket");
	else if (does("/other-reply"))
		say_reply(ticket + 1, ENOENT, NULL, 0);
	else if (does("/errno-too-large"))
		say_reply(ticket, 5000, NULL, 0);
	else if (does("/error-and-file"))
		say_reply(ticket, ENOENT, NULL, 1);
	else if (does("/missing"))
		say_reply(ticket, ENOENT, NULL, 0);
	else if (does("/dots"))
		say_place(ticket, "a/../../dots");
	else if (does("/moved") && turn)
		say_place(ticket, "moved-elsewhere");
	else
		say_place(ticket, asked_path + 1);
	if (does("/two-places"))
		say_place(ticket, "second-place");
}

static void do_go(uint32_t errnum)
{
	bool is_open = asked.operation == FILES_OPEN;

	if (does("/dies-after"))
		_exit(0);
	if (does("/ignores-refusal-denied"))
		errnum = 0;
	if (errnum)
		say_reply(ticket, errnum, NULL, 0);
	else if (does("/stray-file"))
		say_reply(ticket, 0, NULL, 1);
	else if (does("/largest"))
		say_sized(FILES_REPLY_MAX, is_open);
	else if (does("/too-large"))
		say_sized(FILES_REPLY_MAX + 1, is_open);
	else if (does("/no-file"))
		say_reply(ticket, 0, NULL, 0);
	else if (does("/again") || (does("/moved") && !turn++))
		say_reply(ticket, 0, "again", 0);
	else
		say_reply(ticket, 0, NULL, is_open);
	if (does("/twice"))
		say_reply(ticket, 0, NULL, is_open);
	if (asked.operation == FILES_WATCH) {
		say_change(ticket, "write");
		say_change(ticket + 1000, "write"); /* nobody's */
	}
	if (does("/gone"))
		say_change(ticket, "gone");
}

static int be_taken_over(void)
{
	static uint8_t bytes[FRAME_MESSAGE_MAX];
	struct frame frame;
	ssize_t size;

	buf_init(&says, FRAME_MESSAGE_MAX);
	/* Descriptors that come are not wanted. */
	while ((size = recv(FILES_FD, bytes, sizeof bytes, 0)) > 0) {
		if (frame_open(&frame, bytes, (size_t)size) < 0)
			return 1;
		if (frame.type == FILES_BEGIN) {
			frame_begin(&says, FILES_READY);
			say(NULL, 0);
			continue;
		}
		ticket = frame_get_u64(&frame);
		if (frame.type == FILES_GO) {
			do_go(frame_get_u32(&frame));
			continue;
		}
		if (files_request_get(&frame, &asked) < 0)
			return 1;
		(void)!str_format(asked_path, sizeof asked_path, "%s", asked.path ? asked.path : "");
		do_request();
	}
	return 0;
}

/* ---- the box ---- */

/* In the place of the gate: what ends in "denied" is. */
int file_gate_judge_owner(struct file_gate *gate, enum watch_file_access access, const char *path)
{
	size_t size = strlen(path);

	return size >= 6 && str_equal(path + size - 6, "denied") ? EACCES : 0;
}

struct here {
	struct loop loop;
	struct run_request request;
	struct watch_options identity;
	struct audit_writer audit;
	struct run run;
	struct owner owner;
	char directory[64], init[96], program[96], log[96];
	uint8_t memory[2][FRAME_MESSAGE_MAX];
	unsigned done, changed, gone;
	bool has_left;
	int errnum, has_file;
};

/* As box/control passes it on. */
static bool fits_link(const struct frame *fields)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_MESSAGE_MAX);
	buf_put(&out, fields->bytes, fields->size);
	field_put_fd(&out, "socket", 0);
	return buf_error(&out) == 0;
}

static void on_done(void *context, uint64_t number, enum files_operation operation, const struct owner_answer *answer)
{
	struct here *here = context;

	assert_false(here->has_left);
	here->done++;
	here->errnum = answer->errnum;
	here->has_file = *answer->fd >= 0;
	if (answer->fields)
		assert_true(fits_link(answer->fields));
}

static void on_changed(void *context, uint64_t watch, struct frame *fields)
{
	struct here *here = context;

	assert_false(here->has_left);
	here->changed++;
	here->gone += !fields;
}

static struct owner_asker asker_of(struct here *here)
{
	return (struct owner_asker){ on_done, here, on_changed, 7, 8 };
}

static int setup(void **state)
{
	struct here *here = calloc(1, sizeof *here);
	char self[256] = "";

	assert_non_null(here);
	*state = here;
	(void)!str_format(here->directory, sizeof here->directory, "/tmp/atoll-test-owner-XXXXXX");
	assert_non_null(mkdtemp(here->directory));
	(void)!str_format(here->init, sizeof here->init, "%s/init", here->directory);
	(void)!str_format(here->program, sizeof here->program, "%s/atoll-files", here->directory);
	(void)!str_format(here->log, sizeof here->log, "%s/log", here->directory);
	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	assert_int_equal(symlink(self, here->program), 0);
	assert_int_equal(audit_writer_init(&here->audit, open(here->log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
					   "abcdefghijkl"), 0);
	here->request.init_path = here->init;
	here->run = (struct run){ .request = &here->request, .loop = &here->loop, .audit = &here->audit,
				  .identity = &here->identity };
	buf_init_fixed(&here->run.out, here->memory[0], FRAME_MESSAGE_MAX);
	buf_init_fixed(&here->run.scratch, here->memory[1], FRAME_MESSAGE_MAX);
	assert_int_equal(pidref_open(&here->run.init, getpid()), 0);
	assert_int_equal(loop_init(&here->loop), 0);
	owner_init(&here->owner, &here->run, NULL, FD_NONE);
	return 0;
}

static int teardown(void **state)
{
	struct here *here = *state;

	owner_close(&here->owner);
	assert_null(here->run.peers);
	assert_int_equal(here->owner.count, 0);
	assert_int_equal(here->owner.bytes, 0);
	loop_done(&here->loop);
	pidref_done(&here->run.init);
	(void)!audit_writer_done(&here->audit);
	unlink(here->program);
	unlink(here->log);
	rmdir(here->directory);
	free(here);
	return 0;
}

/* The loop of box/serve.c, until *what is count, or for ten seconds. */
static void turn_until(struct here *here, const unsigned *what, unsigned count)
{
	uint64_t until_ns = clock_monotonic_ns() + 10000000000U;
	int r = 0;

	while (r >= 0 && *what < count && clock_monotonic_ns() < until_ns) {
		int ms = peers_module.timeout_ms(&here->run, clock_monotonic_ns());

		r = loop_step(&here->loop, ms < 0 || ms > 100 ? 100 : ms);
		if (r >= 0)
			r = peers_module.check(&here->run, clock_monotonic_ns());
	}
	assert_true(r >= 0);
	assert_int_equal(*what, count);
}

static struct files_request request_of(enum files_operation operation, const char *path)
{
	struct files_request request = { .operation = operation, .set = 1u << FILES_HAS_PATH, .path = path };

	if (operation == FILES_OPEN) {
		request.set |= 1u << FILES_HAS_FLAGS;
		request.flags = FILES_OPEN_READ;
	}
	return request;
}

static void ask(struct here *here, enum files_operation operation, const char *path)
{
	const struct files_request request = request_of(operation, path);
	const struct owner_asker asker = asker_of(here);

	assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), 0);
}

static unsigned records(struct here *here, const char *text)
{
	cleanup_free char *bytes = NULL;
	unsigned count = 0;
	size_t size;

	assert_int_equal(audit_flush(&here->audit), 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, here->log, 1 << 20, &bytes, &size), 0);
	for (const char *at = bytes; (at = strstr(at, text)); at++)
		count++;
	return count;
}

struct wrong {
	const char *path;
	enum files_operation operation;
	int errnum;
	unsigned falls, records; /* of its process; of its path */
};

static void it_is_believed_only_what_it_was_asked(void **state)
{
	static const struct wrong cases[] = {
		{ "/plain", FILES_STAT, 0, 0, 1 },
		{ "/plain", FILES_OPEN, 0, 0, 1 },
		{ "/missing", FILES_STAT, ENOENT, 0, 0 },
		{ "/denied", FILES_STAT, EACCES, 0, 1 },
		/* Before something may have been done, another process gets a try. */
		{ "/dies-before", FILES_STAT, EIO, 2, 0 },
		{ "/nonsense", FILES_STAT, EIO, 2, 0 },
		{ "/unjudged", FILES_STAT, EIO, 2, 0 },
		{ "/unjudged", FILES_OPEN, EIO, 2, 0 },
		{ "/other-ticket", FILES_STAT, EIO, 2, 0 },
		{ "/other-reply", FILES_STAT, EIO, 2, 0 },
		{ "/errno-too-large", FILES_STAT, EIO, 2, 0 },
		{ "/error-and-file", FILES_OPEN, EIO, 2, 0 },
		{ "/ignores-refusal-denied", FILES_STAT, EIO, 2, 2 },
		{ "/dots", FILES_STAT, EACCES, 0, 0 },
		/* After it, none. */
		{ "/dies-after", FILES_STAT, EIO, 1, 1 },
		{ "/two-places", FILES_STAT, EIO, 1, 1 },
		{ "/stray-file", FILES_STAT, EIO, 1, 1 },
		{ "/no-file", FILES_OPEN, EIO, 1, 1 },
		{ "/again", FILES_STAT, 0, 0, 1 },
		/* What is told of it further on must have room for one field more. */
		{ "/largest", FILES_OPEN, 0, 0, 1 },
		{ "/too-large", FILES_OPEN, EIO, 1, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct wrong *wrong = &cases[i];
		struct here *here;
		void *own = NULL;

		print_message("%s: %s\n", files_operation_names[wrong->operation], wrong->path);
		setup(&own);
		here = own;
		ask(here, wrong->operation, wrong->path);
		turn_until(here, &here->done, 1);
		assert_int_equal(here->errnum, wrong->errnum);
		assert_int_equal(here->has_file, wrong->operation == FILES_OPEN && !wrong->errnum);
		assert_int_equal(here->owner.peer.falls, wrong->falls);
		assert_int_equal(records(here, wrong->path), wrong->records);
		assert_int_equal(records(here, "second-place"), 0);
		/* The next one is served, whatever was. */
		ask(here, FILES_STAT, "/next");
		turn_until(here, &here->done, 2);
		assert_int_equal(here->errnum, 0);
		teardown(&own);
	}
	(void)state;
}

static void a_second_answer_ends_the_process(void **state)
{
	struct here *here = *state;

	ask(here, FILES_STAT, "/twice");
	ask(here, FILES_STAT, "/plain");
	turn_until(here, &here->done, 2);
	turn_until(here, &here->owner.peer.falls, 1);
	assert_int_equal(here->errnum, 0);
	assert_int_equal(here->done, 2);
}

static void one_that_never_answers_is_ended_in_time(void **state)
{
	struct here *here = *state;
	pid_t first;

	ask(here, FILES_STAT, "/silent");
	ask(here, FILES_STAT, "/plain");
	first = here->owner.peer.process.pid;
	while (!here->owner.is_asked)
		assert_true(loop_step(&here->loop, 1000) >= 0);
	assert_true(here->owner.peer.deadline_ns <= clock_monotonic_ns() + OWNER_MS * UINT64_C(1000000));
	peer_expect(&here->owner.peer, clock_monotonic_ns());
	turn_until(here, &here->done, 1);
	assert_int_equal(here->errnum, ETIMEDOUT);
	turn_until(here, &here->done, 2);
	assert_int_equal(here->errnum, 0);
	assert_int_not_equal(here->owner.peer.process.pid, first);
	assert_int_equal(here->owner.stuck, 0);
}

/* A long one whose path becomes another between two turns has a record of each. */
static void each_path_of_a_long_one_is_recorded(void **state)
{
	struct here *here = *state;

	ask(here, FILES_REMOVE, "/moved");
	turn_until(here, &here->done, 1);
	assert_int_equal(here->errnum, 0);
	assert_int_equal(records(here, "\"/moved-elsewhere\""), 1);
	assert_int_equal(records(here, "\"subject\":\"/moved\""), 1);
}

/* Others are served between its turns, and those have an end. */
static void a_remove_that_is_never_done_ends(void **state)
{
	struct here *here = *state;

	ask(here, FILES_REMOVE, "/again");
	ask(here, FILES_STAT, "/plain");
	turn_until(here, &here->done, 1);
	assert_int_equal(here->errnum, 0);
	assert_int_equal(here->owner.count, 1);
	turn_until(here, &here->done, 2);
	assert_int_equal(here->errnum, ENOTEMPTY);
	assert_int_equal(here->owner.peer.falls, 0);
	assert_int_equal(records(here, "\"/again\""), 1);
	ask(here, FILES_STAT, "/next");
	turn_until(here, &here->done, 3);
	assert_int_equal(here->errnum, 0);
}

static void what_waits_is_bounded(void **state)
{
	struct here *here = *state;
	const struct files_request request = request_of(FILES_STAT, "/silent");
	const struct owner_asker asker = asker_of(here);

	for (int i = 0; i < OWNER_JOBS_MAX; i++)
		ask(here, FILES_STAT, "/silent");
	assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), -EAGAIN);
	assert_int_equal(here->done, 0);
	owner_close(&here->owner);
	assert_int_equal(here->done, OWNER_JOBS_MAX);
	assert_int_equal(here->errnum, ESHUTDOWN);
	assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), -ESHUTDOWN);
}

static void a_watch_tells_who_asked_until_it_is_gone(void **state)
{
	struct here *here = *state;

	ask(here, FILES_WATCH, "/gone");
	turn_until(here, &here->changed, 2);
	assert_int_equal(here->owner.watches[0].number, 0);
	ask(here, FILES_WATCH, "/plain");
	turn_until(here, &here->changed, 3);
	assert_int_not_equal(here->owner.watches[0].number, 0);
	/* With the process goes what it watched, and that is told. */
	ask(here, FILES_STAT, "/dies-after");
	turn_until(here, &here->gone, 1);
	assert_int_equal(here->owner.watches[0].number, 0);
}

/* The process has as many places for watches as the box: one more that it says to have is none. */
static void a_watch_that_there_is_no_place_for_is_not_done(void **state)
{
	struct here *here = *state;

	for (unsigned i = 1; i <= FILES_WATCHES_MAX; i++) {
		ask(here, FILES_WATCH, "/plain");
		turn_until(here, &here->changed, i);
		assert_int_equal(here->errnum, 0);
	}
	ask(here, FILES_WATCH, "/plain");
	turn_until(here, &here->done, FILES_WATCHES_MAX + 1);
	assert_int_equal(here->errnum, EIO);
	assert_int_equal(here->owner.peer.falls, 1);
	assert_int_equal(here->gone, FILES_WATCHES_MAX);
	ask(here, FILES_WATCH, "/plain");
	turn_until(here, &here->done, FILES_WATCHES_MAX + 2);
	assert_int_equal(here->errnum, 0);
}

/* The client's memory is another's by then. */
static void a_watch_that_comes_about_after_its_client_left_tells_nobody(void **state)
{
	struct here *here = *state;
	struct here other = { 0 };
	const struct files_request request = request_of(FILES_STAT, "/plain");
	const struct owner_asker asker = asker_of(&other);

	ask(here, FILES_WATCH, "/plain");
	while (!here->owner.is_asked)
		assert_true(loop_step(&here->loop, 1000) >= 0);
	owner_forget(&here->owner, here);
	here->has_left = true;
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), 0);
		turn_until(here, &other.done, i);
	}
	assert_int_equal(here->changed, 0);
	assert_int_equal(here->owner.watches[0].number, 0);
	assert_int_equal(here->owner.peer.falls, 0);
}

static void one_ends_no_watch_of_another(void **state)
{
	struct here *here = *state;
	struct here other = { 0 };
	struct files_request request = { .operation = FILES_UNWATCH, .set = 1u << FILES_HAS_WATCH };
	struct owner_asker asker = asker_of(&other);

	ask(here, FILES_WATCH, "/plain");
	turn_until(here, &here->changed, 1);
	request.watch = here->owner.watches[0].number;
	assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), -ENOENT);
	asker = asker_of(here);
	assert_int_equal(owner_ask(&here->owner, &request, 1, &asker), 0);
	turn_until(here, &here->done, 2);
	assert_int_equal(here->owner.watches[0].number, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_believed_only_what_it_was_asked),
		CASE(a_second_answer_ends_the_process),
		CASE(one_that_never_answers_is_ended_in_time),
		CASE(each_path_of_a_long_one_is_recorded),
		CASE(a_remove_that_is_never_done_ends),
		CASE(what_waits_is_bounded),
		CASE(a_watch_tells_who_asked_until_it_is_gone),
		CASE(a_watch_that_there_is_no_place_for_is_not_done),
		CASE(a_watch_that_comes_about_after_its_client_left_tells_nobody),
		CASE(one_ends_no_watch_of_another),
	};

	if (argc == 1 && str_equal(argv[0], "atoll-files"))
		return be_taken_over();
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
