/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "prog/atoll-stage/review/classifier.h"
#include "prog/atoll-stage/show/show.h"
#include "stage/change/review-options.h"

struct request {
	struct verb_session session;
	struct diff_options given;
	bool interrupted;
};

#define AT(member) offsetof(struct request, given.member)
static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct request),
	DIFF_OPTIONS(AT),
	{ 0, "interrupted", NULL, "the session's end was never recorded", OPTION_FLAG,
	  offsetof(struct request, interrupted) },
};

/* Words that are not options are paths: absolute, and normalised here. */
static int normalise(char **argv, int rest, int argc, char ***ret_paths, struct err *err)
{
	char path[PATH_MAX], **paths = calloc((size_t)(argc - rest) + 1, sizeof *paths);

	for (int i = rest; paths && i < argc; i++) {
		if (path_normalise(path, sizeof path, argv[i]) < 0) {
			strv_free(paths);
			return err_set(err, ERR_USAGE, EINVAL, "diff", "%s is not an absolute path", argv[i]);
		}
		paths[i - rest] = str_dup(path);
		if (!paths[i - rest]) {
			strv_free(paths);
			paths = NULL;
		}
	}
	if (!paths)
		return err_set(err, ERR_INTERNAL, ENOMEM, "diff", "out of memory");
	*ret_paths = paths;
	return 0;
}

static int show(const struct diff_options *given, const struct listing *listing, struct text_worker *worker,
		struct err *err)
{
	struct show show = {
		.listing = listing, .worker = worker->socket_fd < 0 ? NULL : worker, .flagged_only = given->flagged,
	};

	if (given->json)
		return show_json(&show, err);
	if (given->stat || !given->patch) {
		int r = show_stat(&show, err);

		if (r < 0 || !given->patch)
			return r;
	}
	return show_patch(&show, err);
}

static int diff(const struct request *request, char **paths, struct err *err)
{
	const struct diff_options *given = &request->given;
	cleanup_opened struct opened opened = OPENED_NONE;
	cleanup_text_worker struct text_worker worker = TEXT_WORKER_NONE;
	struct listing listing;
	int r = opened_open(&opened, &request->session, err);

	if (r == 0)
		r = opened_stacks(&opened, err);
	if (r < 0)
		return r;
	/* A power cut during a run may have lost staged data: such an upper is not synced. */
	if (request->interrupted && stage_record_is_other_boot(&opened.record))
		fprintf(stderr, "atoll: the machine went down while session %s ran: what it staged may be incomplete\n",
			opened.record.session);
	if (!given->json) {
		r = text_worker_start(&worker, err);
		if (r < 0 && given->patch)
			return r;
	}
	*err = (struct err){ 0 };
	r = opened_confine(&opened, CONFINE_STAGE_READING, err);
	if (r == 0)
		r = listing_load(&listing, &opened, paths, strv_count((const char *const *)paths), err);
	if (r == 0) {
		r = classifier_check_paths(&opened, &listing.changes, paths, err);
		if (r == 0)
			r = show(given, &listing, &worker, err);
		listing_done(&listing);
	}
	return r;
}

int cmd_diff(int argc, char **argv, struct err *err)
{
	struct request request = { 0 };
	char **paths;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &request, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	r = normalise(argv, rest, argc, &paths, err);
	if (r < 0)
		return r;
	r = diff(&request, paths, err);
	strv_free(paths);
	/* Whoever reads has seen enough. */
	return r == -EPIPE ? 0 : r;
}
