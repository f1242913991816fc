/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/secrets.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "wire/gate.h"
#include "wire/secret.h"

enum {
	SLOT_SIZE = INJECT_SECRET_MAX + SECRET_PLACEHOLDER_MAX + 1024,
	/* What stands for a password is random, but when it is shorter others may have it by chance. */
	PLACEHOLDER_PART_MIN = 16,
	/* Of a secret of so many bytes three quarters are too many to be guessed. */
	LONG_MIN = 16,
	/* Nobody guesses so many at once; behind what it has in common with its placeholder, which everybody knows. */
	HEAD_MIN = 12,
	HEAD_UNKNOWN = 8,
};

static int fail(struct err *err, int errnum, const char *name, const char *problem)
{
	err_set(err, ERR_STATE, errnum, "secret", "the secret %s cannot be used: %s", name, problem);
	err_hint(err, "`atoll secret set %s` replaces it", name);
	return -errnum;
}

/*
 * The frame is read where it stays. Behind the value comes the tag of the next field, which has been read: it becomes
 * the value's end.
 */
static int receive_frame(struct gate_secrets *secrets, void *slot, size_t size)
{
	struct secret_value value;
	struct frame frame;
	int r = frame_open(&frame, slot, size);

	if (r == 0 && frame.type != SECRET_VALUE)
		return -ENODATA;
	if (r == 0)
		r = secret_get_value(&frame, &value);
	if (r < 0)
		return r;
	((char *)(uintptr_t)value.value)[value.size] = 0;
	secrets->items[secrets->count++] = (struct gate_secret){ value.name, value.value, value.placeholder,
								 value.size };
	return 0;
}

static int make_room(struct gate_secrets *secrets, size_t wanted)
{
	secrets->memory_size = wanted * SLOT_SIZE;
	secrets->memory = mmap(NULL, secrets->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secrets->memory == MAP_FAILED) {
		secrets->memory = NULL;
		return -ENOMEM;
	}
	(void)!mlock(secrets->memory, secrets->memory_size);
	return madvise(secrets->memory, secrets->memory_size, MADV_DONTDUMP) < 0 ? -errno : 0;
}

static int take_all(struct gate_secrets *secrets, int fd, size_t wanted)
{
	while (secrets->count < wanted) {
		char *slot = (char *)secrets->memory + secrets->count * SLOT_SIZE;
		ssize_t size = recv(fd, slot, SLOT_SIZE, MSG_DONTWAIT | MSG_TRUNC);
		int r = size < 0 ? -errno : size > SLOT_SIZE ? -EMSGSIZE : receive_frame(secrets, slot, (size_t)size);

		if (r < 0)
			return r;
	}
	return 0;
}

int gate_secrets_find(const struct gate_secrets *secrets, const char *name)
{
	for (size_t i = 0; i < secrets->count; i++)
		if (str_equal(secrets->items[i].name, name))
			return (int)i;
	return -1;
}

/* aws: those that sign, which come last: what others put in is signed with the rest. */
static int join_some(struct gate_secrets *secrets, const struct policy *policy, bool aws, struct err *err)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];
		struct injection injection = { .rule = rule };
		const char *problem;
		int number;

		if (rule->inject.kind == INJECT_NONE || (rule->inject.kind == INJECT_AWS) != aws)
			continue;
		number = gate_secrets_find(secrets, rule->inject.secret);
		if (number < 0)
			return fail(err, ENOENT, rule->inject.secret, "it was not given");
		injection.secret = secrets->items[number].value;
		problem = inject_problem(&injection);
		if (problem)
			return fail(err, EINVAL, rule->inject.secret, problem);
		secrets->injections[secrets->injection_count++] = injection;
	}
	return 0;
}

static int join(struct gate_secrets *secrets, const struct policy *policy, struct err *err)
{
	int r;

	secrets->injections = calloc(policy->network.count + 1, sizeof *secrets->injections);
	if (!secrets->injections)
		return err_set(err, ERR_INTERNAL, ENOMEM, "secret", "out of memory");
	r = join_some(secrets, policy, false, err);
	return r < 0 ? r : join_some(secrets, policy, true, err);
}

/* How long a beginning of it may not come in by itself (scan_open()). */
static size_t head_size(const char *placeholder, const char *text, size_t size)
{
	size_t most = size - size / 4, known = 0, head;

	while (placeholder && known < most && memmem(placeholder, strlen(placeholder), text, known + 1))
		known++;
	head = known + HEAD_UNKNOWN > HEAD_MIN ? known + HEAD_UNKNOWN : HEAD_MIN;
	head = head < most ? head : most;
	return head > SCAN_WORD_MIN ? head : SCAN_WORD_MIN;
}

/* A secret, or one of its parts that is used by itself; its head; most of it, if the placeholder does not begin so. */
static int add_secret(const struct gate_secrets *secrets, unsigned number, const char *text, size_t size)
{
	const char *placeholder = secrets->items[number].placeholder;
	size_t most = size - size / 4;
	int r = scanner_add(secrets->scanner, SECRET_WORD(number), text, size);

	if (r == 0)
		r = scanner_add_head(secrets->scanner, SECRET_WORD(number), text, size,
				     head_size(placeholder, text, size));
	if (r < 0 || size < LONG_MIN || (placeholder && memmem(placeholder, strlen(placeholder), text, most)))
		return r;
	return scanner_add_part(secrets->scanner, SECRET_WORD(number), text, most);
}

/* The key and the token of "id:key:token", the password of "user:password": programs use them one by one. */
static int add_parts(const struct gate_secrets *secrets, unsigned number, bool is_password)
{
	const char *text = secrets->items[number].value;
	int r = 0;

	text += strcspn(text, ":");
	while (r >= 0 && *text++) {
		/* A password may have colons in it. */
		size_t size = is_password ? strlen(text) : strcspn(text, ":");

		r = add_secret(secrets, number, text, size);
		text += size;
	}
	return r;
}

static int add_placeholder_parts(struct scanner *scanner, unsigned word, const char *text)
{
	int r = 0;

	while (r >= 0 && *text) {
		size_t size = strcspn(text, ":");

		if (size >= PLACEHOLDER_PART_MIN)
			r = scanner_add(scanner, word, text, size);
		text += size + (text[size] == ':');
	}
	return r;
}

/* Whether it is put in so: of a name and a password, and of the two keys of AWS, the first one is no secret. */
static bool is_used_as(const struct policy *policy, const char *name, enum inject_kind kind)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct inject *inject = &policy->network.rules[i].inject;

		if (inject->kind == kind && str_equal(inject->secret, name))
			return true;
	}
	return false;
}

/* One secret. */
static int watch_one(struct gate_secrets *secrets, const struct policy *policy, unsigned number)
{
	const struct gate_secret *secret = &secrets->items[number];
	bool is_password = !secret->is_canary && is_used_as(policy, secret->name, INJECT_BASIC);
	bool has_keys = !secret->is_canary && is_used_as(policy, secret->name, INJECT_AWS);
	struct scanner *scanner = secrets->scanner;
	int r;

	if (secret->size > SCAN_WORD_MAX)
		secrets->long_words |= 1u << SECRET_WORD(number);
	if (is_password || has_keys)
		r = scanner_add(scanner, SECRET_WORD(number), secret->value, secret->size);
	else
		r = add_secret(secrets, number, secret->value, secret->size);
	if (r >= 0 && is_password)
		r = add_parts(secrets, number, true);
	if (r >= 0 && has_keys)
		r = add_parts(secrets, number, false);
	if (r >= 0 && !secret->is_canary)
		r = scanner_add(scanner, PLACEHOLDER_WORD(number), secret->placeholder, strlen(secret->placeholder));
	if (r >= 0 && (is_password || has_keys))
		r = add_placeholder_parts(scanner, PLACEHOLDER_WORD(number), secret->placeholder);
	return r;
}

static int watch(struct gate_secrets *secrets, const struct policy *policy)
{
	int r = scanner_new(&secrets->scanner);

	for (unsigned i = 0; r >= 0 && i < secrets->count; i++)
		r = watch_one(secrets, policy, i);
	return r < 0 ? r : scanner_finish(secrets->scanner);
}

/* From both sockets; what was planted stands behind the secrets. */
static int take_both(struct gate_secrets *secrets, size_t wanted, size_t planted)
{
	int r = make_room(secrets, wanted + planted);

	if (r == 0 && wanted) {
		r = take_all(secrets, GATE_SECRETS_FD, wanted);
		close(GATE_SECRETS_FD);
	}
	if (r == 0 && planted) {
		r = take_all(secrets, GATE_CANARIES_FD, wanted + planted);
		close(GATE_CANARIES_FD);
	}
	for (size_t i = wanted; i < secrets->count; i++)
		secrets->items[i].is_canary = true;
	return r;
}

int gate_secrets_load(struct gate_secrets *ret_secrets, const struct policy *policy, struct err *err)
{
	struct gate_secrets *secrets = ret_secrets;
	const char *names[POLICY_SECRETS_MAX];
	size_t wanted = policy_secrets(policy, names), planted = strv_count(policy->data.canary_files);
	int r;

	*secrets = (struct gate_secrets){ .count = 0 };
	if (!wanted && !planted)
		return 0;
	r = take_both(secrets, wanted, planted);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "secret", "the secrets were not received: %s",
			       err_errno_name(-r));
	r = join(secrets, policy, err);
	if (r < 0)
		return r;
	r = watch(secrets, policy);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "secret", "secrets cannot be looked for: %s", err_errno_name(-r))
		     : 0;
}

void gate_secrets_done(struct gate_secrets *secrets)
{
	scanner_free(secrets->scanner);
	free(secrets->injections);
	owner_headers_done(&secrets->headers);
	if (secrets->memory) {
		explicit_bzero(secrets->memory, secrets->memory_size);
		munmap(secrets->memory, secrets->memory_size);
	}
	*secrets = (struct gate_secrets){ .count = 0 };
}
