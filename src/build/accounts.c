/* SPDX-License-Identifier: Apache-2.0 */
#include "build/accounts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

enum { FIELDS_MAX = 7, SYSTEM_END = 1000, NOBODY = 65534, TEXT_MAX = 1 << 20 };

const char accounts_agent[] = "agent";

static const char *name_of(const struct accounts_user *user)
{
	return user->name ? user->name : accounts_agent;
}

struct line {
	const char *fields[FIELDS_MAX];
	int sizes[FIELDS_MAX];
	size_t count;
	unsigned id;
};

/* Splits the line at *at, and goes on to the next. False: there is none. */
static bool next_line(const char **at, struct line *line)
{
	const char *field = *at, *end = field + strcspn(field, "\n");

	if (!*field)
		return false;
	*line = (struct line){ .id = UINT32_MAX };
	while (line->count < FIELDS_MAX) {
		size_t size = strcspn(field, ":\n");

		line->fields[line->count] = field;
		line->sizes[line->count++] = (int)size;
		if (field[size] != ':')
			break;
		field += size + 1;
	}
	/* What is not a number is nobody's; "+" and "-" lines of NIS have none. */
	if (line->count > 2 && line->sizes[2] && *line->fields[2] >= '0' && *line->fields[2] <= '9')
		line->id = (unsigned)strtoul(line->fields[2], NULL, 10);
	*at = *end ? end + 1 : end;
	return true;
}

bool accounts_have(const char *text, unsigned id)
{
	struct line line;

	while (next_line(&text, &line))
		if (line.id == id)
			return true;
	return false;
}

static bool is_kept(const struct line *line, unsigned own, const char *name)
{
	return (line->id < SYSTEM_END || line->id == NOBODY) && line->id != own &&
	       !(line->sizes[0] == (int)strlen(name) && memcmp(line->fields[0], name, strlen(name)) == 0);
}

static char *finish(struct buf *out)
{
	(void)!buf_text(out);
	if (buf_error(out) < 0)
		buf_done(out);
	return (char *)out->bytes;
}

static void put_host(struct buf *out, const char *host)
{
	size_t size = strlen(host);

	buf_put(out, host, size);
	if (size && host[size - 1] != '\n')
		buf_put_char(out, '\n');
}

static void put_user(struct buf *out, const struct accounts_user *user)
{
	buf_printf(out, "%s:x:%u:%u:atoll sandbox:%s:/bin/bash\n", name_of(user), (unsigned)user->uid,
		   (unsigned)user->gid, user->home);
}

static void put_group(struct buf *out, const struct accounts_user *user)
{
	buf_printf(out, "%s:x:%u:\n", name_of(user), (unsigned)user->gid);
}

/* "NAME:x:ID:", piece by piece: each start of root's makes some seventy of them, and printf would be most of that. */
static void put_account(struct buf *out, const struct line *line)
{
	buf_put(out, line->fields[0], (size_t)line->sizes[0]);
	buf_put(out, ":x:", 3);
	buf_put_u64_decimal(out, line->id);
	buf_put(out, ":", 1);
}

char *accounts_passwd(const char *host, const struct accounts_user *user)
{
	struct buf out;
	struct line line;

	buf_init(&out, TEXT_MAX);
	while (next_line(&host, &line))
		if (line.count == FIELDS_MAX && is_kept(&line, user->uid, name_of(user))) {
			put_account(&out, &line);
			buf_put(&out, line.fields[3], (size_t)(line.fields[6] + line.sizes[6] - line.fields[3]));
			buf_put(&out, "\n", 1);
		}
	put_user(&out, user);
	return finish(&out);
}

char *accounts_group(const char *host, const struct accounts_user *user)
{
	struct buf out;
	struct line line;

	buf_init(&out, TEXT_MAX);
	while (next_line(&host, &line))
		if (line.count > 2 && is_kept(&line, user->gid, name_of(user))) {
			put_account(&out, &line);
			buf_put(&out, "\n", 1);
		}
	put_group(&out, user);
	return finish(&out);
}

char *accounts_passwd_with(const char *host, const struct accounts_user *user)
{
	struct buf out;

	buf_init(&out, TEXT_MAX);
	put_host(&out, host);
	put_user(&out, user);
	return finish(&out);
}

char *accounts_group_with(const char *host, const struct accounts_user *user)
{
	struct buf out;

	buf_init(&out, TEXT_MAX);
	put_host(&out, host);
	put_group(&out, user);
	return finish(&out);
}
