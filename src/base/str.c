/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool str_has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), suffix_length = strlen(suffix);

	return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

int str_copy(char *out, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size) {
		if (size)
			out[0] = 0;
		return -ENAMETOOLONG;
	}
	memcpy(out, text, length + 1);
	return 0;
}

int str_format(char *out, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(out, size, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= size) {
		if (size)
			out[0] = 0;
		return -ENAMETOOLONG;
	}
	return 0;
}

const char *env_find(char *const *env, const char *name)
{
	size_t length = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

char *str_dup(const char *text)
{
	return text ? strdup(text) : NULL;
}

char *str_printf(const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}

size_t strv_count(const char *const *strv)
{
	size_t count = 0;

	while (strv && strv[count])
		count++;
	return count;
}

bool strv_has(const char *const *strv, const char *text)
{
	while (strv && *strv && !str_equal(*strv, text))
		strv++;
	return strv && *strv;
}

bool strv_has_name(const char *const *strv, const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (; strv && *strv; strv++)
		if (strncmp(*strv, entry, length) == 0 && (*strv)[length] == '=')
			return true;
	return false;
}

char **strv_copy(const char *const *strv)
{
	size_t count = strv_count(strv);
	char **copy = calloc(count + 1, sizeof *copy);

	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = str_dup(strv[i]);
		if (!copy[i]) {
			strv_free(copy);
			return NULL;
		}
	}
	return copy;
}

void strv_free(char **strv)
{
	for (size_t i = 0; strv && strv[i]; i++)
		free(strv[i]);
	free(strv);
}

/* Appends one component to the normalised path out[*used]; "." and "" do nothing, ".." goes up. */
static int put_component(char *out, size_t size, size_t *used, const char *name, size_t length)
{
	if (length == 0 || (length == 1 && name[0] == '.'))
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		while (*used && out[*used - 1] != '/')
			--*used;
		if (*used)
			--*used;
		return 0;
	}
	if (*used + 1 + length >= size)
		return -ENAMETOOLONG;
	out[(*used)++] = '/';
	memcpy(out + *used, name, length);
	*used += length;
	return 0;
}

static int put_components(char *out, size_t size, size_t *used, const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		int r = put_component(out, size, used, path, length);

		if (r < 0)
			return r;
		path += length;
		path += *path == '/';
	}
	return 0;
}

int path_join(char *out, size_t size, const char *base, const char *path)
{
	size_t used = 0;
	int r = 0;

	if (size < 2) {
		if (size)
			out[0] = 0;
		return -ENAMETOOLONG;
	}
	if (path[0] != '/') {
		if (base[0] != '/' || !path[0])
			r = -EINVAL;
		else
			r = put_components(out, size, &used, base);
	}
	if (r == 0)
		r = put_components(out, size, &used, path);
	if (r < 0)
		used = 0;
	else if (used == 0)
		out[used++] = '/';
	out[used] = 0;
	return r;
}

int path_normalise(char *out, size_t size, const char *path)
{
	if (path[0] != '/') {
		if (size)
			out[0] = 0;
		return -EINVAL;
	}
	return path_join(out, size, "/", path);
}

bool path_is_normal(const char *path)
{
	if (path[0] == '/' && !path[1])
		return true;
	path += path[0] == '/';
	do {
		size_t length = strcspn(path, "/");

		if (!length || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
			return false;
		path += length;
	} while (*path++);
	return true;
}

bool path_is_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (length == 1 && prefix[0] == '/')
		return path[0] == '/';
	return strncmp(path, prefix, length) == 0 && (path[length] == 0 || path[length] == '/');
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_beside(char *out, size_t size, const char *path, const char *name)
{
	return str_format(out, size, "%.*s%s", (int)(path_basename(path) - path), path, name);
}

static bool is_bare_inet6(const char *host)
{
	const char *colon = *host == '[' ? NULL : strchr(host, ':');

	return colon && strchr(colon + 1, ':');
}

const char *str_host_open(const char *host)
{
	return is_bare_inet6(host) ? "[" : "";
}

const char *str_host_close(const char *host)
{
	return is_bare_inet6(host) ? "]" : "";
}
