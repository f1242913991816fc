/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/policies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/fd.h"
#include "service/launcher/store/narrowing.h"

enum { TEXT_MAX = 64 << 10 };

struct policy_entry {
	struct policy_entry *next;
	char *name;                  /* owned: the key's policy */
	struct hash hash;            /* of name and narrowing */
	char project[PATH_MAX];
	atoll_policy *policy;
};

static void free_entry(struct policy_entry *entry)
{
	atoll_policy_free(entry->policy);
	free(entry->name);
	free(entry);
}

void policies_done(struct policies *policies)
{
	while (policies->first) {
		struct policy_entry *entry = policies->first;

		policies->first = entry->next;
		free_entry(entry);
	}
	policies->count = 0;
}

/* Moved to the front. */
static struct policy_entry *find_kept(struct policies *policies, const struct hash *hash)
{
	for (struct policy_entry **at = &policies->first; *at; at = &(*at)->next) {
		struct policy_entry *entry = *at;

		if (memcmp(entry->hash.bytes, hash->bytes, HASH_SIZE) != 0)
			continue;
		*at = entry->next;
		entry->next = policies->first;
		policies->first = entry;
		return entry;
	}
	return NULL;
}

/* The directory stays: sandboxes that were made with it name it, and it is the same for the same text. */
static void forget_last(struct policies *policies)
{
	struct policy_entry **at = &policies->first;

	while (*at && (*at)->next)
		at = &(*at)->next;
	if (*at) {
		free_entry(*at);
		*at = NULL;
		policies->count--;
	}
}

static int make_project(const char *directory, const char *name, const struct buf *text, char out[PATH_MAX],
			struct err *err)
{
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/network", directory);

	if (r == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = str_format(out, PATH_MAX, "%s/network/%s", directory, name);
	if (r == 0 && mkdir(out, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = path_join(path, sizeof path, out, ".atoll.yaml");
	if (r == 0 && text->size)
		r = fd_replace_file_at(AT_FDCWD, path, text->bytes, text->size, 0644);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "policy", "%s cannot be written: %s", out, err_errno_name(-r));
	return 0;
}

static int compile(struct policies *policies, struct policy_entry *entry, struct err *err)
{
	atoll_record *record = atoll_record_new(ATOLL_POLICY);
	struct atoll_error error = { .size = sizeof error };
	atoll_policy *policy = NULL;
	int r = record ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "policy", entry->name, &error);
	if (r == 0)
		r = atoll_set_string(record, "project", entry->project, &error);
	if (r == 0)
		r = atoll_policy_load(policies->context, record, &policy, &error);
	atoll_record_free(record);
	if (r == 0) {
		entry->policy = policy;
		return 0;
	}
	atoll_policy_free(policy);
	err_set(err, ERR_POLICY, EINVAL, "policy", "%s", error.what);
	err_hint(err, "%s", error.hint);
	return -EINVAL;
}

static int add(struct policies *policies, const char *name, const struct hash *hash, const struct buf *text,
	       struct err *err)
{
	struct policy_entry *entry = calloc(1, sizeof *entry);
	char hex[HASH_HEX_SIZE];
	int r = entry ? 0 : -ENOMEM;

	if (r == 0) {
		entry->name = str_dup(name);
		entry->hash = *hash;
		r = entry->name ? 0 : -ENOMEM;
	}
	if (r < 0) {
		free(entry);
		return err_set(err, ERR_INTERNAL, ENOMEM, "policy", "out of memory");
	}
	hash_to_hex(hash, hex);
	hex[16] = 0;
	r = make_project(policies->directory, hex, text, entry->project, err);
	if (r == 0)
		r = compile(policies, entry, err);
	if (r < 0) {
		/* Else each request that is refused left one behind. */
		char path[PATH_MAX];

		if (path_join(path, sizeof path, entry->project, ".atoll.yaml") == 0)
			unlink(path);
		rmdir(entry->project);
		free_entry(entry);
		return r;
	}
	if (policies->count == POLICIES_MAX)
		forget_last(policies);
	entry->next = policies->first;
	policies->first = entry;
	policies->count++;
	return 0;
}

int policies_find(struct policies *policies, const char *name, const struct service_message *network,
		  struct policy_found *ret_found, struct err *err)
{
	struct policy_entry *entry;
	cleanup_buf struct buf text;
	struct hash hash;
	int r = 0;

	buf_init(&text, TEXT_MAX);
	if (network)
		r = narrowing_write(&text, network, err);
	if (r < 0)
		return r;
	hash_pieces(&hash, (const struct hash_piece[]){ { name, strlen(name) + 1 }, { text.bytes, text.size } }, 2);
	entry = find_kept(policies, &hash);
	if (!entry) {
		r = add(policies, name, &hash, &text, err);
		if (r < 0)
			return r == -EINVAL && !network ? -EIO : r;
		entry = policies->first;
	}
	*ret_found = (struct policy_found){ entry->policy, entry->project };
	return 0;
}
