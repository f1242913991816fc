/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/time.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum { S_PER_DAY = 86400, MS_PER_S = 1000, DAYS_TO_1970 = 719468 };
#define TIME_LAST_MS UINT64_C(253402300799999)

/* Days since 1970 of a date of the Gregorian calendar, by counting years from March on, and back. */
static int64_t days_of(unsigned year, unsigned month, unsigned day)
{
	unsigned y = month <= 2 ? year - 1 : year;
	unsigned era = y / 400, of_era = y % 400;
	unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

static void date_of(uint64_t days, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	uint64_t all = days + DAYS_TO_1970;
	unsigned era = (unsigned)(all / 146097), of_era = (unsigned)(all % 146097);
	unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;

	*ret_day = of_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

void time_format(uint64_t ms, char out[TIME_SIZE])
{
	uint64_t s;
	unsigned year, month, day;

	if (ms > TIME_LAST_MS)
		ms = TIME_LAST_MS;
	s = ms / MS_PER_S;
	date_of(s / S_PER_DAY, &year, &month, &day);
	if (str_format(out, TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month, day,
		       (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
		       (unsigned)(ms % MS_PER_S)) < 0)
		out[0] = 0;
}

/* Exactly count digits. */
static int read_digits(const char **at, unsigned count, unsigned *ret)
{
	unsigned value = 0;

	for (unsigned i = 0; i < count; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(**at - '0');
	}
	*ret = value;
	return 0;
}

/* "2026-11-23T10:00:00": each number, and the byte behind it. */
static int read_fields(const char **at, unsigned fields[6])
{
	static const struct {
		unsigned digits, low, high;
		const char *behind;
	} forms[6] = {
		{ 4, 1970, 9999, "-" }, { 2, 1, 12, "-" }, { 2, 1, 31, "Tt " },
		{ 2, 0, 23, ":" },	{ 2, 0, 59, ":" }, { 2, 0, 60, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (read_digits(at, forms[i].digits, &fields[i]) < 0 || fields[i] < forms[i].low ||
		    fields[i] > forms[i].high)
			return -EINVAL;
		if (forms[i].behind && (!**at || !strchr(forms[i].behind, *(*at)++)))
			return -EINVAL;
	}
	return 0;
}

static int read_offset(const char *at, int64_t *ret_s)
{
	unsigned hours, minutes;
	int sign = *at == '-' ? -1 : 1;

	*ret_s = 0;
	if ((*at == 'Z' || *at == 'z') && !at[1])
		return 0;
	if (*at != '+' && *at != '-')
		return -EINVAL;
	at++;
	if (read_digits(&at, 2, &hours) < 0 || *at++ != ':' || read_digits(&at, 2, &minutes) < 0 || *at)
		return -EINVAL;
	*ret_s = sign * (int64_t)(hours * 3600 + minutes * 60);
	return 0;
}

int time_parse(const char *text, uint64_t *ret_ms)
{
	unsigned fields[6], ms = 0, scale = 100;
	int64_t offset, s;

	if (read_fields(&text, fields) < 0)
		return -EINVAL;
	if (*text == '.') {
		if (text[1] < '0' || text[1] > '9')
			return -EINVAL;
		for (text++; *text >= '0' && *text <= '9'; text++, scale /= 10)
			ms += (unsigned)(*text - '0') * scale;
	}
	if (read_offset(text, &offset) < 0)
		return -EINVAL;
	s = days_of(fields[0], fields[1], fields[2]) * S_PER_DAY + fields[3] * 3600 + fields[4] * 60 + fields[5] -
	    offset;
	if (s < 0)
		return -EINVAL;
	*ret_ms = (uint64_t)s * MS_PER_S + ms;
	return 0;
}
