/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What both judgements of an exec share (gate.c, when it is asked for; exec-stop.c, when the new program is
 * there): the state of the gate, and what the policy says of one program. Only for these two. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gate-exec/arguments.h"
#include "gate-exec/case.h"
#include "gate-exec/file.h"
#include "gate-exec/gate.h"
#include "gate-exec/log.h"
#include "policy/decide.h"
#include "supervise/path-search.h"

struct queue_outcome;
struct programs;
struct watch_exec;

struct exec_gate {
	struct exec_gate_input in;
	bool judges_programs;        /* or where they lie; else execs are counted and recorded, and nothing more */
	bool judges_arguments;
	bool verifies;               /* what commands would do is looked at (gate-exec/verifier.h) */
	struct programs *programs;   /* owned; NULL: not judged */
	uint64_t refreshed_ns;       /* CLOCK_MONOTONIC */
	struct exec_cases cases;
	struct verifier *verify;  /* owned; NULL: what commands would do is not looked at */
	struct exec_dry_runs *trials;  /* owned; NULL: likewise */
	struct exec_refused refused;
	struct path_search search;
};

/* What the policy says of this program with these arguments; NULL: none are judged. is_held: it is there already. */
struct decision exec_decide(struct exec_gate *gate, const struct exec_file *file, const struct exec_words *words,
			    bool is_held);

/*
 * What the policy says of the file that a program names as its loader (PT_INTERP; real path; "": none). To be mapped
 * is to be read, by whoever may look into the process: where reads are decided at access, that is one. Nobody is asked
 * about it. ALLOW or DENY.
 */
struct decision exec_decide_loader(const struct policy *policy, const char *path);

/* Refusals: nobody can tell which program it is; nobody can be asked about arguments that nobody can be shown. */
struct decision exec_refuse_unknown(void);
struct decision exec_refuse_cut(void);

/*
 * Whether the kernel is about to refuse it since nothing may be executed where the file lies: by exec.new_binaries, or
 * because the mounts took a denied program away. The mounts are that wall; *ret_decision is what to write down. False
 * where nobody can tell, or where the programs are judged anyway. Costs an open where new_binaries is false, else only
 * for programs that are called as a denied one.
 */
bool exec_place_refuses(const struct exec_gate *gate, const struct watch_exec *exec, struct decision *ret_decision);

/* The answer to a question. Its texts are the outcome's. */
struct decision exec_decision_of(const struct queue_outcome *outcome);

/* The case is over, whatever came of it. */
void exec_drop_case(struct exec_gate *gate, struct exec_case *exec_case);
