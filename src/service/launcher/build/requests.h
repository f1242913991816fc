/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What clients ask for around a build: names, archives, tags. Handlers take a call that passed access_check(). Runs in
 * atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_BUILD_REQUEST: an id for a name, and one for what will be built. */
void requests_name(struct call *call);
/* SERVICE_BUILD_FILE: whether an archive of the key's owner is there, and where it is sent to. */
void requests_file(struct call *call);
/* SERVICE_BUILD_UPLOAD: a descriptor to write it to, and then whether it came whole, or that nobody will finish it. */
void requests_upload(struct call *call);
/* SERVICE_ALIAS: 404: the name is free. */
void requests_alias(struct call *call);
/* SERVICE_TAGS: those of a template. */
void requests_tags(struct call *call);
/* SERVICE_TAGS_ADD, SERVICE_TAGS_REMOVE. */
void requests_tag(struct call *call);
void requests_untag(struct call *call);
