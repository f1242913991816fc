/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/permanent-grant.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/names.h"
#include "base/str.h"
#include "client/dirs.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/spawn.h"
#include "policy/decide.h"

enum { TEXT_MAX = 4 << 20, WORDS_FIXED = 5, OPTIONS_MAX = 24, DATE_SIZE = 10, PATIENCE_MS = 10000 };

void permanent_grant_done(struct permanent_grant *grant)
{
	free(grant->text);
	grant->text = NULL;
	close_fd(&grant->lock_fd);
}

/* KIND SUBJECT PORT METHOD PATH [ARGUMENT…] */
char **permanent_grant_words(const struct asking_shown *shown)
{
	size_t argc = strv_count((const char *const *)shown->argv);
	char **words = calloc(WORDS_FIXED + argc + 1, sizeof *words);
	bool is_whole = words != NULL;

	if (!words)
		return NULL;
	words[0] = str_dup(shown->kind < ACTION_KIND_COUNT ? action_kind_names[shown->kind] : "");
	words[1] = str_dup(shown->subject);
	words[2] = str_printf("%u", shown->port);
	words[3] = str_dup(shown->method ? shown->method : "");
	words[4] = str_dup(shown->path ? shown->path : "");
	for (size_t i = 0; i < argc; i++)
		words[WORDS_FIXED + i] = str_dup(shown->argv[i]);
	for (size_t i = 0; i < WORDS_FIXED + argc; i++)
		is_whole = is_whole && words[i];
	if (is_whole)
		return words;
	for (size_t i = 0; i < WORDS_FIXED + argc; i++)
		free(words[i]);
	free(words);
	return NULL;
}

/* ---- which file ---- */

static int refuse(const char *policy, const char *why, const char *hint, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_POLICY, EPERM, "policy", "this sandbox runs under %s, %s", err_quote(shown, policy), why);
	err_hint(err, "%s", hint);
	return -EPERM;
}

/* By the name that the policy has: its path, one of the user's own, or one that is shipped. */
static int find_file(const struct session_record *record, const struct dirs *dirs, char path[PATH_MAX],
		     const char **ret_level, struct err *err)
{
	static const char own[] = "make a policy of your own that extends it, and run with that";
	int r;

	*ret_level = NULL;
	if (record->policy[0] == '/')
		return str_copy(path, PATH_MAX, record->policy);
	r = str_format(path, PATH_MAX, "%s/atoll/policies/%s.yaml", dirs->config_home, record->policy);
	if (r == 0 && access(path, F_OK) == 0)
		return 0;
	/* The default level without a file of the user's: from now on there is one, which extends it. */
	r = str_format(path, PATH_MAX, "%s/atoll/policy.yaml", dirs->config_home);
	if (r < 0 || !dirs->config_home[0] || !str_equal(record->policy, "medium") || access(path, F_OK) == 0)
		return refuse(record->policy, "which is shipped with atoll", own, err);
	*ret_level = "medium";
	return 0;
}

/* The file itself, where a link leads to it; what a sandbox could write is no policy of the user's. */
static int check_file(const struct session_record *record, const struct dirs *dirs, struct permanent_grant *grant,
		      struct err *err)
{
	static const char by_hand[] = "add the rule to a policy of your own";
	char real[PATH_MAX], policies[PATH_MAX];
	struct stat st;

	grant->mode = 0600;
	if (path_real(grant->path, real, sizeof real) < 0)
		return 0;
	if (path_join(policies, sizeof policies, dirs->programs, "policies") < 0 || path_is_below(real, policies))
		return refuse(real, "which is shipped with atoll", by_hand, err);
	if (record->project[0] && path_is_below(real, record->project))
		return refuse(real, "which is a file of the project", by_hand, err);
	if (stat(real, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return refuse(real, "which is not a file of yours", by_hand, err);
	grant->mode = st.st_mode & 0777;
	return str_copy(grant->path, sizeof grant->path, real);
}

/*
 * Of two who allow something at the same time, the second puts its line into what the first has written. Who edits the
 * file knows nothing of a lock: what it was is looked at again before it is replaced.
 */
static int hold(struct permanent_grant *grant, struct err *err)
{
	char directory[PATH_MAX], shown[ERR_QUOTE_SIZE];
	int r = str_copy(directory, sizeof directory, grant->path);

	if (r == 0)
		*strrchr(directory, '/') = 0;
	if (r == 0)
		r = path_make_directories(AT_FDCWD, directory, 0700);
	if (r == 0 || r == -EEXIST)
		r = grant->lock_fd = fd_open_at(AT_FDCWD, *directory ? directory : "/", O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = fd_lock_within(grant->lock_fd, LOCK_EX, PATIENCE_MS);
	if (r == 0)
		r = seen_look(grant->path, &grant->seen);
	return r < 0 ? err_set(err, ERR_STATE, -r, "policy", "%s cannot be changed: %s",
			       err_quote(shown, grant->path), strerror(-r)) : 0;
}

static bool is_unchanged(const struct permanent_grant *grant)
{
	const struct seen *then = &grant->seen;
	struct seen now;

	return seen_look(grant->path, &now) == 0 && now.exists == then->exists && now.device == then->device &&
	       now.inode == then->inode && now.size == then->size && now.mtime_ns == then->mtime_ns &&
	       now.ctime_ns == then->ctime_ns;
}

/* ---- its text ---- */

static int run(const char *program, const char **argv, struct err *err)
{
	const char *const environment[] = { NULL };
	pid_t pid;
	int r = spawn_start(&(struct spawn){ .program = program, .argv = argv, .env = environment }, &pid);

	if (r < 0)
		return err_not_started("policy", program, -r, err);
	r = spawn_wait(pid, NULL);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "atoll-policy cannot be waited for: %s", strerror(-r));
	return r ? 1 : 0;
}

static int amend(const struct dirs *dirs, const char *level, char **words, int output_fd, struct permanent_grant *grant,
		 struct err *err)
{
	char program[PATH_MAX], policies[PATH_MAX], number[16], time[CLOCK_RFC3339_SIZE], note[64];
	const char *argv[OPTIONS_MAX + 1] = { "atoll-policy", "amend" };
	cleanup_free const char **all = NULL;
	size_t argc = 2, count = strv_count((const char *const *)words);
	int r = path_join(program, sizeof program, dirs->programs, "atoll-policy");

	clock_format_rfc3339(clock_realtime_ns(), time);
	if (r == 0)
		r = path_join(policies, sizeof policies, dirs->programs, "policies");
	if (r == 0)
		r = str_format(number, sizeof number, "%d", output_fd);
	if (r == 0)
		r = str_format(note, sizeof note, "allowed %.*s by atoll approve", DATE_SIZE, time);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "the path of atoll's programs is too long");
	const char *const pairs[][2] = {
		{ "--level", level }, { "--policy", grant->path }, { "--project", dirs->project },
		{ "--home", *dirs->home ? dirs->home : NULL },
		{ "--config-home", *dirs->config_home ? dirs->config_home : NULL },
		{ "--policies", policies }, { "--output-fd", number },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i][1]) {
			argv[argc++] = pairs[i][0];
			argv[argc++] = pairs[i][1];
		}
	argv[argc++] = "--";
	argv[argc++] = note;
	all = calloc(argc + count + 1, sizeof *all);
	if (!all)
		return err_set(err, ERR_INTERNAL, ENOMEM, "policy", "out of memory");
	memcpy(all, argv, argc * sizeof *all);
	memcpy(all + argc, words, count * sizeof *all);
	return run(program, all, err);
}

static int read_text(int fd, struct permanent_grant *grant, struct err *err)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > TEXT_MAX ? -EBADMSG : 0;

	grant->text = r == 0 ? malloc((size_t)st.st_size) : NULL;
	if (r == 0 && (!grant->text || lseek(fd, 0, SEEK_SET) < 0))
		r = -ENOMEM;
	if (r == 0)
		r = fd_read_full(fd, grant->text, (size_t)st.st_size);
	grant->size = r == 0 ? (size_t)st.st_size : 0;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "policy", "atoll-policy wrote no policy") : 0;
}

int permanent_grant_prepare(const struct session_record *session, char **words, struct permanent_grant *ret_grant,
			    struct err *err)
{
	cleanup_fd int fd = memfd_create("policy", 0); /* inherited by atoll-policy on purpose */
	struct dirs dirs;
	const char *level;
	int r;

	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "policy", "no memory file can be made: %s", strerror(errno));
	r = dirs_find(&dirs, session->project, NULL, err);
	if (r == 0)
		r = find_file(session, &dirs, ret_grant->path, &level, err);
	if (r == 0)
		r = check_file(session, &dirs, ret_grant, err);
	if (r == 0)
		r = hold(ret_grant, err);
	if (r == 0)
		r = amend(&dirs, level, words, fd, ret_grant, err);
	return r == 0 ? read_text(fd, ret_grant, err) : r;
}

int permanent_grant_write(const struct permanent_grant *grant, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int r = is_unchanged(grant) ? 0 : -ESTALE;

	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, grant->path, grant->text, grant->size, grant->mode);
	if (r >= 0)
		return 0;
	err_set(err, ERR_STATE, -r, "policy", "it is allowed for this session, but %s cannot be written: %s",
		err_quote(shown, grant->path), r == -ESTALE ? "somebody has changed it meanwhile" : strerror(-r));
	return r;
}
