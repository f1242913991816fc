/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/answer.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"

enum { MS_PER_S = 1000, HEX_DIGITS = 2 * ASKING_HASH_SIZE };

struct reading {
	struct answer answer;
	bool has_question, has_hash, has_answer, has_scope;
	uint64_t uses, seconds;
};

void answer_prepare(void)
{
	json_object_seed(0);
}

static const char *read_question(struct reading *reading, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 1 || number > UINT32_MAX)
		return "\"question\" is no number of one";
	reading->answer.question = (uint32_t)number;
	reading->has_question = true;
	return NULL;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *read_hash(struct reading *reading, const json_t *value)
{
	static const char prefix[] = "sha256:";
	const char *text = json_string_value(value);

	if (!text || !str_has_prefix(text, prefix) || strlen(text) != sizeof prefix - 1 + HEX_DIGITS)
		return "\"hash\" is no hash";
	text += sizeof prefix - 1;
	for (size_t i = 0; i < ASKING_HASH_SIZE; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return "\"hash\" is no hash";
		reading->answer.hash[i] = (uint8_t)(high << 4 | low);
	}
	reading->has_hash = true;
	return NULL;
}

static const char *read_verdict(struct reading *reading, const json_t *value)
{
	const char *text = json_string_value(value);

	reading->answer.is_allowed = str_equal(text, "allow");
	reading->has_answer = true;
	return reading->answer.is_allowed || str_equal(text, "deny") ? NULL : "\"answer\" is neither allow nor deny";
}

static const char *read_scope(struct reading *reading, const json_t *value)
{
	static const char *const names[] = {
		[ASKING_ONCE] = "once", [ASKING_USES] = "uses", [ASKING_TIME] = "time", [ASKING_SESSION] = "session",
	};
	const char *text = json_string_value(value);

	for (size_t i = 0; text && i < ARRAY_SIZE(names); i++) {
		if (!str_equal(text, names[i]))
			continue;
		reading->answer.scope = (enum asking_scope)i;
		reading->has_scope = true;
		return NULL;
	}
	return "\"scope\" is none of once, uses, time, session";
}

static const char *read_amount(const json_t *value, uint64_t max, uint64_t *ret_amount)
{
	json_int_t amount = json_integer_value(value);

	if (!json_is_integer(value) || amount < 1 || (uint64_t)amount > max)
		return "an amount is out of range";
	*ret_amount = (uint64_t)amount;
	return NULL;
}

static const char *read_uses(struct reading *reading, const json_t *value)
{
	return read_amount(value, ANSWER_USES_MAX, &reading->uses);
}

static const char *read_seconds(struct reading *reading, const json_t *value)
{
	return read_amount(value, ANSWER_SECONDS_MAX, &reading->seconds);
}

static const struct {
	const char *name;
	const char *(*read)(struct reading *reading, const json_t *value);
} members[] = {
	{ "question", read_question }, { "hash", read_hash }, { "answer", read_verdict },
	{ "scope", read_scope },       { "uses", read_uses }, { "seconds", read_seconds },
};

static const char *read_member(struct reading *reading, const char *name, const json_t *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (str_equal(members[i].name, name))
			return members[i].read(reading, value);
	return "there is a member that is not known";
}

static const char *check(struct reading *reading)
{
	struct answer *answer = &reading->answer;

	if (!reading->has_question || !reading->has_hash || !reading->has_answer)
		return "\"question\", \"hash\" and \"answer\" are needed";
	if ((answer->scope == ASKING_USES) != (reading->uses > 0) ||
	    (answer->scope == ASKING_TIME) != (reading->seconds > 0))
		return "\"uses\" goes with scope uses, \"seconds\" with scope time";
	if (!answer->is_allowed && reading->has_scope && answer->scope != ASKING_ONCE)
		return "a refusal has no scope";
	answer->amount = answer->scope == ASKING_USES ? reading->uses : reading->seconds * MS_PER_S;
	return NULL;
}

static const char *read_object(json_t *root, struct reading *reading)
{
	const char *name, *why = NULL;
	json_t *value;

	if (!json_is_object(root))
		return "it is no JSON object";
	json_object_foreach(root, name, value) {
		why = read_member(reading, name, value);
		if (why)
			return why;
	}
	return check(reading);
}

int answer_parse(const void *bytes, size_t size, struct answer *ret_answer, const char **ret_why)
{
	struct reading reading = { 0 };
	json_error_t error;
	json_t *root = size <= ANSWER_MAX ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	const char *why = root ? read_object(root, &reading) : "it is no JSON object";

	json_decref(root);
	if (why) {
		*ret_why = why;
		return -EINVAL;
	}
	*ret_answer = reading.answer;
	return 0;
}
