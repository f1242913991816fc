/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "http/target.h"
#include "lang/bind/bind.h"
#include "lang/yaml/arena.h"
#include "os/path.h"
#include "policy/decide.h"
#include "policy/limit-text.h"
#include "prog/atoll-policy/options.h"

struct question {
	struct action action;
	bool is_tls;       /* of a request */
	struct target target; /* of a request; all zero: there is none */
	char subject[PATH_MAX];
	char path[PATH_MAX];
};

static int bad(struct err *err, const char *text, const char *expected)
{
	err_set(err, ERR_USAGE, EINVAL, "explain", "%s is not %s", text, expected);
	return -EINVAL;
}

static int parse_kind(const char *text, enum action_kind *ret_kind, struct err *err)
{
	int kind = names_find(action_kind_names, ACTION_KIND_COUNT, text);
	const char *nearest = names_nearest(action_kind_names, ACTION_KIND_COUNT, text);
	cleanup_buf struct buf all = { 0 };

	if (kind >= 0) {
		*ret_kind = (enum action_kind)kind;
		return 0;
	}
	buf_init(&all, 512);
	/* An alert is nothing that a program does. */
	for (size_t i = 0; i < ACTION_ALERT; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", action_kind_names[i]);
	err_set(err, ERR_USAGE, EINVAL, "explain", "there is no kind of action \"%s\"", text);
	err_hint(err, nearest ? "did you mean %s?" : "%s", nearest ? nearest : buf_text(&all));
	return -EINVAL;
}

/* ~, relative and untidy paths as a policy reads them. */
static int parse_path(const struct policy_options *given, const char *text, struct question *question, struct err *err)
{
	int r;

	if (text[0] == '~' && (text[1] == '/' || !text[1]) && given->home[0])
		r = path_join(question->subject, PATH_MAX, given->home, text[1] && text[2] ? text + 2 : ".");
	else
		r = path_join(question->subject, PATH_MAX, given->project_normal, text);
	return r < 0 ? bad(err, text, "a usable path") : 0;
}

/* A program by name is looked for where a shell inside would find it; links are followed, as execve does. */
static int parse_program(const struct policy_options *given, char *const *argv, struct question *question,
			 struct err *err)
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin" };
	char real[PATH_MAX];
	int r = 0;

	if (strchr(argv[0], '/')) {
		r = parse_path(given, argv[0], question, err);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
			r = path_join(question->subject, PATH_MAX, folders[i], argv[0]);
			if (r == 0 && path_real(question->subject, real, sizeof real) == 0)
				break;
		}
	}
	if (r < 0)
		return r;
	if (path_real(question->subject, real, sizeof real) == 0)
		r = str_copy(question->subject, PATH_MAX, real);
	question->action.argv = (const char *const *)argv;
	return r;
}

static int parse_port(const char *text, uint16_t *ret_port, struct err *err)
{
	uint64_t port;

	if (num_parse_u64(text, &port) < 0 || port > 65535)
		return bad(err, text, "a port");
	*ret_port = (uint16_t)port;
	return 0;
}

/* As a rule would hold it: the name that a person types is the one that stands in the policy. */
static int take_host(const char *host, size_t length, struct question *question)
{
	cleanup_arena struct arena arena = { 0 };
	char *text = arena_text_n(&arena, host, length);
	const char *normal = text ? bind_host_name(&arena, text) : NULL;

	return normal ? str_copy(question->subject, PATH_MAX, normal) : -ENOMEM;
}

/* What of a URL a connection is about: "HOST[:PORT]" in out, and the port of its scheme. False: it is none. */
static bool take_authority(const char *text, char *out, size_t size, uint16_t *port)
{
	static const struct {
		const char *prefix;
		uint16_t port;
	} schemes[] = { { "https://", 443 }, { "http://", 80 }, { "wss://", 443 }, { "ws://", 80 }, { "ssh://", 22 } };

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *host = text + strlen(schemes[i].prefix);

		if (!str_has_prefix(text, schemes[i].prefix))
			continue;
		*port = schemes[i].port;
		return str_format(out, size, "%.*s", (int)strcspn(host, "/?#"), host) == 0;
	}
	return false;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT or a bare IPv6 address. */
static int parse_host(const char *text, uint16_t port, struct question *question, struct err *err)
{
	const char *host = text, *end = text + strlen(text), *colon = strrchr(text, ':');
	int r = 0;

	question->action.port = port;
	if (*text == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return bad(err, text, "an address");
		colon = end[1] ? end + 1 : NULL;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL;
	} else if (colon) {
		end = colon;
	}
	if (colon)
		r = parse_port(colon + 1, &question->action.port, err);
	if (r == 0)
		r = take_host(host, (size_t)(end - host), question);
	return r;
}

/* As parse_host(), or PORT or :PORT alone: which address it is at decides nothing. */
static int parse_listener(const char *text, struct question *question, struct err *err)
{
	const char *port = text + (*text == ':');

	if (port[strspn(port, "0123456789")])
		return parse_host(text, 0, question, err);
	return str_copy(question->subject, PATH_MAX, "localhost") < 0 ? -EINVAL :
									parse_port(port, &question->action.port, err);
}

/* What the gate would be sent, and as it reads it. */
static int parse_target(const char *url, const char *path, struct question *question, struct err *err)
{
	struct target_server server = { question->subject, question->action.port, question->is_tls };
	const char *method = question->action.method, *problem = NULL;
	cleanup_free char *target = str_printf("%s%s", *path == '/' ? "" : "/", path);
	int r = target ? target_parse(method, target, &server, &question->target, &problem) : -ENOMEM;

	if (problem) {
		err_set(err, ERR_USAGE, EINVAL, "explain", "%s: %s", url, problem);
		err_hint(err, "the network gate answers such a request with 400, whatever the policy says");
	}
	/* It points into what is freed here. */
	question->target.origin = NULL;
	return r;
}

/* METHOD URL */
static int parse_request(int argc, char **argv, struct question *question, struct err *err)
{
	const char *host, *path;
	uint16_t port = 443;
	char authority[512];
	int r;

	if (argc != 2)
		return bad(err, argv[0], "a request; write METHOD URL");
	question->is_tls = str_has_prefix(argv[1], "https://");
	if (str_has_prefix(argv[1], "http://"))
		port = 80;
	else if (!question->is_tls)
		return bad(err, argv[1], "a URL");
	host = strstr(argv[1], "//") + 2;
	path = host + strcspn(host, "/?#");
	question->action.method = argv[0];
	if (str_format(authority, sizeof authority, "%.*s", (int)(path - host), host) < 0)
		return bad(err, argv[1], "a URL");
	r = parse_host(authority, port, question, err);
	return r < 0 ? r : parse_target(argv[1], path, question, err);
}

static int parse_question(const struct policy_options *given, int argc, char **argv, struct question *question,
			  struct err *err)
{
	static char get[] = "GET";
	char authority[512];
	uint16_t port;
	int r;

	if (argc == 1 && strstr(argv[0], "://")) {
		question->action.kind = ACTION_HTTP_REQUEST;
		question->action.subject = question->subject;
		return parse_request(2, (char *[]){ get, argv[0], NULL }, question, err);
	}
	if (argc < 2) {
		err_set(err, ERR_USAGE, EINVAL, "explain", "explain takes a kind and a subject, or a URL");
		err_hint(err, "for example: https://example.org/, net.connect example.org:443, file.write ~/.bashrc, "
			      "exec /usr/bin/git push");
		return -EINVAL;
	}
	r = parse_kind(argv[0], &question->action.kind, err);
	if (r < 0)
		return r;
	question->action.subject = question->subject;
	switch (question->action.kind) {
	case ACTION_FILE_READ:
	case ACTION_FILE_WRITE:
	case ACTION_FILE_APPLY:
		r = parse_path(given, argv[1], question, err);
		break;
	case ACTION_EXEC:
		return parse_program(given, argv + 1, question, err);
	case ACTION_NET_LISTEN:
		r = parse_listener(argv[1], question, err);
		break;
	case ACTION_NET_CONNECT:
	case ACTION_NET_DNS:
		r = take_authority(argv[1], authority, sizeof authority, &port)
			? parse_host(authority, port, question, err) : parse_host(argv[1], 443, question, err);
		break;
	case ACTION_HTTP_REQUEST:
		if (argc == 2)
			return parse_request(2, (char *[]){ get, argv[1], NULL }, question, err);
		return parse_request(argc - 1, argv + 1, question, err);
	default:
		r = str_copy(question->subject, PATH_MAX, argv[1]);
		break;
	}
	if (r == 0 && argc > 2)
		return bad(err, argv[2], "expected: this kind of action has one subject");
	return r;
}

static bool has_port(const struct action *action)
{
	return action->kind == ACTION_NET_CONNECT || action->kind == ACTION_NET_LISTEN ||
	       action->kind == ACTION_HTTP_REQUEST;
}

/* Whether the rule puts a secret into the request that is asked about: it covers every reading of it. */
static bool injects(const struct net_rule *rule, const struct question *question)
{
	struct action reading = question->action;
	bool covers = rule->inject.kind != INJECT_NONE && question->is_tls;

	for (size_t i = 0; covers && i < target_reading_count(&question->target); i++) {
		target_set_reading(&question->target, i, &reading);
		covers = policy_rule_covers(rule, &reading);
	}
	return covers;
}

/* By which reading of its path a request is decided, where that is not how it was sent. */
static const char *reading_of(const struct action *action)
{
	return action->path_kind == REQUEST_PATH_SENT ? NULL : action->path;
}

/* The limits that an allowed connection or request counts against: set 0 is the session's. */
static const struct net_limits *limits_of(const struct policy *policy, const struct action *action, size_t set,
					  const char **ret_rule)
{
	const struct net_rule *rule;

	*ret_rule = "network.limits";
	if (!set)
		return &policy->network.limits;
	if (!(policy_limited_rules(policy, action) >> (set - 1) & 1))
		return NULL;
	rule = &policy->network.rules[policy->network.limited[set - 1]];
	*ret_rule = rule->origin.id;
	return rule->limits;
}

/* A limit that counts an action which is let through. */
struct counting {
	const char *rule, *limit;
	char text[NET_LIMIT_TEXT_SIZE];
};

static enum rate_kind rate_of(enum action_kind kind)
{
	switch (kind) {
	case ACTION_EXEC:
		return RATE_EXEC;
	case ACTION_FILE_READ:
		return RATE_FILE_READ;
	case ACTION_FILE_WRITE:
		return RATE_FILE_WRITE;
	default:
		return RATE_KIND_COUNT;
	}
}

/* The at-th place where a limit can be: the rate of the kind, then each kind of limit of each set. */
static bool find_counting(const struct policy *policy, const struct action *action, size_t at, struct counting *ret)
{
	enum rate_kind rate = rate_of(action->kind);
	enum net_limit kind = (enum net_limit)(at % NET_LIMIT_COUNT);
	const struct net_limits *limits;

	if (rate != RATE_KIND_COUNT) {
		*ret = (struct counting){ .rule = "time", .limit = "rate" };
		rate_to_text(&policy->rates[rate], ret->text);
		return at == 0 && policy->rates[rate].amount;
	}
	if (action->kind != ACTION_NET_CONNECT && action->kind != ACTION_HTTP_REQUEST)
		return false;
	limits = limits_of(policy, action, at / NET_LIMIT_COUNT, &ret->rule);
	if (!limits || !limits->of[kind].amount)
		return false;
	ret->limit = net_limit_names[kind];
	net_limit_to_text(kind, &limits->of[kind], ret->text);
	return true;
}

static size_t counting_end(const struct policy *policy, const struct decision *decision)
{
	bool goes_on = decision->verdict == VERDICT_ALLOW || decision->verdict == VERDICT_STAGE;

	return !goes_on ? 0 : (policy->network.limited_count + 1) * NET_LIMIT_COUNT;
}

static void put_limits_json(const struct policy *policy, const struct action *action,
			    const struct decision *decision, struct json *json)
{
	struct counting counting;

	json_array_begin(json, "limits");
	for (size_t at = 0; at < counting_end(policy, decision); at++) {
		if (!find_counting(policy, action, at, &counting))
			continue;
		json_object_begin(json, NULL);
		json_string(json, "rule", counting.rule);
		json_string(json, "limit", counting.limit);
		json_string(json, "value", counting.text);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_limits(const struct policy *policy, const struct action *action, const struct decision *decision,
		       struct buf *out)
{
	struct counting counting;

	for (size_t at = 0; at < counting_end(policy, decision); at++)
		if (find_counting(policy, action, at, &counting))
			buf_printf(out, "  limit:   %s %s (%s)\n", counting.limit, counting.text, counting.rule);
}

/* The entry that decides about a path of the host; NULL: none. */
static const struct file_plan_entry *entry_of(const struct policy *policy, const char *path)
{
	for (size_t i = policy->files.plan_count; i-- > 0;)
		if (policy->files.plan[i].class != FILE_MASK && path_is_below(path, policy->files.plan[i].path))
			return &policy->files.plan[i];
	return NULL;
}

/* "straight to the host" is not true of what the host does not have: it is left out, and the path is private. */
static const struct file_plan_entry *left_out(const struct policy *policy, const struct question *question)
{
	const struct file_plan_entry *entry;
	char real[PATH_MAX];

	if (question->action.kind != ACTION_FILE_WRITE && question->action.kind != ACTION_FILE_READ)
		return NULL;
	entry = entry_of(policy, question->action.subject);
	return entry && entry->flags & FILE_OPTIONAL && entry->class == FILE_WRITE &&
	       path_real(entry->path, real, sizeof real) < 0 ? entry : NULL;
}

static void put_json(const struct policy *policy, const struct question *question,
		     const struct decision *decision, struct buf *out)
{
	const struct action *action = &question->action;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "kind", action_kind_names[action->kind]);
	json_bytes(&json, "subject", action->subject, strlen(action->subject));
	if (has_port(action))
		json_u64(&json, "port", action->port);
	if (reading_of(action))
		json_bytes(&json, action->path_kind == REQUEST_PATH_READ ? "read_as" : "read_below", action->path,
			   strlen(action->path));
	json_string(&json, "verdict", verdict_names[decision->verdict]);
	json_string(&json, "rule", decision->rule.id);
	json_bytes(&json, "file", decision->rule.file, strlen(decision->rule.file));
	json_u64(&json, "line", decision->rule.line);
	json_string(&json, "reason", decision->reason);
	json_string(&json, "hint", decision->hint);
	json_array_begin(&json, "secrets");
	for (size_t i = 0; decision->verdict == VERDICT_ALLOW && i < policy->network.count; i++)
		if (injects(&policy->network.rules[i], question))
			json_string(&json, NULL, policy->network.rules[i].inject.secret);
	json_array_end(&json);
	json_bool(&json, "is_private_here", left_out(policy, question) != NULL);
	put_limits_json(policy, action, decision, &json);
	json_array_begin(&json, "degrade");
	for (unsigned i = 0; i < WALL_COUNT; i++)
		if (policy->degrade >> i & 1)
			json_string(&json, NULL, wall_names[i]);
	json_array_end(&json);
	json_bool(&json, "landlock_files", policy->exec.namespaces != EXEC_NAMESPACES_MOUNTS);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

/* What holds an action of this kind back. Those of other kinds our own programs judge, which are always there. */
static uint32_t walls_before(enum action_kind kind)
{
	enum { FILES = 1 << WALL_USERNS | 1 << WALL_MOUNTS | 1 << WALL_LANDLOCK | 1 << WALL_MASK_LATE,
	       NETWORK = 1 << WALL_NETNS | 1 << WALL_LANDLOCK | 1 << WALL_SECCOMP };
	static const uint32_t walls[ACTION_KIND_COUNT] = {
		[ACTION_FILE_READ] = FILES,	 [ACTION_FILE_WRITE] = FILES,
		[ACTION_EXEC] = FILES,		 [ACTION_DEVICE] = FILES,
		[ACTION_NET_CONNECT] = NETWORK,	 [ACTION_NET_LISTEN] = NETWORK,
		[ACTION_NET_DNS] = NETWORK,	 [ACTION_HTTP_REQUEST] = NETWORK,
		[ACTION_SYSCALL] = 1 << WALL_SECCOMP,
	};

	return walls[kind];
}

/* A wall that may be missing says something only where it is what holds this back. */
static void put_missing(const struct policy *policy, const struct action *action, const struct decision *decision,
			struct buf *out)
{
	uint32_t missing = decision->verdict == VERDICT_ALLOW ? 0 : policy->degrade & walls_before(action->kind);

	for (unsigned i = 0, shown = 0; i < WALL_COUNT; i++)
		if (missing >> i & 1)
			buf_printf(out, "%s%s", shown++ ? ", " : "  walls that this policy lets be missing: ",
				   wall_names[i]);
	buf_put_text(out, missing ? "\n" : "");
	if (policy->exec.namespaces == EXEC_NAMESPACES_MOUNTS && decision->verdict != VERDICT_ALLOW &&
	    walls_before(action->kind) & 1u << WALL_MOUNTS)
		buf_put_text(out, "  walls:   mounts alone; Landlock holds no file rule (exec.namespaces: mounts)\n");
}

static bool is_made(const char *const *places, size_t step, const char *path)
{
	for (; places && *places; places += step)
		if (str_equal(*places, path))
			return true;
	return false;
}

static void put_left_out(const struct policy *policy, const struct question *question, struct buf *out)
{
	const struct file_plan_entry *entry = left_out(policy, question);

	if (!entry)
		return;
	buf_put_text(out, "  here:    ");
	buf_put_escaped(out, entry->path, strlen(entry->path), 0);
	if (is_made(policy->agent.directories, 1, entry->path) || is_made(policy->agent.files, 2, entry->path)) {
		buf_put_text(out, " is not there yet; a run makes it (agent.state)\n");
		return;
	}
	buf_put_text(out, " is not there: what is written below it is private and thrown away; to keep it: mkdir -p ");
	buf_put_escaped(out, entry->path, strlen(entry->path), 0);
	buf_put_char(out, '\n');
}

static void put_text(const struct policy *policy, const struct question *question,
		     const struct decision *decision, struct buf *out)
{
	const struct action *action = &question->action;

	buf_printf(out, "%s: %s ", verdict_names[decision->verdict], action_kind_names[action->kind]);
	if (has_port(action))
		buf_put_text(out, str_host_open(action->subject));
	buf_put_escaped(out, action->subject, strlen(action->subject), 0);
	if (has_port(action))
		buf_printf(out, "%s:%u", str_host_close(action->subject), action->port);
	if (reading_of(action)) {
		buf_put_text(out, "\n  read as: ");
		buf_put_escaped(out, action->path, strlen(action->path), 0);
		buf_put_text(out, action->path_kind == REQUEST_PATH_READ ? "" : ", or anything below it");
	}
	buf_printf(out, "\n  rule:    %s", decision->rule.id);
	if (decision->rule.file[0]) {
		buf_put_text(out, " (");
		buf_put_escaped(out, decision->rule.file, strlen(decision->rule.file), 0);
		buf_printf(out, ":%u)", decision->rule.line);
	}
	buf_printf(out, "\n  reason:  %s\n", decision->reason);
	if (decision->hint[0])
		buf_printf(out, decision->verdict < VERDICT_STAGE ? "  way out: %s\n" : "  note:    %s\n",
			   decision->hint);
	put_left_out(policy, question, out);
	for (size_t i = 0; decision->verdict == VERDICT_ALLOW && i < policy->network.count; i++)
		if (injects(&policy->network.rules[i], question))
			buf_printf(out, "  secret:  %s, by %s\n", policy->network.rules[i].inject.secret,
				   policy->network.rules[i].origin.id);
	put_limits(policy, action, decision, out);
	put_missing(policy, action, decision, out);
}

/* `atoll policy explain`: 0 when it may happen (for real, staged, or in a private place), 1 when it may not.
 */
int cmd_explain(struct policy_options *given, int argc, char **argv, struct err *err)
{
	static struct question question;
	cleanup_lang struct lang *lang = NULL;
	struct lang_request request = policy_options_request(given);
	cleanup_buf struct buf out;
	struct decision decision;
	int r;

	buf_init(&out, 1 << 20);
	r = parse_question(given, argc, argv, &question, err);
	if (r < 0)
		return err->code == ERR_NONE ? bad(err, argc > 1 ? argv[1] : "nothing", "usable") : r;
	r = policy_options_compile(given, &request, &lang, err);
	if (r != 0)
		return r;
	decision = question.action.kind == ACTION_HTTP_REQUEST
		? target_judge(&question.target, lang_policy(lang), &question.action)
		: policy_decide(lang_policy(lang), &question.action);
	if (given->json)
		put_json(lang_policy(lang), &question, &decision, &out);
	else
		put_text(lang_policy(lang), &question, &decision, &out);
	r = policy_options_print(&out, err);
	target_done(&question.target);
	if (r < 0)
		return r;
	return decision.verdict >= VERDICT_STAGE ? 0 : 1;
}
