/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/event.h"

const char *const audit_type_names[AUDIT_TYPE_COUNT] = {
	[AUDIT_SESSION_START] = "session.start",
	[AUDIT_SESSION_END] = "session.end",
	[AUDIT_EXEC_START] = "exec.start",
	[AUDIT_EXEC_END] = "exec.end",
	[AUDIT_FILE_OPEN] = "file.open",
	[AUDIT_FILE_WRITE] = "file.write",
	[AUDIT_FILE_REMOVE] = "file.remove",
	[AUDIT_FILE_RENAME] = "file.rename",
	[AUDIT_NET_DNS] = "net.dns",
	[AUDIT_NET_CONNECT] = "net.connect",
	[AUDIT_NET_HTTP] = "net.http",
	[AUDIT_NET_LISTEN] = "net.listen",
	[AUDIT_SYSCALL] = "syscall",
	[AUDIT_LIMIT_HIT] = "limit.hit",
	[AUDIT_ASK_OPEN] = "ask.open",
	[AUDIT_ASK_ANSWER] = "ask.answer",
	[AUDIT_POLICY_CHANGE] = "policy.change",
	[AUDIT_STAGE_SNAPSHOT] = "stage.snapshot",
	[AUDIT_STAGE_APPLY] = "stage.apply",
	[AUDIT_STAGE_DISCARD] = "stage.discard",
	[AUDIT_STAGE_UNDO] = "stage.undo",
	[AUDIT_FILTER_HIT] = "filter.hit",
	[AUDIT_TRUST_CHANGE] = "trust.change",
	[AUDIT_ALERT] = "alert",
};
