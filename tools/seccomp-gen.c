/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build tool: seccomp tables (tools/seccomp/base.table explains the language) become BPF, once for each
 * architecture, as a C header. libseccomp only turns names into numbers here.
 *
 *   seccomp-gen OUT.h NAME=FILE…
 *
 * Theory of operation. Loading a filter costs (system call numbers x instructions walked), because the kernel
 * runs it once for every number to find what is always allowed; so: neighbouring numbers with the same fate are
 * one range, and the ranges are the leaves of the comparison tree with the fewest steps over all numbers (the
 * optimal alphabetic tree, by dynamic programming). Calls with conditions are small blocks behind the tree.
 * Jumps in BPF go forward only and at most 255 instructions: the answers stand at the end and are shared.
 * The header also holds the rules as data, so that a test can compare program and table for every number.
 */

#include <errno.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

enum {
	RULES_MAX = 1024, DEFINES_MAX = 64, CONDITIONS_MAX = 4, VALUES_MAX = 8, NAME_MAX_SIZE = 32,
	NUMBERS = 512,           /* numbers that are looked at one by one; all above share the default */
	KERNEL_NUMBERS = 470,    /* what the kernel walks when it loads a filter */
	CODE_MAX = 2048, LABELS_MAX = 1024,
};

struct condition {
	unsigned word;           /* of the arguments: 2 for each, the lower half first */
	uint32_t mask;
	bool negate;             /* holds when the masked value is none of values */
	unsigned value_count;
	uint32_t values[VALUES_MAX];
};

enum action_kind { ACTION_ALLOW, ACTION_ERRNO, ACTION_NOTIFY, ACTION_WATCH };

struct rule {
	char name[NAME_MAX_SIZE];
	int number;              /* given in the table, or -1 */
	enum action_kind action;
	int errnum;
	unsigned condition_count;
	struct condition conditions[CONDITIONS_MAX];
	int depth;               /* of the file that it stands in */
};

struct table {
	struct rule rules[RULES_MAX];
	unsigned count;
};

static struct {
	char name[NAME_MAX_SIZE];
	uint32_t value;
} defines[DEFINES_MAX];
static unsigned define_count;
static const char *where_file;
static unsigned where_line;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", where_file ? where_file : "seccomp-gen", where_line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void copy_name(char *out, const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= NAME_MAX_SIZE)
		fail("not a name: %s", text);
	memcpy(out, text, length + 1);
}

/* ---- the table ---- */

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value;

	for (unsigned i = 0; i < define_count; i++)
		if (!strcmp(defines[i].name, text))
			return defines[i].value;
	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || *end || end == text || value > UINT32_MAX)
		fail("neither a number nor defined: %s", text);
	return (uint32_t)value;
}

static char *word(char **line)
{
	char *start = *line + strspn(*line, " \t");
	char *end = start + strcspn(start, " \t");

	*line = *end ? end + 1 : end;
	*end = 0;
	return *start ? start : NULL;
}

static char *needed_word(char **line)
{
	char *text = word(line);

	if (!text)
		fail("the line ends too early");
	return text;
}

static int errno_number(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = { { "EPERM", EPERM }, { "EACCES", EACCES }, { "ENOSYS", ENOSYS }, { "EBUSY", EBUSY },
		      { "EINVAL", EINVAL }, { "EAFNOSUPPORT", EAFNOSUPPORT }, { "EPROTONOSUPPORT", EPROTONOSUPPORT },
		      { "EOPNOTSUPP", EOPNOTSUPP },
		      { "0", 0 } /* the call does nothing and says that it did */ };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, name))
			return known[i].value;
	fail("unknown errno: %s", name);
}

static void parse_action(struct rule *rule, const char *text)
{
	if (!strcmp(text, "allow"))
		rule->action = ACTION_ALLOW;
	else if (!strcmp(text, "watch"))
		rule->action = ACTION_WATCH;
	else if (!strncmp(text, "errno:", 6))
		rule->action = ACTION_ERRNO, rule->errnum = errno_number(text + 6);
	else if (!strncmp(text, "notify:", 7))
		rule->action = ACTION_NOTIFY, rule->errnum = errno_number(text + 7);
	else
		fail("unknown action: %s", text);
}

/* argN[.high] [& MASK] (== | != | in) VALUE[,VALUE…]; returns the word behind it. */
static char *parse_condition(struct condition *condition, char **line)
{
	char *text = needed_word(line), *save = NULL;

	memset(condition, 0, sizeof *condition);
	if (strncmp(text, "arg", 3) || text[3] < '0' || text[3] > '5' || (text[4] && strcmp(text + 4, ".high")))
		fail("expected arg0 to arg5 or one's .high, not %s", text);
	condition->word = 2 * (unsigned)(text[3] - '0') + !!text[4];
	condition->mask = UINT32_MAX;
	text = needed_word(line);
	if (!strcmp(text, "&")) {
		condition->mask = number(needed_word(line));
		text = needed_word(line);
	}
	condition->negate = !strcmp(text, "!=");
	if (!condition->negate && strcmp(text, "==") && strcmp(text, "in"))
		fail("expected ==, != or in, not %s", text);
	text = needed_word(line);
	for (char *value = strtok_r(text, ",", &save); value; value = strtok_r(NULL, ",", &save)) {
		if (condition->value_count == VALUES_MAX)
			fail("too many values");
		condition->values[condition->value_count++] = number(value);
	}
	return word(line);
}

static void add_rule(struct table *table, const struct rule *rule)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct rule *old = &table->rules[i];

		if (!strcmp(old->name, rule->name) && old->condition_count == 0 && old->depth == rule->depth)
			fail("%s was decided above; this line has no effect", rule->name);
	}
	if (table->count == RULES_MAX)
		fail("too many rules");
	table->rules[table->count++] = *rule;
}

static void parse_rule(struct table *table, const char *action, char *line, int depth)
{
	struct rule rule = { .depth = depth };
	char *names[64], *text;
	unsigned name_count = 0;

	parse_action(&rule, action);
	while ((text = word(&line)) && strcmp(text, "if")) {
		if (name_count == 64)
			fail("too many calls in one line");
		names[name_count++] = text;
	}
	while (text) {
		if (rule.condition_count == CONDITIONS_MAX)
			fail("too many conditions");
		text = parse_condition(&rule.conditions[rule.condition_count++], &line);
		if (text && strcmp(text, "and"))
			fail("expected and, not %s", text);
	}
	if (name_count == 0)
		fail("no call is named");
	for (unsigned i = 0; i < name_count; i++) {
		char *equals = strchr(names[i], '=');

		rule.number = equals ? (int)number(equals + 1) : -1;
		if (equals)
			*equals = 0;
		copy_name(rule.name, names[i]);
		add_rule(table, &rule);
	}
}

static void parse_file(struct table *table, const char *path, int depth)
{
	char line[512], beside[1024];
	const char *slash = strrchr(path, '/');
	FILE *file = fopen(path, "re");

	if (!file || depth > 4)
		fail("cannot read %s", path);
	where_file = path;
	where_line = 0;
	while (fgets(line, sizeof line, file)) {
		char *rest = line, *text;
		unsigned saved_line = ++where_line;

		line[strcspn(line, "#\n")] = 0;
		text = word(&rest);
		if (!text)
			continue;
		if (!strcmp(text, "define")) {
			if (define_count == DEFINES_MAX)
				fail("too many definitions");
			copy_name(defines[define_count].name, needed_word(&rest));
			defines[define_count].value = number(needed_word(&rest));
			define_count++;
		} else if (!strcmp(text, "include")) {
			snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
				 needed_word(&rest));
			parse_file(table, beside, depth + 1);
			where_file = path;
			where_line = saved_line;
		} else {
			parse_rule(table, text, rest, depth);
		}
	}
	fclose(file);
}

/* ---- one architecture ---- */

struct architecture {
	const char *name;
	uint32_t seccomp_arch, audit_arch;
};

static const struct architecture architectures[] = {
	{ "x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
	{ "aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
};

/* The fate of one number: its rules in order. Class 0 is "no rule", class 1 "always allow". */
struct fate {
	unsigned rule_count;
	const struct rule *rules[16];
};

struct label {
	int position;            /* -1: not placed yet */
};

struct program {
	struct fate fates[NUMBERS];
	unsigned class_of[NUMBERS];
	struct fate classes[NUMBERS];
	unsigned class_count;
	struct { unsigned first, last, class; } ranges[NUMBERS];
	unsigned range_count;
	struct { struct sock_filter insn; int jt, jf; } code[CODE_MAX]; /* jt, jf: labels, -1: next */
	unsigned code_count;
	struct label labels[LABELS_MAX];
	unsigned label_count;
	unsigned class_label[NUMBERS];
	struct { uint32_t value; unsigned label; } answers[32];
	unsigned answer_count;
};

static int rule_number(const struct rule *rule, const struct architecture *arch)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->seccomp_arch, rule->name);

	if (nr == __NR_SCMP_ERROR) {
		if (rule->number < 0)
			fail("libseccomp does not know %s", rule->name);
		return rule->number;
	}
	if (rule->number >= 0 && nr != rule->number)
		fail("%s is %d, not %d", rule->name, nr, rule->number);
	return nr;
}

static void collect_fates(struct program *program, const struct table *table, const struct architecture *arch)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct rule *rule = &table->rules[i];
		int nr = rule_number(rule, arch);
		struct fate *fate;

		if (nr < 0)
			continue; /* this architecture does not have it */
		if (nr >= NUMBERS)
			fail("%s has number %d", rule->name, nr);
		fate = &program->fates[nr];
		if (fate->rule_count && fate->rules[fate->rule_count - 1]->condition_count == 0)
			continue; /* decided by the including file */
		if (fate->rule_count == 16)
			fail("too many rules for %s", rule->name);
		fate->rules[fate->rule_count++] = rule;
	}
}

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
	return a->action == b->action && a->errnum == b->errnum && a->condition_count == b->condition_count &&
	       !memcmp(a->conditions, b->conditions, sizeof a->conditions);
}

static bool is_same_fate(const struct fate *a, const struct fate *b)
{
	if (a->rule_count != b->rule_count)
		return false;
	for (unsigned i = 0; i < a->rule_count; i++)
		if (!is_same_rule(a->rules[i], b->rules[i]) &&
		    /* Both end in a notification: which errno the supervisor gives is none of the filter's business. */
		    !(a->rules[i]->action >= ACTION_NOTIFY && b->rules[i]->action >= ACTION_NOTIFY &&
		      a->rules[i]->condition_count == 0 && b->rules[i]->condition_count == 0))
			return false;
	return true;
}

static void make_ranges(struct program *program)
{
	for (unsigned nr = 0; nr < NUMBERS; nr++) {
		unsigned class = 0;

		while (class < program->class_count && !is_same_fate(&program->classes[class], &program->fates[nr]))
			class++;
		if (class == program->class_count)
			program->classes[program->class_count++] = program->fates[nr];
		program->class_of[nr] = class;
		if (nr && program->class_of[nr - 1] == class) {
			program->ranges[program->range_count - 1].last = nr;
			continue;
		}
		program->ranges[program->range_count].first = nr;
		program->ranges[program->range_count].last = nr;
		program->ranges[program->range_count++].class = class;
	}
	/* Everything above the last number falls into the last range, which must therefore be the default. */
	if (program->classes[program->ranges[program->range_count - 1].class].rule_count)
		fail("raise NUMBERS in seccomp-gen.c");
}

/* ---- code ---- */

static unsigned new_label(struct program *program)
{
	if (program->label_count == LABELS_MAX)
		fail("too many labels");
	program->labels[program->label_count].position = -1;
	return program->label_count++;
}

static void place(struct program *program, unsigned label)
{
	program->labels[label].position = (int)program->code_count;
}

static void emit(struct program *program, uint16_t code, uint32_t k, int jt, int jf)
{
	if (program->code_count == CODE_MAX)
		fail("the program is too long");
	program->code[program->code_count].insn = (struct sock_filter){ .code = code, .k = k };
	program->code[program->code_count].jt = jt;
	program->code[program->code_count++].jf = jf;
}

static unsigned answer(struct program *program, uint32_t value)
{
	for (unsigned i = 0; i < program->answer_count; i++)
		if (program->answers[i].value == value)
			return program->answers[i].label;
	program->answers[program->answer_count].value = value;
	program->answers[program->answer_count].label = new_label(program);
	return program->answers[program->answer_count++].label;
}

static uint32_t rule_value(const struct rule *rule)
{
	switch (rule->action) {
	case ACTION_ALLOW:
		return SECCOMP_RET_ALLOW;
	case ACTION_ERRNO:
		return SECCOMP_RET_ERRNO | (uint32_t)rule->errnum;
	default:
		return SECCOMP_RET_USER_NOTIF;
	}
}

static unsigned split_at[NUMBERS][NUMBERS];

/* The optimal alphabetic tree over the ranges; split_at[i][j] is where [i, j] is cut (Knuth's bound holds). */
static void plan_tree(const struct program *program)
{
	static unsigned long cost[NUMBERS][NUMBERS], weight[NUMBERS + 1];
	unsigned n = program->range_count;

	for (unsigned i = 0; i < n; i++) {
		unsigned first = program->ranges[i].first, last = program->ranges[i].last;

		last = last < KERNEL_NUMBERS ? last : KERNEL_NUMBERS;
		weight[i + 1] = weight[i] + 1 + (last >= first ? last - first : 0);
		cost[i][i] = 0;
	}
	for (unsigned length = 2; length <= n; length++)
		for (unsigned i = 0, j = length - 1; j < n; i++, j++) {
			cost[i][j] = ~0ul;
			for (unsigned cut = i + 1; cut <= j; cut++)
				if (cost[i][cut - 1] + cost[cut][j] < cost[i][j]) {
					cost[i][j] = cost[i][cut - 1] + cost[cut][j];
					split_at[i][j] = cut;
				}
			cost[i][j] += weight[j + 1] - weight[i];
		}
}

/* Where the ranges [i, j] are decided: a leaf is its class, anything else gets its own place. */
static unsigned tree_label(struct program *program, unsigned i, unsigned j)
{
	return i == j ? program->class_label[program->ranges[i].class] : new_label(program);
}

static void emit_tree(struct program *program, unsigned i, unsigned j)
{
	unsigned cut = split_at[i][j], left = tree_label(program, i, cut - 1), right = tree_label(program, cut, j);

	emit(program, BPF_JMP | BPF_JGE | BPF_K, program->ranges[cut].first, (int)right, (int)left);
	if (i < cut - 1) {
		place(program, left);
		emit_tree(program, i, cut - 1);
	}
	if (cut < j) {
		place(program, right);
		emit_tree(program, cut, j);
	}
}

static void emit_condition(struct program *program, const struct condition *condition, unsigned yes, unsigned no)
{
	unsigned if_equal = condition->negate ? no : yes, if_none = condition->negate ? yes : no;

	/* Both architectures are little-endian: the low half stands first. */
	emit(program, BPF_LD | BPF_W | BPF_ABS, 16 + 4 * condition->word, -1, -1);
	if (condition->mask != UINT32_MAX && condition->value_count == 1 && condition->values[0] == 0) {
		emit(program, BPF_JMP | BPF_JSET | BPF_K, condition->mask, (int)if_none, (int)if_equal);
		return;
	}
	if (condition->mask != UINT32_MAX)
		emit(program, BPF_ALU | BPF_AND | BPF_K, condition->mask, -1, -1);
	for (unsigned i = 0; i < condition->value_count; i++)
		emit(program, BPF_JMP | BPF_JEQ | BPF_K, condition->values[i], (int)if_equal,
		     i + 1 == condition->value_count ? (int)if_none : -1);
}

static void emit_class(struct program *program, unsigned class)
{
	const struct fate *fate = &program->classes[class];
	unsigned next;

	place(program, program->class_label[class]);
	for (unsigned i = 0; i < fate->rule_count; i++) {
		const struct rule *rule = fate->rules[i];
		unsigned yes = answer(program, rule_value(rule));
		bool is_last = i + 1 == fate->rule_count;

		if (rule->condition_count == 0) {
			emit(program, BPF_JMP | BPF_JA, 0, (int)yes, -1);
			return;
		}
		/* A final "otherwise" needs no jump of its own: the last condition goes there. */
		if (i + 2 == fate->rule_count && fate->rules[i + 1]->condition_count == 0)
			next = answer(program, rule_value(fate->rules[i + 1])), is_last = true;
		else
			next = is_last ? answer(program, SECCOMP_RET_ERRNO | ENOSYS) : new_label(program);
		for (unsigned c = 0; c < rule->condition_count; c++) {
			unsigned hit = c + 1 == rule->condition_count ? yes : new_label(program);

			emit_condition(program, &rule->conditions[c], hit, next);
			if (hit != yes)
				place(program, hit);
		}
		if (is_last)
			return;
		place(program, next);
	}
}

static void generate(struct program *program, const struct architecture *arch)
{
	unsigned killed = new_label(program), native = new_label(program);

	program->answers[program->answer_count].value = SECCOMP_RET_KILL_PROCESS;
	program->answers[program->answer_count++].label = killed;
	for (unsigned class = 0; class < program->class_count; class++) {
		const struct fate *fate = &program->classes[class];

		if (fate->rule_count == 0)
			program->class_label[class] = answer(program, SECCOMP_RET_ERRNO | ENOSYS);
		else if (fate->rules[0]->condition_count == 0)
			program->class_label[class] = answer(program, rule_value(fate->rules[0]));
		else
			program->class_label[class] = new_label(program);
	}
	emit(program, BPF_LD | BPF_W | BPF_ABS, 4, -1, -1);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, arch->audit_arch, (int)native, (int)killed);
	place(program, native);
	emit(program, BPF_LD | BPF_W | BPF_ABS, 0, -1, -1);
	plan_tree(program);
	emit_tree(program, 0, program->range_count - 1);
	for (unsigned class = 0; class < program->class_count; class++)
		if (program->classes[class].rule_count && program->classes[class].rules[0]->condition_count)
			emit_class(program, class);
	for (unsigned i = 0; i < program->answer_count; i++) {
		place(program, program->answers[i].label);
		emit(program, BPF_RET | BPF_K, program->answers[i].value, -1, -1);
	}
}

static unsigned distance(const struct program *program, unsigned at, int label)
{
	int target = label < 0 ? (int)at + 1 : program->labels[label].position;

	if (target <= (int)at)
		fail("a jump leads backwards or nowhere");
	return (unsigned)target - at - 1;
}

static void link_jumps(struct program *program)
{
	for (unsigned i = 0; i < program->code_count; i++) {
		struct sock_filter *insn = &program->code[i].insn;

		if (BPF_CLASS(insn->code) != BPF_JMP)
			continue;
		if (BPF_OP(insn->code) == BPF_JA) {
			insn->k = distance(program, i, program->code[i].jt);
			continue;
		}
		if (distance(program, i, program->code[i].jt) > 255 || distance(program, i, program->code[i].jf) > 255)
			fail("a jump is too long; the tree needs answers of its own");
		insn->jt = (uint8_t)distance(program, i, program->code[i].jt);
		insn->jf = (uint8_t)distance(program, i, program->code[i].jf);
	}
}

/* ---- the header ---- */

static void print_program(FILE *out, const struct program *program, const char *profile, const char *arch)
{
	fprintf(out, "static const struct sock_filter seccomp_%s_%s[] __attribute__((unused)) = {\n", profile, arch);
	for (unsigned i = 0; i < program->code_count; i++) {
		const struct sock_filter *insn = &program->code[i].insn;

		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%x },\n", insn->code, insn->jt, insn->jf, insn->k);
	}
	fprintf(out, "};\n\n");
}

static void print_rules(FILE *out, const struct program *program, const char *profile, const char *arch)
{
	fprintf(out, "static const struct seccomp_rule seccomp_%s_%s_rules[] __attribute__((unused)) = {\n", profile,
		arch);
	for (unsigned nr = 0; nr < NUMBERS; nr++)
		for (unsigned i = 0; i < program->fates[nr].rule_count; i++) {
			const struct rule *rule = program->fates[nr].rules[i];

			fprintf(out, "\t{ %u, \"%s\", 0x%x, %d, %u, {", nr, rule->name, rule_value(rule), rule->errnum,
				rule->condition_count);
			for (unsigned c = 0; c < rule->condition_count; c++) {
				const struct condition *condition = &rule->conditions[c];

				fprintf(out, " { %u, 0x%x, %d, %u, {", condition->word, condition->mask,
					condition->negate,
					condition->value_count);
				for (unsigned v = 0; v < condition->value_count; v++)
					fprintf(out, "%s0x%x", v ? ", " : " ", condition->values[v]);
				fprintf(out, " } },");
			}
			fprintf(out, "%s } },\n", rule->condition_count ? "" : " { 0, 0, 0, 0, { 0 } }");
		}
	fprintf(out, "};\n\n");
}

static void print_refusals(FILE *out, const struct program *program, const char *profile, const char *arch)
{
	fprintf(out, "static const struct seccomp_refusal seccomp_%s_%s_refusals[] __attribute__((unused)) = {\n",
		profile, arch);
	for (unsigned nr = 0; nr < NUMBERS; nr++)
		for (unsigned i = 0; i < program->fates[nr].rule_count; i++) {
			const struct rule *rule = program->fates[nr].rules[i];

			if (rule->action == ACTION_NOTIFY) {
				fprintf(out, "\t{ %u, %d, \"%s\" },\n", nr, rule->errnum, rule->name);
				break;
			}
		}
	fprintf(out, "};\n\n");
}

static void print_profile(FILE *out, const char *profile, const char *path)
{
	static struct table table;

	memset(&table, 0, sizeof table);
	define_count = 0;
	parse_file(&table, path, 0);
	for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
		struct program *program = calloc(1, sizeof *program);

		if (!program)
			fail("out of memory");
		collect_fates(program, &table, &architectures[i]);
		make_ranges(program);
		generate(program, &architectures[i]);
		link_jumps(program);
		print_program(out, program, profile, architectures[i].name);
		print_rules(out, program, profile, architectures[i].name);
		print_refusals(out, program, profile, architectures[i].name);
		free(program);
	}
}

int main(int argc, char **argv)
{
	FILE *out;

	if (argc < 3)
		fail("usage: seccomp-gen OUT.h NAME=FILE…");
	out = fopen(argv[1], "we");
	if (!out)
		fail("cannot write %s", argv[1]);
	fprintf(out, "/* Made by tools/seccomp-gen from tools/seccomp; do not edit. */\n#pragma once\n\n"
		     "#include <linux/filter.h>\n#include <stdint.h>\n\n"
		     "struct seccomp_condition { unsigned word; uint32_t mask; int negate; unsigned value_count; "
		     "uint32_t values[%d]; };\n"
		     "struct seccomp_rule { int number; const char *name; uint32_t value; int errnum; "
		     "unsigned condition_count; struct seccomp_condition conditions[%d]; };\n"
		     "struct seccomp_refusal { int number; int errnum; const char *name; };\n\n",
		VALUES_MAX, CONDITIONS_MAX);
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			fail("expected NAME=FILE, not %s", argv[i]);
		*equals = 0;
		print_profile(out, argv[i], equals + 1);
	}
	if (fclose(out))
		fail("cannot write %s", argv[1]);
	return 0;
}
