/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories that are made, names that move, attributes that are set. Part of atoll-files, which runs it inside; paths
 * are judged ones.
 */

#include "inside.h"

/* An operation, behind the judgement of its paths: 0, or a positive errno; what is told of it goes into inside->out. */
int change_mkdir(struct inside *inside, const char *path, const char *to);
int change_move(struct inside *inside, const char *path, const char *to);
int change_setattr(struct inside *inside, const char *path, const char *to);

/* Makes the directories of rest below place->fd; *ret_fd (owned) is the last. 0, or a positive errno. */
int change_make_parents(const struct place *place, const char *rest, mode_t mode, int *ret_fd);
