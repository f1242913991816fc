/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/file/files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/identity.h"
#include "watch/file/job.h"
#include "watch/file/wait.h"

/*
 * Theory of operation. A path lies in memory that another thread of the caller can rewrite once we have looked, and a
 * name on the way can be exchanged for a link. So no file call goes on after a look: the path is copied once and
 * resolved once, in the caller's root (path.c); what is judged is the real path of what was found; and what is
 * done is done here, to that object or in that directory, with the sandbox's ids, so that the kernel judges modes and
 * mounts as it would for the caller. An open file is put into the caller's table.
 *
 * What the caller's pid names (memory, directories, umask) is taken first, and used only once the notification has been
 * found valid afterwards: until then the pid meant the same process.
 *
 * What is done here is done outside of the sandbox's Landlock domain. That costs nothing: each rule of that domain has
 * a mount with the same rights behind it, and this goes through the sandbox's mounts.
 */

struct files {
	const struct reply *reply;
	const struct watch_options *options;
	const struct watch_handlers *handlers;
	struct file_view view;
	struct file_wait wait;
	char text[FILE_PATHS_MAX][PATH_MAX + 1];
	struct file_place places[FILE_PATHS_MAX];
};

enum { EMPTY_PATH = AT_EMPTY_PATH, FOLLOW = AT_SYMLINK_FOLLOW, NOFOLLOW = AT_SYMLINK_NOFOLLOW };

int files_new(struct files **ret_files, int epoll_fd, const struct reply *reply, const struct watch_options *options,
	      const struct watch_handlers *handlers)
{
	struct files *files = malloc(sizeof *files);
	int r;

	if (!files)
		return -ENOMEM;
	files->reply = reply;
	files->options = options;
	files->handlers = handlers;
	r = file_wait_init(&files->wait, epoll_fd, reply, handlers);
	if (r == 0)
		r = file_view_init(&files->view, options);
	if (r < 0) {
		file_wait_done(&files->wait);
		free(files);
		return r;
	}
	*ret_files = files;
	return 0;
}

static int nothing_to_judge(void *context, const struct watch_file *event)
{
	return 0;
}

static void nobody_asked(void *context, uint64_t id)
{
}

int files_new_unjudged(struct files **ret_files, int epoll_fd, const struct reply *reply,
		       const struct watch_options *options)
{
	static const struct watch_handlers quiet = {
		.on_file = nothing_to_judge, .on_file_asks = nothing_to_judge, .on_file_done = nothing_to_judge,
		.on_file_gone = nobody_asked,
	};

	return files_new(ret_files, epoll_fd, reply, options, &quiet);
}

void files_free(struct files *files)
{
	if (!files)
		return;
	file_wait_done(&files->wait);
	file_view_done(&files->view);
	free(files);
}

bool files_cover(const struct watch_options *options, int number)
{
	const struct file_call *call = file_call_find(number);

	return call && (options->mediates_files ||
			(options->moves_directories && (call->run == file_run_rename || call->run == file_run_link)));
}

bool files_makes_link(int number)
{
	const struct file_call *call = file_call_find(number);

	return call && call->run == file_run_link;
}

bool files_removes_name(int number)
{
	const struct file_call *call = file_call_find(number);

	return call && (call->access == WATCH_FILE_RENAME || call->access == WATCH_FILE_REMOVE);
}

bool files_changes_mode(int number)
{
	const struct file_call *call = file_call_find(number);

	return call && call->run == file_run_chmod;
}

/* ---- what is asked for ---- */

static int read_at_flags(struct file_job *job)
{
	uint64_t flags = !job->call->at_flags ? 0 : job->request->data.args[job->call->at_flags];
	bool is_link = job->call->run == file_run_link;

	if (flags & ~(uint64_t)(is_link ? FOLLOW | EMPTY_PATH : NOFOLLOW | EMPTY_PATH))
		return EINVAL;
	if (flags & NOFOLLOW)
		job->naming[0] = FILE_NAMES_LINK;
	if (flags & FOLLOW)
		job->naming[0] = FILE_NAMES_OBJECT;
	return 0;
}

static bool may_be_empty(const struct file_job *job, size_t index)
{
	return index == 0 && job->call->at_flags && job->call->run != file_run_link &&
	       job->request->data.args[job->call->at_flags] & EMPTY_PATH;
}

static int read_paths(struct file_job *job)
{
	int errnum = read_at_flags(job);

	for (size_t i = 0; !errnum && i < FILE_PATHS_MAX; i++) {
		if (job->naming[i] == FILE_NAMES_NOTHING || job->naming[i] == FILE_NAMES_FD)
			continue;
		errnum = file_job_read_path(job, i);
		if (errnum == ENOENT && may_be_empty(job, i)) {
			job->naming[i] = FILE_NAMES_FD;
			errnum = 0;
		}
	}
	return errnum;
}

static bool needs_base(const struct file_job *job, size_t index)
{
	return job->naming[index] >= FILE_NAMES_OBJECT && job->naming[index] <= FILE_NAMES_ENTRY &&
	       job->text[index][0] != '/';
}

/* The open file of fchmod() and its like, or with AT_EMPTY_PATH the directory. */
static int find_open_file(struct file_job *job, size_t index)
{
	int fd = file_job_dir_fd(job, index);
	int r;

	if (fd != AT_FDCWD)
		return -file_path_of_fd(&job->caller, fd, &job->places[index]);
	r = file_caller_open_base(&job->caller, fd);
	if (r < 0)
		return -r;
	job->places[index].fd = r;
	return fstat(r, &job->places[index].status) < 0 ? errno : 0;
}

/*
 * Whether all that is copied of the caller can be had with the ids of the call before, where those are still in force:
 * paths, umask and directories. Its limits and what its memory holds besides need our own.
 */
static bool needs_own_ids(const struct file_call *call)
{
	if (call->run == file_run_open)
		return false;
	for (size_t i = 0; i < FILE_PATHS_MAX; i++)
		if (call->arguments[i].naming == FILE_NAMES_OBJECT || call->arguments[i].naming == FILE_NAMES_LINK ||
		    call->arguments[i].naming == FILE_NAMES_FD)
			return true;
	return false;
}

static int open_base(struct file_job *job, size_t index)
{
	if (!needs_base(job, index))
		return 0;
	job->base_fd[index] = file_caller_open_base(&job->caller, file_job_dir_fd(job, index));
	return job->base_fd[index] < 0 ? -job->base_fd[index] : 0;
}

/* Everything that the caller's pid names. */
static int read_arguments(struct file_job *job)
{
	int errnum = read_paths(job);

	if (needs_own_ids(job->call))
		identity_return();
	if (!errnum && job->call->prepare)
		errnum = job->call->prepare(job);
	for (size_t i = 0; !errnum && i < FILE_PATHS_MAX; i++) {
		errnum = job->naming[i] == FILE_NAMES_FD ? find_open_file(job, i) : open_base(job, i);
	}
	if (!errnum && (job->call->makes || job->how[0] & FILE_PATH_NEW))
		errnum = -file_caller_read_status(&job->caller);
	return errnum;
}

/* ---- finding ---- */

static int resolve(struct file_job *job)
{
	for (size_t i = 0; i < FILE_PATHS_MAX; i++) {
		unsigned how = job->how[i];
		int r;

		if (job->naming[i] < FILE_NAMES_OBJECT || job->naming[i] > FILE_NAMES_ENTRY)
			continue;
		if (job->naming[i] != FILE_NAMES_OBJECT)
			how |= job->naming[i] == FILE_NAMES_ENTRY ? FILE_PATH_PARENT : FILE_PATH_NOFOLLOW;
		r = file_path_resolve(&job->caller, job->base_fd[i], job->text[i], how, &job->places[i]);
		/* An open that may make the file. */
		if (r == -ENOENT && job->call->run == file_run_open && job->places[i].dir_fd >= 0)
			continue;
		if (r < 0)
			return -r;
	}
	return 0;
}

static void forget_places(struct file_job *job)
{
	for (size_t i = 0; i < FILE_PATHS_MAX; i++)
		if (job->naming[i] != FILE_NAMES_FD) {
			file_place_done(&job->places[i]);
			file_place_init(&job->places[i]);
		}
}

/*
 * With the sandbox's rights, which are taken here. They stay until identity_return(): to take them again for each of
 * the calls that follow upon one another would cost root as much as the opening of a file.
 */
static int find(struct file_job *job, const struct reply *reply)
{
	const struct file_view *view = job->caller.view;
	int errnum = identity_take(view->uid, view->gid) < 0 ? EACCES : resolve(job);
	bool is_self = errnum == FILE_PATH_NEEDS_STATUS;

	/* /proc/self, or an open that makes a file: only now it is worth the while to ask who the caller is. */
	if (!is_self && (errnum || !file_open_makes(job) || job->caller.process_inside))
		return errnum;
	errnum = -file_caller_read_status(&job->caller);
	if (!errnum && reply_is_awaited(reply, job->request->id) <= 0)
		errnum = ESRCH;
	if (!is_self || errnum)
		return errnum;
	forget_places(job);
	return resolve(job);
}

/* ---- judging ---- */

static bool is_directory(const struct file_place *entry)
{
	struct stat status;

	return fstatat(entry->dir_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* A directory that is renamed, or changes places with something else. Nothing but a directory can replace one. */
static bool moves_directory(const struct file_job *job)
{
	if (job->access != WATCH_FILE_RENAME)
		return false;
	return is_directory(&job->places[0]) || (job->flags & RENAME_EXCHANGE && is_directory(&job->places[1]));
}

static bool fill_event(const struct file_job *job, struct watch_file *event)
{
	bool has_two = job->call->arguments[1].naming == FILE_NAMES_ENTRY;
	bool has_text = job->call->arguments[0].naming == FILE_NAMES_TEXT;

	*event = (struct watch_file){
		.id = job->request->id,
		.pid = job->caller.pid,
		.call = job->call->name,
		.access = job->access,
		.path = job->places[has_text ? 1 : 0].path,
		.target = has_two && !has_text ? job->places[1].path : NULL,
		.flags = job->call->run == file_run_open ? job->flags : 0,
		.is_exchange = job->access == WATCH_FILE_RENAME && job->flags & RENAME_EXCHANGE,
		.is_directory = job->moves_directory,
	};
	/* A new link: the name that it gets is what is written. */
	if (event->target && job->access == WATCH_FILE_WRITE) {
		event->path = job->places[1].path;
		event->target = job->places[0].path;
	}
	return event->path[0];
}

static int judge(const struct files *files, struct file_job *job)
{
	struct watch_file event;

	job->moves_directory = moves_directory(job);
	return fill_event(job, &event) ? files->handlers->on_file(files->handlers->context, &event) : 0;
}

static int ask(const struct files *files, const struct file_job *job)
{
	struct watch_file event;

	return fill_event(job, &event) ? files->handlers->on_file_asks(files->handlers->context, &event) : EACCES;
}

static int report_done(struct files *files, const struct file_job *job, int errnum)
{
	struct watch_file event;

	if (!fill_event(job, &event))
		return 0;
	event.errnum = errnum;
	return files->handlers->on_file_done(files->handlers->context, &event);
}

/* ---- the whole of it ---- */

static int answer(const struct files *files, const struct file_job *job, int errnum)
{
	uint64_t id = job->request->id;

	if (errnum)
		return reply_error(files->reply, id, errnum);
	if (job->result_fd >= 0)
		return reply_fd(files->reply, id, job->result_fd, job->flags & O_CLOEXEC);
	return reply_value(files->reply, id, 0);
}

/* Only in a process of its own may anybody wait for the other end of a FIFO, or for who holds a lease. */
static int wait_to_open(struct files *files, struct file_job *job)
{
	struct file_wait_open open = {
		.id = job->request->id,
		.pid = job->caller.pid,
		.object_fd = job->places[0].fd,
		.flags = job->open_flags,
		.is_cloexec = job->flags & O_CLOEXEC,
		.uid = files->view.uid,
		.gid = files->view.gid,
	};
	int r = file_wait_add_open(&files->wait, &open);

	return r < 0 ? reply_error(files->reply, open.id, -r) : 0;
}

/* The call is kept; what asks for the answer, or moves, has it made again. */
static int wait_for(struct files *files, const struct file_job *job, bool is_move)
{
	int r = file_wait_add_again(&files->wait, job->request, is_move);

	if (r == 0)
		return 0;
	files->handlers->on_file_gone(files->handlers->context, job->request->id);
	return reply_error(files->reply, job->request->id, -r);
}

static struct watch_move move_of(const struct file_job *job)
{
	struct watch_move event = {
		.id = job->request->id,
		.pid = job->caller.pid,
		.number = job->call->number,
		.call = job->call->name,
		.flags = job->flags,
	};

	for (size_t i = 0; i < FILE_PATHS_MAX; i++) {
		event.text[i] = job->text[i];
		event.dir_fd[i] = job->places[i].dir_fd;
		event.name[i] = job->places[i].name;
		event.path[i] = job->places[i].path;
	}
	return event;
}

/* A directory that the kernel does not rename. WATCH_FILE_WAITS, or the errno that it has after all. */
static int move(const struct files *files, const struct file_job *job)
{
	struct watch_move event = move_of(job);

	if (!files->handlers->on_move || !file_move_is_refused(job))
		return EXDEV;
	identity_return();
	return files->handlers->on_move(files->handlers->context, &event);
}

/* A call that was made before, and waits again or has its answer. WATCH_MOVE_NEW: it was not. */
static int find_moved(const struct files *files, const struct file_job *job)
{
	struct watch_move event = move_of(job);

	if (job->call->run != file_run_rename || !files->handlers->on_moved)
		return WATCH_MOVE_NEW;
	return files->handlers->on_moved(files->handlers->context, &event);
}

static int perform(struct files *files, struct file_job *job)
{
	int errnum = job->call->run(job), r;
	bool waits = errnum == FILE_JOB_BLOCKS;

	if (errnum == EXDEV && job->call->run == file_run_rename) {
		errnum = move(files, job);
		if (errnum == WATCH_FILE_WAITS)
			return wait_for(files, job, true);
	}
	r = report_done(files, job, waits ? 0 : errnum);
	if (r < 0) {
		close_fd(&job->result_fd);
		(void)!answer(files, job, EPERM);
		return r;
	}
	return waits ? wait_to_open(files, job) : answer(files, job, errnum);
}

/* Begins with the sandbox's rights. */
static int judge_and_perform(struct files *files, struct file_job *job)
{
	int verdict = judge(files, job), r;

	if (verdict == 0)
		return perform(files, job);
	if (verdict == WATCH_FILE_ASKS) {
		identity_return();
		verdict = ask(files, job);
	}
	if (verdict == WATCH_FILE_WAITS)
		return wait_for(files, job, false);
	if (verdict == 0) {
		r = identity_take(files->view.uid, files->view.gid);
		return r < 0 ? reply_error(files->reply, job->request->id, EACCES) : perform(files, job);
	}
	r = reply_error(files->reply, job->request->id, verdict < 0 ? EPERM : verdict);
	return verdict < 0 ? verdict : r;
}

/*
 * What is not there may be hidden, or asked about: then a person's yes can bring it (a live grant), and the call is
 * made again.
 */
static int answer_missing(struct files *files, struct file_job *job)
{
	int verdict = judge(files, job), r;

	if (verdict == WATCH_FILE_ASKS) {
		identity_return();
		verdict = ask(files, job);
	}
	if (verdict == WATCH_FILE_WAITS)
		return wait_for(files, job, false);
	r = verdict < 0 ? verdict : verdict == 0 ? report_done(files, job, ENOENT) : 0;
	if (r < 0)
		(void)!reply_error(files->reply, job->request->id, EPERM);
	return r < 0 ? r : reply_error(files->reply, job->request->id, verdict ? verdict : ENOENT);
}

static void begin(struct files *files, struct file_job *job)
{
	for (size_t i = 0; i < FILE_PATHS_MAX; i++) {
		job->base_fd[i] = FD_NONE;
		job->naming[i] = job->call->arguments[i].naming;
		file_place_init(&files->places[i]);
	}
	remote_begin(job->remote, (pid_t)job->request->pid);
}

static void end(struct file_job *job)
{
	remote_end(job->remote);
	for (size_t i = 0; i < FILE_PATHS_MAX; i++) {
		close_fd(&job->base_fd[i]);
		file_place_done(&job->places[i]);
	}
	close_fd(&job->result_fd);
	free(job->value);
	file_caller_end(&job->caller);
}

/* Where nothing else is mediated: all but this is the kernel's to make, or to refuse. */
static bool is_ours(const struct file_job *job, int errnum)
{
	return !errnum && (job->call->run == file_run_link || moves_directory(job));
}

static int do_job(struct files *files, struct file_job *job)
{
	int errnum = -file_caller_begin(&job->caller, &files->view, (pid_t)job->request->pid), r;

	if (!files->options->mediates_files && (errnum || file_move_goes_on(job)))
		return reply_continue(files->reply, job->request->id);
	if (!errnum)
		errnum = read_arguments(job);
	if (errnum == FILE_JOB_REFUSED)
		return 1;
	r = reply_is_awaited(files->reply, job->request->id);
	if (r <= 0)
		return r < 0 ? reply_error(files->reply, job->request->id, EPERM) : 0;
	if (!errnum) {
		r = find_moved(files, job);
		if (r == WATCH_FILE_WAITS)
			return wait_for(files, job, true);
		if (r != WATCH_MOVE_NEW)
			return reply_error(files->reply, job->request->id, r);
	}
	if (!errnum)
		errnum = find(job, files->reply);
	if (!files->options->mediates_files && !is_ours(job, errnum))
		return reply_continue(files->reply, job->request->id);
	if (!errnum && job->call->check)
		errnum = job->call->check(job);
	if (errnum == FILE_JOB_REFUSED)
		return 1;
	if (!errnum)
		return judge_and_perform(files, job);
	if (errnum == ENOENT && job->places[0].path[0])
		return answer_missing(files, job);
	return reply_error(files->reply, job->request->id, errnum);
}

int files_serve(struct files *files, struct remote *remote, const struct seccomp_notif *request)
{
	struct file_job job = {
		.call = file_call_find(request->data.nr),
		.request = request,
		.remote = remote,
		.text = files->text,
		.places = files->places,
		.result_fd = FD_NONE,
	};
	int r;

	job.access = job.call->access;
	job.caller.own_root_fd = FD_NONE;
	begin(files, &job);
	r = do_job(files, &job);
	end(&job);
	return r;
}

int files_look(struct files *files)
{
	return file_wait_look(&files->wait);
}

int files_retry(struct files *files, struct remote *remote, uint64_t id)
{
	struct seccomp_notif request;

	return file_wait_take(&files->wait, id, &request) ? files_serve(files, remote, &request) : 0;
}

int files_release_waiting(struct files *files)
{
	return file_wait_release(&files->wait);
}
