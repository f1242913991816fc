/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "build/accounts.h"
#include "build/mount-plan-parts.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/synthetic.h"

enum { ACCOUNTS_MAX = 512 << 10 };

/* path and text are static, or kept. */
static int add_file_if(struct plan *plan, const char *path, const char *text, const char *rule, uint32_t flags)
{
	if (!text)
		return -ENOMEM;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_FILE,
						   .flags = flags,
						   .target = path,
						   .content = text,
						   .content_size = strlen(text),
						   .rule = rule });
}

static int add_file(struct plan *plan, const char *path, const char *text, const char *rule)
{
	return add_file_if(plan, path, text, rule, 0);
}

/* ---- accounts ---- */

/* The host's file, owned; "" where it has none, or one too large to be read at each start. NULL: out of memory. */
static char *read_accounts(const char *path)
{
	char *text;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, path, ACCOUNTS_MAX, &text, &size);

	return r == 0 ? text : r == -ENOMEM ? NULL : str_dup("");
}

/* Root's sandbox is nobody that the host's files know, and one with a name of its own is so to be called. */
static int add_own_accounts(struct plan *plan, const char *passwd, const char *group, const struct accounts_user *user)
{
	const char *users = plan_keep(plan, accounts_passwd(passwd, user));
	const char *groups = plan_keep(plan, accounts_group(group, user));
	int r = add_file(plan, "/etc/passwd", users, "builtin.identity");

	return r < 0 ? r : add_file(plan, "/etc/group", groups, "builtin.identity");
}

/* A user whom a directory service knows: what that asks cannot be reached from inside. */
static int add_missing_accounts(struct plan *plan, const char *passwd, const char *group,
				const struct accounts_user *user)
{
	int r = 0;

	if (*passwd && !accounts_have(passwd, user->uid))
		r = add_file(plan, "/etc/passwd", plan_keep(plan, accounts_passwd_with(passwd, user)),
			     "builtin.identity");
	if (r == 0 && *group && !accounts_have(group, user->gid))
		r = add_file(plan, "/etc/group", plan_keep(plan, accounts_group_with(group, user)),
			     "builtin.identity");
	return r;
}

static int add_accounts(struct plan *plan)
{
	const struct plan_input *input = &plan->input;
	const struct accounts_user user = { input->user_name, input->uid, input->gid,
					    input->policy->home[0] ? input->policy->home : "/" };
	cleanup_free char *passwd = read_accounts("/etc/passwd"), *group = read_accounts("/etc/group");

	if (!passwd || !group)
		return -ENOMEM;
	if (input->run_as_root)
		return add_own_accounts(plan, passwd, group, &user);
	if (!plan_policy_names(input->policy, "/etc"))
		return 0;
	return user.name ? add_own_accounts(plan, passwd, group, &user) :
			   add_missing_accounts(plan, passwd, group, &user);
}

/* ---- names of hosts ---- */

static const char resolver[] = "builtin.resolver";

/* Mostly a link into /run, of which the sandbox has nothing: its end is made there. */
static int add_name_server(struct plan *plan)
{
	static const char text[] = "nameserver " SYNTHETIC_GATE_TEXT "\n";
	char real[PATH_MAX];

	if (plan_real(plan, "/etc/resolv.conf", real) < 0)
		return add_file(plan, "/etc/resolv.conf", text, resolver);
	return add_file(plan, plan_keep(plan, str_dup(real)), text, resolver);
}

/* The words of the line at text, in turn: the size of the next one, 0 at its end. */
static size_t next_word(const char **text)
{
	*text += strspn(*text, " \t\r");
	return strcspn(*text, " \t\r#\n");
}

static bool is_word(const char *text, size_t size, const char *word)
{
	return size == strlen(word) && memcmp(text, word, size) == 0;
}

/* Whether a line of hosts(5) gives this address this name. */
static bool line_gives(const char *line, const char *address, const char *name)
{
	size_t size = next_word(&line);
	bool is_found = false, is_of_address = is_word(line, size, address);

	for (line += size; is_of_address && !is_found && (size = next_word(&line)) > 0; line += size)
		is_found = is_word(line, size, name);
	return is_found;
}

/*
 * Whether localhost has an address of IPv6 outside. Resolvers give that first, and some programs try no other: where it
 * has none outside, a server at 127.0.0.1 would be found there and not here.
 */
static bool is_localhost_inet6(void)
{
	cleanup_free char *text = NULL;
	bool is_found = false;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, "/etc/hosts", ACCOUNTS_MAX, &text, &size) < 0)
		return false;
	for (const char *line = text; !is_found && *line; line += *line == '\n') {
		is_found = line_gives(line, "::1", "localhost");
		line += strcspn(line, "\n");
	}
	return is_found;
}

/* With the names that network.host_ports gives to ports of the machine: they lead to loopback. Owned, or NULL. */
static char *hosts_text(const struct policy *policy)
{
	char *text = str_printf("127.0.0.1 localhost\n::1 %sip6-localhost ip6-loopback\n127.0.1.1 " PLAN_HOSTNAME "\n",
				is_localhost_inet6() ? "localhost " : "");

	for (size_t i = 0; text && i < policy->network.host_port_count; i++) {
		const char *name = policy->network.host_ports[i].name;
		char *longer = name ? str_printf("%s127.0.0.1 %s\n::1 %s\n", text, name, name) : NULL;

		if (!name)
			continue;
		free(text);
		text = longer;
	}
	return text;
}

/*
 * With the gate, that is the resolver of every program inside, for all names: those of the host's /etc/hosts would lead
 * to addresses that no rule lists. Outside, the gate reads that file itself. A host that has no such file, as a bare
 * Debian, has no address for localhost either, on which servers and their tests stand: there it is ours, wherever the
 * view of /etc can take it in.
 */
static int add_hosts(struct plan *plan)
{
	const struct policy *policy = plan->input.policy;
	const char *text = plan_keep(plan, hosts_text(policy));
	char real[PATH_MAX];

	if (plan_real(plan, "/etc/hosts", real) == 0)
		return policy->network.mode != NETWORK_GATE && !plan->input.root_from ? 0 :
			       add_file(plan, plan_keep(plan, str_dup(real)), text, resolver);
	return add_file_if(plan, "/etc/hosts", text, resolver, JAIL_OPTIONAL);
}

/*
 * Settings of an agent for the inside alone. Where the machine has such a file it stays: its administrator wrote it.
 * Where the view of /etc cannot take names in, they are missing, and what they would have said is said by a refusal.
 */
static int add_settings(struct plan *plan)
{
	const char *const *file = plan->input.policy->agent.settings;
	struct stat st;
	int r = 0;

	for (; r == 0 && file && *file; file += 2)
		if (plan_policy_names(plan->input.policy, "/etc") && lstat(file[0], &st) < 0)
			r = add_file_if(plan, file[0], file[1], "agent.settings", JAIL_OPTIONAL);
	return r;
}

int plan_add_etc(struct plan *plan)
{
	const struct plan_input *input = &plan->input;
	int r = input->uid ? add_accounts(plan) : 0;

	if (r == 0 && input->policy->network.mode == NETWORK_GATE)
		r = add_name_server(plan);
	if (r == 0)
		r = add_settings(plan);
	return r < 0 ? r : add_hosts(plan);
}
