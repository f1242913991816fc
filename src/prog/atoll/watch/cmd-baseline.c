/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "client/find.h"
#include "monitor/score.h"
#include "policy/policy.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"
#include "session/record.h"

/* What was learnt of agents and projects (monitor.baseline): what it is, and to have it forgotten. */

enum { FILES_MAX = 100000 };

struct baseline_options {
	bool all, json;
};

static const struct option options[] = {
	{ 'a', "all", NULL, "of every project", OPTION_FLAG, offsetof(struct baseline_options, all) },
	{ 0, "json", NULL, "one JSON array", OPTION_FLAG, offsetof(struct baseline_options, json) },
};

struct looking {
	const struct baseline_options *given;
	const char *project;
	bool forgets;
	struct json json;
	struct buf out;
	size_t count, damaged;
};

static void put_number(struct looking *looking, const struct monitor_feature_text *text, uint64_t number)
{
	char size[32];

	if (text->is_bytes) {
		num_format_size_human(number, size);
		buf_put_text(&looking->out, size);
	} else {
		buf_printf(&looking->out, "%llu", (unsigned long long)number);
	}
}

/* What is told from is so for the usual budget; a policy may have another. */
static void put_feature(struct looking *looking, const struct baseline *baseline, enum monitor_feature feature)
{
	const struct score_budget budget = { MONITOR_SESSIONS, MONITOR_LEARN };
	const struct monitor_feature_text *text = &monitor_features[feature];
	struct score_row row;
	uint64_t limit;

	score_row_init(&row, baseline, feature);
	limit = score_limit(&row, feature, &budget);
	if (looking->given->json) {
		json_object_begin(&looking->json, text->name);
		json_u64(&looking->json, "median", score_median(&row));
		json_u64(&looking->json, "max", score_max(&row));
		if (limit == UINT64_MAX)
			json_null(&looking->json, "limit");
		else
			json_u64(&looking->json, "limit", limit);
		if (feature < MONITOR_SET_COUNT)
			json_u64(&looking->json, "known", baseline->sets[feature].count);
		json_object_end(&looking->json);
		return;
	}
	buf_put_text(&looking->out, "    usual ");
	put_number(looking, text, score_median(&row));
	buf_put_text(&looking->out, ", most ");
	put_number(looking, text, score_max(&row));
	if (limit != UINT64_MAX) {
		buf_put_text(&looking->out, ", told from ");
		put_number(looking, text, limit);
	}
	buf_printf(&looking->out, " %s", text->words);
	if (feature < MONITOR_SET_COUNT)
		buf_printf(&looking->out, " (%zu are known)", baseline->sets[feature].count);
	buf_put_char(&looking->out, '\n');
}

static void put_baseline(struct looking *looking, const struct baseline *baseline)
{
	bool is_json = looking->given->json;

	if (is_json) {
		json_object_begin(&looking->json, NULL);
		json_bytes(&looking->json, "agent", baseline->agent, strlen(baseline->agent));
		json_bytes(&looking->json, "project", baseline->project, strlen(baseline->project));
		json_u64(&looking->json, "sessions", baseline->sessions);
		json_bool(&looking->json, "forgotten", looking->forgets);
		json_object_begin(&looking->json, "features");
	} else {
		buf_put_escaped(&looking->out, baseline->agent, strlen(baseline->agent), 200);
		buf_put_text(&looking->out, "  in ");
		buf_put_escaped(&looking->out, baseline->project, strlen(baseline->project), 0);
		buf_printf(&looking->out, ": %s%u session%s\n", looking->forgets ? "forgotten, " : "",
			   baseline->sessions, baseline->sessions == 1 ? "" : "s");
	}
	for (enum monitor_feature feature = 0; feature < MONITOR_FEATURE_COUNT && (is_json || !looking->forgets);
	     feature++)
		put_feature(looking, baseline, feature);
	if (is_json) {
		json_object_end(&looking->json);
		json_object_end(&looking->json);
	}
}

static int look_at(struct looking *looking, const char *directory, const char *name, struct err *err)
{
	struct baseline baseline;
	char path[PATH_MAX];
	int r = path_join(path, sizeof path, directory, name);

	if (r == 0)
		r = baseline_load(&baseline, path);
	/* Whose a damaged one was nobody knows; it goes with all. */
	if (r < 0) {
		looking->damaged++;
		return looking->forgets && looking->given->all && unlink(path) < 0
			       ? err_set(err, ERR_STATE, errno, "baseline", "%s: %s", path, strerror(errno)) : 0;
	}
	if (looking->given->all || str_equal(baseline.project, looking->project)) {
		looking->count++;
		put_baseline(looking, &baseline);
		if (looking->forgets && unlink(path) < 0 && errno != ENOENT)
			r = err_set(err, ERR_STATE, errno, "baseline", "%s: %s", path, strerror(errno));
	}
	baseline_done(&baseline);
	return r;
}

static int look_at_all(struct looking *looking, const char *directory, struct err *err)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	size_t seen = 0;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, ERR_STATE, errno, "baseline", "%s: %s", directory,
						     strerror(errno));
	while (r >= 0 && seen++ < FILES_MAX && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !strstr(entry->d_name, ".tmp."))
			r = look_at(looking, directory, entry->d_name, err);
	closedir(dir);
	return r;
}

static int finish(struct looking *looking, struct err *err)
{
	if (looking->given->json) {
		json_array_end(&looking->json);
		buf_put_char(&looking->out, '\n');
	} else if (!looking->count) {
		buf_printf(&looking->out, "nothing was learnt%s\n",
			   looking->given->all ? "" : " of this project; --all: of the others");
	}
	if (looking->damaged && !looking->given->json)
		buf_printf(&looking->out, "%zu damaged file%s%s\n", looking->damaged, looking->damaged == 1 ? "" : "s",
			   looking->forgets && looking->given->all ? ", removed"
								   : "; `atoll baseline forget --all` removes");
	if (buf_error(&looking->out) || fwrite(looking->out.bytes, 1, looking->out.size, stdout) != looking->out.size ||
	    fflush(stdout) != 0)
		return err_set(err, ERR_STATE, EIO, "baseline", "stdout cannot be written");
	return 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	char state[PATH_MAX], project[PATH_MAX] = "", directory[PATH_MAX];
	struct baseline_options given = { 0 };
	struct looking looking = { .given = &given, .project = project };
	int rest, r = cmd_parse(&cmd_baseline, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	looking.forgets = rest < argc && str_equal(argv[rest], "forget");
	if (argc - rest > 1 || (argc - rest == 1 && !looking.forgets && !str_equal(argv[rest], "show"))) {
		err_set(err, ERR_USAGE, EINVAL, "baseline", "the verbs are \"show\" and \"forget\"");
		err_hint(err, "atoll baseline [show | forget] [--all]");
		return -EINVAL;
	}
	r = session_state_dir(state, sizeof state, false, err);
	if (r == 0)
		r = str_format(directory, sizeof directory, "%s/baselines", state);
	if (r < 0)
		return err->code ? r : err_set(err, ERR_STATE, -r, "baseline", "the path of the state directory is "
									       "too long");
	r = given.all ? 0 : find_project(project, err);
	if (r < 0)
		return r;
	buf_init(&looking.out, 64 << 20);
	json_init(&looking.json, &looking.out);
	if (given.json)
		json_array_begin(&looking.json, NULL);
	r = look_at_all(&looking, directory, err);
	if (r >= 0)
		r = finish(&looking, err);
	buf_done(&looking.out);
	return r;
}

const struct cmd cmd_baseline = {
	"baseline", "[show | forget] [--all] [--json]", "show or forget what was learnt of agents in projects",
	CMD_OPTIONS(options), .run = run_verb,
};
