/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/scripts.h"

#include <stddef.h>

/* $1: the command. */
static const char shell_script[] =
	"if [ -x /bin/bash ]; then exec /bin/bash -c \"$1\"; fi; exec /bin/sh -c \"$1\"";

/* $1: the command that ends with 0 once what was started is ready. */
static const char ready_script[] =
	"until if [ -x /bin/bash ]; then /bin/bash -c \"$1\"; else /bin/sh -c \"$1\"; fi; "
	"do sleep 0.1 2>/dev/null || sleep 1; done";

const char script_directory[] = "mkdir -p -- \"$1\"";

/* What is in the archive comes to its place only if it is what the step names. */
const char script_copy[] =
	"set -e\n"
	"command -v tar >/dev/null || { echo 'the system of this template has no tar, which COPY needs' >&2; exit 1; }\n"
	"tmp=$(mktemp -d)\n"
	"trap 'rm -rf \"$tmp\"' EXIT\n"
	"tar \"$4\" - -C \"$tmp\"\n"
	"cd \"$tmp\"\n"
	"src=$1 dest=$2 mode=$3\n"
	"IFS=\n"
	"case $src in *'**'*) set -- .;; *) set -- $src;; esac\n"
	"[ -e \"$1\" ] || [ -L \"$1\" ] || { echo \"the archive has no $src\" >&2; exit 1; }\n"
	"[ -z \"$mode\" ] || chmod -R \"$mode\" -- \"$@\"\n"
	"one=0\n"
	"if [ $# -eq 1 ] && { [ ! -d \"$1\" ] || [ -L \"$1\" ]; }; then one=1; fi\n"
	"case $dest in */) one=0; mkdir -p -- \"$dest\";; esac\n"
	"[ ! -d \"$dest\" ] || one=0\n"
	"if [ $one = 1 ]; then mkdir -p -- \"$(dirname -- \"$dest\")\"; cp -af -- \"$1\" \"$dest\"; exit; fi\n"
	"mkdir -p -- \"$dest\"\n"
	"for x; do\n"
	"if [ -d \"$x\" ] && [ ! -L \"$x\" ]; then cp -af -- \"$x/.\" \"$dest/\"; else cp -af -- \"$x\" \"$dest/\"; fi\n"
	"done\n";

static void put_words(const char *script, const char *command, const char *words[6])
{
	words[0] = "/bin/sh";
	words[1] = "-c";
	words[2] = script;
	words[3] = "sh";
	words[4] = command;
	words[5] = NULL;
}

void script_command(const char *command, const char *words[6])
{
	put_words(shell_script, command, words);
}

void script_ready(const char *command, const char *words[6])
{
	put_words(ready_script, command, words);
}
