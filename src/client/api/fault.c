/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/fault.h"

#include <string.h>

#include "base/str.h"

/* By what went wrong, where that is known; else by what kind of failure it is. */
static int code_of(const struct err *err)
{
	static const int by_kind[ERR_CODE_COUNT] = {
		[ERR_NONE] = ATOLL_E_INTERNAL, [ERR_INTERNAL] = ATOLL_E_INTERNAL, [ERR_USAGE] = ATOLL_E_INVALID,
		[ERR_POLICY] = ATOLL_E_POLICY, [ERR_WALL] = ATOLL_E_WALL, [ERR_STATE] = ATOLL_E_STATE,
		[ERR_NOT_FOUND] = ATOLL_E_NOT_FOUND, [ERR_NOT_RUNNABLE] = ATOLL_E_NOT_RUNNABLE,
	};
	static const struct {
		int errnum, code;
	} by_errno[] = {
		{ EAGAIN, ATOLL_E_LIMIT }, { ETIMEDOUT, ATOLL_E_TIMEOUT }, { ESHUTDOWN, ATOLL_E_GONE },
		{ ECONNRESET, ATOLL_E_GONE }, { EPIPE, ATOLL_E_GONE }, { EBUSY, ATOLL_E_BUSY },
		{ E2BIG, ATOLL_E_LIMIT }, { EMFILE, ATOLL_E_LIMIT }, { ENOMEM, ATOLL_E_NO_MEMORY },
		{ ESRCH, ATOLL_E_NOT_FOUND }, { EOPNOTSUPP, ATOLL_E_UNSUPPORTED },
	};

	static const struct {
		int errnum, code;
	} of_files[] = {
		{ ENOENT, ATOLL_E_NOT_FOUND }, { EEXIST, ATOLL_E_EXISTS }, { ENOTEMPTY, ATOLL_E_EXISTS },
		{ EACCES, ATOLL_E_DENIED }, { EPERM, ATOLL_E_DENIED }, { EROFS, ATOLL_E_DENIED },
		{ ENOSPC, ATOLL_E_LIMIT }, { EDQUOT, ATOLL_E_LIMIT }, { EFBIG, ATOLL_E_LIMIT },
		{ ENOTDIR, ATOLL_E_INVALID }, { EISDIR, ATOLL_E_INVALID }, { EINVAL, ATOLL_E_INVALID },
		{ ELOOP, ATOLL_E_INVALID }, { ENAMETOOLONG, ATOLL_E_INVALID }, { EXDEV, ATOLL_E_INVALID },
		{ ECONNREFUSED, ATOLL_E_NOT_FOUND },
	};

	for (size_t i = 0; str_equal(err->stage, "files") && i < ARRAY_SIZE(of_files); i++)
		if (of_files[i].errnum == err->errnum)
			return of_files[i].code;
	for (size_t i = 0; (err->code == ERR_STATE || err->code == ERR_INTERNAL) && i < ARRAY_SIZE(by_errno); i++)
		if (by_errno[i].errnum == err->errnum)
			return by_errno[i].code;
	return (unsigned)err->code < ERR_CODE_COUNT ? by_kind[err->code] : ATOLL_E_INTERNAL;
}

/* What does not fit is left out: ours are no larger than the caller's. */
static void copy(char *out, size_t size, const char *text)
{
	(void)!str_copy(out, size, text);
}

/* No more than the caller's struct holds, which may be of another release. */
static void fill(struct atoll_error *error, int code, const struct err *err)
{
	struct atoll_error made = { .size = error->size, .code = code, .errnum = err->errnum };
	size_t size = error->size && error->size < sizeof made ? error->size : sizeof made;

	copy(made.where, sizeof made.where, err->stage);
	copy(made.what, sizeof made.what, err->message);
	copy(made.hint, sizeof made.hint, err_advice(err));
	/* strerror(3) has static memory. */
	if (err->errnum > 0)
		copy(made.why, sizeof made.why, err_errno_name(err->errnum));
	memcpy(error, &made, size);
}

int fault_from_err(struct atoll_error *error, const struct err *err)
{
	int code = code_of(err);

	if (error)
		fill(error, code, err);
	return code;
}

int fault_code(struct atoll_error *error, int code)
{
	if (error)
		error->code = code;
	return code;
}

int fault_set(struct atoll_error *error, int code, int errnum, const char *where, const char *format, ...)
{
	struct err err = { .errnum = errnum };
	va_list args;

	if (!error)
		return code;
	copy(err.stage, sizeof err.stage, where);
	va_start(args, format);
	err_vformat(err.message, sizeof err.message, format, args);
	va_end(args);
	fill(error, code, &err);
	return code;
}

void fault_hint(struct atoll_error *error, const char *format, ...)
{
	va_list args;

	if (!error || (error->size && error->size < sizeof *error))
		return;
	va_start(args, format);
	err_vformat(error->hint, sizeof error->hint, format, args);
	va_end(args);
}

int fault_errno(struct atoll_error *error, int r, const char *where)
{
	struct err err = { 0 };

	err_set(&err, ERR_INTERNAL, -r, where, r == -ENOMEM ? "out of memory" : "a system call failed: %s",
		err_errno_name(-r));
	return fault_from_err(error, &err);
}
