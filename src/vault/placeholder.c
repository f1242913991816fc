/* SPDX-License-Identifier: Apache-2.0 */
#include "vault/placeholder.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* What anybody knows who knows whose key it is; a longer one before those that it begins with. */
static const char *const prefixes[] = {
	"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk_live_", "sk_test_", "sk-", "rk_live_",
	"pk-", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "xapp-", "xai-",
	"AKIA", "ASIA", "AIza", "ya29.", "hf_", "npm_", "pypi-", "dop_v1_", "gsk_", "r8_", "SG.",
};

/* What a seed gives, used up one by one. */
struct draws {
	uint64_t numbers[PLACEHOLDER_MAX + PLACEHOLDER_RANDOM_MIN];
	size_t used;
};

/* Everything from which the random characters come, at most all letters and digits. */
struct alphabet {
	char letters[sizeof LOWER UPPER DIGITS];
	size_t count;
};

static size_t prefix_size(const char *value, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (size > length && memcmp(value, prefixes[i], length) == 0)
			return length;
	}
	return 0;
}

/* 0 is no member of any class. */
static bool is_of(const char *class, char c)
{
	return c && strchr(class, c);
}

static bool has_only(const char *class, const char *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (is_of(LOWER UPPER DIGITS, value[i]) && !is_of(class, value[i]))
			return false;
	return true;
}

static bool has_any(const char *class, const char *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (is_of(class, value[i]))
			return true;
	return false;
}

static void add(struct alphabet *alphabet, const char *class)
{
	size_t size = strlen(class);

	memcpy(alphabet->letters + alphabet->count, class, size);
	alphabet->count += size;
}

/* The classes that occur; the smaller ones of hexadecimal numbers where the value is one. */
static struct alphabet alphabet_of(const char *value, size_t size)
{
	static const char *const classes[] = { LOWER, UPPER, DIGITS };
	static const char *const numbers[] = { DIGITS, DIGITS "abcdef", DIGITS "ABCDEF" };
	struct alphabet alphabet = { .count = 0 };

	for (size_t i = 0; size >= PLACEHOLDER_RANDOM_MIN && i < ARRAY_SIZE(numbers); i++)
		if (has_only(numbers[i], value, size) && has_any(DIGITS, value, size)) {
			add(&alphabet, numbers[i]);
			return alphabet;
		}
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (has_any(classes[i], value, size))
			add(&alphabet, classes[i]);
	if (!alphabet.count)
		add(&alphabet, LOWER);
	return alphabet;
}

/* 64 bits for each character: that some letters come 2^-58 more often is nothing. */
static char pick(const struct alphabet *alphabet, struct draws *draws)
{
	return alphabet->letters[draws->numbers[draws->used++] % alphabet->count];
}

/* What structures a key, and what fills base64 up at its end, stays where it is. */
static bool stays(const char *value, size_t size, size_t at)
{
	if (is_of("-_.:", value[at]))
		return true;
	while (at < size && value[at] == '=')
		at++;
	return at == size;
}

static void make(const char *value, size_t size, struct draws *draws, char out[PLACEHOLDER_MAX + 1])
{
	size_t prefix = prefix_size(value, size), random_count = 0, at = prefix;
	struct alphabet alphabet = alphabet_of(value + prefix, size - prefix);

	memcpy(out, value, prefix);
	for (; at < size && at < PLACEHOLDER_MAX; at++) {
		bool is_kept = stays(value, size, at);

		out[at] = is_kept ? value[at] : pick(&alphabet, draws);
		random_count += !is_kept;
	}
	/* Where separators fill all that there is room for, the last of them give way. */
	while (random_count < PLACEHOLDER_RANDOM_MIN) {
		if (at == PLACEHOLDER_MAX)
			at -= PLACEHOLDER_RANDOM_MIN;
		out[at++] = pick(&alphabet, draws);
		random_count++;
	}
	out[at] = 0;
}

/* A seed of its own for each secret, project and try; each part ends with a NUL, so that no two say the same. */
static void make_seed(const struct placeholder_of *of, uint8_t round, uint8_t seed[randombytes_SEEDBYTES])
{
	static const char use[] = "atoll placeholder 1";
	crypto_generichash_state state;

	_Static_assert(randombytes_SEEDBYTES >= crypto_generichash_BYTES_MIN, "a hash is a seed");
	crypto_generichash_init(&state, of->key, PLACEHOLDER_KEY_SIZE, randombytes_SEEDBYTES);
	crypto_generichash_update(&state, (const unsigned char *)use, sizeof use);
	crypto_generichash_update(&state, (const unsigned char *)of->project, strlen(of->project) + 1);
	crypto_generichash_update(&state, (const unsigned char *)of->name, strlen(of->name) + 1);
	crypto_generichash_update(&state, &round, 1);
	crypto_generichash_final(&state, seed, randombytes_SEEDBYTES);
	sodium_memzero(&state, sizeof state);
}

void placeholder_make(const struct placeholder_of *of, const uint8_t *value, size_t size,
		      char out[PLACEHOLDER_MAX + 1])
{
	unsigned char seed[randombytes_SEEDBYTES], round = 0;
	struct draws draws;

	do {
		make_seed(of, round++, seed);
		draws.used = 0;
		randombytes_buf_deterministic(draws.numbers, sizeof draws.numbers, seed);
		make((const char *)value, size, &draws, out);
	} while (strlen(out) == size && memcmp(out, value, size) == 0);
	sodium_memzero(seed, sizeof seed);
	sodium_memzero(&draws, sizeof draws);
}
