/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/policies.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/store/narrowing.h"

enum { TEXT_MAX = 64 << 10, POLICY_ID_SIZE = 17, PATIENCE_MS = 10000 };

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

void policies_forget(struct policies *policies)
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

/* Of what is known by its hash; the text of its narrowing stands in the project's file by now. */
static int begin_compile(struct policies *policies, const char *name, atoll_policy **ret, struct err *err)
{
	atoll_record *record = atoll_record_new(ATOLL_POLICY);
	struct atoll_error error = { .size = sizeof error };
	int r = record ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "policy", name, &error);
	if (r == 0)
		r = atoll_set_string(record, "project", policies->project, &error);
	if (r == 0)
		r = atoll_policy_begin(policies->context, record, ret, &error);
	atoll_record_free(record);
	if (r == 0)
		return 0;
	err_set(err, ERR_POLICY, EINVAL, "policy", "%s", error.what);
	err_hint(err, "%s", error.hint);
	return -EINVAL;
}

static int end_compile(atoll_policy *policy, struct err *err)
{
	struct atoll_error error = { .size = sizeof error };

	if (atoll_policy_finish(policy, &error) == 0)
		return 0;
	err_set(err, ERR_POLICY, EINVAL, "policy", "%s", error.what);
	err_hint(err, "%s", error.hint);
	return -EINVAL;
}

/* Takes policy. */
static int add_policy(struct policies *policies, const char *name, const struct hash *hash, atoll_policy *policy)
{
	struct policy_entry *entry = calloc(1, sizeof *entry);
	char hex[HASH_HEX_SIZE];

	if (entry)
		entry->name = str_dup(name);
	if (!entry || !entry->name) {
		free(entry);
		atoll_policy_free(policy);
		return -ENOMEM;
	}
	hash_to_hex(hash, hex);
	memcpy(entry->id, hex, POLICY_ID_SIZE - 1);
	entry->hash = *hash;
	entry->policy = policy;
	if (policies->count == POLICIES_MAX)
		forget_last(policies);
	entry->next = policies->first;
	policies->first = entry;
	policies->count++;
	return 0;
}

/* ---- what is compiled beside the loop ---- */

struct waiter {
	struct waiter *next;
	policies_then *then;
	void *context;
};

struct policy_load {
	struct policy_load *next;
	char *name;                  /* owned: the key's policy */
	struct hash hash;
	struct buf text;             /* of its narrowing */
	atoll_policy *policy;        /* owned: it is being compiled; NULL: not yet */
	struct loop_source source;
	struct waiter *waiters;      /* owned */
	uint64_t until_ns;           /* so long it may take */
	struct err err;              /* why it failed */
};

static void free_load(struct policy_load *load)
{
	atoll_policy_free(load->policy);
	buf_done(&load->text);
	free(load->name);
	free(load);
}

static void wake_waiters(struct policy_load *load, bool is_lost)
{
	while (load->waiters) {
		struct waiter *waiter = load->waiters;

		load->waiters = waiter->next;
		waiter->then(waiter->context, is_lost);
		free(waiter);
	}
}

/* Whatever came of the first one; the narrowing stands there no longer. */
static int end_first(struct policies *policies)
{
	struct policy_load *load = policies->loads;
	int r;

	loop_remove(policies->loop, &load->source);
	r = end_compile(load->policy, &load->err);
	if (write_narrowing(policies, NULL, r < 0 ? NULL : &load->err) < 0)
		r = -EIO;
	if (r == 0 && add_policy(policies, load->name, &load->hash, take_ptr(load->policy)) < 0)
		r = err_set(&load->err, ERR_INTERNAL, ENOMEM, "policy", "out of memory");
	return r;
}

static void begin_first(struct policies *policies);

/* Those who are told may ask for others: these stand behind. */
static void drop_first(struct policies *policies, bool has_failed)
{
	struct policy_load *load = policies->loads;

	policies->loads = load->next;
	policies->failed = has_failed ? load : NULL;
	wake_waiters(load, false);
	policies->failed = NULL;
	free_load(load);
}

static int on_compiled(void *context, uint32_t events)
{
	struct policies *policies = context;

	drop_first(policies, end_first(policies) < 0);
	begin_first(policies);
	return 0;
}

/* A compiler that never ends keeps nobody waiting but those who came before. */
static void drop_stuck(struct policies *policies)
{
	struct policy_load *load = policies->loads;

	if (!load || !load->policy || clock_monotonic_ns() < load->until_ns)
		return;
	loop_remove(policies->loop, &load->source);
	err_set(&load->err, ERR_STATE, ETIMEDOUT, "policy", "the policy could not be compiled in time");
	drop_first(policies, true);
}

/* Those that cannot even begin have failed. */
static void begin_first(struct policies *policies)
{
	while (policies->loads && !policies->loads->policy) {
		struct policy_load *load = policies->loads;
		int r = write_narrowing(policies, &load->text, &load->err);

		if (r == 0)
			r = begin_compile(policies, load->name, &load->policy, &load->err);
		load->until_ns = clock_monotonic_ns() + PATIENCE_MS * UINT64_C(1000000);
		load->source = (struct loop_source){ .events = EPOLLIN, .ready = on_compiled, .context = policies,
						     .fd = r == 0 ? atoll_policy_fd(load->policy) : FD_NONE };
		if (r == 0 && loop_add(policies->loop, &load->source) == 0)
			return;
		drop_first(policies, true);
	}
}

static struct policy_load *new_load(const char *name, const struct hash *hash, const struct buf *text)
{
	struct policy_load *load = calloc(1, sizeof *load);

	if (!load)
		return NULL;
	load->source.fd = FD_NONE;
	load->hash = *hash;
	load->name = str_dup(name);
	buf_init(&load->text, TEXT_MAX);
	buf_put(&load->text, text->bytes, text->size);
	if (load->name && buf_error(&load->text) == 0)
		return load;
	free_load(load);
	return NULL;
}

static int read_words(const char *name, const struct service_message *network, struct buf *text,
		      struct hash *ret_hash, struct err *err)
{
	int r = network ? narrowing_write(text, network, err) : 0;

	hash_pieces(ret_hash, (const struct hash_piece[]){ { name, strlen(name) + 1 }, { text->bytes, text->size } },
		    2);
	return r;
}

bool policies_has(struct policies *policies, const char *name, const struct service_message *network)
{
	cleanup_buf struct buf text;
	struct err err = { 0 };
	struct hash hash;

	buf_init(&text, TEXT_MAX);
	return read_words(name, network, &text, &hash, &err) < 0 || find_kept(policies, &hash);
}

int policies_by_id(const struct policies *policies, const char *id, struct policy_found *ret_found)
{
	for (const struct policy_entry *entry = policies->first; entry; entry = entry->next)
		if (str_equal(entry->id, id)) {
			*ret_found = (struct policy_found){ entry->policy, policies->project, entry->id };
			return 0;
		}
	return -ENOENT;
}

int policies_load(struct policies *policies, const char *name, const struct service_message *network,
		  policies_then *then, void *context)
{
	struct policy_load **at = &policies->loads;
	struct waiter *waiter;
	cleanup_buf struct buf text;
	struct err err = { 0 };
	struct hash hash;
	int r;

	buf_init(&text, TEXT_MAX);
	r = read_words(name, network, &text, &hash, &err);
	if (r < 0)
		return r;
	drop_stuck(policies);
	waiter = calloc(1, sizeof *waiter);
	while (*at && memcmp((*at)->hash.bytes, hash.bytes, HASH_SIZE) != 0)
		at = &(*at)->next;
	if (waiter && !*at)
		*at = new_load(name, &hash, &text);
	if (!waiter || !*at) {
		free(waiter);
		return -ENOMEM;
	}
	*waiter = (struct waiter){ (*at)->waiters, then, context };
	(*at)->waiters = waiter;
	begin_first(policies);
	return 0;
}

void policies_done(struct policies *policies)
{
	while (policies->loads) {
		struct policy_load *load = policies->loads;

		policies->loads = load->next;
		loop_remove(policies->loop, &load->source);
		wake_waiters(load, true);
		free_load(load);
	}
	policies_forget(policies);
}

/* ---- at once ---- */

/* What is being compiled has the project's file: its end is waited for, and told in the loop's next turn. */
static int compile(struct policies *policies, const char *name, const struct buf *text, atoll_policy **ret,
		   struct err *err)
{
	struct policy_load *first = policies->loads;
	int r;

	if (first && first->policy) {
		struct pollfd waited = { .fd = atoll_policy_fd(first->policy), .events = POLLIN };

		(void)!poll(&waited, 1, PATIENCE_MS);
	}
	r = write_narrowing(policies, text, err);
	if (r == 0)
		r = begin_compile(policies, name, ret, err);
	if (r == 0)
		r = end_compile(*ret, err);
	if (write_narrowing(policies, NULL, r < 0 ? NULL : err) < 0 && r == 0)
		r = -EIO;
	return r;
}

int policies_find(struct policies *policies, const char *name, const struct service_message *network,
		  struct policy_found *ret_found, struct err *err)
{
	struct policy_entry *entry;
	atoll_policy *policy = NULL;
	cleanup_buf struct buf text;
	struct hash hash;
	int r;

	buf_init(&text, TEXT_MAX);
	r = read_words(name, network, &text, &hash, err);
	if (r < 0)
		return r;
	entry = find_kept(policies, &hash);
	if (!entry && policies->failed && memcmp(policies->failed->hash.bytes, hash.bytes, HASH_SIZE) == 0) {
		*err = policies->failed->err;
		return network ? -EINVAL : -EIO;
	}
	if (!entry) {
		r = compile(policies, name, &text, &policy, err);
		if (r == 0)
			r = add_policy(policies, name, &hash, take_ptr(policy));
		atoll_policy_free(policy);
		if (r == -ENOMEM)
			return err_set(err, ERR_INTERNAL, ENOMEM, "policy", "out of memory");
		if (r < 0)
			return r == -EINVAL && !network ? -EIO : r;
		entry = policies->first;
	}
	*ret_found = (struct policy_found){ entry->policy, policies->project, entry->id };
	return 0;
}
