/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/trial.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/command/unwrap.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"

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
static bool is_behind_verbs(const struct tables *tables, const struct word *words, size_t count, const char *name)
{
	if (!tables_find(&tables->verbs_first, sizeof(const char *), name) || !asks_usage(&words[count - 1]))
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
	const struct trial *trial;

	if (count < 2 || !word_is_exact(&words[0]))
		return SHOWN_NOTHING;
	if (ends_nothing(words, count, name))
		return SHOWN_USAGE;
	if (asks_usage(&words[1]) && (count == 2 || !runs_others(tables, words, count, name)))
		return SHOWN_USAGE;
	if (is_behind_verbs(tables, words, count, name) && unwrap_command(tables, words, count).kind == WRAPPED_NONE)
		return SHOWN_USAGE;
	trial = TABLES_FIND(struct trial, &tables->trials, name);
	return trial && has_verb(trial, words, count) && is_trial(trial, words, count) ? SHOWN_TRIAL : SHOWN_NOTHING;
}
