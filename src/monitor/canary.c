/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/canary.h"

#include <string.h>

#include "base/str.h"

enum { NAME_MAX_SIZE = 256, TOKEN_MIN = 16 };

static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcd";
static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex[] = "0123456789abcdef";

/* ---- what it looks like ---- */

struct source {
	const uint8_t *random;
	size_t at;
};

/* count characters of an alphabet of 16, 32 or 64 (power of two); out has room for the NUL. */
static void draw(struct source *source, const char *alphabet, unsigned mask, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = alphabet[source->random[source->at++ % CANARY_RANDOM] & mask];
	out[count] = 0;
}

static int write_aws(struct canary *canary, struct source *source)
{
	char id[17];

	draw(source, upper, 31, 16, id);
	draw(source, base64, 63, 40, canary->token);
	return str_format(canary->text, sizeof canary->text,
			  "[default]\naws_access_key_id = AKIA%s\naws_secret_access_key = %s\nregion = us-east-1\n", id,
			  canary->token);
}

static int write_env(struct canary *canary, struct source *source)
{
	char password[25];

	draw(source, letters, 63, 24, password);
	draw(source, letters, 63, 48, canary->token);
	return str_format(canary->text, sizeof canary->text,
			  "NODE_ENV=production\nDATABASE_URL=postgres://app:%s@10.20.0.14:5432/app\nAPI_KEY=sk-%s\n",
			  password, canary->token);
}

/* The first line is what every such key begins with; the second one is the token. */
static int write_key(struct canary *canary, struct source *source)
{
	char third[71], last[25];

	draw(source, base64, 63, 70, canary->token);
	draw(source, base64, 63, 70, third);
	draw(source, base64, 63, 24, last);
	return str_format(canary->text, sizeof canary->text,
			  "-----BEGIN OPENSSH PRIVATE KEY-----\n"
			  "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
			  "%s\n%s\nQyNTUxOQAAACB%s=\n-----END OPENSSH PRIVATE KEY-----\n", canary->token, third, last);
}

static int write_netrc(struct canary *canary, struct source *source)
{
	draw(source, letters, 63, 36, canary->token);
	return str_format(canary->text, sizeof canary->text, "machine github.com\n\tlogin deploy\n\tpassword ghp_%s\n",
			  canary->token);
}

static int write_git(struct canary *canary, struct source *source)
{
	draw(source, letters, 63, 36, canary->token);
	return str_format(canary->text, sizeof canary->text, "https://deploy:ghp_%s@github.com\n", canary->token);
}

static int write_npm(struct canary *canary, struct source *source)
{
	draw(source, letters, 63, 36, canary->token);
	return str_format(canary->text, sizeof canary->text, "always-auth=true\n_authToken=npm_%s\n", canary->token);
}

static int write_other(struct canary *canary, struct source *source)
{
	draw(source, hex, 15, 40, canary->token);
	return str_format(canary->text, sizeof canary->text, "user = deploy\ntoken = %s\n", canary->token);
}

static const struct {
	const char *ending;
	int (*write)(struct canary *canary, struct source *source);
} forms[] = {
	{ "/.aws/credentials", write_aws }, { "/.env", write_env },	{ "/.env.local", write_env },
	{ "/.env.production", write_env },  { "/id_rsa", write_key },	{ "/id_ed25519", write_key },
	{ "/id_ecdsa", write_key },	    { ".pem", write_key },	{ ".key", write_key },
	{ "/.netrc", write_netrc },	    { "/.npmrc", write_npm },	{ "/.git-credentials", write_git },
	{ "/.pypirc", write_other },	    { "", write_other },
};

/* ---- how it may be spelled ---- */

static void spell_hex(const char *token, char *out)
{
	for (; *token; token++) {
		*out++ = hex[(unsigned char)*token >> 4];
		*out++ = hex[*token & 15];
	}
	*out = 0;
}

/* What of base64 is the same whatever stands before (offset bytes of a group) and behind the token. */
static void spell_base64(const char *token, unsigned offset, char *out)
{
	size_t skipped = offset ? 3 - offset : 0;

	for (const char *at = token + skipped; at[0] && at[1] && at[2]; at += 3) {
		uint32_t group = (uint32_t)(unsigned char)at[0] << 16 | (uint32_t)(unsigned char)at[1] << 8 |
				 (unsigned char)at[2];

		for (int i = 3; i >= 0; i--)
			*out++ = base64[group >> 6 * i & 63];
	}
	*out = 0;
}

int canary_make(struct canary *canary, const char *path, const uint8_t random[CANARY_RANDOM])
{
	struct source source = { random, 0 };
	size_t form = 0;
	int r;

	while (!str_has_suffix(path, forms[form].ending))
		form++;
	r = forms[form].write(canary, &source);
	if (r < 0)
		return r;
	canary->text_size = strlen(canary->text);
	memcpy(canary->spellings[0], canary->token, sizeof canary->token);
	spell_hex(canary->token, canary->spellings[1]);
	for (unsigned offset = 0; offset < 3; offset++)
		spell_base64(canary->token, offset, canary->spellings[2 + offset]);
	return 0;
}

static const char *const spelling_names[CANARY_SPELLINGS] = { "plain", "hex", "base64", "base64", "base64" };

const char *canary_find(const struct canary *canary, const char *text)
{
	for (size_t i = 0; i < CANARY_SPELLINGS; i++)
		if (strstr(text, canary->spellings[i]) || (i == 1 && strcasestr(text, canary->spellings[i])))
			return spelling_names[i];
	return NULL;
}

/* Letters and digits alone, in small letters: what a name can carry of a token. */
static size_t fold(const char *text, char *out, size_t size)
{
	size_t count = 0;

	for (; *text && count + 1 < size; text++) {
		char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[count++] = c;
	}
	out[count] = 0;
	return count;
}

const char *canary_find_in_name(const struct canary *canary, const char *name)
{
	char folded[NAME_MAX_SIZE], wanted[CANARY_SPELLING_MAX];

	if (fold(name, folded, sizeof folded) < TOKEN_MIN)
		return NULL;
	for (size_t i = 0; i < CANARY_SPELLINGS; i++)
		if (fold(canary->spellings[i], wanted, sizeof wanted) >= TOKEN_MIN && strstr(folded, wanted))
			return spelling_names[i];
	return NULL;
}
