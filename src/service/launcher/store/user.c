/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/user.h"

#include <errno.h>

#include "base/str.h"

int user_check(const char *user, bool has_root_user, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (!user || str_equal(user, USER_NAME) || (has_root_user && str_equal(user, "root")))
		return 0;
	if (str_equal(user, "root")) {
		err_set(err, ERR_USAGE, EINVAL, "user",
		"user root is not available: nothing in this sandbox has uid 0");
		err_hint(err,
			 "act as \"" USER_NAME "\"; a template with a system of its own (atoll template) has root");
		return -EINVAL;
	}
	return err_set(err, ERR_USAGE, EINVAL, "user", "user %s is not known in this sandbox", err_quote(shown, user));
}

int user_path(const char *path, char out[PATH_MAX], struct err *err)
{
	const char *rest = path;
	int r;

	if (path[0] == '~' && path[1] && path[1] != '/')
		return err_set(err, ERR_USAGE, EINVAL, "path", "the home of another user cannot be meant (~NAME)");
	if (path[0] == '~')
		rest = path[1] ? path + 2 : ".";
	while (path[0] == '~' && rest[0] == '/')
		rest++;
	r = path_join(out, PATH_MAX, USER_HOME, *rest ? rest : ".");
	return r < 0 ? err_set(err, ERR_USAGE, -r, "path", "the path is too long") : 0;
}
