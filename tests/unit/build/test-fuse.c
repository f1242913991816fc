/* SPDX-License-Identifier: Apache-2.0 */

/* What fuse-overlayfs is given to serve. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "build/fuse.h"
#include "os/fd.h"
#include "os/path.h"

static char base[64];

static int make(void **state)
{
	cleanup_fd int fd = FD_NONE;

	snprintf(base, sizeof base, "/tmp/atoll-fuse-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	fd = fd_open_at(AT_FDCWD, base, O_RDONLY | O_DIRECTORY, 0);
	return path_make_directories(fd, "live/upper", 0700) || path_make_directories(fd, "live/work", 0700) ||
	       path_make_directories(fd, "real/tree", 0700) || symlinkat("real", fd, "link");
}

static int clean(void **state)
{
	return path_remove_tree(AT_FDCWD, base);
}

static int serve(const char *below, struct fuse_servers *servers, struct err *err)
{
	char live[128], source[128];
	const struct jail_layers layers = { .live = live };
	const struct jail_mount mount = { .kind = JAIL_FUSE, .source = source, .layers = &layers };
	cleanup_fd int device = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	const struct fuse_tree tree = { .mount = &mount, .device_fd = device };

	snprintf(live, sizeof live, "%s/live", base);
	snprintf(source, sizeof source, "%s/%s", base, below);
	return fuse_serve(servers, &tree, err);
}

/* An agent that writes to a directory above the tree puts a link there between the plan and the start. */
static void no_link_leads_to_the_tree(void **state)
{
	struct fuse_servers servers = { .count = 0 };
	struct err err;

	if (access("/usr/bin/fuse-overlayfs", X_OK) < 0)
		skip();
	assert_int_equal(serve("link/tree", &servers, &err), -ELOOP);
	assert_int_equal(servers.count, 0);
	assert_int_equal(serve("real/tree", &servers, &err), 0);
	assert_int_equal(servers.count, 1);
	/* /dev/null is no device of fuse's. */
	assert_int_equal(fuse_finish(&servers, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_link_leads_to_the_tree, make, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
