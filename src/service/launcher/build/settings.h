/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the steps of a template say of the commands behind them, and in the end of those in its sandboxes: variables,
 * directory and user. Pure. Runs in atolld.
 */

#include <limits.h>

#include "service/launcher/build/plan.h"
#include "service/launcher/store/kept.h"

enum { SETTINGS_VARIABLES_MAX = 256, SETTINGS_VALUE_MAX = 16 << 10 };

struct build_settings {
	char **env;                  /* owned: NAME=value, each name once */
	char cwd[PATH_MAX];          /* absolute */
	char user[65];               /* "": the sandbox's own */
};

/* Those of a template: of the frame that was kept of it (NULL: none). 0; -ENOMEM. settings_done(). */
int settings_begin(struct build_settings *ret_settings, const struct service_message *kept) MUST_USE;
/*
 * The same of an imported system, as a frame like that which is kept of a template: what its image says of commands. 0,
 * and kept_done(); -errno: it cannot be read.
 */
int settings_of_root(const char *state_dir, const char *name, struct kept *ret_kept) MUST_USE;

/* Frees the variables; a zeroed one is fine. */
void settings_done(struct build_settings *settings);

/*
 * What a step changes of them; in values of ENV $NAME and ${NAME} stand for variables set before. 0; -EINVAL with *err:
 * too many, too long, or a directory of another user's home; -ENOMEM.
 */
int settings_apply(struct build_settings *settings, const struct build_step *step, struct err *err) MUST_USE;

/* A path of a step, absolute: ~ means the home, what is relative the directory that is set. -EINVAL with *err. */
int settings_path(const struct build_settings *settings, const char *path, char out[PATH_MAX],
		  struct err *err) MUST_USE;
