/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a handle asks of the commands and the files of its sandbox: the half of libatoll that a service needs for the
 * programs inside. How a handle speaks with its box is client/api/sandbox.h. Part of libatoll.
 */

#include "client/api/sandbox.h"

/* One request: numbers behind its ticket, then fields (u64 and strings), then what a record has. */
struct inside_request {
	enum link_message type;
	const char *where;                /* for errors */
	uint64_t numbers[2];
	size_t number_count;
	struct field fields[4];
	size_t field_count;
	const struct atoll_record *record; /* NULL: none */
	uint32_t kind;                    /* of the record */
};

/* As sandbox_request(). ATOLL_E_PROTOCOL: the sandbox runs under an atoll that knows nothing of these. */
int inside_request(struct atoll_sandbox *sandbox, const struct inside_request *made, uint64_t *ticket,
		   struct atoll_record **result, struct atoll_error *error) MUST_USE;
