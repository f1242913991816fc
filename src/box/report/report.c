/* SPDX-License-Identifier: Apache-2.0 */
#include "box/report/report.h"

#include <fcntl.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "box/state/sandbox.h"
#include "jail/filter.h"
#include "jail/mediation.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "session/narrowing.h"

enum { REPORT_MAX = 1 << 20 };

enum jail_seccomp_profile report_seccomp_profile(const struct box *box)
{
	const struct policy *policy = box->run.policy->policy;

	enum jail_seccomp_profile base;

	if (policy->exec.namespaces == EXEC_NAMESPACES_MOUNTS)
		base = JAIL_SECCOMP_MOUNTS;
	else if (policy->exec.new_binaries)
		base = policy->exec.namespaces ? JAIL_SECCOMP_NESTED : JAIL_SECCOMP_STRICT;
	else
		base = policy->exec.namespaces ? JAIL_SECCOMP_NESTED_NOEXEC : JAIL_SECCOMP_STRICT_NOEXEC;
	return jail_seccomp_profile(base, jail_mediation_of(policy));
}

static void put_namespaces(const struct jail_enforcement *enforcement, struct json *json)
{
	const struct {
		const char *name;
		bool is_own;
	} namespaces[] = {
		{ "user", enforcement->user },	   { "mount", enforcement->mount },
		{ "pid", enforcement->pid },	   { "net", enforcement->net },
		{ "ipc", enforcement->ipc },	   { "uts", enforcement->uts },
		{ "cgroup", enforcement->cgroup },
	};

	json_array_begin(json, "namespaces");
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (namespaces[i].is_own)
			json_string(json, NULL, namespaces[i].name);
	json_array_end(json);
}

static void put_holders(const struct box *box, struct json *json)
{
	const struct policy *policy = box->run.policy->policy;
	const char *rlimit = limit_holder_names[LIMIT_BY_RLIMIT];

	json_object_begin(json, "limits");
	if (box->run.limits) {
		json_string(json, "memory", limit_holder_names[limit_group_holder_memory(box->run.limits)]);
		json_string(json, "processes", limit_holder_names[limit_group_holder_processes(box->run.limits)]);
		json_string(json, "cpus", limit_holder_names[limit_group_holder_cpus(box->run.limits)]);
	}
	if (policy->limits[RESOURCE_OPEN_FILES].value != NUM_UNLIMITED)
		json_string(json, "open_files", rlimit);
	if (policy->limits[RESOURCE_FILE_SIZE].value != NUM_UNLIMITED)
		json_string(json, "file_size", rlimit);
	/* What is staged lies on a disk, where we can only look; what is private is a tmpfs with a size. */
	json_string(json, "disk", box->build.disk.watch.look_ns != UINT64_MAX ? "supervised" : "tmpfs");
	json_string(json, "output", "relay");
	json_string(json, "time", "clock");
	json_object_end(json);
}

void report_enforcement(const struct box *box, struct json *json)
{
	const struct jail_enforcement *enforcement = &box->build.enforcement;

	json_object_begin(json, "enforcement");
	put_namespaces(enforcement, json);
	json_i64(json, "landlock", enforcement->landlock_abi);
	json_bool(json, "landlock_files", enforcement->landlock_abi &&
					  box->run.policy->policy->exec.namespaces != EXEC_NAMESPACES_MOUNTS);
	json_string(json, "seccomp", enforcement->seccomp);
	json_bool(json, "speculation", enforcement->speculation);
	json_bool(json, "core_sched", enforcement->core_sched);
	json_string(json, "cgroup",
		    box->run.limits ? limit_backend_names[limit_group_backend(box->run.limits)] : NULL);
	json_string(json, "staging", !box->build.staging.record.tree_count ? NULL :
				     box->build.staging.record.form == STAGE_FORM_FUSE ? "fuse-overlayfs" : "overlay");
	put_holders(box, json);
	json_array_begin(json, "missing");
	for (int wall = 0; wall < WALL_COUNT; wall++)
		if (box->run.missing & 1u << wall)
			json_string(json, NULL, wall_names[wall]);
	json_array_end(json);
	json_object_end(json);
}

static uint64_t cpu_ms(const struct box *box)
{
	const struct rusage *r = &box->outcome.rusage;
	uint64_t reaped_ms = (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000 +
			     (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1000;
	uint64_t group_ms = box->run.usage.cpu_ns / 1000000;

	return reaped_ms > group_ms ? reaped_ms : group_ms;
}

void report_usage(const struct box *box, struct json *json)
{
	uint64_t rss = (uint64_t)box->outcome.rusage.ru_maxrss * 1024;
	uint64_t peak = box->run.usage.memory_peak_bytes;

	json_object_begin(json, "usage");
	json_u64(json, "cpu_ms", cpu_ms(box));
	json_u64(json, "memory_peak", peak ? peak : rss);
	/* Where no cgroup counts, the programs that were seen to run at the same time are what we know. */
	json_u64(json, "processes_peak",
		 box->run.usage.processes_peak ? box->run.usage.processes_peak : box->supervision.processes.peak);
	json_u64(json, "read_bytes", (uint64_t)box->outcome.rusage.ru_inblock * 512);
	json_u64(json, "written_bytes", (uint64_t)box->outcome.rusage.ru_oublock * 512);
	json_u64(json, "output_bytes", box->run.output_bytes);
	json_u64(json, "net_in", box->gates.net.counts.in_bytes);
	json_u64(json, "net_out", box->gates.net.counts.out_bytes);
	json_object_end(json);
}

static void put_decisions(const struct box *box, struct json *json)
{
	json_object_begin(json, "decisions");
	json_u64(json, "allow", box->run.refusals->allowed);
	json_u64(json, "deny", box->run.refusals->denied);
	json_u64(json, "ask", 0);
	json_u64(json, "stage", 0);
	json_object_end(json);
}

static void put_audit(const struct box *box, struct json *json)
{
	struct buf path;

	buf_init(&path, PATH_MAX + 16);
	buf_printf(&path, "%s/audit.jsonl", box->store.path);
	json_object_begin(json, "audit");
	json_bytes(json, "path", buf_text(&path), path.size);
	json_u64(json, "records", box->store.record.audit_records);
	json_string(json, "head", box->store.record.audit_head);
	json_object_end(json);
	buf_done(&path);
}

static void put_stages(const struct box *box, struct json *json)
{
	json_array_begin(json, "stages");
	for (size_t i = 0; i < box->run.course.stage_count; i++) {
		json_object_begin(json, NULL);
		json_string(json, "name", box->run.course.stages[i].name);
		json_fixed(json, "us", box->run.course.stages[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_changes(const struct box *box, struct json *json)
{
	const struct staging *staging = &box->build.staging;
	const struct stage_counts *counts = &staging->counts;

	/* Nothing is staged, or it could not be counted. */
	if (!staging->is_counted) {
		json_null(json, "changes");
		return;
	}
	json_object_begin(json, "changes");
	stage_counts_put(counts, json);
	json_bool(json, "at_least", counts->is_cut);
	json_bool(json, "kept", staging->has_changes);
	json_bool(json, "as_origin", staging->is_as_origin);
	json_object_end(json);
}

static void put_report(const struct box *box, int status, struct json *json)
{
	uint64_t start_us = (box->outcome.command_started_ns - box->run.request->started_ns) / 1000;
	/* A sandbox that was stopped before its command had told its end. */
	uint64_t ended_ns = box->outcome.command_ended_ns ? box->outcome.command_ended_ns : clock_monotonic_ns();

	json_object_begin(json, NULL);
	json_string(json, "session", box->run.request->session);
	json_i64(json, "exit", status);
	if (box->outcome.exit_signal)
		json_i64(json, "signal", box->outcome.exit_signal);
	else
		json_null(json, "signal");
	json_string(json, "ended", ended_names[box->run.ended]);
	json_fixed(json, "start_ms", start_us);
	json_u64(json, "wall_ms", (ended_ns - box->outcome.command_started_ns) / 1000000);
	report_usage(box, json);
	report_enforcement(box, json);
	gate_to_json(&box->gates.net, json);
	put_decisions(box, json);
	json_object_begin(json, "asked");
	queue_to_json(&box->approval.queue, json);
	notifier_to_json(&box->approval.notifier, json);
	json_object_end(json);
	reviewer_to_json(&box->approval.reviewer, json);
	narrowing_to_json(box->run.request->narrowing, json);
	denials_to_json(&box->run.refusals->denials, json);
	json_array_begin(json, "limits_hit");
	for (size_t i = 0; i < box->run.course.hit_count; i++)
		json_string(json, NULL, box->run.course.hits[i]);
	json_array_end(json);
	put_changes(box, json);
	alerts_to_json(&box->detection.alerts, json);
	canaries_to_json(&box->detection.canaries, json);
	anomaly_to_json(&box->detection.anomaly, json);
	put_audit(box, json);
	put_stages(box, json);
	json_object_end(json);
}

static int report_fail(const char *path, int r, struct err *err)
{
	err_set(err, ERR_STATE, -r, "report", "cannot write the report to %s: %s", path, err_errno_name(-r));
	err_hint(err, r == -EXDEV ? "a symbolic link in the project leads out of it; name the real path" :
			 r == -EISDIR ? "name a file in it" : "name a path in a directory that you can write to");
	return r;
}

/* Whether the path is in the project by its text and out of it in truth. */
static bool leaves_project(const struct box *box, const char *path, int directory_fd)
{
	char real[PATH_MAX], named[PATH_MAX];
	const char *project = box->run.request->project;

	return project[0] && path_normalise(named, sizeof named, path) == 0 && path_is_below(named, project) &&
	       (path_of_fd(directory_fd, real, sizeof real) < 0 || !path_is_below(real, project));
}

/* Nothing can be put in the place of a directory: known before the command runs, and not when its report is due. */
static bool is_directory(int directory_fd, const char *name)
{
	struct stat st;

	return !*name || (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
}

int report_prepare(struct box *box)
{
	const char *path = box->run.request->report_path, *slash = path ? strrchr(path, '/') : NULL;
	cleanup_fd int fd = FD_NONE;
	char directory[PATH_MAX];
	int r;

	if (!slash)
		return 0;
	r = str_format(directory, sizeof directory, "%.*s/", (int)(slash - path), path);
	if (r == 0)
		r = fd = path_open_anchor(directory);
	if (r >= 0 && leaves_project(box, path, fd))
		r = -EXDEV;
	if (r >= 0 && is_directory(fd, slash + 1))
		r = -EISDIR;
	if (r < 0)
		return report_fail(path, r, box->run.err);
	box->report_fd = take_fd(&fd);
	return 0;
}

int report_write(const struct box *box, int status, struct err *err)
{
	const char *path = box->run.request->report_path;
	struct json json;
	struct buf out;
	int r;

	if (!path || box->report_fd < 0)
		return 0;
	buf_init(&out, REPORT_MAX);
	json_init(&json, &out);
	put_report(box, status, &json);
	buf_put_char(&out, '\n');
	r = buf_error(&out);
	if (r == 0)
		r = fd_replace_file_at(box->report_fd, path_basename(path), out.bytes, out.size, 0644);
	buf_done(&out);
	return r < 0 ? report_fail(path, r, err) : 0;
}
