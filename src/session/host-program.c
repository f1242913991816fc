/* SPDX-License-Identifier: Apache-2.0 */
#include "session/host-program.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/path.h"
#include "session/run-request.h"

static const char *find_path_variable(const struct run_request *request)
{
	const char *path = env_find(request->command.env, "PATH");

	return path ? path : "";
}

void host_program_find(const struct run_request *request, const char *command, char out[PATH_MAX])
{
	const char *path = find_path_variable(request);
	char candidate[PATH_MAX];

	*out = 0;
	if (strchr(command, '/')) {
		if (*command != '/' ? path_join(candidate, sizeof candidate, request->cwd, command) < 0
				    : str_copy(candidate, sizeof candidate, command) < 0)
			return;
		if (access(candidate, X_OK) != 0 || path_real(candidate, out, PATH_MAX) < 0)
			*out = 0;
		return;
	}
	for (size_t length; *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (*path == '/' &&
		    str_format(candidate, sizeof candidate, "%.*s/%s", (int)length, path, command) == 0 &&
		    access(candidate, X_OK) == 0 && path_real(candidate, out, PATH_MAX) == 0)
			return;
	}
	*out = 0;
}

void host_program_directory(const struct run_request *request, const char *command, char out[PATH_MAX])
{
	const char *path = strchr(command, '/') ? "" : find_path_variable(request);
	char candidate[PATH_MAX];

	*out = 0;
	for (size_t length; *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (*path == '/' &&
		    str_format(candidate, sizeof candidate, "%.*s/%s", (int)length, path, command) == 0 &&
		    access(candidate, X_OK) == 0 && str_format(out, PATH_MAX, "%.*s", (int)length, path) == 0)
			return;
	}
	*out = 0;
}
