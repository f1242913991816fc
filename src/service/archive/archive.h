/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * PUT /templates/ID/files/HASH?upload=TOKEN: the archive of one COPY of a template that is built, of any length, in
 * constant memory. Nothing in it is read here: it is unpacked inside of the sandbox that the template is built in.
 * Run by atoll-front.
 */

struct exchange_handler;

extern const struct exchange_handler archive_handler;
