/* SPDX-License-Identifier: Apache-2.0 */
#include "client/secrets.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/program.h"
#include "os/fd.h"
#include "wire/secret.h"

_Static_assert((int)POLICY_SECRETS_MAX <= (int)SECRET_GIVE_MAX, "whatever a policy names can be given at once");

enum { ABOVE_GIVEN = SECRET_PLACEHOLDER_FD + 1, VARIABLES_EACH = 3, GIVEN_MAX = POLICY_SECRETS_MAX + 8 };

/* While placeholders come in. */
struct arrival {
	const struct policy *policy;
	char **variables;
	size_t count, count_max;
	bool is_whole;
};

struct pair {
	int near_fd, far_fd;
};

static int add(struct arrival *arrival, char *variable)
{
	if (!variable || arrival->count == arrival->count_max) {
		free(variable);
		return -ENOMEM;
	}
	arrival->variables[arrival->count++] = variable;
	return 0;
}

/* "id:key" and "id:key:token" are what AWS has three variables for. */
static int add_aws(struct arrival *arrival, const char *prefix, const char *placeholder)
{
	static const char *const suffixes[VARIABLES_EACH] = { "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY",
							      "_SESSION_TOKEN" };
	const char *at = placeholder;
	int r = 0;

	for (size_t i = 0; r == 0 && at && i < ARRAY_SIZE(suffixes); i++) {
		const char *end = i + 1 < ARRAY_SIZE(suffixes) ? strchr(at, ':') : NULL;

		r = add(arrival, str_printf("%s%s=%.*s", prefix, suffixes[i],
					    end ? (int)(end - at) : (int)strlen(at), at));
		at = end ? end + 1 : NULL;
	}
	return r;
}

static int on_placeholder(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct arrival *arrival = context;
	const char *name, *placeholder;
	int r = secret_get_placeholder(frame, &name, &placeholder);

	for (size_t i = 0; r == 0 && i < arrival->policy->network.count; i++) {
		const struct inject *inject = &arrival->policy->network.rules[i].inject;

		if (inject->kind == INJECT_NONE || !inject->env || !str_equal(inject->secret, name))
			continue;
		if (inject->kind == INJECT_AWS)
			r = add_aws(arrival, inject->env, placeholder);
		else
			r = add(arrival, str_printf("%s=%s", inject->env, placeholder));
	}
	return r;
}

static int on_end(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct arrival *arrival = context;

	arrival->is_whole = true;
	return frame_finish(frame);
}

static const struct frame_rule rules[] = {
	{ SECRET_PLACEHOLDER, 1, SECRET_PLACEHOLDER_MAX + 1024, 0, 0, on_placeholder },
	{ SECRET_END, 1, 64, 0, 0, on_end },
};

/* Everything lies in the socket already: atoll-secret has ended. */
static int receive(int fd, const struct policy *policy, struct secrets *secrets, struct err *err)
{
	struct arrival arrival = { .policy = policy, .count_max = VARIABLES_EACH * policy->network.count };
	cleanup_buf struct buf scratch;
	int r = 1;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	arrival.variables = calloc(arrival.count_max + 1, sizeof *arrival.variables);
	secrets->variables = arrival.variables;
	if (!arrival.variables)
		return err_set(err, ERR_INTERNAL, ENOMEM, "secret", "out of memory");
	while (r > 0 && !arrival.is_whole)
		r = frame_dispatch(fd, &scratch, 0, rules, ARRAY_SIZE(rules), &arrival);
	if (r > 0)
		return 0;
	err_set(err, ERR_INTERNAL, r < 0 ? -r : EBADMSG, "secret", "atoll-secret did not give what the policy uses");
	err_hint(err, "atoll's programs must lie in one directory; install atoll again");
	return -err->errnum;
}

/* What atoll-secret says goes to stderr; whatever ends it there ends the run here. */
static int run(const char *const *names, size_t count, const struct dirs *dirs, const struct pair pairs[2],
	       struct err *err)
{
	char vault[PATH_MAX];
	const char *argv[GIVEN_MAX] = { "atoll-secret", "--directory", vault, "--project", dirs->project, "give" };
	const struct program program = {
		.name = "atoll-secret", .argv = argv, .fd_count = 2,
		.fds = { { pairs[0].far_fd, SECRET_FD }, { pairs[1].far_fd, SECRET_PLACEHOLDER_FD } },
	};
	int r = path_join(vault, sizeof vault, dirs->config_home, "atoll/vault");

	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "secret", "a directory's path is too long");
	memcpy(argv + 6, names, count * sizeof *names);
	r = program_run(&program, err);
	return r > 0 ? 1 : r;
}

/* Out of the way of the descriptors that atoll-secret gets. */
static int open_pair(struct pair *pair)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pair->near_fd = fd_move_above(ends[0], ABOVE_GIVEN);
	pair->far_fd = fd_move_above(ends[1], ABOVE_GIVEN);
	return pair->near_fd < 0 ? pair->near_fd : pair->far_fd < 0 ? pair->far_fd : 0;
}

/* What atoll-secret wrote lies in the sockets: theirs to read, ours are the near ends. */
static int fetch(const char *const *names, size_t count, const struct dirs *dirs, struct pair pairs[2],
		 struct err *err)
{
	int r = 0;

	if (!dirs->config_home[0]) {
		err_set(err, ERR_STATE, ENOENT, "secret",
			"the policy uses the secret %s, and you have no home directory", names[0]);
		err_hint(err, "set HOME or XDG_CONFIG_HOME to the directory that has your vault");
		return -ENOENT;
	}
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = open_pair(&pairs[i]);
	r = r < 0 ? err_set(err, ERR_INTERNAL, -r, "secret", "no socket for secrets: %s", strerror(-r))
		  : run(names, count, dirs, pairs, err);
	/* Our ends of what atoll-secret wrote to: without them a reader sees the end. */
	close_fd(&pairs[0].far_fd);
	close_fd(&pairs[1].far_fd);
	return r;
}

int secrets_bring(const struct policy *policy, const struct dirs *dirs, struct secrets *ret_secrets,
		  struct err *err)
{
	const char *names[POLICY_SECRETS_MAX];
	struct pair pairs[2] = { { FD_NONE, FD_NONE }, { FD_NONE, FD_NONE } };
	size_t count = policy_secrets(policy, names);
	int r;

	*ret_secrets = (struct secrets){ .values_fd = FD_NONE };
	if (!count)
		return 0;
	r = fetch(names, count, dirs, pairs, err);
	if (r == 0)
		r = receive(pairs[1].near_fd, policy, ret_secrets, err);
	if (r == 0)
		ret_secrets->values_fd = take_fd(&pairs[0].near_fd);
	close_fd(&pairs[0].near_fd);
	close_fd(&pairs[1].near_fd);
	return r;
}

/* Whoever reads it could answer in the webhook's name. */
static int open_key_file(const char *path, int *ret_fd, struct err *err)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	char shown[ERR_QUOTE_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		int errnum = fd < 0 ? -fd : errno;

		err_set(err, ERR_STATE, errnum, "ask", "the key of the webhook, %s, cannot be read: %s",
			err_quote(shown, path), strerror(errnum));
		err_hint(err, "the policy names it in ask.webhook.key_file");
		return -errnum;
	}
	if (!S_ISREG(st.st_mode) || st.st_mode & 077) {
		err_set(err, ERR_STATE, EPERM, "ask", "the key of the webhook, %s, can be read or written by others",
			err_quote(shown, path));
		err_hint(err, "chmod 600 %s", err_quote(shown, path));
		return -EPERM;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

/* NULL: none. */
static int bring_one(const char *name, const struct dirs *dirs, int *ret_fd, struct err *err)
{
	struct pair pairs[2] = { { FD_NONE, FD_NONE }, { FD_NONE, FD_NONE } };
	int r;

	*ret_fd = FD_NONE;
	if (!name)
		return 0;
	r = fetch(&name, 1, dirs, pairs, err);
	if (r == 0)
		*ret_fd = take_fd(&pairs[0].near_fd);
	close_fd(&pairs[0].near_fd);
	close_fd(&pairs[1].near_fd);
	return r;
}

int secrets_bring_key(const struct policy *policy, const struct dirs *dirs, int *ret_fd, struct err *err)
{
	*ret_fd = FD_NONE;
	return policy->ask.webhook_key_file ? open_key_file(policy->ask.webhook_key_file, ret_fd, err)
					    : bring_one(policy->ask.webhook_key, dirs, ret_fd, err);
}

int secrets_bring_verifier(const struct policy *policy, const struct dirs *dirs, int *ret_fd, struct err *err)
{
	return bring_one(policy->external.secret, dirs, ret_fd, err);
}

void secrets_done(struct secrets *secrets)
{
	close_fd(&secrets->values_fd);
	strv_free(secrets->variables);
	secrets->variables = NULL;
}
