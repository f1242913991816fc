/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"

struct out {
	char *bytes;
	unsigned size;
	unsigned used;
};

static void out_char(struct out *out, char c)
{
	if (out->used + 1 < out->size)
		out->bytes[out->used++] = c;
}

static void out_text(struct out *out, const char *text)
{
	if (!text)
		text = "(null)";
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		/* A message can quote hostile names: no control byte reaches a terminal or a log. */
		out_char(out, c < 0x20 || c == 0x7f ? '?' : *text);
	}
}

static void out_number(struct out *out, unsigned long value, unsigned base, bool negative)
{
	char digits[24];
	unsigned count = 0;

	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	if (negative)
		out_char(out, '-');
	while (count)
		out_char(out, digits[--count]);
}

static void out_signed(struct out *out, long value)
{
	out_number(out, value < 0 ? 0UL - (unsigned long)value : (unsigned long)value, 10,
		   value < 0);
}

unsigned err_vformat(char *bytes, unsigned size, const char *format, va_list args)
{
	struct out out = { .bytes = bytes, .size = size };

	for (; *format; format++) {
		if (*format != '%') {
			out_char(&out, *format);
			continue;
		}
		format++;
		if (format[0] == 'z' && format[1] == 'u')
			format++, out_number(&out, va_arg(args, size_t), 10, false);
		else if (*format == 's')
			out_text(&out, va_arg(args, const char *));
		else if (*format == 'd')
			out_signed(&out, va_arg(args, int));
		else if (*format == 'u')
			out_number(&out, va_arg(args, unsigned), 10, false);
		else if (*format == 'x')
			out_number(&out, va_arg(args, unsigned), 16, false);
		else if (*format == 'c')
			out_char(&out, (char)va_arg(args, int));
		else if (*format == '%')
			out_char(&out, '%');
		else
			break; /* an unknown directive would misread the arguments that follow */
	}
	if (size)
		bytes[out.used] = 0;
	return out.used;
}

int err_set(struct err *err, enum err_code code, int errnum, const char *stage,
	    const char *format, ...)
{
	va_list args;

	if (err) {
		size_t length = strnlen(stage, ERR_STAGE_SIZE - 1);

		memset(err, 0, sizeof *err);
		err->code = code;
		err->errnum = errnum;
		memcpy(err->stage, stage, length);
		va_start(args, format);
		err_vformat(err->message, sizeof err->message, format, args);
		va_end(args);
	}
	return errnum > 0 ? -errnum : -EINVAL;
}

void err_hint(struct err *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	err_vformat(err->hint, sizeof err->hint, format, args);
	va_end(args);
}

const char *err_advice(const struct err *err)
{
	if (err->errnum == EMFILE)
		return "a process can open too few files here (`ulimit -n`); allow more: `ulimit -n 1024`";
	if (err->errnum == ENFILE)
		return "this machine has too many files open; see `sysctl fs.file-nr`";
	if (err->errnum == EFBIG)
		return "no file may grow further here (`ulimit -f`); allow more: `ulimit -f unlimited`";
	return err->hint;
}

const char *err_joint(const struct err *err)
{
	size_t length = strlen(err->message);

	if (!*err_advice(err))
		return "";
	return length && err->message[length - 1] == '?' ? " " : "; ";
}

const char *err_errno_name(int errnum)
{
	static const struct {
		int value;
		const char *name;
	} names[] = {
#define NAME(e) { e, #e }
		NAME(EPERM),  NAME(ENOENT),  NAME(ESRCH),   NAME(EINTR),        NAME(EIO),
		NAME(ENXIO),  NAME(E2BIG),   NAME(ENOEXEC), NAME(EBADF),        NAME(ECHILD),
		NAME(EAGAIN), NAME(ENOMEM),  NAME(EACCES),  NAME(EFAULT),       NAME(EBUSY),
		NAME(EEXIST), NAME(EXDEV),   NAME(ENODEV),  NAME(ENOTDIR),      NAME(EISDIR),
		NAME(EINVAL), NAME(ENFILE),  NAME(EMFILE),  NAME(ENOTTY),       NAME(ETXTBSY),
		NAME(ESTALE), NAME(EFBIG),  NAME(ENOSPC),  NAME(ESPIPE),  NAME(EROFS),        NAME(EMLINK),
		NAME(EPIPE),  NAME(ERANGE),  NAME(ENOSYS),  NAME(ENOTEMPTY),    NAME(ELOOP),
		NAME(ENODATA), NAME(EPROTO), NAME(EBADMSG), NAME(EOVERFLOW),    NAME(EILSEQ),
		NAME(EUSERS), NAME(EMSGSIZE), NAME(EOPNOTSUPP), NAME(ECONNREFUSED), NAME(ETIMEDOUT),
		NAME(ENAMETOOLONG), NAME(EDQUOT), NAME(ECANCELED), NAME(ECONNRESET), NAME(ENOTCONN),
		NAME(EAFNOSUPPORT), NAME(EPROTONOSUPPORT), NAME(ESOCKTNOSUPPORT), NAME(ENETUNREACH),
		NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(EHOSTUNREACH), NAME(ENETDOWN),
#undef NAME
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].value == errnum)
			return names[i].name;
	return "errno";
}

int err_exit_status(const struct err *err)
{
	if (err->code == ERR_NOT_FOUND)
		return 127;
	if (err->code == ERR_NOT_RUNNABLE)
		return 126;
	return 125;
}

const char *err_quote(char out[ERR_QUOTE_SIZE], const char *text)
{
	struct buf quoted;

	buf_init_fixed(&quoted, out, ERR_QUOTE_SIZE);
	buf_put_escaped(&quoted, text, strlen(text), ERR_QUOTE_SIZE - 8);
	return buf_text(&quoted);
}

int err_not_started(const char *stage, const char *program, int errnum, struct err *err)
{
	err_set(err, ERR_STATE, errnum, stage, "%s cannot be started: %s", program, strerror(errnum));
	err_hint(err, errnum == EAGAIN ? "you may not have more processes here (`ulimit -u`): end some, or allow more"
				       : "atoll's programs must lie in one directory; install atoll again");
	return -errnum;
}
