/* SPDX-License-Identifier: Apache-2.0 */
#include "client/find.h"

#include "client/dirs.h"
#include "session/directories.h"

int find_project(char out[PATH_MAX], struct err *err)
{
	char cwd[PATH_MAX];
	int r = dirs_cwd(cwd, err);

	return r < 0 ? r : session_project_of(cwd, out, PATH_MAX, err);
}

/* Which project this is matters only where no session is named. */
int find_session(const char *state, const char *id_or_name, struct session_record *ret_record, struct err *err)
{
	char project[PATH_MAX];
	int r = id_or_name ? 0 : find_project(project, err);

	return r < 0 ? r : session_find(state, id_or_name ? NULL : project, id_or_name, NULL, ret_record, err);
}
