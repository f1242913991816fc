/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A table as the BPF program of one architecture. Part of the build tool seccomp-gen; program.c has the theory of
 * operation.
 */

#include <linux/filter.h>

#include "table.h"

enum {
	NUMBERS = 512,           /* numbers that are looked at one by one; all above share the default */
	KERNEL_NUMBERS = 470,    /* what the kernel walks when it loads a filter */
	CODE_MAX = 2048, LABELS_MAX = 1024,
};

struct architecture {
	const char *name;
	uint32_t seccomp_arch, audit_arch;
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

/* What the filter returns where this rule decides. */
uint32_t rule_value(const struct rule *rule);

/* The program is zeroed; it borrows the table's rules. */
void program_make(struct program *program, const struct table *table, const struct architecture *arch);
