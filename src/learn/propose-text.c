/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/propose-text.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "lang/print/print.h"
#include "learn/propose-kept.h"
#include "policy/decide.h"
#include "policy/scalars.h"

enum { MIB = 1 << 20, BY_SHOWN = 40, MINUTE_MS = 60000, PROCESSES_MIN = 16, TEXT_MAX = 3 * PATH_MAX };

/* "3 times by cat, record 12", as a comment at the end of a line. */
static void put_evidence(struct buf *out, const struct tally_item *item)
{
	buf_printf(out, "  # %llu time%s", (unsigned long long)item->count, item->count == 1 ? "" : "s");
	if (item->by && *item->by) {
		buf_put_text(out, " by ");
		buf_put_escaped(out, item->by, strlen(item->by), BY_SHOWN);
	}
	buf_printf(out, ", first record %llu", (unsigned long long)item->record);
}

static void put_comment(struct buf *out, const char *indent, const char *text)
{
	buf_printf(out, "%s# ", indent);
	buf_put_escaped(out, text, strlen(text), 0);
}

/* What a glob would read is quoted; "." and "~" stand for project and home, so that the text holds elsewhere too. */
static bool put_path(struct buf *out, const struct policy *policy, const char *path, bool is_pattern)
{
	const char *prefixes[][2] = { { policy->project, "." }, { policy->home, "~" } };
	char text[TEXT_MAX];
	size_t used = 0;

	if (!utf8_is_valid(path, strlen(path)) || strlen(path) >= PATH_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (!*prefixes[i][0] || !path_is_below(path, prefixes[i][0]))
			continue;
		text[used++] = *prefixes[i][1];
		path += strlen(prefixes[i][0]);
		break;
	}
	for (; *path; path++) {
		if (!is_pattern && strchr("*?[\\", *path))
			text[used++] = '\\';
		text[used++] = *path;
	}
	text[used] = 0;
	print_quoted(out, text);
	return true;
}

/* What the session's rule for it says beside the path; NULL: nothing, or it is a program. */
static const struct file_rule *terms_of(const struct policy *before, const struct tally_item *item, bool is_pattern)
{
	size_t rule = SIZE_MAX;

	if (is_pattern)
		rule = (size_t)item->value;
	else
		(void)policy_classify(before, item->key, &rule);
	if (rule == SIZE_MAX ||
	    !(before->files.rules[rule].flags & FILE_NOEXEC || (is_pattern && before->files.rules[rule].except)))
		return NULL;
	return &before->files.rules[rule];
}

static void put_terms(struct buf *out, const struct file_rule *terms, bool is_pattern)
{
	for (size_t i = 0; is_pattern && terms->except && terms->except[i]; i++) {
		buf_put_text(out, i ? ", " : ", except: [");
		print_quoted(out, terms->except[i]);
		buf_put_text(out, terms->except[i + 1] ? "" : "]");
	}
	buf_put_text(out, terms->flags & FILE_NOEXEC ? ", exec: false}" : "}");
}

static void put_item(struct buf *out, const struct proposal *proposal, const struct tally_item *item, bool is_pattern,
		     bool is_file)
{
	const struct file_rule *terms = is_file ? terms_of(proposal->request->before, item, is_pattern) : NULL;
	size_t start = out->size;

	buf_put_text(out, terms ? "    - {path: " : "    - ");
	if (!put_path(out, proposal->request->before, item->key, is_pattern)) {
		out->size = start;
		put_comment(out, "    ", item->key);
		buf_put_text(out, ": the name is not UTF-8, so it cannot be in a policy");
	} else if (terms) {
		put_terms(out, terms, is_pattern);
	}
	put_evidence(out, item);
	if (item->value && !is_pattern)
		buf_printf(out, "; the directory stands for %llu files of it", (unsigned long long)item->value);
	buf_put_char(out, '\n');
}

static void put_list(struct buf *out, const struct proposal *proposal, const char *name, const struct tally *tally,
		     bool is_pattern)
{
	if (tally->count)
		buf_printf(out, "  %s:\n", name);
	for (size_t i = 0; i < tally->count; i++)
		put_item(out, proposal, &tally->items[i], is_pattern, true);
	if (tally->left_out)
		buf_printf(out, "    # and %llu more uses of others: too many to list\n",
			   (unsigned long long)tally->left_out);
}

/* Level none reads the project and executes nothing of it. */
static bool takes_project(const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before;

	for (int class = FILE_SCRATCH; class <= FILE_WRITE; class++)
		for (size_t i = 0; i < proposal->trees[class].count; i++)
			if (str_equal(proposal->trees[class].items[i].key, before->project))
				return true;
	return false;
}

static void put_class(struct buf *out, const struct proposal *proposal, enum file_class class)
{
	const struct tally *tally = class == FILE_READ ? &proposal->reads : &proposal->trees[class];

	put_list(out, proposal, file_class_names[class], tally, class != FILE_READ);
	kept_put_files(proposal, class, tally->count > 0, out);
}

static void put_files(struct buf *out, const struct proposal *proposal)
{
	static const enum file_class classes[] = { FILE_STAGE, FILE_WRITE, FILE_SCRATCH, FILE_READ, FILE_MASK };
	bool is_any = proposal->reads.count > 0 || kept_has_files(proposal);

	if (takes_project(proposal))
		buf_put_text(out, "drop: [.]                    # level none has the project read-only\n");
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		is_any |= proposal->trees[classes[i]].count > 0;
	if (is_any)
		buf_put_text(out, "files:\n");
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		put_class(out, proposal, classes[i]);
	kept_put_paths(proposal, out);
}

static void put_conditions(struct buf *out, const struct proposal *proposal, uint64_t rule)
{
	if (rule != SIZE_MAX)
		print_net_conditions(out, &proposal->request->before->network.rules[rule]);
}

/* What makes a block of an address; "": it is none. */
static const char *bits_of(const char *host)
{
	uint8_t address[16];

	return inet_pton(AF_INET, host, address) == 1 ? "/32" : inet_pton(AF_INET6, host, address) == 1 ? "/128" : "";
}

/* "HOST PORT" */
static void put_host(struct buf *out, const struct proposal *proposal, const struct tally_item *item)
{
	const char *blank = strrchr(item->key, ' '), *bits;
	char host[512];

	if (!blank || str_format(host, sizeof host, "%.*s", (int)(blank - item->key), item->key) < 0)
		return;
	bits = bits_of(host);
	if (str_format(host, sizeof host, "%.*s%s", (int)(blank - item->key), item->key, bits) < 0)
		return;
	buf_printf(out, "    - {%s: ", *bits ? "cidr" : "host");
	print_quoted(out, host);
	buf_printf(out, ", ports: [%s]", blank + 1);
	put_conditions(out, proposal, item->value);
	buf_put_char(out, '}');
	put_evidence(out, item);
	buf_put_char(out, '\n');
}

static bool was_reached(const struct proposal *proposal, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < proposal->hosts.count; i++)
		if (strncmp(proposal->hosts.items[i].key, name, length) == 0 &&
		    proposal->hosts.items[i].key[length] == ' ')
			return true;
	return false;
}

/* A name is only looked up where it may be reached, so the ports are those of the rule. */
static void put_name(struct buf *out, const struct proposal *proposal, const struct tally_item *item)
{
	const struct net_rule *rules = proposal->request->before->network.rules,
			      *rule = item->value == SIZE_MAX ? NULL : &rules[item->value];

	buf_put_text(out, "    - {host: ");
	print_quoted(out, item->key);
	for (size_t i = 0; rule && i < rule->port_count; i++)
		buf_printf(out, "%s%u%s", i ? ", " : ", ports: [", (unsigned)rule->ports[i],
			   i + 1 == rule->port_count ? "]" : "");
	put_conditions(out, proposal, item->value);
	buf_put_char(out, '}');
	put_evidence(out, item);
	buf_put_text(out, "; only looked up, not connected to\n");
}

/* The port of the machine that this was; NULL: it was none. */
static const struct host_port *find_host_port(const struct proposal *proposal, const struct tally_item *item)
{
	static const char own[] = "localhost ";
	uint64_t port;

	if (!str_has_prefix(item->key, own) || num_parse_u64(item->key + sizeof own - 1, &port) < 0 ||
	    port > UINT16_MAX)
		return NULL;
	return policy_host_port(proposal->request->before, (uint16_t)port);
}

static void put_host_ports(struct buf *out, const struct proposal *proposal)
{
	bool is_headed = false;

	for (size_t i = 0; i < proposal->hosts.count; i++) {
		const struct tally_item *item = &proposal->hosts.items[i];
		const struct host_port *port = find_host_port(proposal, item);

		if (!port)
			continue;
		buf_printf(out, "%s    - %u%s%s", is_headed ? "" : "  host_ports:\n", port->port, port->name ? "=" : "",
			   port->name ? port->name : "");
		put_evidence(out, item);
		buf_put_char(out, '\n');
		is_headed = true;
	}
}

/* What the session's policy says of it: where a person was asked, one is asked again. */
static enum verdict verdict_of(const struct proposal *proposal, const struct tally_item *item)
{
	const struct policy *before = proposal->request->before;

	if (item->value == SIZE_MAX && find_host_port(proposal, item))
		return VERDICT_COUNT;
	return item->value == SIZE_MAX ? before->network.default_verdict : before->network.rules[item->value].verdict;
}

static void put_reached(struct buf *out, const struct proposal *proposal, enum verdict verdict)
{
	bool is_headed = false;

	for (size_t i = 0; i < proposal->hosts.count + proposal->names.count; i++) {
		const struct tally_item *item = i < proposal->hosts.count
							? &proposal->hosts.items[i]
							: &proposal->names.items[i - proposal->hosts.count];
		bool is_name = i >= proposal->hosts.count;

		if (verdict_of(proposal, item) != verdict || (is_name && was_reached(proposal, item->key)))
			continue;
		if (!is_headed)
			buf_printf(out, "  %s:\n", verdict_names[verdict]);
		is_headed = true;
		(is_name ? put_name : put_host)(out, proposal, item);
	}
	if (verdict != VERDICT_ALLOW)
		kept_put_net(proposal, verdict, is_headed, out);
}

static void put_network(struct buf *out, const struct proposal *proposal)
{
	static const enum verdict verdicts[] = { VERDICT_ALLOW, VERDICT_SIMULATE, VERDICT_ASK, VERDICT_DENY };

	if (!proposal->hosts.count && !proposal->names.count && !kept_has_net_limits(proposal))
		return;
	buf_put_text(out, "network:\n");
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		put_reached(out, proposal, verdicts[i]);
	put_host_ports(out, proposal);
	print_network_limits(out, proposal->request->before);
}

static bool has_own_programs(const struct proposal *proposal)
{
	for (size_t i = 0; i < proposal->programs.count; i++)
		if (proposal->programs.items[i].value & PROGRAM_WRITABLE)
			return true;
	return false;
}

/* The value of a program is no number of files. */
static void put_programs(struct buf *out, const struct proposal *proposal, enum verdict verdict)
{
	bool is_headed = false;

	for (size_t i = 0; i < proposal->programs.count; i++) {
		struct tally_item item = proposal->programs.items[i];

		if ((item.value & PROGRAM_ASKED ? VERDICT_ASK : VERDICT_ALLOW) != verdict)
			continue;
		if (!is_headed)
			buf_printf(out, "  %s:\n", verdict_names[verdict]);
		is_headed = true;
		item.value = 0;
		put_item(out, proposal, &item, false, false);
	}
	if (verdict != VERDICT_ALLOW)
		kept_put_exec(proposal, verdict, is_headed, out);
}

/* What is made anew cannot be named beforehand: the session's own list, where it had one. */
static void put_no_list(struct buf *out, const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before;

	buf_put_text(out, "  # No list of programs: a program that a run makes cannot be named beforehand.\n");
	if (before->exec.default_verdict != VERDICT_ALLOW) {
		buf_printf(out, "  default: %s\n", verdict_names[before->exec.default_verdict]);
		kept_put_exec(proposal, VERDICT_ALLOW, false, out);
	}
	kept_put_exec(proposal, VERDICT_ASK, false, out);
	kept_put_exec(proposal, VERDICT_DENY, false, out);
}

static void put_exec(struct buf *out, const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before;
	bool is_listed = !proposal->new_programs.count && !proposal->programs.left_out;

	buf_put_text(out, "exec:\n");
	if (before->exec.namespaces)
		buf_printf(out, "  namespaces: %-14s # as the session had it; whether one was made is not recorded\n",
			   exec_namespaces_names[before->exec.namespaces]);
	if (has_own_programs(proposal) && !proposal->new_programs.count && before->exec.new_binaries)
		buf_put_text(out, "  new_binaries: true         # programs were run where the session can write; those "
				  "below, as they were\n");
	if (proposal->new_programs.count && before->exec.new_binaries) {
		buf_put_text(out, "  new_binaries: true         # programs that the session made, or could have, "
				  "were run:\n");
		for (size_t i = 0; i < proposal->new_programs.count && i < PROPOSE_REFUSED_SHOWN; i++) {
			put_comment(out, "  ", proposal->new_programs.items[i].key);
			buf_put_char(out, '\n');
		}
	}
	if (!is_listed) {
		put_no_list(out, proposal);
		return;
	}
	buf_put_text(out, "  default: deny\n");
	put_programs(out, proposal, VERDICT_ALLOW);
	put_programs(out, proposal, VERDICT_ASK);
	kept_put_exec(proposal, VERDICT_DENY, false, out);
}

/* So many times what was used, rounded up, and no more than the session had. */
static uint64_t limit_of(const struct proposal *proposal, enum resource resource, uint64_t used, uint64_t step)
{
	uint64_t had = proposal->request->before->limits[resource].value, wanted;

	if (!used || used > NUM_UNLIMITED / (2 * PROPOSE_MARGIN))
		return had;
	wanted = (used * PROPOSE_MARGIN + step - 1) / step * step;
	return wanted < had ? wanted : had;
}

static void put_limits(struct buf *out, const struct proposal *proposal)
{
	const struct propose_usage *usage = &proposal->request->usage;
	const struct { enum resource resource; uint64_t used, step; } rows[] = {
		{ RESOURCE_MEMORY, usage->memory_bytes, 64 * MIB },
		{ RESOURCE_PROCESSES, usage->processes, PROCESSES_MIN },
		{ RESOURCE_CPU_MS, usage->cpu_ms, MINUTE_MS },
		{ RESOURCE_WALL_MS, usage->wall_ms, MINUTE_MS },
	};
	const struct policy *before = proposal->request->before;
	char text[32];

	for (int i = 0; i < RESOURCE_COUNT; i++) {
		uint64_t value = before->limits[i].value, used = 0;

		for (size_t row = 0; row < ARRAY_SIZE(rows); row++)
			if ((int)rows[row].resource == i) {
				value = limit_of(proposal, rows[row].resource, rows[row].used, rows[row].step);
				used = rows[row].used;
			}
		if (i == RESOURCE_MEMORY || i == RESOURCE_WALL_MS)
			buf_printf(out, "%s:\n", i == RESOURCE_MEMORY ? "resources" : "time");
		scalar_value_to_text(SCALAR_RESOURCES + i, value, text);
		buf_printf(out, "  %s: %s", resource_name(i), text);
		if (used && value != before->limits[i].value) {
			scalar_value_to_text(SCALAR_RESOURCES + i, used, text);
			buf_printf(out, "  # used: %s", text);
		}
		buf_put_char(out, '\n');
	}
	print_rates(out, before);
}

static bool has_pass(const struct policy *policy, const char *pattern)
{
	for (size_t i = 0; i < policy->env.pass_count; i++)
		if (str_equal(policy->env.pass[i].pattern, pattern))
			return true;
	return false;
}

static bool has_set(const struct policy *policy, const struct env_set *set)
{
	for (size_t i = 0; i < policy->env.set_count; i++)
		if (str_equal(policy->env.set[i].name, set->name) && str_equal(policy->env.set[i].value, set->value))
			return true;
	return false;
}

/* What a log does not tell is kept as the session had it. */
static void put_environment(struct buf *out, const struct proposal *proposal)
{
	const struct policy *before = proposal->request->before, *base = proposal->request->base;
	const char *heading = "env:                         # as the session had it; it is not recorded "
			      "which variables are read\n";
	size_t shown = 0;

	for (size_t i = 0; i < before->env.pass_count; i++) {
		if (has_pass(base, before->env.pass[i].pattern))
			continue;
		buf_put_text(out, shown++ ? "" : heading);
		buf_put_text(out, shown == 1 ? "  pass:\n    - " : "    - ");
		print_quoted(out, before->env.pass[i].pattern);
		buf_put_char(out, '\n');
	}
	for (size_t i = 0, set = 0; i < before->env.set_count; i++) {
		if (has_set(base, &before->env.set[i]))
			continue;
		buf_put_text(out, shown++ ? "" : heading);
		buf_printf(out, "%s    %s: ", set++ ? "" : "  set:\n", before->env.set[i].name);
		print_quoted(out, before->env.set[i].value);
		buf_put_char(out, '\n');
	}
}

static void put_walls(struct buf *out, const struct proposal *proposal)
{
	uint32_t more = proposal->request->before->degrade & ~proposal->request->base->degrade;

	for (unsigned i = 0, shown = 0; i < WALL_COUNT; i++)
		if (more >> i & 1)
			buf_printf(out, "%s%s", shown++ ? ", " : "degrade: [", wall_names[i]);
	buf_put_text(out, more ? "]   # as the session had it\n" : "");
}

/* A rule for a directory is one for all below it: to list it is nothing that can be granted by itself. */
static void put_listed(struct buf *out, const struct proposal *proposal)
{
	const struct tally *listed = &proposal->listed;

	if (listed->count)
		buf_put_text(out, "# Directories that were listed in the session. Here, such a list has only what this "
				  "policy has below them:\n");
	for (size_t i = 0; i < listed->count && i < PROPOSE_REFUSED_SHOWN; i++) {
		put_comment(out, "", listed->items[i].key);
		buf_put_char(out, '\n');
	}
	if (listed->count > PROPOSE_REFUSED_SHOWN)
		buf_printf(out, "# and %zu more\n", listed->count - PROPOSE_REFUSED_SHOWN);
}

static void put_refused(struct buf *out, const struct proposal *proposal)
{
	const struct tally *refused = &proposal->refused;

	if (refused->count)
		buf_put_text(out, "# Refused in the session, and refused by this policy:\n");
	for (size_t i = 0; i < refused->count && i < PROPOSE_REFUSED_SHOWN; i++)
		/* It is escaped already. */
		buf_printf(out, "#   %s (record %llu)\n", refused->items[i].key,
			   (unsigned long long)refused->items[i].record);
	if (refused->count > PROPOSE_REFUSED_SHOWN)
		buf_printf(out, "#   and %zu more\n", refused->count - PROPOSE_REFUSED_SHOWN);
}

int propose_put(const struct proposal *proposal, struct buf *out)
{
	buf_printf(out, "# Proposed from what session %s did: %llu actions. What is not listed is as at level none,\n"
			"# which reads the system and the project, and reaches, writes and starts nothing else.\n"
			"atoll: 1\nextends: none\n",
		   proposal->request->session, (unsigned long long)proposal->log.actions);
	put_files(out, proposal);
	put_network(out, proposal);
	put_exec(out, proposal);
	put_limits(out, proposal);
	put_environment(out, proposal);
	kept_put_sections(proposal, out);
	put_walls(out, proposal);
	put_listed(out, proposal);
	put_refused(out, proposal);
	if (proposal->log.unreadable)
		buf_printf(out, "# Records that could not be read: %llu\n",
			   (unsigned long long)proposal->log.unreadable);
	return buf_error(out);
}
