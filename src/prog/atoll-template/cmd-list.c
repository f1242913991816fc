/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll-template/job.h"

enum { OUT_MAX = 4 << 20, NS_PER_MS = 1000000 };

int job_print(struct job *job, const struct buf *out)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out->bytes, out->size);
	return r < 0 ? err_set(job->err, ERR_STATE, -r, "template", "stdout cannot be written to: %s",
			       err_errno_name(-r)) : 0;
}

void job_put_json(struct json *json, const char *name, const struct tree_record *record)
{
	json_string(json, "name", name);
	json_string(json, "id", record->id);
	json_string(json, "source", record->source);
	json_u64(json, "layers", record->layers);
	json_u64(json, "files", record->counts.files);
	json_u64(json, "directories", record->counts.directories);
	json_u64(json, "links", record->counts.links);
	json_u64(json, "bytes", record->counts.bytes);
	json_u64(json, "left_out", record->counts.left_out);
	json_u64(json, "made_ms", record->made_ms);
}

struct listing {
	struct job *job;
	struct buf out;
	struct json json;
};

static int list_one(void *context, const char *name)
{
	struct listing *listing = context;
	char size[32], made[CLOCK_RFC3339_SIZE], shown[ERR_QUOTE_SIZE];
	struct tree_record record;

	if (store_find(&listing->job->store, name, &record) < 0)
		return 0;
	if (listing->job->json) {
		json_object_begin(&listing->json, NULL);
		job_put_json(&listing->json, name, &record);
		json_object_end(&listing->json);
		return 0;
	}
	num_format_size_human(record.counts.bytes, size);
	clock_format_rfc3339(record.made_ms * NS_PER_MS, made);
	buf_printf(&listing->out, "%-24s  %.12s  %8s  %8llu  %-19.19s  %s\n", name, record.id, size,
		   (unsigned long long)record.counts.files, made, err_quote(shown, record.source));
	return 0;
}

int cmd_list(struct job *job)
{
	struct listing listing = { .job = job };
	int r;

	buf_init(&listing.out, OUT_MAX);
	json_init(&listing.json, &listing.out);
	if (job->json)
		json_array_begin(&listing.json, NULL);
	else
		buf_printf(&listing.out, "%-24s  %-12s  %8s  %8s  %-19s  %s\n", "NAME", "ID", "SIZE", "FILES",
			   "IMPORTED (UTC)", "FROM");
	r = store_each(&job->store, list_one, &listing);
	if (job->json) {
		json_array_end(&listing.json);
		buf_put_char(&listing.out, '\n');
	}
	r = r < 0 ? err_set(job->err, ERR_STATE, -r, "list", "the templates cannot be listed: %s", err_errno_name(-r))
		  : job_print(job, &listing.out);
	buf_done(&listing.out);
	return r;
}

static int fail_unknown(struct job *job, const char *name, int r)
{
	char shown[ERR_QUOTE_SIZE];

	if (r != -ENOENT)
		return err_set(job->err, ERR_STATE, -r, "template", "%s cannot be read: %s", err_quote(shown, name),
			       err_errno_name(-r));
	err_set(job->err, ERR_NOT_FOUND, ENOENT, "template", "there is no template with the name %s",
		err_quote(shown, name));
	err_hint(job->err, "`atoll template list` shows them");
	return -ENOENT;
}

int cmd_show(struct job *job)
{
	char size[32], made[CLOCK_RFC3339_SIZE], shown[ERR_QUOTE_SIZE];
	const char *name = job->words[0];
	struct tree_record record;
	cleanup_buf struct buf out = { 0 };
	struct json json;
	int r = store_find(&job->store, name, &record);

	if (r < 0)
		return fail_unknown(job, name, r);
	buf_init(&out, OUT_MAX);
	json_init(&json, &out);
	if (job->json) {
		json_object_begin(&json, NULL);
		job_put_json(&json, name, &record);
		json_object_end(&json);
		buf_put_char(&out, '\n');
		return job_print(job, &out);
	}
	num_format_size_human(record.counts.bytes, size);
	clock_format_rfc3339(record.made_ms * NS_PER_MS, made);
	buf_printf(&out, "name      %s\nid        %s\nfrom      %s\nimported  %.19s UTC\nlayers    %llu\n", name,
		   record.id, err_quote(shown, record.source), made, (unsigned long long)record.layers);
	buf_printf(&out, "holds     %s: %llu files, %llu directories, %llu links; %llu left out\n", size,
		   (unsigned long long)record.counts.files, (unsigned long long)record.counts.directories,
		   (unsigned long long)record.counts.links, (unsigned long long)record.counts.left_out);
	return job_print(job, &out);
}

int cmd_remove(struct job *job)
{
	cleanup_buf struct buf out;
	uint64_t bytes;
	char size[32];
	int r = 0;

	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < job->word_count; i++) {
		r = store_remove(&job->store, job->words[i]);
		if (r < 0)
			return fail_unknown(job, job->words[i], r);
	}
	r = store_collect(&job->store, &bytes);
	if (r < 0)
		return err_set(job->err, ERR_STATE, -r, "remove", "the files cannot be removed: %s",
			       err_errno_name(-r));
	num_format_size_human(bytes, size);
	if (!job->json)
		buf_printf(&out, "removed; %s are free%s\n", size,
			   bytes ? "" : " (another name or a session has the files)");
	if (!job->json && !bytes)
		buf_put_text(&out, "atoll gc --older-than 0s removes sessions that have ended, and the next import or "
				   "remove the files\n");
	return job_print(job, &out);
}
