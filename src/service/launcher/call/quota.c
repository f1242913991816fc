/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/quota.h"

#include <sys/statvfs.h>

#include "base/bucket.h"
#include "base/str.h"
#include "service/launcher/call/pressure.h"

enum { MINUTE_MS = 60000, MS_PER_S = 1000, LOOK_MS = 500, NS_PER_MS = 1000000, HUNDREDTHS = 100 };

struct quota {
	struct quota *next;
	char owner[DATABASE_NAME_SIZE];
	struct bucket bucket;
};

void quotas_done(struct quotas *quotas)
{
	while (quotas->first) {
		struct quota *quota = quotas->first;

		quotas->first = quota->next;
		free(quota);
	}
}

static struct quota *find(struct quotas *quotas, const char *owner, const struct bucket_limit *limit, uint64_t now_ns)
{
	struct quota *quota = quotas->first;

	while (quota && !str_equal(quota->owner, owner))
		quota = quota->next;
	if (quota)
		return quota;
	quota = calloc(1, sizeof *quota);
	if (!quota || str_copy(quota->owner, sizeof quota->owner, owner) < 0) {
		free(quota);
		return NULL;
	}
	quota->bucket = bucket_start(limit, now_ns);
	quota->next = quotas->first;
	quotas->first = quota;
	return quota;
}

bool quotas_are_pressed(struct quotas *quotas, uint64_t percent, uint64_t now_ns)
{
	uint32_t share;

	if (!quotas->looked_ns || now_ns - quotas->looked_ns >= LOOK_MS * (uint64_t)NS_PER_MS) {
		quotas->looked_ns = now_ns;
		quotas->pressure = pressure_memory(&share) == 0 ? share : 0;
	}
	return quotas->pressure >= percent * HUNDREDTHS;
}

bool quotas_is_disk_short(struct quotas *quotas, const char *path, uint64_t bytes, uint64_t now_ns)
{
	struct statvfs st;

	if (!quotas->disk_looked_ns || now_ns - quotas->disk_looked_ns >= LOOK_MS * (uint64_t)NS_PER_MS) {
		quotas->disk_looked_ns = now_ns;
		quotas->disk_free = statvfs(path, &st) == 0 ? (uint64_t)st.f_bavail * st.f_frsize : UINT64_MAX;
	}
	return quotas->disk_free < bytes;
}

int quotas_take(struct quotas *quotas, const struct key_row *key, uint64_t count, uint64_t now_ns)
{
	const struct bucket_limit limit = { key->creates_per_minute, MINUTE_MS, (double)key->creates_per_minute };
	struct quota *quota = find(quotas, key->owner, &limit, now_ns);
	uint64_t wait_ms;

	if (!quota)
		return -ENOMEM;
	if (bucket_fill(&quota->bucket, &limit, now_ns) >= (double)count) {
		quota->bucket.tokens -= (double)count;
		return 0;
	}
	wait_ms = bucket_wait_ms(&quota->bucket, &limit);
	return wait_ms > MINUTE_MS ? MINUTE_MS / MS_PER_S : (int)(wait_ms / MS_PER_S) + 1;
}
