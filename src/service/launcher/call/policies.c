/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/policies.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/fd.h"
#include "service/launcher/store/narrowing.h"

enum { TEXT_MAX = 64 << 10, POLICY_ID_SIZE = 17 };

struct policy_entry {
	struct policy_entry *next;
	char *name;                  /* owned: the key's policy */
	struct hash hash;            /* of name and narrowing */
	char id[POLICY_ID_SIZE];     /* the beginning of it, in hex */
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

/*
 * All sandboxes have one project, so that their policies differ in the network alone and one can take the place of
 * another. The narrowing stands there for as long as the compiler reads it; nobody else compiles for this directory.
 */
static int write_narrowing(const struct policies *policies, const struct buf *text, struct err *err)
{
	char path[PATH_MAX];
	int r = path_join(path, sizeof path, policies->project, ".atoll.yaml");

	if (r == 0 && text && text->size)
		r = fd_replace_file_at(AT_FDCWD, path, text->bytes, text->size, 0600);
	else if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	return r < 0 ? err_set(err, ERR_STATE, -r, "policy", "%s cannot be written: %s", path, err_errno_name(-r)) : 0;
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
		r = atoll_set_string(record, "project", policies->project, &error);
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
	memcpy(entry->id, hex, POLICY_ID_SIZE - 1);
	r = write_narrowing(policies, text, err);
	if (r == 0)
		r = compile(policies, entry, err);
	if (write_narrowing(policies, NULL, r < 0 ? NULL : err) < 0 && r == 0)
		r = -EIO;
	if (r < 0) {
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
	*ret_found = (struct policy_found){ entry->policy, policies->project, entry->id };
	return 0;
}
