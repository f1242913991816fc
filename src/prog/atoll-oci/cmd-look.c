/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "oci/mount.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll-oci/job.h"

/* state, list, ps, features: they change nothing. */

enum { OUT_MAX = 8 << 20 };

int cmd_state(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	struct pidref init = PIDREF_NONE;
	cleanup_buf struct buf out;
	int r = job_open(job, &state);

	buf_init(&out, OUT_MAX);
	if (r == 0)
		r = oci_state_format(&state, oci_state_status(&state, &init), true, &out);
	pidref_done(&init);
	buf_put_char(&out, '\n');
	return r == 0 ? job_print(&out) : r;
}

static void put_container(const struct job *job, const char *id, struct buf *out, bool *has_one)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	struct pidref init = PIDREF_NONE;
	struct err ignored = { 0 };
	enum oci_status status;

	/* One that is being removed meanwhile is none. */
	if (oci_state_open(&state, job->root, id, &ignored) < 0)
		return;
	status = oci_state_status(&state, &init);
	pidref_done(&init);
	if (job->is_quiet) {
		buf_printf(out, "%s\n", id);
	} else if (str_equal(job->format, "json")) {
		buf_put_text(out, *has_one ? "," : "");
		(void)!oci_state_format(&state, status, true, out);
	} else {
		buf_printf(out, "%-20s %-10d %-10s %-30s %s\n", id, status == OCI_STOPPED ? 0 : (int)state.pid,
			   oci_status_names[status], state.bundle ? state.bundle : "", state.created);
	}
	*has_one = true;
}

int cmd_list(struct job *job)
{
	cleanup_buf struct buf out = { 0 };
	DIR *dir = opendir(job->root);
	bool is_json = str_equal(job->format, "json") && !job->is_quiet, has_one = false;
	struct dirent *entry;

	if (!dir && errno != ENOENT)
		return err_set(job->err, ERR_STATE, errno, "list", "%s: %s", job->root, strerror(errno));
	buf_init(&out, OUT_MAX);
	if (is_json)
		buf_put_char(&out, '[');
	else if (!job->is_quiet)
		buf_printf(&out, "%-20s %-10s %-10s %-30s %s\n", "ID", "PID", "STATUS", "BUNDLE", "CREATED");
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			put_container(job, entry->d_name, &out, &has_one);
	if (dir)
		closedir(dir);
	buf_put_text(&out, is_json ? "]\n" : "");
	return job_print(&out);
}

int cmd_ps(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	cleanup_buf struct buf list = { 0 }, out = { 0 };
	struct json json;
	char *at, *line;
	int r = job_open(job, &state);

	if (r < 0)
		return r;
	buf_init(&list, OUT_MAX);
	buf_init(&out, OUT_MAX);
	r = oci_groups_list(&state.groups, &list);
	if (r == 0 && !str_equal(job->format, "json")) {
		r = job_print(&list);
	} else if (r == 0) {
		at = (char *)buf_text(&list);
		json_init(&json, &out);
		json_array_begin(&json, NULL);
		while ((line = strsep(&at, "\n")))
			if (*line)
				json_u64(&json, NULL, strtoull(line, NULL, 10));
		json_array_end(&json);
		buf_put_char(&out, '\n');
		r = job_print(&out);
	}
	return r;
}

static void put_names(struct json *json, const char *key, const char *const *names)
{
	json_array_begin(json, key);
	for (; *names; names++)
		json_string(json, NULL, *names);
	json_array_end(json);
}

int cmd_features(struct job *job)
{
	static const char *const actions[] = { "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL",
					       "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG",
					       "SCMP_ACT_TRACE", "SCMP_ACT_TRAP", NULL };
	cleanup_buf struct buf out;
	struct json json;

	buf_init(&out, OUT_MAX);
	json_init(&json, &out);
	json_object_begin(&json, NULL);
	json_string(&json, "ociVersionMin", "1.0.0");
	json_string(&json, "ociVersionMax", OCI_VERSION);
	json_array_begin(&json, "hooks");
	for (size_t i = 0; i < OCI_HOOK_COUNT; i++)
		json_string(&json, NULL, oci_hook_names[i]);
	json_array_end(&json);
	put_names(&json, "mountOptions", oci_mount_option_names());
	json_object_begin(&json, "linux");
	json_array_begin(&json, "namespaces");
	for (size_t i = 0; i < OCI_NAMESPACE_COUNT; i++)
		json_string(&json, NULL, oci_namespace_kinds[i].name);
	json_array_end(&json);
	json_array_begin(&json, "capabilities");
	for (int i = 0; oci_capability_name(i); i++)
		json_string(&json, NULL, oci_capability_name(i));
	json_array_end(&json);
	json_object_begin(&json, "cgroup");
	json_bool(&json, "v1", true);
	json_bool(&json, "v2", true);
	json_bool(&json, "systemd", false);
	json_object_end(&json);
	json_object_begin(&json, "seccomp");
	json_bool(&json, "enabled", true);
	put_names(&json, "actions", actions);
	json_object_end(&json);
	json_object_begin(&json, "mountExtensions");
	json_object_begin(&json, "idmap");
	json_bool(&json, "enabled", false);
	json_object_end(&json);
	json_object_end(&json);
	json_object_end(&json);
	json_object_end(&json);
	buf_put_char(&out, '\n');
	return job_print(&out);
}
