/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/operate.h"

#include "service/launcher/call/access.h"
#include "service/launcher/build/builds.h"
#include "service/launcher/control.h"
#include "service/launcher/function/operations.h"
#include "service/launcher/inside/operations.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/pause.h"
#include "service/launcher/secrets.h"
#include "service/launcher/snapshots.h"
#include "service/launcher/tidy.h"

struct row {
	void (*handle)(struct call *call);
	bool is_inside;          /* the sandbox must run */
};

static const struct row rows[SERVICE_OPERATION_COUNT] = {
	[SERVICE_WHOAMI] = { control_whoami },
	[SERVICE_CREATE] = { control_create },
	[SERVICE_CONNECT] = { pause_connect },
	[SERVICE_GET] = { control_get },
	[SERVICE_LIST] = { list_sandboxes },
	[SERVICE_KILL] = { control_kill },
	[SERVICE_TIMEOUT] = { control_timeout },
	[SERVICE_PAUSE] = { pause_call },
	[SERVICE_FORK] = { snapshots_fork, true },
	[SERVICE_SNAPSHOT] = { snapshots_take, true },
	[SERVICE_SNAPSHOTS] = { snapshots_list },
	[SERVICE_TEMPLATES] = { snapshots_list },
	[SERVICE_TEMPLATE_DELETE] = { builds_delete },
	[SERVICE_NETWORK] = { control_network, true },
	[SERVICE_METRICS] = { metrics_show },
	[SERVICE_LOGS] = { logs_show },
	[SERVICE_SECRET_CREATE] = { secrets_create },
	[SERVICE_SECRETS] = { secrets_list },
	[SERVICE_SECRET_GET] = { secrets_get },
	[SERVICE_SECRET_UPDATE] = { secrets_update },
	[SERVICE_SECRET_DELETE] = { secrets_delete },
	[SERVICE_HEALTH] = { control_health },
	[SERVICE_EXEC] = { commands_exec, true },
	[SERVICE_COMMANDS] = { commands_list, true },
	[SERVICE_ATTACH] = { commands_attach, true },
	[SERVICE_SIGNAL] = { commands_signal, true },
	[SERVICE_RESIZE] = { commands_resize, true },
	[SERVICE_CLOSE_INPUT] = { commands_close_input, true },
	[SERVICE_OPEN] = { files_open, true },
	[SERVICE_STAT] = { files_stat, true },
	[SERVICE_READDIR] = { files_readdir, true },
	[SERVICE_MKDIR] = { files_mkdir, true },
	[SERVICE_MOVE] = { files_move, true },
	[SERVICE_REMOVE] = { files_remove, true },
	[SERVICE_SETATTR] = { files_setattr, true },
	[SERVICE_WATCH] = { watches_add, true },
	[SERVICE_UNWATCH] = { watches_remove, true },
	[SERVICE_DIAL] = { files_dial, true },
	[SERVICE_INTERPRET] = { commands_interpret, true },
	[SERVICE_FUNCTION_DEPLOY] = { deploy_begin },
	[SERVICE_FUNCTION_COMMIT] = { deploy_commit },
	[SERVICE_FUNCTIONS] = { functions_list },
	[SERVICE_FUNCTION_GET] = { functions_get },
	[SERVICE_FUNCTION_DELETE] = { functions_delete },
	[SERVICE_FUNCTION_INVOKE] = { invoke_begin },
	[SERVICE_FUNCTION_END] = { invoke_end },
	[SERVICE_FUNCTION_LOGS] = { functions_logs },
	[SERVICE_BUILD_REQUEST] = { requests_name },
	[SERVICE_BUILD_FILE] = { requests_file },
	[SERVICE_BUILD_UPLOAD] = { requests_upload },
	[SERVICE_BUILD_START] = { builds_start },
	[SERVICE_BUILD_STATUS] = { build_status },
	[SERVICE_ALIAS] = { requests_alias },
	[SERVICE_TAGS] = { requests_tags },
	[SERVICE_TAGS_ADD] = { requests_tag },
	[SERVICE_TAGS_REMOVE] = { requests_untag },
};

/* A paused sandbox wakes where it was made so, and the call goes on then; else it is said what it is. */
static bool is_running(struct call *call)
{
	const struct sandbox *sandbox = call->sandbox;

	if (sandbox->state == SANDBOX_RUNNING && sandbox->handle && sandbox->is_known)
		return true;
	if (sandbox->state == SANDBOX_CREATING)
		call_fail(call, 503, NULL, "the sandbox is starting");
	else if (sandbox->state == SANDBOX_RUNNING)
		call_fail(call, 503, NULL, "the sandbox does not answer yet");
	else
		call_fail(call, 502, NULL, "the sandbox is paused; connect to it first");
	return false;
}

void operate(struct call *call)
{
	const struct row *row = &rows[call->message->operation];

	if (!access_check(call))
		return;
	if (row->is_inside && pause_wake_for(call, operate))
		return;
	if (!row->handle)
		call_fail(call, 501, NULL, "%s is not served here", service_rule(call->message->operation)->name);
	else if (!row->is_inside || is_running(call))
		row->handle(call);
}

void operate_done(struct daemon *daemon)
{
	builds_stop(daemon);
}

static const struct daemon_verbs verbs = {
	.create = lifecycle_create, .kill = lifecycle_kill, .check = control_check_build, .has_room = control_has_room,
	.find_snapshot = snapshots_find, .delete_snapshot = snapshots_delete, .hold = tidy_hold,
	.forget = tidy_forget,
};

const struct daemon_verbs *const operate_verbs = &verbs;
