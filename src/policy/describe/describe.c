/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/describe/describe.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/decide-exec.h"
#include "policy/decide.h"
#include "policy/limit-text.h"
#include "policy/scalars.h"

/* Requests are listed until the text has so many bytes; one rule adds at most a few thousand. */
enum { LISTED_MAX = 200, WORDS_MAX = 16, REQUESTS_END = 24 << 10 };

static void put_path(struct buf *out, const char *path)
{
	buf_put_text(out, "- `");
	buf_put_escaped(out, path, strlen(path), 300);
	buf_put_text(out, "`\n");
}

/*
 * What a path is in this run: an optional one that the host does not have is left out, and belongs to what is around
 * it.
 */
static enum file_class class_here(const struct policy *policy, size_t index, const struct policy_place *place)
{
	const struct file_plan_entry *entry = &policy->files.plan[index];

	/* Few are looked for: each start pays for it, once for each list. */
	if (!place->is_there || !(entry->flags & FILE_OPTIONAL) ||
	    (entry->class != FILE_WRITE && entry->class != FILE_STAGE) || place->is_there(entry->path))
		return entry->class;
	/* Parents come first. */
	while (index-- > 0)
		if (policy->files.plan[index].class != FILE_MASK &&
		    path_is_below(entry->path, policy->files.plan[index].path))
			return class_here(policy, index, place);
	return FILE_HIDDEN;
}

/* The plan's paths of this class; what a list that has none says. */
static void put_class(const struct policy *policy, const struct policy_place *place, enum file_class class,
		      const char *title, const char *none, struct buf *out)
{
	size_t count = 0;

	buf_printf(out, "\n%s\n\n", title);
	for (size_t i = 0; i < policy->files.plan_count; i++) {
		if (class_here(policy, i, place) != class)
			continue;
		if (count++ < LISTED_MAX)
			put_path(out, policy->files.plan[i].path);
	}
	if (count > LISTED_MAX)
		buf_printf(out, "- and %zu more\n", count - LISTED_MAX);
	if (!count)
		buf_printf(out, "- %s\n", none);
}

static void put_files(const struct policy *policy, const struct policy_place *place, struct buf *out)
{
	buf_put_text(out, "\n## Files\n");
	put_class(policy, place, FILE_WRITE, "You may write here, straight to the real files:", "nothing", out);
	if (policy_gates_writes(policy))
		buf_put_text(out, "\nBelow some of them a person is asked first about files that others run later:\n"
				  "git's hooks and settings, new repositories, settings of editors, shells and agents\n"
				  "(`.envrc`, `.vscode/`, `CLAUDE.md`). If nobody answers, the change is refused.\n");
	put_class(policy, place, FILE_STAGE, "You may write here; a person decides what is kept:", "nothing", out);
	put_class(policy, place, FILE_SCRATCH, "Private space, thrown away at the end:", "nothing", out);
	put_class(policy, place, FILE_READ, "You may read here (and below):", "nothing", out);
	put_class(policy, place, FILE_MASK, "Taken out of the above; these look empty or unreadable:", "nothing",
		  out);
	buf_put_text(out, "\nEverything else does not exist here. A file that is missing here may exist "
			  "outside: do not try to get around that.\n");
	if (policy_stages_system(policy))
		buf_put_text(out, "\nIf you are uid 0, you are it in name only. Packages whose files belong to root\n"
				  "can be installed; `apt-get` needs `-o APT::Sandbox::User=root`. Files of other\n"
				  "owners and set-user-ID files cannot be made, and no service can be started.\n");
	if (!policy->exec.new_binaries)
		buf_put_text(out, "\nWhat you write cannot be executed. Run scripts by their interpreter "
				  "(`sh file`, `python3 file`).\n");
}

static void put_publish(const struct policy *policy, struct buf *out)
{
	for (size_t i = 0; i < policy->network.publish_count; i++)
		buf_printf(out, "\nWhat listens on port %u here can be reached from the machine outside.\n",
			   policy->network.publish[i].port);
}

static void put_host_ports(const struct policy *policy, struct buf *out)
{
	for (size_t i = 0; i < policy->network.host_port_count; i++) {
		const struct host_port *port = &policy->network.host_ports[i];

		buf_printf(out, "\n`localhost:%u`", port->port);
		if (port->name)
			buf_printf(out, " (also `%s:%u`)", port->name, port->port);
		buf_put_text(out, " leads to a server of the machine outside, over TCP. Nothing here can listen on\n"
				  "that port.\n");
	}
}

static void put_words(const char *const *words, const char *any, struct buf *out)
{
	size_t count = 0;

	if (!words || !*words)
		buf_put_text(out, any);
	for (; words && *words && count < WORDS_MAX; words++, count++) {
		buf_put_text(out, count ? ", `" : "`");
		buf_put_escaped(out, *words, strlen(*words), 100);
		buf_put_char(out, '`');
	}
	if (words && *words)
		buf_put_text(out, ", …");
}

static void put_requests(const struct net_rule *rule, struct buf *out)
{
	for (size_t i = 0; i < rule->http_count; i++) {
		if (out->size > REQUESTS_END) {
			buf_put_text(out, "  - …\n");
			return;
		}
		buf_put_text(out, "  - ");
		put_words(rule->http[i].methods, "any method", out);
		buf_put_text(out, " of ");
		put_words(rule->http[i].paths, "any path", out);
		buf_put_char(out, '\n');
	}
}

/* Whether a rule that says nothing of it lets only so many names out. */
static bool bounds_labels(const struct policy *policy)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		if (rule->verdict == VERDICT_ALLOW && rule->host && rule->host[0] == '*' &&
		    policy_label_limit(policy, rule) == NET_LABELS_DEFAULT)
			return true;
	}
	return false;
}

static void put_network(const struct policy *policy, struct buf *out)
{
	buf_put_text(out, "\n## Network\n\n");
	if (policy->network.mode == NETWORK_HOST) {
		buf_put_text(out, "The machine's network is shared with you.\n");
		return;
	}
	buf_put_text(out, "You have a loopback interface of your own: servers and clients inside this "
			  "sandbox reach each other.\n`localhost` is this sandbox, not the machine outside.\n");
	if (policy->network.mode == NETWORK_NONE) {
		buf_put_text(out, "There is no other network. Downloads, package installs and API calls "
				  "fail; retrying does not help.\n");
		return;
	}
	if (policy->network.default_verdict == VERDICT_ALLOW)
		buf_put_text(out, "Hosts of the public internet can be reached. For private addresses, a person is "
				  "asked.\n\n");
	else if (policy->network.default_verdict == VERDICT_ASK)
		buf_put_text(out, "These hosts can be reached, by name. For any other, a person is asked when you "
				  "look it up.\nWithout a yes, its name does not exist here.\n\n");
	else if (policy->network.count || !policy->network.host_port_count)
		buf_put_text(out, "Hosts by name, and only these; other names do not exist here:\n\n");
	else
		buf_put_text(out, "No other host can be reached.\n");
	for (size_t i = 0; i < policy->network.count && i < LISTED_MAX; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		/* Which servers are none is for nobody inside to know. */
		buf_printf(out, "- %s: `%s`",
			   verdict_names[rule->verdict == VERDICT_SIMULATE ? VERDICT_ALLOW : rule->verdict],
			   rule->host ? rule->host : rule->cidr);
		for (size_t p = 0; p < rule->port_count; p++)
			buf_printf(out, "%s%u", p ? ", " : " ports ", rule->ports[p]);
		if (rule->inject.kind != INJECT_NONE)
			buf_put_text(out, "; the credential is put in outside, what you have is a placeholder");
		buf_put_text(out, rule->http_count ? "; these requests:\n" : "\n");
		put_requests(rule, out);
	}
	if (bounds_labels(policy))
		buf_put_text(out, "\nBelow each `*`, you can look up different names, "
				  "up to 4 KiB of them in all; use few.\n");
	if (policy_intercepts_any(policy))
		buf_put_text(out,
			     "\nWhere requests are listed, each is judged by its method and path; no\n"
			     "other request reaches that host. A refused request is answered with 403 and JSON that\n"
			     "says why. Programs trust the certificate of such a host through the bundle of the\n"
			     "system, or through `SSL_CERT_FILE` and similar variables. The file of the certificate\n"
			     "authority alone is `/run/atoll/ca.pem`.\n");
	buf_put_text(out, "\nThe person may change this list while you work; a refusal says what holds then.\n");
	put_publish(policy, out);
	put_host_ports(policy, out);
}

/* What is allowed is worth a line only where not all is. */
static bool is_worth_telling(const struct policy *policy, const struct exec_rule *rule)
{
	return rule->verdict != VERDICT_ALLOW || policy->exec.default_verdict != VERDICT_ALLOW;
}

static void put_exec(const struct policy *policy, struct buf *out)
{
	static const char *const defaults[VERDICT_COUNT] = {
		[VERDICT_DENY] = "\nAnd no other program, by whatever name, copy or link; nor one that is given as an "
				 "open file (memfd).\n",
		[VERDICT_ASK] = "\nFor any other program a person is asked.\n",
	};
	size_t count = 0;

	if (policy_judges_programs(policy))
		buf_put_text(out, "\n## Programs\n\nA rule is about the file of a program, not about its name: a copy "
				  "or a link counts the same.\n\n");
	for (size_t i = 0; i < policy->exec.count && out->size < REQUESTS_END; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		if (!is_worth_telling(policy, rule))
			continue;
		if (!count++ && !policy_judges_programs(policy))
			buf_put_text(out, "\n## Programs\n\n");
		if (count > LISTED_MAX)
			continue;
		buf_put_text(out, "- ");
		buf_put_text(out, verdict_names[rule->verdict]);
		buf_put_text(out, ": ");
		if (rule->program)
			put_words((const char *const[]){ rule->program, NULL }, "", out);
		if (rule->argv && rule->argv[0]) {
			buf_put_text(out, rule->program ? " with these words: " : "any program with these words: ");
			put_words(rule->argv, "", out);
		}
		buf_put_char(out, '\n');
	}
	if (count > LISTED_MAX)
		buf_printf(out, "- and %zu more\n", count - LISTED_MAX);
	if (defaults[policy->exec.default_verdict])
		buf_put_text(out, defaults[policy->exec.default_verdict]);
}

static void put_net_limits(const struct net_limits *limits, const char *of, struct buf *out)
{
	static const char *const meanings[NET_LIMIT_COUNT] = {
		[NET_LIMIT_RATE] = "bytes per time, both ways together",
		[NET_LIMIT_TOTAL] = "bytes, both ways together",
		[NET_LIMIT_IN] = "bytes that come in",
		[NET_LIMIT_OUT] = "bytes that go out",
		[NET_LIMIT_REQUESTS] = "HTTP requests",
		[NET_LIMIT_NEW_CONNECTIONS] = "new connections",
		[NET_LIMIT_CONNECTIONS] = "connections at one time",
		[NET_LIMIT_HOSTS] = "different hosts",
		[NET_LIMIT_LABELS] = "bytes of names that a wildcard stands for",
	};

	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		char text[NET_LIMIT_TEXT_SIZE];

		if (!limits->of[i].amount || limits->of[i].amount == UINT64_MAX)
			continue;
		net_limit_to_text((enum net_limit)i, &limits->of[i], text);
		buf_printf(out, "- %s%s%s: %s\n", of ? of : "network", of ? " alone, " : ", ", meanings[i], text);
	}
}

static void put_cooldown(const struct cooldown_rule *rule, const char *what, struct buf *out)
{
	char within[32], pause[32];

	if (!rule->denials)
		return;
	num_format_duration(rule->within_ms, within);
	num_format_duration(rule->pause_ms, pause);
	buf_printf(out, "- after %llu refusals within %s %s for %s\n", (unsigned long long)rule->denials, within, what,
		   pause);
}

/* In the unit of the rule: what is beyond it fails, and works again when there is room. */
static void put_rates(const struct policy *policy, struct buf *out)
{
	static const char *const meanings[RATE_KIND_COUNT] = {
		[RATE_EXEC] = "programs started",
		[RATE_FILE_READ] = "files opened to be read",
		[RATE_FILE_WRITE] = "files written, made, renamed or removed",
	};

	for (size_t i = 0; i < RATE_KIND_COUNT; i++) {
		char text[NET_LIMIT_TEXT_SIZE];

		if (!policy->rates[i].amount)
			continue;
		rate_to_text(&policy->rates[i], text);
		buf_printf(out, "- %s: %s; beyond that \"Resource temporarily unavailable\": wait, then go on\n",
			   meanings[i], text);
	}
	put_cooldown(&policy->cooldown, "nothing is let through that can be refused: do not try around,", out);
}

static void put_network_limits(const struct policy *policy, struct buf *out)
{
	put_net_limits(&policy->network.limits, NULL, out);
	for (size_t i = 0; i < policy->network.limited_count; i++) {
		const struct net_rule *rule = &policy->network.rules[policy->network.limited[i]];

		put_net_limits(rule->limits, rule->host ? rule->host : rule->cidr, out);
	}
	put_cooldown(&policy->network.cooldown, "nothing new is let out: do not guess hosts,", out);
}

static enum limit_hold hold_of(const struct policy_place *place, enum scalar_id id)
{
	return id >= SCALAR_RESOURCES && id < SCALAR_RESOURCES + RESOURCE_COUNT ? place->holds[id - SCALAR_RESOURCES] :
										  LIMIT_HOLDS;
}

static uint64_t limit_of(const struct policy *policy, const struct policy_place *place, enum scalar_id id)
{
	uint64_t value = scalar_get(id, policy);

	return id == SCALAR_RESOURCES + RESOURCE_OPEN_FILES && place->open_files && place->open_files < value ?
		       place->open_files : value;
}

static void put_limits(const struct policy *policy, const struct policy_place *place, struct buf *out)
{
	char text[SCALAR_TEXT_SIZE];

	buf_put_text(out, "\n## Limits\n\n");
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++)
		if (scalar_rows[id].meaning && limit_of(policy, place, id) != NUM_UNLIMITED &&
		    hold_of(place, id) != LIMIT_HOLDS_NOT)
			buf_printf(out, "- %s: %s%s\n", scalar_rows[id].meaning,
				   scalar_value_to_text(id, limit_of(policy, place, id), text),
				   hold_of(place, id) == LIMIT_LOOKED_AT ?
					   "; checked from time to time; the run ends if there is more" : "");
	put_rates(policy, out);
	put_network_limits(policy, out);
}

/* Programs that want what a sandbox does not have, and what works in its place. */
static const struct {
	const char *programs, *instead;
	enum exec_namespaces until;  /* it holds up to what programs may make with this, and not beyond */
} unfit[] = {
	{ "Chromium, Chrome, Electron", "start them with `--no-sandbox`: you are in a sandbox already",
	  EXEC_NAMESPACES_NONE },
	{ "bwrap, flatpak, firejail", "run the command itself, without them", EXEC_NAMESPACES_PLAIN },
	{ "docker, podman, buildah", "no container can be made or started here; a person can do it outside",
	  EXEC_NAMESPACES_MOUNTS },
	{ "perf, bpftrace", "the kernel's counters are refused; measure with `time` or a profiler of the language",
	  EXEC_NAMESPACES_MOUNTS },
};

static const char *const about_namespaces[EXEC_NAMESPACES_COUNT] = {
	[EXEC_NAMESPACES_NONE] = "No namespaces: a program cannot make a sandbox of its own. Switch its sandbox off:\n"
				 "  you are in one.\n",
	[EXEC_NAMESPACES_PLAIN] = "Programs can make user namespaces, as browsers do; no mounts and roots in them.\n",
	[EXEC_NAMESPACES_MOUNTS] = "Programs can make user namespaces with mounts of their own (`bwrap`): binds,\n"
				   "  tmpfs, proc, devpts and mqueue; no overlay, and none by `fsopen`.\n"
				   "- Landlock holds no rule about files here; the mounts do.\n",
};

static void put_unfit(const struct policy *policy, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(unfit); i++)
		if (policy->exec.namespaces <= unfit[i].until)
			buf_printf(out, "- %s: %s.\n", unfit[i].programs, unfit[i].instead);
}

/* What would be taken for a fault of the machine; the whole of it is doc/inside.md. */
static void put_different(const struct policy *policy, struct buf *out)
{
	buf_printf(out,
		     "\n## What is different here\n\n"
		     "- One uid and one gid exist: `chown` to another is \"Invalid argument\", and files of others\n"
		     "  look like nobody's. `chmod u+s` and `g+s` are refused on files and work on directories.\n"
		     "- `socket(AF_UNIX, SOCK_DGRAM)`, ping, raw sockets and io_uring do not exist.\n"
		     "- %s"
		     "- No %scontainers, services, or debugging of what runs outside.\n"
		     "- There are no core dumps, and `/sys` shows only processors.\n",
		   about_namespaces[policy->exec.namespaces],
		   policy->exec.namespaces == EXEC_NAMESPACES_MOUNTS ? "" : "mounts, ");
	put_unfit(policy, out);
	if (policy_stages_any(policy))
		buf_put_text(out,
			     "- A watch on a directory (inotify) ends when that is renamed.\n"
			     "- Where a person decides what is kept, a hard link breaks when one of its names is\n"
			     "  first written to. \"Value too large for defined data type\" means a file of another\n"
			     "  group or user: it cannot be changed here; say so, `stage: {backend: fuse}` helps.\n");
}

static void put_requests_to_people(const struct policy *policy, struct buf *out)
{
	if (!policy_hears_requests(policy))
		return;
	buf_put_text(out,
		     "\n## When you need more\n\n"
		     "Ask the person before you try, once, and give the reason. "
		     "What is allowed can be used at once:\n\n"
		     "    /run/atoll/bin/atoll-request file.read PATH -r REASON     (or file.write PATH)\n"
		     "    /run/atoll/bin/atoll-request net.connect HOST:PORT -r REASON\n"
		     "    /run/atoll/bin/atoll-request exec PROGRAM -r REASON\n"
		     "    /run/atoll/bin/atoll-request token FILE     (a capability token that you were given)\n"
		     "    /run/atoll/bin/atoll-request explain file.read PATH\n"
		     "                                              (asks nobody: rule, reason, what is near)\n"
		     "    /run/atoll/bin/atoll-request checkpoint TEXT\n"
		     "                                              (keeps what is staged now, to go back to)\n\n"
		     "It waits for the answer. Exit status: 0 allowed, 1 denied, 3 nobody answered (`--wait SECONDS`,\n"
		     "`wait NUMBER`). A no is final. The same as lines of JSON: `/run/atoll/ask.sock`,\n"
		     "`{\"want\": \"file.read\", \"subject\": \"/path\", \"reason\": \"why\"}`.\n"
		     "You cannot ask for what is masked, or for what a rule denies. A person can show you a file of\n"
		     "the project, such as `.env`: for a run with `atoll run --unmask .env`, or in a policy with\n"
		     "`drop: [.env]`. For other masked paths, `explain` names the way, if there is one.\n");
}

int policy_describe(const struct policy *policy, const struct policy_place *place, struct buf *out)
{
	buf_put_text(out, "# What you may do here\n\nYou run inside atoll, a sandbox. Policy: `");
	buf_put_escaped(out, policy->name, strlen(policy->name), 300);
	buf_printf(out, "`, trust level %s.\n", trust_level_names[policy->level]);
	put_files(policy, place, out);
	put_network(policy, out);
	put_exec(policy, out);
	put_limits(policy, place, out);
	put_different(policy, out);
	put_requests_to_people(policy, out);
	buf_put_text(out,
		     "\n## When something is refused\n\n"
		     "Each refusal that atoll sees is a line in `/run/atoll/denials.jsonl`, with the rule, "
		     "the reason and what can be done.\n"
		     "A refusal is final for this run: the same thing by another path, tool or spelling is "
		     "refused as well.\n"
		     "If the task cannot be done within these limits, say which limit is in the way and "
		     "stop; the person can\n"
		     "change the policy (`atoll policy explain ACTION` names the rule) and start again.\n");
	return buf_error(out);
}
