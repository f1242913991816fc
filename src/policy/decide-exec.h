/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules of exec: which of them is about a program and its arguments. Pure; decide.c calls it, and the box's exec
 * gate asks what a policy needs to be enforced.
 */

#include "policy/decide.h"

/* The rule that decides ACTION_EXEC, or NULL: exec.default does. */
const struct exec_rule *policy_find_exec_rule(const struct policy *policy, const struct action *action);

/*
 * Whether programs are judged when they start. What shipped policies deny by its path the mounts have taken away: that
 * is enough for programs that could gain nothing anyway (sudo), and costs no exec anything.
 */
bool policy_judges_programs(const struct policy *policy);

/* Whether any rule is about arguments. */
bool policy_judges_arguments(const struct policy *policy);

/*
 * The dynamic loaders of this system: each runs any program that it is given, so where programs are judged none is run
 * by itself. NULL-terminated.
 */
extern const char *const policy_loaders[];

/* Whether that is one of them, by its names or by what such files are called. */
bool policy_is_loader(const struct action *action);

/* Whether the mounts take this program away, whole. */
bool exec_rule_is_mounted(const struct exec_rule *rule);
