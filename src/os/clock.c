/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <sys/random.h>
#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_computed_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_computed_by_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec now;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static char *put_digits(char *at, uint64_t value, int count, char end)
{
	for (int i = count - 1; i >= 0; i--, value /= 10)
		at[i] = (char)('0' + value % 10);
	at[count] = end;
	return at + count + 1;
}

void clock_format_rfc3339(uint64_t realtime_ns, char out[CLOCK_RFC3339_SIZE])
{
	time_t seconds = (time_t)(realtime_ns / 1000000000ULL);
	struct tm tm;
	char *at = out;

	gmtime_r(&seconds, &tm);
	at = put_digits(at, (uint64_t)tm.tm_year + 1900, 4, '-');
	at = put_digits(at, (uint64_t)tm.tm_mon + 1, 2, '-');
	at = put_digits(at, (uint64_t)tm.tm_mday, 2, 'T');
	at = put_digits(at, (uint64_t)tm.tm_hour, 2, ':');
	at = put_digits(at, (uint64_t)tm.tm_min, 2, ':');
	at = put_digits(at, (uint64_t)tm.tm_sec, 2, '.');
	at = put_digits(at, realtime_ns % 1000000000ULL, 9, 'Z');
	*at = 0;
}

int random_bytes(void *bytes, size_t size)
{
	char *at = bytes;

	while (size) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int random_session_id(char out[SESSION_ID_SIZE])
{
	uint8_t bytes[2 * SESSION_ID_SIZE];
	size_t used = 0;

	while (used < SESSION_ID_SIZE - 1) {
		int r = random_bytes(bytes, sizeof bytes);

		if (r < 0)
			return r;
		/* 252 = 7 * 36: larger bytes would make the first letters more likely. */
		for (size_t i = 0; i < sizeof bytes && used < SESSION_ID_SIZE - 1; i++)
			if (bytes[i] < 252)
				out[used++] = "abcdefghijklmnopqrstuvwxyz0123456789"[bytes[i] % 36];
	}
	out[used] = 0;
	return 0;
}
