/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-policy: policy text becomes a snapshot, an explanation, a comparison. `atoll` runs it when no fresh
 * snapshot is cached, and for `atoll policy`. It confines itself before it reads the first file.
 */

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "prog/atoll-policy/options.h"

static const struct {
	const char *name, *arguments, *summary;
	int (*run)(struct policy_options *given, int argc, char **argv, struct err *err);
} commands[] = {
	{ "amend", "--output-fd N NOTE KIND SUBJECT PORT METHOD PATH [ARGUMENT…]",
	  "write a policy with one more rule (for atoll)", cmd_amend },
	{ "check", "[POLICY]", "say every error of a policy", cmd_check },
	{ "compile", "--output-fd N", "write the snapshot (for atoll)", cmd_compile },
	{ "diff", "A B", "what B newly allows and newly denies", cmd_diff },
	{ "explain", "KIND SUBJECT [ARGUMENT…]", "may this happen, by which rule, and why", cmd_explain },
	{ "narrow", "--output-fd N", "write the snapshot with what stdin takes away, and what that is (for atoll)",
	  cmd_narrow },
	{ "show", "", "print the whole policy that is in force", cmd_show },
};

enum { EXIT_USAGE = 2, EXIT_INTERNAL = 125 };

static int usage(int fd)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		buf_printf(&out, "%s atoll-policy %s %s\n              %s\n",
			   i ? "      " : "usage:", commands[i].name, commands[i].arguments,
			   commands[i].summary);
	buf_put_text(&out, "options:\n");
	r = fd_write_full(fd, out.bytes, out.size);
	return r < 0 ? r : 0;
}

/* Without a heap: that there is no memory can be what is to be said. */
static int say(const struct err *err)
{
	char memory[2048];
	struct buf line;
	int r;

	buf_init_fixed(&line, memory, sizeof memory);
	buf_printf(&line, "atoll: policy: %s", err->message);
	if (err->hint[0])
		buf_printf(&line, "; %s", err->hint);
	buf_put_char(&line, '\n');
	r = fd_write_full(STDERR_FILENO, line.bytes, line.size);
	return r < 0 || err->code != ERR_USAGE ? EXIT_INTERNAL : EXIT_USAGE;
}

static int unknown(const char *name, struct err *err)
{
	const char *names[ARRAY_SIZE(commands)], *nearest;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	nearest = names_nearest(names, ARRAY_SIZE(commands), name);
	err_set(err, ERR_USAGE, EINVAL, "options", "there is no command \"%s\"", name);
	err_hint(err, nearest ? "did you mean %s?" : "atoll-policy --help lists them%s",
		 nearest ? nearest : "");
	return -EINVAL;
}

static int run(int argc, char **argv, struct policy_options *given, struct err *err)
{
	const char *name = argv[1];
	int rest, r;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!str_equal(commands[i].name, name))
			continue;
		r = policy_options_parse(given, argc - 1, argv + 1, &rest, err);
		if (r != 0)
			return r < 0 ? r : 0;
		r = confine_self(CONFINE_POLICY, NULL, 0, err);
		return r < 0 ? r : commands[i].run(given, argc - 1 - rest, argv + 1 + rest, err);
	}
	return unknown(name, err);
}

int main(int argc, char **argv)
{
	static struct policy_options given;
	struct err err = { 0 };
	int r;

	r = fd_secure_standard();
	if (r < 0)
		return EXIT_INTERNAL;
	if (argc < 2 || str_equal(argv[1], "--help")) {
		char help[] = "--help", *words[] = { argv[0], help, NULL };
		int rest;

		r = usage(argc < 2 ? STDERR_FILENO : STDOUT_FILENO);
		if (r == 0 && argc >= 2)
			r = policy_options_parse(&given, 2, words, &rest, &err);
		return argc < 2 || r < 0 ? EXIT_USAGE : 0;
	}
	r = run(argc, argv, &given, &err);
	if (r >= 0)
		return r;
	if (err.code == ERR_NONE)
		err_set(&err, ERR_INTERNAL, -r, "policy", "%s", strerror(-r));
	return say(&err);
}
