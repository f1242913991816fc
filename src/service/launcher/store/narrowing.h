/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client says of the network, as the text of a policy that can only take away (lang/resolve/tighten.c). Pure.
 * Where the two languages differ: an address that is allowed wins over a wider one that is denied there, and in a
 * policy it does not: such a request is refused by name, but where all is denied, which becomes the policy's default.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "wire/service.h"

/*
 * Appends the text to out; nothing where the request says nothing of the network. 1: there is some; 0: none; -EINVAL
 * with *err naming the entry that is no address, block or name, or that a policy cannot say.
 */
int narrowing_write(struct buf *out, const struct service_message *request, struct err *err) MUST_USE;
