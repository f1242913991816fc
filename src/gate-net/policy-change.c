/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/policy-change.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/writer.h"
#include "base/str.h"
#include "gate-net/gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/compare/network.h"
#include "policy/compare/parts.h"
#include "policy/decide.h"
#include "session/record.h"
#include "session/store.h"
#include "supervise/run.h"

enum { PATIENCE_MS = 5000, MS_NS = 1000000, SHOWN_MAX = 32,
       SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

void policy_change_done(struct policy_change *change)
{
	for (size_t i = 0; i < change->count; i++) {
		snapshot_free(change->held[i].snapshot);
		free(change->held[i].bytes);
	}
}

/* ---- what was handed in ---- */

static int read_snapshot(int fd, struct policy_change_snapshot *ret_policy)
{
	struct policy_change_snapshot policy = { 0 };
	struct stat st;
	int r;

	/* The client could not change it any more; a private copy makes that our own certainty. */
	if (fcntl(fd, F_GET_SEALS) != SEALS || fstat(fd, &st) < 0)
		return -EPERM;
	if (st.st_size <= 0 || st.st_size > SNAPSHOT_SIZE_MAX)
		return -EFBIG;
	policy.size = (size_t)st.st_size;
	policy.bytes = malloc(policy.size);
	if (!policy.bytes)
		return -ENOMEM;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_full(fd, policy.bytes, policy.size);
	if (r >= 0)
		r = snapshot_load(&policy.snapshot, policy.bytes, policy.size);
	if (r < 0) {
		free(policy.bytes);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

static int refuse(struct err *err, int errnum, const char *why, const char *hint)
{
	err_set(err, ERR_POLICY, errnum, "policy", "%s; the policy in force stays", why);
	err_hint(err, "%s", hint);
	return -errnum;
}

static int refuse_parts(uint32_t parts, struct err *err)
{
	char memory[300];
	struct buf list;

	buf_init_fixed(&list, memory, sizeof memory);
	for (unsigned part = 0; part < POLICY_PART_COUNT; part++)
		if (parts >> part & 1)
			buf_printf(&list, "%s%s", list.size ? ", " : "", policy_part_names[part]);
	err_set(err, ERR_POLICY, EOPNOTSUPP, "policy",
		"only the network can change while a sandbox runs, and this policy also differs in: %s; the policy "
		"in force stays", buf_text(&list));
	err_hint(err, "copy the other sections from the present policy, or start a new run (`atoll fork` keeps the "
		      "staged changes)");
	return -EOPNOTSUPP;
}

static int check_network(struct net_gate *gate, const struct policy *next, struct err *err)
{
	const struct policy *started = gate->run->policy->policy;

	if (!gate->is_used && started->network.mode == NETWORK_HOST)
		return refuse(err, EOPNOTSUPP, "this sandbox shares the network of the machine",
			      "start a new run with a policy that lists hosts");
	if (!gate->is_used)
		return refuse(err, EOPNOTSUPP, "this sandbox was started without any network",
			      "start a new run with this policy; `atoll fork` keeps what is staged");
	if (gate->failure[0])
		return refuse(err, ENETDOWN, "the network gate of this sandbox is gone",
			      "start a new run; `atoll fork` keeps what is staged");
	if (next->network.mode == NETWORK_HOST)
		return refuse(err, EOPNOTSUPP, "a sandbox cannot get the network of the machine later",
			      "start a new run with this policy");
	if (policy_intercepts_any(next) && !policy_intercepts_any(started))
		return refuse(err, EOPNOTSUPP,
			      "http rules need a certificate inside, and this sandbox was started without one",
			      "start a new run with this policy; `atoll fork` keeps what is staged");
	return 0;
}

static int check_next(struct net_gate *gate, const struct policy *next, struct err *err)
{
	uint32_t parts = policy_compare_parts(gate->run->policy->policy, next);

	if (next->unenforced_count) {
		err_set(err, ERR_POLICY, EOPNOTSUPP, "policy", "%s cannot be enforced; the policy in force stays",
			next->unenforced[0].what);
		err_hint(err, "`atoll policy check` lists what cannot be enforced");
		return -EOPNOTSUPP;
	}
	return parts ? refuse_parts(parts, err) : check_network(gate, next, err);
}

/* ---- the record ---- */

struct change_context {
	const struct net_gate *gate;
	const struct policy *from, *to;
	struct hash from_hash, to_hash;
	uint32_t ended;
};

struct pass {
	struct json *json;
	bool allows;
	size_t shown, left_out;
};

static void put_difference(void *context, const struct net_difference *difference)
{
	struct pass *pass = context;

	if (difference->allows != pass->allows)
		return;
	if (pass->shown == SHOWN_MAX) {
		pass->left_out++;
		return;
	}
	pass->shown++;
	json_object_begin(pass->json, NULL);
	json_string(pass->json, "dimension", difference->dimension);
	json_bytes(pass->json, "subject", difference->subject, strlen(difference->subject));
	json_string(pass->json, "from", difference->from);
	json_string(pass->json, "to", difference->to);
	json_object_end(pass->json);
}

static void put_differences(struct json *json, const struct change_context *change, bool allows)
{
	struct pass pass = { .json = json, .allows = allows };

	json_array_begin(json, allows ? "allows" : "denies");
	policy_compare_network(change->from, change->to, put_difference, &pass);
	json_array_end(json);
	if (pass.left_out)
		json_u64(json, allows ? "allows_left_out" : "denies_left_out", pass.left_out);
}

static void write_change(struct json *json, const void *context)
{
	const struct change_context *change = context;

	json_hash(json, "from_hash", &change->from_hash);
	json_hash(json, "policy_hash", &change->to_hash);
	json_u64(json, "uid", change->gate->change.asker.uid);
	json_u64(json, "asked_by", (uint64_t)change->gate->change.asker.pid);
	json_u64(json, "ended", change->ended);
	put_differences(json, change, true);
	put_differences(json, change, false);
}

static int record_change(struct net_gate *gate, const struct policy_change_snapshot *next, uint32_t ended)
{
	struct change_context context = { .gate = gate, .from = gate->run->network_policy,
					  .to = snapshot_policy(next->snapshot), .ended = ended };
	struct audit_event event = {
		.type = AUDIT_POLICY_CHANGE, .subject = context.to->name, .subject_size = strlen(context.to->name),
		.write_detail = write_change, .context = &context,
	};
	int r;

	context.from_hash = gate->change.made ? gate->change.hash : gate->run->policy_hash;
	snapshot_hash(next->snapshot, &context.to_hash);
	r = audit_write(gate->run->audit, &event);
	gate->change.hash = context.to_hash;
	return r;
}

/* For ps, and for what is forked from this session later. */
static int store_policy(struct net_gate *gate, const struct policy_change_snapshot *next)
{
	struct session_record *record = &gate->store->record;
	char *name = str_dup(snapshot_policy(next->snapshot)->name);
	int r = name ? fd_replace_file_at(gate->store->dir_fd, "policy.bin", next->bytes, next->size, 0600) : -ENOMEM;

	if (r < 0) {
		free(name);
		return r;
	}
	free(record->policy);
	record->policy = name;
	return session_store(gate->store->dir_fd, record);
}

/* ---- from one to the other ---- */

static void answer_asker(struct net_gate *gate, const struct err *err, uint32_t ended)
{
	struct policy_change_asker asker = gate->change.asker;

	gate->change.asker.client = NULL;
	if (asker.client)
		asker.done(asker.client, err, ended);
}

/* The record comes first: what is newly allowed is granted from here on. */
static int commit(struct net_gate *gate, uint32_t ended)
{
	struct policy_change *change = &gate->change;
	struct policy_change_snapshot *next = &change->held[change->count - 1];
	struct err err = { 0 };
	int r = record_change(gate, next, ended);

	change->is_pending = false;
	gate->next_policy = NULL;
	if (r < 0)
		return r;
	gate->run->network_policy = snapshot_policy(next->snapshot);
	change->bytes = next->bytes;
	change->size = next->size;
	change->made++;
	r = store_policy(gate, next);
	if (r < 0)
		err_set(&err, ERR_STATE, -r, "policy", "the policy is in force, but could not be kept for forks: %s",
			err_errno_name(-r));
	answer_asker(gate, r < 0 ? &err : NULL, ended);
	return 0;
}

int policy_change_conclude(struct net_gate *gate, int errnum, uint32_t ended)
{
	struct err err;

	if (!gate->change.is_pending)
		return -EBADMSG;
	if (!errnum)
		return commit(gate, ended);
	gate->change.is_pending = false;
	gate->next_policy = NULL;
	err_set(&err, ERR_STATE, errnum, "policy",
		"the network gate did not take the policy (%s); the old one is in force", err_errno_name(errnum));
	answer_asker(gate, &err, 0);
	return 0;
}

int policy_change_begin(struct net_gate *gate, int snapshot_fd, const struct policy_change_asker *asker,
			struct err *err)
{
	struct policy_change *change = &gate->change;
	struct policy_change_snapshot next;
	int r;

	if (change->is_pending)
		return refuse(err, EBUSY, "another change is under way", "try again");
	if (change->count == CHANGES_MAX)
		return refuse(err, ENOBUFS, "the policy was changed too often", "start a new run");
	r = read_snapshot(snapshot_fd, &next);
	if (r < 0)
		return refuse(err, -r, "what was received is not a compiled policy", "check whether atoll and the "
										     "sandbox have the same version");
	r = check_next(gate, snapshot_policy(next.snapshot), err);
	if (r < 0) {
		snapshot_free(next.snapshot);
		free(next.bytes);
		return r;
	}
	change->held[change->count++] = next;
	change->asker = *asker;
	change->is_pending = true;
	change->is_told = false;
	change->until_ns = clock_monotonic_ns() + PATIENCE_MS * (uint64_t)MS_NS;
	gate->next_policy = snapshot_policy(next.snapshot);
	return 0;
}

void policy_change_forget_asker(struct net_gate *gate, const void *client)
{
	if (gate->change.asker.client == client)
		gate->change.asker.client = NULL;
}
