/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/trial.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/command/unwrap.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"

/* Programs whose first words are verbs, and which read all of their options before the verb does anything. */
static const char verb_programs[] =
	"apt apt-get aws az brew cargo conda dnf docker dotnet flutter gcloud gem gh git glab go helm kubectl npm pip "
	"pip3 pnpm podman poetry pulumi rustup systemctl terraform tofu uv yarn yum";

/* Options that say "only show it": a letter, alone or among letters that have no value, and long ones. */
static const struct trial {
	const char *program;
	const char *verbs;   /* the first word must be one of them; NULL: whichever */
	const char *letters; /* the first is the letter, the others may stand beside it; "": there is none */
	const char *options; /* separated by spaces */
	const char *valued;  /* those whose value is the next word, see option_size(): it is no option */
} trials[] = {
	{ "ansible-playbook", NULL, "CDbv", "--check", "i e t l u c f M --inventory --extra-vars --tags --limit" },
	{ "apt", NULL, "sqyV", "--simulate --dry-run --just-print --no-act", "o c t a --option --target-release" },
	{ "apt-get", NULL, "sqyV", "--simulate --dry-run --just-print --no-act", "o c t a --option --target-release" },
	{ "aws", "ec2 s3", "", "--dryrun --dry-run", "--profile --region --output --query --endpoint-url" },
	{ "borg", NULL, "nvp", "--dry-run", "P a e --prefix --glob-archives --exclude --repo" },
	{ "bun", "publish", "", "--dry-run", "--tag --access --otp --registry" },
	{ "cargo", NULL, "", "--dry-run", "p F --package --features --manifest-path --registry --index --token" },
	{ "dnf", NULL, "", "--assumeno", "c x --config --exclude --setopt --repo" },
	{ "dpkg", NULL, "", "--dry-run --no-act --simulate", "D --root --admindir --instdir" },
	{ "git", "add clean mv prune push rm", "nfdxXvqruA", "--dry-run",
	  "o e --push-option --repo --receive-pack --exec --exclude --expire --pathspec-from-file" },
	{ "gmake", NULL, "nksBi", "--dry-run --just-print --recon", "C f I o W --directory --file --makefile" },
	{ "helm", NULL, "", "--dry-run --dry-run=client --dry-run=server",
	  "n f --set --values --namespace --kubeconfig" },
	{ "kubectl", NULL, "", "--dry-run=client --dry-run=server", "n f l --namespace --filename --selector --as" },
	{ "make", NULL, "nksBi", "--dry-run --just-print --recon", "C f I o W --directory --file --makefile" },
	{ "mke2fs", NULL, "nqv", "", "b C d e E f g G i I J L m M N o O r t T U z" },
	{ "modprobe", NULL, "nv", "--dry-run --show-depends -D", "d C S --dirname --config --set-version" },
	{ "npm", NULL, "", "--dry-run", "C w --prefix --workspace --registry --tag --otp --access" },
	{ "oc", NULL, "", "--dry-run=client --dry-run=server", "n f l --namespace --filename --selector --as" },
	{ "patch", NULL, "", "--dry-run", "d D i o p r B Y z --directory --input --output --reject-file" },
	{ "pip", "install", "", "--dry-run",
	  "r c t i f e --requirement --index-url --target --report --prefix --root" },
	{ "pip3", "install", "", "--dry-run",
	  "r c t i f e --requirement --index-url --target --report --prefix --root" },
	{ "pnpm", NULL, "", "--dry-run", "C F --dir --filter --registry --tag --otp --access" },
	{ "poetry", NULL, "", "--dry-run",
	  "C P r u p --directory --project --repository --username --password" },
	{ "rclone", NULL, "nvPi", "--dry-run", "f --config --exclude --include --filter --transfers --log-file" },
	{ "restic", NULL, "nqv", "--dry-run",
	  "r o p H --repo --option --password-file --tag --host --path --exclude" },
	{ "rpm", NULL, "", "--test", "r D E --root --define --eval --dbpath --prefix --relocate" },
	{ "rsync", NULL, "navzrhPuiclpt", "--dry-run",
	  "e f T B M --rsh --filter --exclude --include --exclude-from --include-from --rsync-path --temp-dir "
	  "--log-file --backup-dir --suffix --compare-dest --copy-dest --link-dest --files-from "
	  "--partial-dir --password-file" },
	{ "sfdisk", NULL, "nqf", "--no-act", "N O o X Y w W --partno --backup-file --output --label --wipe" },
	{ "ufw", NULL, "", "--dry-run", "" },
	{ "uv", "publish", "", "--dry-run", "u p t --username --password --token --index --publish-url" },
	{ "yarn", NULL, "", "--dry-run", "--tag --access --otp --registry --cwd" },
	{ "yum", NULL, "", "--assumeno", "c x --config --exclude --setopt" },
	{ "zypper", "in install rm remove up update dup patch", "Dynr", "--dry-run", "t --type --repo --from" },
};

static bool asks_usage(const struct word *word)
{
	return word_is(word, "--help") || word_is(word, "--version");
}

/* Its other words may be code, or a command: they count whatever stands before them. */
static bool runs_others(const struct tables *tables, const struct word *words, size_t count, const char *name)
{
	static const char others[] = "awk gawk mawk nawk sed . source eval exec trap";

	return language_of_interpreter(name) != LANGUAGE_UNKNOWN || names_have(others, name, strlen(name)) ||
	       unwrap_command(tables, words, count).kind != WRAPPED_NONE;
}

/* `git push --help`: verbs alone, and the question at the end. */
static bool is_behind_verbs(const struct word *words, size_t count, const char *name)
{
	if (!names_have(verb_programs, name, strlen(name)) || !asks_usage(&words[count - 1]))
		return false;
	for (size_t i = 1; i + 1 < count; i++)
		if (words[i].text[0] == '-' || !word_is_exact(&words[i]))
			return false;
	return true;
}

/* -n, -an: a cluster of letters without a value, with the one that is meant among them. */
static bool is_cluster(const char *letters, const char *text)
{
	return *letters && text[1] && text[strspn(text + 1, letters) + 1] == '\0' && strchr(text + 1, *letters);
}

static bool is_trial(const struct trial *trial, const struct word *words, size_t count)
{
	for (size_t i = 1; i < count && !word_is(&words[i], "--"); i++) {
		size_t size = option_size(words, count, i, trial->valued);

		if (size == 2)
			i++;
		else if (size && word_is_exact(&words[i]) &&
			 (names_have(trial->options, words[i].text, words[i].size) ||
			  is_cluster(trial->letters, words[i].text)))
			return true;
	}
	return false;
}

static bool has_verb(const struct trial *trial, const struct word *words, size_t count)
{
	return !trial->verbs || (count > 1 && names_have(trial->verbs, words[1].text, words[1].size));
}

const char *command_signal(const struct word *words, size_t count)
{
	const char *signal = "TERM";

	for (size_t i = 1; i < count && words[i].text[0] == '-' && !word_is(&words[i], "--"); i++) {
		const char *text = words[i].text + 1;

		if (str_has_prefix(text, "-signal="))
			signal = text + strlen("-signal=");
		else if (i + 1 < count && (str_equal(text, "s") || str_equal(text, "n") || str_equal(text, "-signal")))
			signal = words[++i].text;
		else if (isupper((unsigned char)text[0]) && isupper((unsigned char)text[1]))
			signal = text;
		else if (isdigit((unsigned char)text[0]) && i + 1 < count)
			signal = text;
	}
	return str_has_prefix(signal, "SIG") ? signal + strlen("SIG") : signal;
}

/* Nothing is sent (0), signals are listed, or programs of a name are asked for what this signal means to them. */
static bool ends_nothing(const struct word *words, size_t count, const char *name)
{
	static const char asking[] = "USR1 USR2 HUP WINCH CONT URG CHLD INFO 10 12 1 28 18 23 17";
	const char *signal = command_signal(words, count);
	bool by_name = str_equal(name, "killall") || str_equal(name, "pkill");

	if (!by_name && !str_equal(name, "kill"))
		return false;
	if (str_equal(signal, "0") || str_equal(signal, "EXIT") || word_is(&words[1], "-l") || word_is(&words[1], "-L"))
		return true;
	return by_name && names_have(asking, signal, strlen(signal)) && strlen(words[count - 1].text) > 1 &&
	       !option_given(words, count, 'u', "--user") && !option_given(words, count, 'g', "--group");
}

enum shown command_shown(const struct tables *tables, const struct word *words, size_t count)
{
	const char *name = program_name(words, count);

	if (count < 2 || !word_is_exact(&words[0]))
		return SHOWN_NOTHING;
	if (ends_nothing(words, count, name))
		return SHOWN_USAGE;
	if (asks_usage(&words[1]) && (count == 2 || !runs_others(tables, words, count, name)))
		return SHOWN_USAGE;
	if (is_behind_verbs(words, count, name) && unwrap_command(tables, words, count).kind == WRAPPED_NONE)
		return SHOWN_USAGE;
	for (size_t i = 0; i < ARRAY_SIZE(trials); i++)
		if (str_equal(trials[i].program, name) && has_verb(&trials[i], words, count) &&
		    is_trial(&trials[i], words, count))
			return SHOWN_TRIAL;
	return SHOWN_NOTHING;
}
