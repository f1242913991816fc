/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/owner-headers.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "egress/credentials/inject.h"
#include "egress/credentials/scan.h"
#include "wire/headers.h"

void owner_headers_done(struct owner_headers *headers)
{
	for (char **text = headers->triples; text && *text; text++)
		explicit_bzero(*text, strlen(*text));
	strv_free(headers->triples);
	headers->triples = NULL;
}

int owner_headers_set(struct owner_headers *headers, const char *const *triples)
{
	const char *why, *entry;
	char **copy;

	if (headers_check(triples, &why, &entry) < 0)
		return -EINVAL;
	copy = strv_copy(triples);
	if (!copy)
		return -ENOMEM;
	owner_headers_done(headers);
	headers->triples = copy;
	return 0;
}

int owner_headers_put(const struct owner_headers *headers, const struct target_server *server,
		      struct http1_head *head)
{
	int r = 0;

	for (char **triple = headers->triples; r == 0 && server->is_tls && triple && *triple; triple += 3) {
		if (!str_equal(triple[0], server->host))
			continue;
		r = http1_set(head, triple[1], triple[2]);
		if (r == 0)
			head->fields[head->field_count - 1].is_secret = true;
	}
	return r;
}

int owner_headers_redact(const struct owner_headers *headers, struct http1_head *head)
{
	int r = 0;

	for (char **triple = headers->triples; r >= 0 && triple && *triple; triple += 3) {
		const struct injection injection = { .secret = triple[2] };

		if (strlen(triple[2]) >= SCAN_WORD_MIN)
			r = inject_redact(&injection, head);
	}
	return r < 0 ? r : 0;
}
