/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>

#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll-oci/job.h"

/* The bundle that `spec` begins: a shell without network, with what containers usually have. */
static const char spec[] =
	"{\n"
	" \"ociVersion\": \"" OCI_VERSION "\",\n"
	" \"process\": {\n"
	"  \"terminal\": true,\n"
	"  \"user\": { \"uid\": 0, \"gid\": 0 },\n"
	"  \"args\": [ \"sh\" ],\n"
	"  \"env\": [ \"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\", \"TERM=xterm\" ],\n"
	"  \"cwd\": \"/\",\n"
	"  \"capabilities\": {\n"
	"   \"bounding\": [ \"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\" ],\n"
	"   \"effective\": [ \"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\" ],\n"
	"   \"permitted\": [ \"CAP_AUDIT_WRITE\", \"CAP_KILL\", \"CAP_NET_BIND_SERVICE\" ]\n"
	"  },\n"
	"  \"rlimits\": [ { \"type\": \"RLIMIT_NOFILE\", \"hard\": 1024, \"soft\": 1024 } ],\n"
	"  \"noNewPrivileges\": true\n"
	" },\n"
	" \"root\": { \"path\": \"rootfs\", \"readonly\": true },\n"
	" \"hostname\": \"atoll\",\n"
	" \"mounts\": [\n"
	"  { \"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\" },\n"
	"  { \"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
	"    \"options\": [ \"nosuid\", \"strictatime\", \"mode=755\", \"size=65536k\" ] },\n"
	"  { \"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\",\n"
	"    \"options\": [ \"nosuid\", \"noexec\", \"newinstance\", \"ptmxmode=0666\", \"mode=0620\"%s ] },\n"
	"  { \"destination\": \"/dev/shm\", \"type\": \"tmpfs\", \"source\": \"shm\",\n"
	"    \"options\": [ \"nosuid\", \"noexec\", \"nodev\", \"mode=1777\", \"size=65536k\" ] },\n"
	"  { \"destination\": \"/dev/mqueue\", \"type\": \"mqueue\", \"source\": \"mqueue\",\n"
	"    \"options\": [ \"nosuid\", \"noexec\", \"nodev\" ] },\n"
	"  { \"destination\": \"/sys\", \"type\": \"sysfs\", \"source\": \"sysfs\",\n"
	"    \"options\": [ \"nosuid\", \"noexec\", \"nodev\", \"ro\" ] }%s\n"
	" ],\n"
	" \"linux\": {\n"
	"%s"
	"  \"namespaces\": [ { \"type\": \"pid\" }, { \"type\": \"network\" }, { \"type\": \"ipc\" },\n"
	"   { \"type\": \"uts\" }, { \"type\": \"mount\" }, { \"type\": \"cgroup\" }%s ],\n"
	"  \"maskedPaths\": [ \"/proc/acpi\", \"/proc/asound\", \"/proc/kcore\", \"/proc/keys\",\n"
	"   \"/proc/latency_stats\", \"/proc/timer_list\", \"/proc/timer_stats\", \"/proc/sched_debug\",\n"
	"   \"/sys/firmware\", \"/proc/scsi\" ],\n"
	"  \"readonlyPaths\": [ \"/proc/bus\", \"/proc/fs\", \"/proc/irq\", \"/proc/sys\", \"/proc/sysrq-trigger\" ]\n"
	" }\n"
	"}\n";

static const char root_cgroup[] =
	",\n  { \"destination\": \"/sys/fs/cgroup\", \"type\": \"cgroup\", \"source\": \"cgroup\",\n"
	"    \"options\": [ \"nosuid\", \"noexec\", \"nodev\", \"relatime\", \"ro\" ] }";

int cmd_spec(struct job *job)
{
	bool is_user = geteuid() != 0;
	cleanup_buf struct buf text, maps;
	int r;

	buf_init(&text, 1 << 16);
	buf_init(&maps, 512);
	if (is_user)
		buf_printf(&maps, "  \"uidMappings\": [ { \"containerID\": 0, \"hostID\": %u, \"size\": 1 } ],\n"
				  "  \"gidMappings\": [ { \"containerID\": 0, \"hostID\": %u, \"size\": 1 } ],\n",
			   (unsigned)geteuid(), (unsigned)getegid());
	else
		buf_put_text(&text,
			     "  \"resources\": { \"devices\": [ { \"allow\": false, \"access\": \"rwm\" } ] },\n");
	if (!is_user) {
		buf_put(&maps, text.bytes, text.size);
		buf_reset(&text);
	}
	buf_printf(&text, spec, is_user ? "" : ", \"gid=5\"", is_user ? "" : root_cgroup, buf_text(&maps),
		   is_user ? ", { \"type\": \"user\" }" : "");
	buf_done(&maps);
	if (job->bundle && chdir(job->bundle) < 0)
		return err_set(job->err, ERR_USAGE, errno, "spec", "%s: %s", job->bundle, strerror(errno));
	if (path_is_there("config.json"))
		return err_set(job->err, ERR_USAGE, EEXIST, "spec", "file config.json exists. Remove it first");
	r = buf_error(&text);
	return r == 0 ? fd_replace_file_at(AT_FDCWD, "config.json", text.bytes, text.size, 0644) : r;
}
