/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-learn: what `atoll policy test` and `learn` run. Opens the log of one session and the policy that it ran
 * under, takes another compiled policy from LEARN_POLICY_FD, gives up everything else, and only then looks into them.
 * Exit status: 0; 1 when a decision would differ; 3 when none that is recorded would, and others may; 125 when it could
 * not do its work.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program.h"
#include "base/str.h"
#include "confine/confine.h"
#include "lang/print/print.h"
#include "learn/compare.h"
#include "learn/effects.h"
#include "learn/learn.h"
#include "learn/propose.h"
#include "learn/usage.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"

enum { OUT_MAX = 64 << 20, REPORT_MAX = 16 << 20, EFFECTS_LINES = 12 };

/* The words that atoll starts it with, in this order. */
struct given {
	const char *verb;                /* "test", "learn", "effects" */
	const char *form;                /* "text", "json", "differences" (test); of learn: the file of its report */
	const char *log, *before;        /* of the session: its log, and the compiled policy that it ran under */
	const char *session, *policy;    /* names for people */
};

enum { WORDS = 6 };

/* What is read here lives as long as the process. */
static int load(char *bytes, size_t size, const char *what, struct snapshot **ret_snapshot, struct err *err)
{
	int r = snapshot_load(ret_snapshot, bytes, size);

	if (r == 0)
		return 0;
	free(bytes);
	err_set(err, ERR_STATE, -r, "learn", "%s is no policy of this version", what);
	err_hint(err, "sessions of an older atoll cannot be compared");
	return r;
}

static int read_policy_fd(char **ret_bytes, size_t *ret_size)
{
	struct stat st;
	char *bytes;
	int r;

	if (fstat(LEARN_POLICY_FD, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > SNAPSHOT_SIZE_MAX)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	r = lseek(LEARN_POLICY_FD, 0, SEEK_SET) < 0 ? -errno
						    : fd_read_full(LEARN_POLICY_FD, bytes, (size_t)st.st_size);
	if (r < 0) {
		free(bytes);
		return r;
	}
	*ret_bytes = bytes;
	*ret_size = (size_t)st.st_size;
	return 0;
}

static int open_log(const char *path, struct err *err)
{
	int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	return fd < 0 ? err_set(err, fd == -ENOENT ? ERR_NOT_FOUND : ERR_STATE, -fd, "learn", "%s: %s", path,
				strerror(-fd))
		      : fd;
}

struct inputs {
	int log_fd;
	char *report;                    /* learn: its bytes */
	size_t report_size;
	struct snapshot *before, *other;
};

/* What a session's log alone says: `effects FORM LOG - SESSION -`. */
static int take_log(const struct given *given, struct inputs *ret_inputs, struct err *err)
{
	ret_inputs->log_fd = open_log(given->log, err);
	if (ret_inputs->log_fd < 0)
		return ret_inputs->log_fd;
	observed_init();
	return confine_self(CONFINE_LEARN, NULL, 0, err);
}

/* Everything that is opened; nothing hostile is looked at before the walls are up. */
static int take_inputs(const struct given *given, struct inputs *ret_inputs, struct err *err)
{
	char *before = NULL, *other = NULL;
	size_t before_size = 0, other_size = 0;
	int r;

	ret_inputs->log_fd = open_log(given->log, err);
	if (ret_inputs->log_fd < 0)
		return ret_inputs->log_fd;
	r = fd_read_file_at(AT_FDCWD, given->before, SNAPSHOT_SIZE_MAX, &before, &before_size);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "%s: %s", given->before, strerror(-r));
	r = read_policy_fd(&other, &other_size);
	if (r < 0) {
		free(before);
		return err_set(err, ERR_INTERNAL, -r, "learn", "no other policy was received: %s", strerror(-r));
	}
	if (str_equal(given->verb, "learn"))
		r = fd_read_file_at(AT_FDCWD, given->form, REPORT_MAX, &ret_inputs->report, &ret_inputs->report_size);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "%s: %s", given->form, strerror(-r));
	observed_init();
	r = confine_self(CONFINE_LEARN, NULL, 0, err);
	if (r == 0)
		r = load(before, before_size, "the policy of the session", &ret_inputs->before, err);
	return r < 0 ? r : load(other, other_size, "the policy", &ret_inputs->other, err);
}

static int put_out(const struct buf *out, struct err *err)
{
	int r = out->error ? out->error : fd_write_full(STDOUT_FILENO, out->bytes, out->size);

	return r < 0 ? err_set(err, ERR_STATE, -r, "learn", "stdout cannot be written: %s", strerror(-r)) : 0;
}

/*
 * What the proposal would let happen that the session's policy does not, by decisions: the rules that it was made by
 * should leave nothing of it. How much is written down, who is asked and whose record counts is no part of it.
 */
static size_t put_wider(const struct inputs *inputs, struct buf *out)
{
	const struct policy *other = snapshot_policy(inputs->other);
	struct policy before = *snapshot_policy(inputs->before);
	size_t widened;

	before.audit.files = other->audit.files;
	before.audit.exec = other->audit.exec;
	before.audit.network = other->audit.network;
	before.stage.snapshots = other->stage.snapshots;
	before.ask = other->ask;
	before.trust = other->trust;
	widened = print_diff_allows(&before, other, NULL);
	if (widened) {
		buf_put_text(out, "wider than what the command ran under:\n");
		(void)print_diff_allows(&before, other, out);
	}
	return widened;
}

static int test(const struct given *given, const struct inputs *inputs, struct err *err)
{
	struct comparison_names names = { given->session, given->policy };
	/* "differences": silence is good news. */
	bool is_told = str_equal(given->form, "differences");
	const struct comparison_sides sides = { snapshot_policy(inputs->before), snapshot_policy(inputs->other),
						is_told };
	struct comparison comparison;
	cleanup_buf struct buf out;
	size_t wider;
	int r;

	buf_init(&out, OUT_MAX);
	r = comparison_make(&comparison, &sides, inputs->log_fd);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "the log cannot be read: %s", strerror(-r));
	if (str_equal(given->form, "json"))
		comparison_format_json(&comparison, &names, &out);
	else if (comparison.different || !is_told)
		comparison_format(&comparison, &names, &out);
	wider = is_told ? put_wider(inputs, &out) : 0;
	r = comparison.different || wider || !is_told ? put_out(&out, err) : 0;
	if (r == 0 && (comparison.different || wider))
		r = LEARN_DIFFERS;
	else if (r == 0 && !is_told && comparison_is_incomplete(&comparison))
		r = LEARN_UNKNOWN;
	comparison_done(&comparison);
	return r;
}

static int learn(const struct given *given, const struct inputs *inputs, struct err *err)
{
	struct propose_request request = {
		.before = snapshot_policy(inputs->before),
		.base = snapshot_policy(inputs->other),
		.session = given->session,
	};
	cleanup_buf struct buf out;
	int r = usage_parse(inputs->report, inputs->report_size, &request.usage);

	buf_init(&out, OUT_MAX);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "the report of session %s cannot be read", given->session);
	r = propose(&request, inputs->log_fd, &out);
	if (r == -EOPNOTSUPP) {
		err_set(err, ERR_USAGE, EOPNOTSUPP, "learn",
			"the session had the host's network, which is not recorded");
		err_hint(err, "learn under a policy whose network goes through the gate: -t medium");
		return r;
	}
	if (r == -ENODATA)
		return err_set(err, ERR_STATE, ENODATA, "learn", "nothing was started, so nothing was learnt");
	return r < 0 ? err_set(err, ERR_STATE, -r, "learn", "the log cannot be read: %s", strerror(-r))
		     : put_out(&out, err);
}

static int effects(const struct given *given, const struct inputs *inputs, struct err *err)
{
	struct effects effects;
	cleanup_buf struct buf out;
	int r = effects_read(&effects, inputs->log_fd);

	buf_init(&out, OUT_MAX);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "the log cannot be read: %s", strerror(-r));
	if (str_equal(given->form, "json"))
		effects_format_json(&effects, &out);
	else
		effects_format(&effects, EFFECTS_LINES, &out);
	r = put_out(&out, err);
	if (r == 0)
		r = fd_write_full(LEARN_NUMBERS_FD, &effects.numbers, sizeof effects.numbers);
	effects_done(&effects);
	return r < 0 && err->code == ERR_NONE ? err_set(err, ERR_INTERNAL, -r, "learn", "there are no numbers") : r;
}

static const struct {
	const char *name;
	int (*take)(const struct given *given, struct inputs *ret_inputs, struct err *err);
	int (*run)(const struct given *given, const struct inputs *inputs, struct err *err);
} verbs[] = {
	{ "test", take_inputs, test },
	{ "learn", take_inputs, learn },
	{ "effects", take_log, effects },
};

static int run(int argc, char **argv, struct err *err)
{
	struct inputs inputs = { .log_fd = FD_NONE };
	struct given given;

	for (size_t i = 0; argc == WORDS + 1 && i < ARRAY_SIZE(verbs); i++) {
		int r;

		if (!str_equal(argv[1], verbs[i].name))
			continue;
		given = (struct given){ argv[1], argv[2], argv[3], argv[4], argv[5], argv[6] };
		r = verbs[i].take(&given, &inputs, err);
		return r < 0 ? r : verbs[i].run(&given, &inputs, err);
	}
	err_set(err, ERR_USAGE, EINVAL, "learn", "atoll-learn is started by atoll");
	err_hint(err, "atoll policy test POLICY [ID…]");
	return -EINVAL;
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
