/* SPDX-License-Identifier: Apache-2.0 */
#include "session/labels.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

enum { NAME_SIZE_MAX = 63 };

/* Its length; 0: it is none. */
static size_t name_size(const char *label)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
	size_t size = strspn(label, letters);

	return label[size] == '=' && size <= NAME_SIZE_MAX ? size : 0;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			return false;
	return true;
}

static bool comes_twice(const char *const *labels, size_t at)
{
	size_t size = name_size(labels[at]) + 1;

	for (size_t i = 0; i < at; i++)
		if (strncmp(labels[i], labels[at], size) == 0)
			return true;
	return false;
}

int labels_join(const char *const *labels, char **ret_text)
{
	struct buf out;
	int r = 0;

	buf_init(&out, LABELS_SIZE_MAX + 1);
	for (size_t i = 0; r == 0 && labels && labels[i]; i++) {
		if (i == LABELS_MAX)
			r = -E2BIG;
		else if (!name_size(labels[i]) || !is_plain(labels[i]) || comes_twice(labels, i))
			r = -EINVAL;
		else
			buf_printf(&out, "%s%s", i ? "\n" : "", labels[i]);
	}
	(void)!buf_text(&out);
	if (r == 0 && buf_error(&out) < 0)
		r = buf_error(&out) == -ENOBUFS ? -E2BIG : buf_error(&out);
	if (r < 0) {
		buf_done(&out);
		return r;
	}
	*ret_text = (char *)out.bytes;
	return 0;
}

char *labels_split(const char *text, char *ret_list[LABELS_MAX + 1])
{
	char *copy = text ? str_dup(text) : NULL;
	size_t count = 0;

	for (char *at = copy; at && *at && count < LABELS_MAX;) {
		ret_list[count++] = at;
		at = strchr(at, '\n');
		if (at)
			*at++ = 0;
	}
	ret_list[count] = NULL;
	return copy;
}

static bool has(const char *text, const char *label)
{
	size_t size = strlen(label);

	/* Two that follow each other are no label. */
	if (!size || strchr(label, '\n'))
		return false;
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strncmp(text, label, size) == 0 && (!text[size] || text[size] == '\n'))
			return true;
	return false;
}

bool labels_have(const char *text, const char *const *labels)
{
	for (; labels && *labels; labels++)
		if (!has(text ? text : "", *labels))
			return false;
	return true;
}
