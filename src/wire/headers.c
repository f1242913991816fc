/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/headers.h"

#include <errno.h>
#include <string.h>

#include "base/header-name.h"
#include "base/str.h"

enum { HOST_MAX = 253 };

static bool is_host(const char *host)
{
	size_t size = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.");

	return size && size <= HOST_MAX && !host[size] && host[0] != '.' && host[size - 1] != '.';
}

static bool is_value(const char *value)
{
	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return false;
	return *value;
}

static const char *find_problem(const char *const *triple, const char **ret_entry)
{
	*ret_entry = triple[0];
	if (!is_host(triple[0]))
		return "headers are set for one exact host, by its name";
	*ret_entry = triple[1];
	if (!header_name_is_valid(triple[1]))
		return "this is no name of a header";
	if (header_name_is_framing(triple[1]))
		return "this header says how a request is framed and where it goes";
	/* The value is nobody's to repeat. */
	return is_value(triple[2]) ? NULL : "the value of this header is empty, or has a control character";
}

int headers_check(const char *const *triples, const char **ret_why, const char **ret_entry)
{
	size_t count = strv_count(triples), bytes = 0;

	*ret_why = NULL;
	*ret_entry = "";
	for (size_t i = 0; i < count; i++)
		bytes += strlen(triples[i]);
	if (count % 3 || count > 3 * (size_t)HEADERS_MAX || bytes > HEADERS_BYTES_MAX)
		*ret_why = "there are too many headers, or they are too long";
	for (size_t i = 0; !*ret_why && i < count; i += 3)
		*ret_why = find_problem(triples + i, ret_entry);
	return *ret_why ? -EINVAL : (int)(count / 3);
}
