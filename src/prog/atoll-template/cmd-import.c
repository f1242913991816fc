/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "image/bundle.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll-template/job.h"

enum { NS_PER_MS = 1000000, PROGRESS_EVERY = 4096, OUT_MAX = 64 << 10 };

/* On a terminal: one line that is written again and again. */
static void show_progress(const struct image_counts *counts)
{
	uint64_t entries = counts->files + counts->directories + counts->links;
	char size[32];

	if (entries % PROGRESS_EVERY != 0)
		return;
	num_format_size_human(counts->bytes, size);
	dprintf(STDERR_FILENO, "\ratoll: %llu entries, %s ", (unsigned long long)entries, size);
}

int job_choose_name(const struct job *job, char out[ROOT_NAME_SIZE], struct err *err)
{
	static const char *const endings[] = { ".gz", ".xz", ".zst", ".bz2", ".tgz", ".tar", ".oci" };
	char shown[ERR_QUOTE_SIZE], name[PATH_MAX];
	const char *given = job->words[job->word_count - 1];
	int r = str_copy(name, sizeof name, given);

	if (r == 0 && job->word_count == 1) {
		size_t length = strlen(name);

		while (length > 1 && name[length - 1] == '/')
			name[--length] = 0;
		memmove(name, path_basename(name), strlen(path_basename(name)) + 1);
		for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
			if (str_has_suffix(name, endings[i]))
				name[strlen(name) - strlen(endings[i])] = 0;
	}
	if (r == 0 && session_root_name_is_valid(name) && !str_equal(name, "base"))
		return str_copy(out, ROOT_NAME_SIZE, name);
	err_set(err, ERR_USAGE, EINVAL, "import", "%s cannot be the name of a template", err_quote(shown, name));
	err_hint(err, "give one behind the source: 1 to %d of a-z, 0-9, '.', '_', '-' and ':', a letter or digit first",
		 ROOT_NAME_SIZE - 1);
	return -EINVAL;
}

static int unpack(struct job *job, struct image_target *target, struct image_config *config,
		  struct tree_record *record)
{
	cleanup_fd int root_fd = store_begin(&job->store, job->err);
	int r;

	if (root_fd < 0)
		return root_fd;
	image_target_init(target, root_fd);
	target->config = config;
	if (!job->quiet && isatty(STDERR_FILENO))
		target->progress = show_progress;
	r = bundle_unpack(target, job->source_fd, job->err);
	if (target->progress)
		dprintf(STDERR_FILENO, "\r%40s\r", "");
	if (r < 0)
		return r;
	record->layers = (uint64_t)r;
	r = image_complete(target);
	return r < 0 ? err_set(job->err, ERR_STATE, -r, "import", "the system cannot be completed: %s",
			       err_errno_name(-r)) : 0;
}

static int print_result(struct job *job, const char *name, const struct tree_record *record)
{
	cleanup_buf struct buf out;
	struct json json;
	char size[32];

	buf_init(&out, OUT_MAX);
	num_format_size_human(record->counts.bytes, size);
	if (job->json) {
		json_init(&json, &out);
		json_object_begin(&json, NULL);
		job_put_json(&json, name, record);
		json_object_end(&json);
		buf_put_char(&out, '\n');
	} else {
		buf_printf(&out, "imported %s: %llu files, %s; start it with: atoll run --root %s -- CMD…\n", name,
			   (unsigned long long)record->counts.files, size, name);
		if (record->counts.left_out)
			buf_printf(&out, "left out: %llu device nodes, sockets and pipes\n",
				   (unsigned long long)record->counts.left_out);
	}
	return job_print(job, &out);
}

/* The system, and how commands run in it. */
static int unpack_all(struct job *job, struct image_target *target, struct tree_record *record)
{
	struct image_config *config = calloc(1, sizeof *config);
	int r = config ? 0 : -ENOMEM;

	if (r < 0)
		return err_set(job->err, ERR_INTERNAL, ENOMEM, "import", "out of memory");
	buf_init(&config->env, IMAGE_ENV_MAX);
	r = unpack(job, target, config, record);
	if (r == 0)
		r = store_put_config(&job->store, config, job->err);
	buf_done(&config->env);
	free(config);
	return r;
}

int cmd_import(struct job *job)
{
	struct tree_record record = { .made_ms = clock_realtime_ns() / NS_PER_MS };
	struct image_target target;
	char name[ROOT_NAME_SIZE];
	uint64_t removed;
	struct hash identity;
	int r = job_choose_name(job, name, job->err);

	if (r < 0)
		return r;
	if (str_copy(record.source, sizeof record.source, job->words[0]) < 0)
		record.source[0] = 0;
	r = unpack_all(job, &target, &record);
	if (r == 0) {
		record.counts = target.counts;
		hash_stream_end(&target.identity, &identity);
		r = store_finish(&job->store, name, &identity, &record, job->err);
	}
	if (r < 0) {
		store_abandon(&job->store);
		return r;
	}
	/* What the name led to before. That it stays where it cannot be removed is no reason to fail. */
	(void)!store_collect(&job->store, &removed);
	return print_result(job, name, &record);
}
