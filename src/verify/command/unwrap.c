/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/unwrap.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"

static bool is_assignment(const struct word *word)
{
	const char *text = word->text;

	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return *text == '=';
}

/* CODE of `-c CODE`, `-S CODE`; count for none. */
static size_t code_after(const struct word *words, size_t count, const char *option, const char *long_option)
{
	for (size_t i = 1; i + 1 < count; i++) {
		const char *text = words[i].text;

		if (str_equal(text, long_option) ||
		    (text[0] == '-' && text[1] != '-' && strlen(text) > 1 && text[strlen(text) - 1] == option[0]))
			return i + 1;
	}
	return count;
}

/* Programs whose command is code behind an option: su root -c CODE, script -c CODE, env -S CODE. */
static bool unwrap_code(const struct word *words, size_t count, const char *name, struct wrapped *wrapped)
{
	static const struct {
		const char *name, *option, *long_option;
		uint32_t context;
	} rows[] = {
		{ "su", "c", "--command", CONTEXT_ROOT }, { "runuser", "c", "--command", CONTEXT_ROOT },
		{ "script", "c", "--command", 0 }, { "env", "S", "--split-string", 0 }, { "npx", "c", "--call", 0 },
		{ "flock", "c", "--command", 0 }, { "sg", "c", "-c", 0 },
		{ "nix-shell", "!", "--run", 0 }, { "vagrant", "c", "--command", CONTEXT_REMOTE },
		{ "xterm", "e", "-e", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t at;

		if (!str_equal(rows[i].name, name))
			continue;
		at = code_after(words, count, rows[i].option, rows[i].long_option);
		if (at >= count)
			return false;
		*wrapped = (struct wrapped){ WRAPPED_SHELL, at, str_equal(name, "env") ? count : at + 1,
					      rows[i].context };
		return true;
	}
	return false;
}

/* docker and podman: run, exec: the command stands behind the image or container. */
static bool unwrap_container(const struct word *words, size_t count, const char *name, struct wrapped *wrapped)
{
	static const char valued[] =
		"a c e h l m p u v w --name --network --net --volume --env --user --workdir --mount "
				     "--entrypoint --publish --memory --cpus --platform --label --env-file --add-host "
				     "--device --cap-add --cap-drop --security-opt --pid --ipc --userns --gpus "
				     "--restart";
	size_t at = 1;

	if (!names_have("docker podman nerdctl kubectl", name, strlen(name)))
		return false;
	while (at < count && option_size(words, count, at, "H --host --context n --namespace"))
		at += option_size(words, count, at, "H --host --context n --namespace");
	if (at >= count || (!word_is(&words[at], "run") && !word_is(&words[at], "exec")))
		return false;
	for (at++; at < count && option_size(words, count, at, valued);)
		at += option_size(words, count, at, valued);
	at++;
	if (at < count && word_is(&words[at], "--"))
		at++;
	if (at >= count)
		return false;
	*wrapped = (struct wrapped){ WRAPPED_COMMAND, at, count, CONTEXT_CONTAINED };
	return true;
}

/* find … -exec CMD ; and flock FILE CMD. */
static bool unwrap_find(const struct word *words, size_t count, const char *name, struct wrapped *wrapped)
{
	size_t first = 0, end;

	if (!str_equal(name, "find") && !str_equal(name, "fd") && !str_equal(name, "fdfind"))
		return false;
	for (size_t i = 1; i < count && !first; i++) {
		const char *text = words[i].text;

		if (str_equal(text, "-exec") || str_equal(text, "-execdir") || str_equal(text, "-ok") ||
		    str_equal(text, "-okdir") || (*name == 'f' && name[1] == 'd' && strlen(text) == 2 &&
						  (str_equal(text, "-x") || str_equal(text, "-X"))))
			first = i + 1;
	}
	if (!first)
		return false;
	for (end = first; end < count; end++) {
		if (word_is(&words[end], ";") || (word_is(&words[end], "+") && word_is(&words[end - 1], "{}")))
			break;
	}
	if (end == first)
		return false;
	*wrapped = (struct wrapped){ WRAPPED_COMMAND, first, end, CONTEXT_REPEATED };
	return true;
}

/* tmux new-session -d CODE, tmux send-keys -t PANE CODE Enter: a shell that stays when this one ends. */
static bool unwrap_terminal(const struct word *words, size_t count, const char *name, struct wrapped *wrapped)
{
	static const char verbs[] = "new new-session neww new-window splitw split-window respawn-pane respawnp run "
				    "run-shell popup display-popup send send-keys";
	size_t at = 1, end = count;

	if (!str_equal(name, "tmux"))
		return false;
	while (at < count && option_size(words, count, at, "f L S T c"))
		at += option_size(words, count, at, "f L S T c");
	if (at >= count || !names_have(verbs, words[at].text, strlen(words[at].text)))
		return false;
	for (at++; at < count && option_size(words, count, at, "c e F n s t x y l p T h w");)
		at += option_size(words, count, at, "c e F n s t x y l p T h w");
	while (end > at && (word_is(&words[end - 1], "Enter") || word_is(&words[end - 1], "C-m")))
		end--;
	if (at >= end)
		return false;
	*wrapped = (struct wrapped){ WRAPPED_SHELL, at, end, CONTEXT_BACKGROUND };
	return true;
}

struct wrapped unwrap_command(const struct tables *tables, const struct word *words, size_t count)
{
	const char *name = program_name(words, count);
	struct wrapped wrapped = { WRAPPED_NONE };
	const struct wrapper *row = TABLES_FIND(struct wrapper, &tables->wrappers, name);
	size_t at = 1;

	if (unwrap_code(words, count, name, &wrapped) || unwrap_container(words, count, name, &wrapped) ||
	    unwrap_find(words, count, name, &wrapped) || unwrap_terminal(words, count, name, &wrapped))
		return wrapped;
	if (str_equal(name, "flock") && count > 3)
		return (struct wrapped){ WRAPPED_COMMAND, 2 + option_size(words, count, 1, "w E"), count };
	if (!row)
		return wrapped;
	if (str_equal(name, "command") && (option_given(words, count, 'v', NULL) || option_given(words, count, 'V',
		NULL)))
		return wrapped;
	if (row->subcommand) {
		if (count < 2 || !word_is(&words[1], row->subcommand))
			return wrapped;
		at = 2;
	}
	for (; at < count; at++) {
		size_t size = option_size(words, count, at, row->valued);

		if (word_is(&words[at], "--")) {
			at++;
			break;
		}
		if (size)
			at += size - 1;
		else if (!row->has_assignments || !is_assignment(&words[at]))
			break;
	}
	at += row->skips;
	/* ssh HOST -R 80:localhost:80: options may stand behind the host too. */
	while (row->is_shell && row->skips && at < count && option_size(words, count, at, row->valued))
		at += option_size(words, count, at, row->valued);
	if (at >= count)
		return wrapped;
	return (struct wrapped){ row->is_shell ? WRAPPED_SHELL : WRAPPED_COMMAND, at, count, row->context,
				 row->takes_input, row->has_assignments };
}

size_t unwrap_programs(const char **names, size_t max)
{
	static const char *const others[] = { "su", "runuser", "script", "flock", "sg", "nix-shell", "tmux", "vagrant",
					      "xterm", "find", "fd", "fdfind", "docker", "podman", "nerdctl",
					      "kubectl" };
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(others) && count < max; i++)
		names[count++] = others[i];
	return count;
}
