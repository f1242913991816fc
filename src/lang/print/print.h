/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A compiled policy as text again: the whole of it, or what another one adds and takes away. Pure; used
 * by atoll-policy for `show` and `diff`.
 */

#include "base/buf.h"
#include "base/json.h"
#include "policy/policy.h"

/*
 * The effective policy as YAML that compiles to the same, with a comment "# file:line" at each rule. It extends
 * nothing, so that its trust level and `trust:`, which lowers one, are comments.
 */
void print_policy(const struct policy *policy, struct buf *out);

/* The whole of it as one JSON object, with the origin of each rule as members "rule", "file" and "line". */
void print_policy_json(const struct policy *policy, struct json *json);

/* Of a rule with a host what it says beside ports, as members of a map: ", http: […], inject: {…}, …", or nothing. */
void print_net_conditions(struct buf *out, const struct net_rule *rule);

/* One rule as a line of the list that it stands in, with its origin. */
void print_file_rule(struct buf *out, const struct file_rule *rule);
void print_path_rule(struct buf *out, const struct path_rule *rule);
void print_net_rule(struct buf *out, const struct net_rule *rule);
void print_exec_rule(struct buf *out, const struct exec_rule *rule);

/* Lines of `network:` and of `time:`; nothing where there is none of it. */
void print_network_limits(struct buf *out, const struct policy *policy);
void print_rates(struct buf *out, const struct policy *policy);

/* Sections, a line each. */
void print_data(struct buf *out, const struct policy *policy);
void print_verify(struct buf *out, const struct verify_settings *verify, const struct external_verifier *external);
void print_monitor(struct buf *out, const struct policy *policy);

/* verify.external as a map; nothing where there is none. */
void print_external(struct buf *out, const struct external_verifier *verifier);

/* `agent:` as a map, on one line; of one that says nothing, its empty lists. */
void print_agent(struct buf *out, const struct agent_settings *agent);

/* The text in double quotes, as YAML has them: nothing in it can be anything but text. */
void print_quoted(struct buf *out, const char *text);

/*
 * What b allows that a does not ("+"), and what it no longer allows ("-"), by decisions and not by text,
 * a line each under the name of its dimension. The number of differences.
 */
size_t print_diff(const struct policy *a, const struct policy *b, struct buf *out);

/*
 * The same for who has little time: a line for all that changed alike, with the first few of them; and what may still
 * be changed and reached, where there is less of it.
 */
size_t print_diff_brief(const struct policy *a, const struct policy *b, struct buf *out);

/* Those of them that b allows: lines (out NULL: none are written), and how many. SIZE_MAX: out of memory. */
size_t print_diff_allows(const struct policy *a, const struct policy *b, struct buf *out);

/*
 * Whether they decide otherwise about anything of a dimension ("file.read"), or of one that begins so ("net."). True
 * where there is no memory to find out.
 */
bool print_diff_has(const struct policy *a, const struct policy *b, const char *dimension);

/* The same as an object {"allows": […], "denies": […]}. */
size_t print_diff_json(const struct policy *a, const struct policy *b, struct json *json);
