/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

static const struct {
	const char *name;
	size_t least, most;              /* arguments; most 0: any even number */
} types[STEP_TYPE_COUNT] = {
	[STEP_RUN] = { "RUN", 1, 2 }, [STEP_COPY] = { "COPY", 2, 4 }, [STEP_WORKDIR] = { "WORKDIR", 1, 1 },
	[STEP_USER] = { "USER", 1, 1 }, [STEP_ENV] = { "ENV", 2, 0 },
};

static int refuse(size_t number, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, EINVAL, "build", "step %zu %s", number, what);
}

static bool is_hash(const char *text)
{
	return strlen(text) == HASH_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == HASH_HEX_SIZE - 1;
}

static int check(const struct build_step *step, size_t number, struct err *err)
{
	size_t count = step->argument_count;

	if (count < types[step->type].least || (types[step->type].most ? count > types[step->type].most : count % 2))
		return refuse(number, "has another number of arguments than its type", err);
	if (step->type == STEP_COPY && !is_hash(step->files))
		return refuse(number, "copies files without the hash of them", err);
	for (size_t i = 0; step->type == STEP_ENV && i < count; i += 2)
		if (!step->arguments[i][0] || strchr(step->arguments[i], '='))
			return refuse(number, "sets a variable whose name cannot be one", err);
	return 0;
}

/* Moves *at behind it. */
static int read_step(struct build_step *step, const char *const **at, size_t left, size_t number, struct err *err)
{
	const char *const *strings = *at;
	uint64_t count = 0;

	if (left < 4 || num_parse_u64(strings[3], &count) < 0 || count > left - 4)
		return refuse(number, "is not whole", err);
	for (step->type = 0; step->type < STEP_TYPE_COUNT; step->type++)
		if (str_equal(types[step->type].name, strings[0]))
			break;
	if (step->type == STEP_TYPE_COUNT)
		return refuse(number, "has a type that is not served here: RUN, COPY, WORKDIR, USER or ENV", err);
	step->files = strings[1];
	step->is_forced = strings[2][0] != 0;
	step->argument_count = count;
	step->arguments = strings + 4;
	*at += 4 + count;
	return check(step, number, err);
}

/* Texts with their ends, so that no two lists of them are the same bytes. */
static void add(struct hash_stream *stream, const char *text)
{
	hash_stream_add(stream, text, strlen(text) + 1);
}

static void end(struct hash_stream *stream, char out[HASH_HEX_SIZE])
{
	struct hash hash;

	hash_stream_end(stream, &hash);
	hash_to_hex(&hash, out);
}

static void hash_step(struct build_step *step, const char *before)
{
	struct hash_stream stream;

	hash_stream_begin(&stream);
	add(&stream, before);
	add(&stream, types[step->type].name);
	add(&stream, step->type == STEP_COPY ? step->files : "");
	for (size_t i = 0; i < step->argument_count; i++)
		add(&stream, step->arguments[i]);
	end(&stream, step->hash);
}

static void hash_end(struct plan *plan, const char *before, const char *const commands[2])
{
	struct hash_stream stream;

	hash_stream_begin(&stream);
	add(&stream, before);
	add(&stream, "finalize");
	for (size_t i = 0; i < 2; i++)
		add(&stream, commands[i] ? commands[i] : "");
	end(&stream, plan->end);
}

static size_t count_steps(const char *const *strings)
{
	size_t steps = 0, left = strv_count(strings);

	while (left >= 4 && steps <= PLAN_STEPS_MAX) {
		uint64_t count = 0;

		if (num_parse_u64(strings[3], &count) < 0 || count > left - 4)
			return steps + 1;
		strings += 4 + count;
		left -= 4 + count;
		steps++;
	}
	return left ? steps + 1 : steps;
}

int plan_read(struct plan *ret_plan, const char *const *strings, const char *base, const char *const commands[2],
	      struct err *err)
{
	const char *const *stop = strings + strv_count(strings);
	struct plan plan = { .count = count_steps(strings) };
	const char *before = base;
	int r = 0;

	if (plan.count > PLAN_STEPS_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "build", "there are more than %d steps", PLAN_STEPS_MAX);
	plan.steps = calloc(plan.count + 1, sizeof *plan.steps);
	if (!plan.steps)
		return err_set(err, ERR_INTERNAL, ENOMEM, "build", "out of memory");
	for (size_t i = 0; r == 0 && i < plan.count; i++) {
		r = read_step(&plan.steps[i], &strings, (size_t)(stop - strings), i + 1, err);
		if (r == 0)
			hash_step(&plan.steps[i], before);
		before = plan.steps[i].hash;
	}
	hash_end(&plan, before, commands);
	if (r < 0)
		plan_done(&plan);
	else
		*ret_plan = plan;
	return r;
}

void plan_done(struct plan *plan)
{
	free(plan->steps);
	*plan = (struct plan){ 0 };
}

bool plan_step_is_done(const struct build_step *step)
{
	return step->type == STEP_RUN || step->type == STEP_COPY || step->type == STEP_WORKDIR;
}

void plan_step_show(const struct build_step *step, char *out, size_t size)
{
	int at = snprintf(out, size, "%s", types[step->type].name);
	size_t shown = step->type == STEP_RUN || step->type == STEP_ENV ? 1 : step->argument_count;

	for (size_t i = 0; i < shown && i < 2 && at >= 0 && (size_t)at < size; i++)
		at += snprintf(out + at, size - (size_t)at, " %s", step->arguments[i]);
}
