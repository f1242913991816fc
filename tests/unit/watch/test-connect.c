/* SPDX-License-Identifier: Apache-2.0 */

/* Connects that the supervisor makes for its callers: to which unix sockets they lead, and what the peer sees. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { GUEST_UID = 0x70001234 };

static const int calls[] = { SYS_connect };
static char directory[64] = "/tmp/atoll-connect-XXXXXX";
static char path[96];
static int server;

static struct sockaddr_un name_of(const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_true(strlen(text) < sizeof address.sun_path);
	memcpy(address.sun_path, text, strlen(text));
	return address;
}

static int try_name(const char *text)
{
	struct sockaddr_un address = name_of(text);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	r = connect(fd, (void *)&address, sizeof address) < 0 ? errno : 0;
	close(fd);
	return r;
}

static int setup(void **state)
{
	struct sockaddr_un address;

	assert_non_null(mkdtemp(directory));
	chmod(directory, 0755);
	snprintf(path, sizeof path, "%s/s", directory);
	address = name_of(path);
	server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(server, (void *)&address, sizeof address), 0);
	chmod(path, 0777);
	return listen(server, 64);
}

static int teardown(void **state)
{
	char link[96];

	snprintf(link, sizeof link, "%s/link", directory);
	unlink(link);
	unlink(path);
	close(server);
	return rmdir(directory);
}

/* Everything where the server lies is the sandbox's own, or the host's. */
static int begin(void **state)
{
	struct stat status;

	guest_options = (struct watch_options){ 0 };
	assert_int_equal(stat(path, &status), 0);
	guest_options.private_devices[0] = status.st_dev;
	guest_options.private_device_count = 1;
	return 0;
}

static int begin_foreign(void **state)
{
	begin(state);
	guest_options.private_devices[0]++;
	return 0;
}

static unsigned count_accepted(void)
{
	unsigned count = 0;
	int fd;

	while ((fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		count++;
	}
	return count;
}

/* ---- which socket ---- */

static int run_spellings(void *argument)
{
	char text[128], link[96];

	if (try_name(path) != 0)
		return 1;
	snprintf(link, sizeof link, "%s/link", directory);
	if (symlink(path, link) < 0 || try_name(link) != 0)
		return 2;
	if (chdir(directory) < 0 || try_name("s") != 0 || try_name("./s") != 0)
		return 3;
	/* An absolute link met on the way from a directory would start at the supervisor's root. */
	if (try_name("link") != EACCES)
		return 4;
	snprintf(text, sizeof text, "/proc/self/fd/%d/s", open(".", O_PATH));
	if (try_name(text) == 0)
		return 5;
	snprintf(text, sizeof text, "/proc/%d/root/%s", getpid(), path);
	if (try_name(text) != EACCES)
		return 6;
	return 0;
}

static void test_every_spelling_of_a_private_socket(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_spellings, NULL, &seen), 0);
	assert_int_equal(count_accepted(), 4);
}

static int run_foreign(void *argument)
{
	char text[128];

	if (try_name(path) != EACCES || chdir(directory) < 0 || try_name("s") != EACCES)
		return 1;
	snprintf(text, sizeof text, "/proc/self/cwd/s");
	return try_name(text) == 0;
}

static void test_socket_of_the_host_is_refused_and_recorded(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_foreign, NULL, &seen), 0);
	assert_int_equal(count_accepted(), 0);
	assert_true(seen.networks >= 2);
	assert_true(seen.network.is_refused);
	assert_string_equal(seen.network.operation, "connect");
	assert_string_equal(seen.network.family, "unix");
}

static void test_without_known_devices_nothing_is_connected(void **state)
{
	struct seen seen = { 0 };

	guest_options.private_device_count = 0;
	assert_int_equal(guest_run(calls, 1, run_foreign, NULL, &seen), 0);
	assert_int_equal(count_accepted(), 0);
}

static int run_long_name(void *argument)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(address.sun_path, '/', sizeof address.sun_path);
	/* Slashes count for nothing: all 108 bytes are the name, and no NUL ends it. */
	memcpy(address.sun_path + sizeof address.sun_path - strlen(path), path, strlen(path));
	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address) < 0 ? errno : 0;
}

static void test_name_of_108_bytes(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_long_name, NULL, &seen), 0);
	assert_int_equal(count_accepted(), 1);
}

static int run_errors(void *argument)
{
	struct sockaddr_un address = name_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), inet_fd = socket(AF_INET, SOCK_STREAM, 0);

	if (try_name("/nowhere/at/all") != ENOENT || try_name("/dev/null") != ECONNREFUSED)
		return 1;
	if (syscall(SYS_connect, fd, (void *)8, sizeof address) != -1 || errno != EFAULT)
		return 2;
	if (connect(fd, (void *)&address, 129) != -1 || errno != EINVAL)
		return 3;
	if (connect(999, (void *)&address, sizeof address) != -1 || errno != EBADF)
		return 4;
	if (connect(0, (void *)&address, sizeof address) != -1 || errno != ENOTSOCK)
		return 5;
	if (connect(inet_fd, (void *)&address, sizeof address) != -1 || errno != EAFNOSUPPORT)
		return 6;
	return 0;
}

static void test_errors_are_those_of_the_kernel(void **state)
{
	struct seen seen = { 0 };
	int null_fd = open("/dev/null", O_RDWR), saved = dup(0);

	dup2(null_fd, 0);
	assert_int_equal(guest_run(calls, 1, run_errors, NULL, &seen), 0);
	dup2(saved, 0);
	close(saved);
	close(null_fd);
	assert_int_equal(count_accepted(), 0);
}

static int run_abstract(void *argument)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0atoll-test-nobody" };

	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, 20) < 0 ? errno : 0;
}

static void test_abstract_names_of_a_shared_network_are_refused(void **state)
{
	struct guest guest = guest_start(calls, 1, run_abstract, NULL);
	struct seen seen = { 0 };
	int served, status = guest_supervise(&guest, false, &seen, &served);

	assert_int_equal(WEXITSTATUS(status), EACCES);
	assert_true(seen.network.is_refused);
	assert_string_equal(seen.network.address, "@atoll-test-nobody");
	seen = (struct seen){ 0 };
	assert_int_equal(guest_run(calls, 1, run_abstract, NULL, &seen), ECONNREFUSED);
	assert_int_equal(seen.networks, 0);
}

/* ---- races ---- */

static struct sockaddr_storage shared;
static atomic_bool is_over;

static void *swap_address(void *argument)
{
	struct sockaddr_un local = name_of(path);
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_port = htons(9),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	/* Long enough in each state to be seen whole. */
	while (!is_over) {
		memcpy(&shared, &local, sizeof local);
		for (volatile int i = 0; i < 3000; i++)
			;
		memcpy(&shared, &inet, sizeof inet);
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	return NULL;
}

static void *swap_socket(void *argument)
{
	int *fds = argument;

	while (!is_over) {
		dup2(fds[1], fds[0]);
		dup2(fds[2], fds[0]);
	}
	return NULL;
}

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;

	return getpeername(fd, (void *)&peer, &size) == 0;
}

/* What is judged as an address of loopback is a path when the kernel looks, or the socket is another. With an argument
 * it goes on until one has arrived, however the threads are scheduled. */
static int run_races(void *argument)
{
	int fds[] = { 100, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0),
		      socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) };
	pthread_t address_thread, socket_thread;

	dup2(fds[1], fds[0]);
	pthread_create(&address_thread, NULL, swap_address, NULL);
	pthread_create(&socket_thread, NULL, swap_socket, fds);
	for (int i = 0; i < 3000 || (argument && !is_connected(fds[1])); i++)
		(void)!connect(fds[0], (void *)&shared, sizeof(struct sockaddr_un));
	is_over = true;
	pthread_join(address_thread, NULL);
	pthread_join(socket_thread, NULL);
	return 0;
}

static void test_swapping_address_and_socket_leads_nowhere(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_races, NULL, &seen), 0);
	assert_int_equal(count_accepted(), 0);
	/* The same does arrive where the socket may be reached. */
	guest_options.private_devices[0]--;
	assert_int_equal(guest_run(calls, 1, run_races, &seen, &seen), 0);
	assert_int_equal(count_accepted(), 1);
}

static void *make_blocking(void *argument)
{
	while (!is_over)
		fcntl(*(int *)argument, F_SETFL, 0);
	return NULL;
}

static void *end_soon(void *argument)
{
	sleep(1);
	_exit(0);
}

/* The backlog is full for ever, and a thread takes care that the supervisor's own connect blocks too. */
static int run_blocking(void *argument)
{
	struct sockaddr_un address = name_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t thread;

	while (connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (void *)&address, sizeof address) == 0)
		;
	if (errno != EAGAIN)
		return 1;
	pthread_create(&thread, NULL, make_blocking, &fd);
	pthread_create(&thread, NULL, end_soon, NULL);
	connect(fd, (void *)&address, sizeof address);
	return 2;
}

static void test_supervisor_does_not_block_with_its_caller(void **state)
{
	struct seen seen = { 0 };

	listen(server, 2);
	assert_int_equal(guest_run(calls, 1, run_blocking, NULL, &seen), 0);
	assert_true(count_accepted() >= 2);
	listen(server, 64);
}

/* ---- waiting ---- */

static void *accept_later(void *argument)
{
	usleep(200000);
	for (int i = 0; i < 3; i++)
		close(accept(*(int *)argument, NULL, NULL));
	return NULL;
}

static int run_full_backlog(void *argument)
{
	struct timeval limit = { .tv_usec = 50000 };
	struct sockaddr_un address = name_of(path);
	pthread_t thread;
	int fd;

	fcntl(server, F_SETFL, 0);
	while (connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (void *)&address, sizeof address) == 0)
		;
	if (errno != EAGAIN)
		return 1;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (connect(fd, (void *)&address, sizeof address) != -1 || errno != EAGAIN)
		return 2;
	pthread_create(&thread, NULL, accept_later, &server);
	if (try_name(path) != 0)
		return 3;
	/* The flag that was set for a moment is gone. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(fd, (void *)&address, sizeof address) != 0 || fcntl(fd, F_GETFL) & O_NONBLOCK)
		return 4;
	return 0;
}

static void test_caller_waits_for_a_full_backlog(void **state)
{
	struct seen seen = { 0 };

	listen(server, 1);
	assert_int_equal(guest_run(calls, 1, run_full_backlog, NULL, &seen), 0);
	fcntl(server, F_SETFL, O_NONBLOCK);
	count_accepted();
	listen(server, 64);
}

static void on_alarm(int number)
{
}

static int run_interrupted(void *argument)
{
	struct sockaddr_un address = name_of(path);
	struct sigaction caught = { .sa_handler = on_alarm };

	while (connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (void *)&address, sizeof address) == 0)
		;
	sigaction(SIGALRM, &caught, NULL);
	ualarm(100000, 0);
	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address) < 0 ? errno : 0;
}

static void test_signal_interrupts_who_waits(void **state)
{
	struct seen seen = { 0 };

	listen(server, 1);
	assert_int_equal(guest_run(calls, 1, run_interrupted, NULL, &seen), EINTR);
	count_accepted();
	listen(server, 64);
}

static int run_tcp(void *argument)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), other;
	char byte = 'x';

	if (bind(listening, (void *)&address, size) < 0 || listen(listening, 1) < 0 ||
	    getsockname(listening, (void *)&address, &size) < 0)
		return 1;
	if (connect(fd, (void *)&address, size) < 0 || fcntl(fd, F_GETFL) & O_NONBLOCK)
		return 2;
	other = accept(listening, NULL, NULL);
	if (write(fd, &byte, 1) != 1 || read(other, &byte, 1) != 1)
		return 3;
	if (connect(fd, (void *)&address, size) != -1 || errno != EISCONN)
		return 4;
	close(listening);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	return connect(fd, (void *)&address, size) == -1 && errno == ECONNREFUSED ? 0 : 5;
}

static void test_tcp_over_loopback(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_tcp, NULL, &seen), 0);
	assert_int_equal(seen.networks, 3);
}

/* ---- who connects ---- */

static int run_as_other(void *argument)
{
	if (syscall(SYS_setresgid, GUEST_UID, GUEST_UID, GUEST_UID) < 0 ||
	    syscall(SYS_setresuid, GUEST_UID, GUEST_UID, GUEST_UID) < 0)
		return 1;
	return try_name(path);
}

static void test_peer_sees_the_sandboxs_ids(void **state)
{
	struct seen seen = { 0 };
	struct ucred peer;
	socklen_t size = sizeof peer;
	uid_t expected = geteuid();
	int fd;

	if (geteuid() == 0)
		guest_options.uid = guest_options.gid = expected = GUEST_UID;
	assert_int_equal(guest_run(calls, 1, geteuid() ? run_long_name : run_as_other, NULL, &seen), 0);
	fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
	assert_int_equal(peer.uid, expected);
	close(fd);
	/* The supervisor itself is who it was. */
	assert_int_equal(geteuid(), expected == GUEST_UID ? 0 : expected);
}

static void test_ids_of_the_sandbox_decide(void **state)
{
	struct seen seen = { 0 };

	if (geteuid() != 0)
		skip();
	guest_options.uid = guest_options.gid = GUEST_UID;
	chmod(path, 0700);
	assert_int_equal(guest_run(calls, 1, run_as_other, NULL, &seen), EACCES);
	chmod(path, 0777);
	assert_int_equal(count_accepted(), 0);
	assert_int_equal(seen.networks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_spelling_of_a_private_socket, begin),
		cmocka_unit_test_setup(test_socket_of_the_host_is_refused_and_recorded, begin_foreign),
		cmocka_unit_test_setup(test_without_known_devices_nothing_is_connected, begin),
		cmocka_unit_test_setup(test_name_of_108_bytes, begin),
		cmocka_unit_test_setup(test_errors_are_those_of_the_kernel, begin_foreign),
		cmocka_unit_test_setup(test_abstract_names_of_a_shared_network_are_refused, begin),
		cmocka_unit_test_setup(test_swapping_address_and_socket_leads_nowhere, begin_foreign),
		cmocka_unit_test_setup(test_supervisor_does_not_block_with_its_caller, begin),
		cmocka_unit_test_setup(test_caller_waits_for_a_full_backlog, begin),
		cmocka_unit_test_setup(test_signal_interrupts_who_waits, begin),
		cmocka_unit_test_setup(test_tcp_over_loopback, begin),
		cmocka_unit_test_setup(test_peer_sees_the_sandboxs_ids, begin),
		cmocka_unit_test_setup(test_ids_of_the_sandbox_decide, begin),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
