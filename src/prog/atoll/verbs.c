/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "prog/atoll/verb/cmd.h"

const struct cmd *const cmd_table[] = {
	&cmd_alerts,
	&cmd_apply,
	&cmd_approve,
	&cmd_ask,
	&cmd_attach,
	&cmd_baseline,
	&cmd_checkpoints,
	&cmd_cp,
	&cmd_deny,
	&cmd_diff,
	&cmd_discard,
	&cmd_doctor,
	&cmd_dry_run,
	&cmd_exec,
	&cmd_fork,
	&cmd_function,
	&cmd_gc,
	&cmd_grants,
	&cmd_help,
	&cmd_log,
	&cmd_policy,
	&cmd_ps,
	&cmd_restore,
	&cmd_review,
	&cmd_run,
	&cmd_secret,
	&cmd_serve,
	&cmd_snapshot,
	&cmd_stop,
	&cmd_template,
	&cmd_token,
	&cmd_top,
	&cmd_trust,
	&cmd_undo,
	&cmd_verify,
	&cmd_version,
};
const size_t cmd_count = ARRAY_SIZE(cmd_table);

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; i < cmd_count; i++)
		if (str_equal(cmd_table[i]->name, name))
			return cmd_table[i];
	return NULL;
}
