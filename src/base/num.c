/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "TiB", 1ULL << 40 }, { "GiB", 1ULL << 30 }, { "MiB", 1ULL << 20 }, { "KiB", 1ULL << 10 },
	{ "TB", 1000000000000ULL }, { "GB", 1000000000ULL }, { "MB", 1000000ULL }, { "kB", 1000 },
	{ "B", 1 }, { "", 1 },
};

static const struct unit count_units[] = {
	{ "G", 1000000000ULL }, { "M", 1000000ULL }, { "k", 1000 }, { "", 1 },
};

static const struct unit duration_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

/* Digits at *text; *text moves behind them. */
static int scan_digits(const char **text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (**text < '0' || **text > '9')
		return -EINVAL;
	for (; **text >= '0' && **text <= '9'; ++*text)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return -ERANGE;
	*ret_value = value;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
			return &units[i];
	return NULL;
}

static int parse_with_units(const char *text, const struct unit *units, size_t count, uint64_t *ret_value)
{
	const struct unit *unit;
	uint64_t value;
	int r;

	if (str_equal(text, "unlimited")) {
		*ret_value = NUM_UNLIMITED;
		return 0;
	}
	r = scan_digits(&text, &value);
	if (r < 0)
		return r;
	unit = find_unit(units, count, text, strlen(text));
	if (!unit)
		return -EINVAL;
	if (__builtin_mul_overflow(value, unit->factor, &value) || value == NUM_UNLIMITED)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int num_parse_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value;
	int r = scan_digits(&text, &value);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int num_parse_count(const char *text, uint64_t *ret_count)
{
	return parse_with_units(text, count_units, ARRAY_SIZE(count_units), ret_count);
}

int num_parse_size(const char *text, uint64_t *ret_bytes)
{
	return parse_with_units(text, size_units, ARRAY_SIZE(size_units), ret_bytes);
}

int num_parse_duration(const char *text, uint64_t *ret_ms)
{
	uint64_t total = 0;

	if (str_equal(text, "unlimited")) {
		*ret_ms = NUM_UNLIMITED;
		return 0;
	}
	do {
		const struct unit *unit;
		uint64_t value;
		size_t length;
		int r = scan_digits(&text, &value);

		if (r < 0)
			return r;
		length = strspn(text, "dhms");
		unit = find_unit(duration_units, ARRAY_SIZE(duration_units), text, length);
		if (!unit)
			return -EINVAL;
		if (__builtin_mul_overflow(value, unit->factor, &value) ||
		    __builtin_add_overflow(total, value, &total) || total == NUM_UNLIMITED)
			return -ERANGE;
		text += length;
	} while (*text);
	*ret_ms = total;
	return 0;
}

int num_parse_rate(const char *text, uint64_t *ret_amount, uint64_t *ret_period_ms)
{
	static const struct unit periods[] = { { "s", 1000 }, { "min", 60000 }, { "h", 3600000 } };
	const char *slash = strchr(text, '/');
	const struct unit *period;
	char amount[32];
	uint64_t value;
	int r;

	if (!slash || (size_t)(slash - text) >= sizeof amount)
		return -EINVAL;
	memcpy(amount, text, (size_t)(slash - text));
	amount[slash - text] = 0;
	period = find_unit(periods, ARRAY_SIZE(periods), slash + 1, strlen(slash + 1));
	if (!period)
		return -EINVAL;
	r = num_parse_size(amount, &value);
	if (r == -EINVAL)
		r = num_parse_count(amount, &value);
	if (r < 0)
		return r;
	if (value == NUM_UNLIMITED)
		return -EINVAL;
	*ret_amount = value;
	*ret_period_ms = period->factor;
	return 0;
}

int num_parse_cpus(const char *text, uint64_t *ret_millicpus)
{
	uint64_t whole, thousandths = 0, scale = 100;
	int r;

	if (str_equal(text, "unlimited")) {
		*ret_millicpus = NUM_UNLIMITED;
		return 0;
	}
	r = scan_digits(&text, &whole);
	if (r < 0)
		return r;
	if (*text == '.') {
		text++;
		if (!*text)
			return -EINVAL;
		for (; *text >= '0' && *text <= '9' && scale; text++, scale /= 10)
			thousandths += (uint64_t)(*text - '0') * scale;
	}
	if (*text)
		return -EINVAL;
	if (whole > 1000000)
		return -ERANGE;
	*ret_millicpus = whole * 1000 + thousandths;
	return 0;
}

static void format_with_units(uint64_t value, const struct unit *units, size_t count, char out[32])
{
	size_t best = count - 1;

	if (value == NUM_UNLIMITED) {
		snprintf(out, 32, "unlimited");
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (value && value % units[i].factor == 0 && units[i].factor > units[best].factor)
			best = i;
	snprintf(out, 32, "%llu%s", (unsigned long long)(value / units[best].factor), units[best].name);
}

void num_format_size(uint64_t bytes, char out[32])
{
	/* Binary units first: where both fit, 1024000 is 1000KiB. */
	static const struct unit binary[] = {
		{ "TiB", 1ULL << 40 }, { "GiB", 1ULL << 30 }, { "MiB", 1ULL << 20 }, { "KiB", 1ULL << 10 }, { "", 1 },
	};

	format_with_units(bytes, binary, ARRAY_SIZE(binary), out);
}

void num_format_count(uint64_t count, char out[32])
{
	format_with_units(count, count_units, ARRAY_SIZE(count_units), out);
}

void num_format_duration(uint64_t ms, char out[32])
{
	size_t used = 0;

	if (ms == NUM_UNLIMITED || ms == 0) {
		snprintf(out, 32, ms ? "unlimited" : "0s");
		return;
	}
	out[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(duration_units) && used < 32; i++) {
		uint64_t part = ms / duration_units[i].factor;

		if (part)
			used += (size_t)snprintf(out + used, 32 - used, "%llu%s", (unsigned long long)part,
						 duration_units[i].name);
		ms %= duration_units[i].factor;
	}
}

void num_format_size_human(uint64_t bytes, char out[32])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes == NUM_UNLIMITED) {
		snprintf(out, 32, "unlimited");
		return;
	}
	while (value >= 1024 && unit + 1 < ARRAY_SIZE(names)) {
		value /= 1024;
		unit++;
	}
	snprintf(out, 32, unit && value < 10 ? "%.1f %s" : "%.0f %s", value, names[unit]);
}

void num_format_duration_human(uint64_t ms, char out[32])
{
	unsigned long long s = ms / 1000;

	if (ms == NUM_UNLIMITED)
		snprintf(out, 32, "unlimited");
	else if (ms < 1000)
		snprintf(out, 32, "%llu ms", (unsigned long long)ms);
	else if (ms < 60000)
		snprintf(out, 32, "%llu.%llu s", s, (unsigned long long)(ms % 1000 / 100));
	else if (s < 3600)
		snprintf(out, 32, "%llu min %02llu s", s / 60, s % 60);
	else
		snprintf(out, 32, "%llu h %02llu min", s / 3600, s / 60 % 60);
}
