/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/container-state.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/proc.h"

enum { STATE_MAX = 1 << 20, CONFIG_MAX = 16 << 20 };

const char *const oci_status_names[OCI_STATUS_COUNT] = {
	[OCI_CREATING] = "creating", [OCI_CREATED] = "created", [OCI_RUNNING] = "running",
	[OCI_PAUSED] = "paused",     [OCI_STOPPED] = "stopped",
};

void oci_state_done(struct oci_state *state)
{
	close_fd(&state->dir_fd);
	free(take_ptr(state->bundle));
	oci_groups_done(&state->groups);
	if (state->has_config)
		oci_config_done(&state->config);
	state->has_config = false;
}

int oci_state_check_id(const char *id, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.";
	char quoted[ERR_QUOTE_SIZE];

	if (!*id)
		return err_set(err, ERR_USAGE, EINVAL, "id", "container id cannot be empty");
	if (strspn(id, letters) != strlen(id) || strlen(id) >= OCI_ID_SIZE || str_equal(id, ".") || str_equal(id, ".."))
		return err_set(err, ERR_USAGE, EINVAL, "id", "invalid container id format: %s", err_quote(quoted, id));
	return 0;
}

int oci_state_make(struct oci_state *ret_state, const char *root, const char *id, struct err *err)
{
	struct oci_state state = OCI_STATE_NONE;
	char path[PATH_MAX];
	int r = oci_state_check_id(id, err);

	if (r < 0)
		return r;
	r = path_make_directories(AT_FDCWD, root, 0700);
	if (r == 0)
		r = str_format(path, sizeof path, "%s/%s", root, id);
	if (r == 0 && mkdir(path, 0700) < 0)
		r = -errno;
	if (r == -EEXIST)
		return err_set(err, ERR_STATE, EEXIST, "state", "container with id exists: %s", id);
	if (r == 0)
		state.dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (r == 0 && (state.dir_fd < 0 || flock(state.dir_fd, LOCK_EX) < 0))
		r = -errno;
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "state", "%s/%s: %s", root, id, strerror(-r));
	(void)!str_copy(state.id, sizeof state.id, id);
	clock_format_rfc3339(clock_realtime_ns(), state.created);
	*ret_state = state;
	return 0;
}

/* Takes json; NULL: there was no memory. The caller frees *ret_text. */
static int to_text(json_t *json, char **ret_text)
{
	*ret_text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	return *ret_text ? 0 : -ENOMEM;
}

int oci_state_store(const struct oci_state *state, struct err *err)
{
	cleanup_free char *text = NULL;
	json_t *groups = json_array();
	int r = groups ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < state->groups.count; i++) {
		const struct oci_group *group = &state->groups.items[i];

		r = json_array_append_new(groups, json_pack("{s:s, s:s, s:b}", "controllers", group->controllers,
							    "path",
							    group->path, "isMade", group->is_made)) < 0 ? -EINVAL : 0;
	}
	if (r < 0)
		json_decref(groups);
	else
		r = to_text(json_pack("{s:s, s:s, s:I, s:I, s:o}", "bundle", state->bundle, "created", state->created,
				      "pid",
				      (json_int_t)state->pid, "startTicks", (json_int_t)state->start_ticks, "groups",
				      groups),
			    &text);
	if (r == 0)
		r = fd_replace_file_at(state->dir_fd, "state.json", text, strlen(text), 0600);
	return r < 0 ? err_set(err, ERR_STATE, -r, "state", "state.json: %s", strerror(-r)) : 0;
}

int oci_state_store_config(const struct oci_state *state, const char *text, size_t size, struct err *err)
{
	int r = fd_replace_file_at(state->dir_fd, "config.json", text, size, 0600);

	return r < 0 ? err_set(err, ERR_STATE, -r, "state", "config.json: %s", strerror(-r)) : 0;
}

/* Ours, so what it lacks was never written. */
static int read_state(struct oci_state *state)
{
	cleanup_free char *text = NULL;
	json_t *json, *group;
	const char *bundle, *created;
	size_t size, i;
	int r = fd_read_file_at(state->dir_fd, "state.json", STATE_MAX, &text, &size);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json = json_loadb(text, size, 0, NULL);
	if (!json)
		return -EBADMSG;
	bundle = json_string_value(json_object_get(json, "bundle"));
	created = json_string_value(json_object_get(json, "created"));
	state->bundle = str_dup(bundle);
	if (created)
		(void)!str_copy(state->created, sizeof state->created, created);
	state->pid = (pid_t)json_integer_value(json_object_get(json, "pid"));
	state->start_ticks = (uint64_t)json_integer_value(json_object_get(json, "startTicks"));
	json_array_foreach(json_object_get(json, "groups"), i, group) {
		const char *name = json_string_value(json_object_get(group, "controllers"));
		const char *path = json_string_value(json_object_get(group, "path"));

		if (r == 0 && name && path)
			r = oci_groups_add(&state->groups, name, path, json_is_true(json_object_get(group, "isMade")));
	}
	json_decref(json);
	return r;
}

int oci_state_open(struct oci_state *ret_state, const char *root, const char *id, struct err *err)
{
	struct oci_state state = OCI_STATE_NONE;
	cleanup_free char *text = NULL;
	char path[PATH_MAX];
	size_t size;
	int r = oci_state_check_id(id, err);

	if (r < 0)
		return r;
	r = str_format(path, sizeof path, "%s/%s", root, id);
	if (r < 0)
		return r;
	state.dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (state.dir_fd == -ENOENT)
		return err_set(err, ERR_NOT_FOUND, ENOENT, "state", "container does not exist: %s", id);
	if (state.dir_fd < 0)
		return err_set(err, ERR_STATE, -state.dir_fd, "state", "%s: %s", path, strerror(-state.dir_fd));
	(void)!str_copy(state.id, sizeof state.id, id);
	r = read_state(&state);
	if (r == 0 && fd_read_file_at(state.dir_fd, "config.json", CONFIG_MAX, &text, &size) == 0) {
		state.has_config = true;
		r = oci_config_parse(&state.config, text, size, err);
	}
	if (r < 0) {
		oci_state_done(&state);
		return err->code ? r : err_set(err, ERR_STATE, -r, "state", "%s: its state cannot be read: %s", id,
					       strerror(-r));
	}
	*ret_state = state;
	return 0;
}

/* Whether its process is there, and runs. A zombie has ended, whoever has not waited for it. */
static bool has_process(const struct oci_state *state, struct pidref *ret_init)
{
	struct proc_stat stat;
	uint64_t ticks;
	cleanup_fd int proc = FD_NONE;

	if (!state->pid || pidref_open(ret_init, state->pid) < 0)
		return false;
	proc = fd_open_at(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
	if (proc >= 0 && proc_start_ticks(state->pid, &ticks) == 0 && ticks == state->start_ticks &&
	    proc_stat_read(proc, state->pid, &stat) == 0 && stat.state != 'Z' && stat.state != 'X')
		return true;
	pidref_done(ret_init);
	*ret_init = PIDREF_NONE;
	return false;
}

enum oci_status oci_state_status(const struct oci_state *state, struct pidref *ret_init)
{
	cleanup_fd int probe = FD_NONE;

	*ret_init = PIDREF_NONE;
	if (!state->pid) {
		/* Whoever makes it holds the lock: none does where that was cut short. */
		probe = fd_open_at(state->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
		return probe >= 0 && flock(probe, LOCK_EX | LOCK_NB) < 0 ? OCI_CREATING : OCI_STOPPED;
	}
	if (!has_process(state, ret_init))
		return OCI_STOPPED;
	if (oci_groups_is_frozen(&state->groups))
		return OCI_PAUSED;
	return faccessat(state->dir_fd, "start.sock", F_OK, 0) == 0 ? OCI_CREATED : OCI_RUNNING;
}

int oci_state_format(const struct oci_state *state, enum oci_status status, bool is_whole, struct buf *out)
{
	json_t *annotations = state->has_config ? state->config.annotations : NULL, *json;
	cleanup_free char *text = NULL;
	char rootfs[PATH_MAX] = "";
	int r;

	if (state->has_config && state->bundle && state->config.root_path)
		(void)!path_join(rootfs, sizeof rootfs, state->bundle, state->config.root_path);
	json = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "ociVersion", OCI_VERSION, "id", state->id, "pid",
			 (json_int_t)(status == OCI_STOPPED ? 0 : state->pid), "status", oci_status_names[status],
			 "bundle",
			 state->bundle ? state->bundle : "", "annotations",
			 annotations ? json_incref(annotations) : json_object());
	/* json_string() would be the one of base/json.h. */
	if (json && is_whole)
		(void)!json_object_update_new(json, json_pack("{s:s, s:s, s:s}", "rootfs", rootfs, "created",
							  state->created, "owner", ""));
	r = to_text(json, &text);
	if (r < 0)
		return r;
	buf_put_text(out, text);
	return buf_error(out);
}

int oci_state_remove(struct oci_state *state, const char *root, struct err *err)
{
	cleanup_fd int dir = fd_open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	int r = dir < 0 ? dir : path_remove_tree(dir, state->id);

	return r < 0 ? err_set(err, ERR_STATE, -r, "state", "%s/%s cannot be removed: %s", root, state->id,
			       strerror(-r)) : 0;
}

/* By the directory's descriptor: a path may be longer than a socket's name. */
static int name_socket(const struct oci_state *state, struct sockaddr_un *ret_name)
{
	*ret_name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return str_format(ret_name->sun_path, sizeof ret_name->sun_path, "/proc/self/fd/%d/start.sock", state->dir_fd);
}

int oci_state_listen(const struct oci_state *state)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	int r = fd < 0 ? -errno : name_socket(state, &name);

	if (r == 0 && (bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || listen(fd, 1) < 0))
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

int oci_state_connect(const struct oci_state *state)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	int r = fd < 0 ? -errno : name_socket(state, &name);

	if (r == 0 && connect(fd, (struct sockaddr *)&name, sizeof name) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}
