/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "os/clock.h"
#include "prog/atoll-secret/job.h"

/* `atoll secret remove` and `rename`: all of it or nothing. */

int cmd_remove(struct job *job)
{
	int r = job->exists ? job_begin_change(job) : job_fail_unknown(job, job->words[0]);

	for (size_t i = 0; r == 0 && i < job->word_count; i++)
		if (secrets_remove(job->vault.secrets, job->words[i]) < 0)
			r = job_fail_unknown(job, job->words[i]);
	return r < 0 ? r : vault_store(&job->vault, job->err);
}

int cmd_rename(struct job *job)
{
	int r = job->exists ? job_begin_change(job) : job_fail_unknown(job, job->words[0]);

	if (r < 0)
		return r;
	r = secrets_rename(job->vault.secrets, job->words[0], job->words[1], clock_realtime_ns() / 1000000000);
	if (r == -ENOENT)
		return job_fail_unknown(job, job->words[0]);
	if (r == -EEXIST) {
		err_set(job->err, ERR_USAGE, EEXIST, "secret", "there is a secret %s already", job->words[1]);
		err_hint(job->err, "remove it first, or choose another name");
		return r;
	}
	if (r < 0)
		return err_set(job->err, ERR_INTERNAL, -r, "secret", "%s", strerror(-r));
	return vault_store(&job->vault, job->err);
}
