/* SPDX-License-Identifier: Apache-2.0 */
#include "os/quota.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

/* The kernel counts the bytes of a limit in these. */
enum { BLOCK_SIZE_BYTES = 1024 };

static int control(int fd, unsigned command, uint32_t project, void *data)
{
	return syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, data) < 0 ? -errno : 0;
}

int quota_is_enforced(int fd)
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

	return control(fd, Q_XGETQSTATV, 0, &state) == 0 && state.qs_flags & FS_QUOTA_PDQ_ENFD;
}

static void take(struct quota_state *out, const struct if_dqblk *block)
{
	*out = (struct quota_state){
		.limit = { block->dqb_bhardlimit * BLOCK_SIZE_BYTES, block->dqb_ihardlimit },
		.used = { block->dqb_curspace, block->dqb_curinodes },
	};
}

int quota_read(int fd, uint32_t project, struct quota_state *ret_state)
{
	struct if_dqblk block = { 0 };
	int r = control(fd, Q_GETQUOTA, project, &block);

	/* XFS: nothing was ever counted for it. */
	if (r < 0 && r != -ENOENT)
		return r;
	take(ret_state, &block);
	return 0;
}

int quota_limit(int fd, uint32_t project, const struct quota_limit *limit)
{
	struct if_dqblk block = {
		.dqb_bhardlimit = limit->bytes / BLOCK_SIZE_BYTES,
		.dqb_ihardlimit = limit->inodes,
		.dqb_valid = QIF_LIMITS,
	};

	return control(fd, Q_SETQUOTA, project, &block);
}

int quota_next(int fd, uint32_t from, uint32_t *ret_project, struct quota_state *ret_state)
{
	struct if_nextdqblk block = { 0 };
	int r = control(fd, Q_GETNEXTQUOTA, from, &block);

	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	*ret_project = block.dqb_id;
	*ret_state = (struct quota_state){
		.limit = { block.dqb_bhardlimit * BLOCK_SIZE_BYTES, block.dqb_ihardlimit },
		.used = { block.dqb_curspace, block.dqb_curinodes },
	};
	return 0;
}

int quota_project_of(int fd, uint32_t *ret_project)
{
	struct fsxattr attributes;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return -errno;
	*ret_project = attributes.fsx_xflags & FS_XFLAG_PROJINHERIT ? attributes.fsx_projid : 0;
	return 0;
}

int quota_assign(int fd, uint32_t project)
{
	struct fsxattr attributes;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return -errno;
	attributes.fsx_projid = project;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0 ? -errno : 0;
}
