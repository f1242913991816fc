/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. Loading a filter costs (system call numbers x instructions walked), because the kernel
 * runs it once for every number to find what is always allowed; so: neighbouring numbers with the same fate are
 * one range, and the ranges are the leaves of the comparison tree with the fewest steps over all numbers (the
 * optimal alphabetic tree, by dynamic programming). Calls with conditions are small blocks behind the tree.
 * Jumps in BPF go forward only and at most 255 instructions: the answers stand at the end and are shared.
 */

#include "program.h"

#include <errno.h>
#include <seccomp.h>
#include <string.h>

#include <linux/seccomp.h>

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
		fail("raise NUMBERS in program.h");
}

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

uint32_t rule_value(const struct rule *rule)
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

void program_make(struct program *program, const struct table *table, const struct architecture *arch)
{
	collect_fates(program, table, arch);
	make_ranges(program);
	generate(program, arch);
	link_jumps(program);
}
