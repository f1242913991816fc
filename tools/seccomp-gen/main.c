/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build tool: seccomp tables (tools/seccomp/base.table explains the language) become BPF, once for each
 * architecture, as a C header. libseccomp only turns names into numbers here.
 *
 *   seccomp-gen OUT.h NAME=FILE[+FILE…]…
 *
 * The header also holds the rules as data, so that a test can compare program and table for every number.
 */

#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/audit.h>

#include "program.h"

static const struct architecture architectures[] = {
	{ "x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
	{ "aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
};

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

static void print_profile(FILE *out, const char *profile, char *path)
{
	static struct table table;

	table_parse(&table, path);
	for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
		struct program *program = calloc(1, sizeof *program);

		if (!program)
			fail("out of memory");
		program_make(program, &table, &architectures[i]);
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
		fail("usage: seccomp-gen OUT.h NAME=FILE[+FILE…]…");
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
			fail("expected NAME=FILE[+FILE…], not %s", argv[i]);
		*equals = 0;
		print_profile(out, argv[i], equals + 1);
	}
	if (fclose(out))
		fail("cannot write %s", argv[1]);
	return 0;
}
