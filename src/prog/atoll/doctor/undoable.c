/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "client/find.h"
#include "client/program.h"
#include "client/staged.h"
#include "os/spawn.h"
#include "prog/atoll/doctor/doctor.h"
#include "session/directories.h"
#include "session/record.h"
#include "stage/record/record.h"

static bool has_applied(const char *state, const char *session)
{
	char path[PATH_MAX];

	return session_path(state, session, STAGE_DIRECTORY "/" STAGE_DIRECTORY_APPLIES, path, sizeof path) == 0 &&
	       access(path, F_OK) == 0;
}

/* The newest session of this project of which something was applied. */
static bool find_applied(const char *state, char out[SESSION_ID_SIZE])
{
	struct session_record *records;
	char project[PATH_MAX];
	struct err unheard;
	size_t count;

	*out = 0;
	if (find_project(project, &unheard) < 0 || session_list(state, &records, &count, &unheard) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!*out && str_equal(records[i].project, project) && has_applied(state, records[i].id))
			memcpy(out, records[i].id, SESSION_ID_SIZE);
		session_record_done(&records[i]);
	}
	free(records);
	return *out;
}

/* The exit status of `atoll undo --rehearse`, or negative. */
static int rehearse(const char *state, const char *session)
{
	cleanup_words struct words words = { 0 };
	struct program program = { .name = "atoll-stage", .stage = "stage", .fd_count = 2,
				   .fds = { { SPAWN_NULL, STDOUT_FILENO }, { SPAWN_NULL, STDERR_FILENO } } };
	struct err unheard;

	staged_words(&words, "undo", state, session);
	words_add(&words, "--rehearse");
	program.argv = (const char *const *)words.list;
	return words_error(&words) < 0 ? -ENOMEM : program_run(&program, &unheard);
}

void doctor_undoable(struct findings *findings)
{
	char state[PATH_MAX], session[SESSION_ID_SIZE];
	struct finding *finding;
	struct err unheard;
	int r;

	if (session_state_dir(state, sizeof state, false, &unheard) < 0 || !find_applied(state, session))
		return;
	r = rehearse(state, session);
	if (r == 0) {
		findings_add(findings, FINDING_OK, "undo", "the newest apply in this project can be taken back (%s)",
			     session);
	} else if (r == 127) {
		findings_add(findings, FINDING_NOTE, "undo", "nothing of session %s is applied now", session);
	} else {
		finding = findings_add(findings, FINDING_WEAK, "undo", "%s", r == 1 ?
				       "some of the newest apply in this project was changed since" :
				       "it cannot be told whether the newest apply can be taken back");
		snprintf(finding->consequence, sizeof finding->consequence, "`atoll undo` leaves that as it is");
		snprintf(finding->fix, sizeof finding->fix, "atoll undo --rehearse %s", session);
	}
}
