/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll-secret/job.h"

/* `atoll secret list`: names, dates and about how long; never a value. */

enum { DATE_SIZE = 32, LIST_MAX = 128 << 10 };

static void format_date(uint64_t seconds, char out[DATE_SIZE])
{
	time_t at = (time_t)seconds;
	struct tm local;

	if (!localtime_r(&at, &local) || !strftime(out, DATE_SIZE, "%Y-%m-%d %H:%M", &local))
		memcpy(out, "?", 2);
}

static void put_table(const struct secrets *secrets, struct buf *out)
{
	char made[DATE_SIZE], changed[DATE_SIZE];
	int width = 4;

	for (size_t i = 0; i < secrets->count; i++)
		if ((int)strlen(secrets->items[i].name) > width)
			width = (int)strlen(secrets->items[i].name);
	if (secrets->count)
		buf_printf(out, "%-*s  %-16s  %-16s  %s\n", width, "NAME", "SET", "CHANGED", "BYTES");
	for (size_t i = 0; i < secrets->count; i++) {
		const struct secret *item = &secrets->items[i];

		format_date(item->made_s, made);
		format_date(item->changed_s, changed);
		buf_printf(out, "%-*s  %-16s  %-16s  %s\n", width, item->name, made, changed,
			   secret_size_class(item->size));
	}
}

static void put_time(struct json *json, const char *key, uint64_t seconds)
{
	char text[CLOCK_RFC3339_SIZE];

	/* A damaged clock may have written anything; beyond this it would wrap. */
	clock_format_rfc3339(seconds <= UINT64_MAX / 1000000000 ? seconds * 1000000000 : 0, text);
	json_string(json, key, text);
}

static void put_json(const struct secrets *secrets, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_array_begin(&json, NULL);
	for (size_t i = 0; secrets && i < secrets->count; i++) {
		json_object_begin(&json, NULL);
		json_string(&json, "name", secrets->items[i].name);
		put_time(&json, "made", secrets->items[i].made_s);
		put_time(&json, "changed", secrets->items[i].changed_s);
		json_string(&json, "bytes", secret_size_class(secrets->items[i].size));
		json_object_end(&json);
	}
	json_array_end(&json);
	buf_put_char(out, '\n');
}

int cmd_list(struct job *job)
{
	/* A script reads stdout alone. */
	static const char none[] = "atoll: there are no secrets yet; `atoll secret set NAME` keeps one\n";
	cleanup_buf struct buf text;
	int r;

	buf_init(&text, LIST_MAX);
	r = job_unlock(job);

	if (r == 0 && job->vault.key)
		r = vault_load(&job->vault, job->err);
	if (r < 0)
		return r;
	if (job->json)
		put_json(job->vault.secrets, &text);
	else if (job->vault.secrets)
		put_table(job->vault.secrets, &text);
	if (!text.size)
		(void)!fd_write_full(STDERR_FILENO, none, sizeof none - 1);
	return job_print(job, &text);
}
