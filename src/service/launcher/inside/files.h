/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files and ports inside, as the sandbox sees them (libatoll does it there): handlers of SERVICE_OPEN to
 * SERVICE_SETATTR and of SERVICE_DIAL. Descriptors are handed to the front; no byte passes here. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/*
 * SERVICE_OPEN: a descriptor of a regular file, with what is known of it; one that is written is made, with its
 * parents.
 */
void files_open(struct call *call);
/* SERVICE_STAT: of a link itself. */
void files_stat(struct call *call);
/* SERVICE_READDIR: a page of what is in a directory and so many levels below it. */
void files_readdir(struct call *call);
/* SERVICE_MKDIR: with its parents; 409 where the directory is there already. */
void files_mkdir(struct call *call);
/* SERVICE_MOVE: to a name within the same file system. */
void files_move(struct call *call);
/* SERVICE_REMOVE: a directory with all that is in it. */
void files_remove(struct call *call);
/* SERVICE_SETATTR: the client's own attributes as a whole, and permissions. */
void files_setattr(struct call *call);
/* SERVICE_DIAL: a socket that is connected with a port inside, where the sandbox's ports are open to who asks. */
void files_dial(struct call *call);

/* Appends what a record of libatoll says of a file, which is at this absolute path. */
void files_put_entry(struct buf *out, const atoll_record *entry, const char *path);
