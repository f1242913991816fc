/* SPDX-License-Identifier: Apache-2.0 */
#include "service/runtime/runtime.h"

#include <time.h>

#include "base/str.h"
#include "service/runtime/runtimes.h"

static const char python_start[] =
	"import os,sys\nsource=b''\nwhile len(source)<int(sys.argv[1]):\n"
	" piece=os.read(0,int(sys.argv[1])-len(source))\n if not piece: sys.exit()\n source+=piece\n"
	"exec(compile(source,'<driver>','exec'),{'__name__':'driver'})";

static const char *const python_argv[] = { "python3", "-c", python_start, NULL };

/*
 * A shell moves the three streams, which most languages cannot. Where the language is missing, it says so in a frame
 * ("missing"), and waits for its end.
 */
#define MISSING(program, mark) \
	"command -v " program " >/dev/null || { printf '\\036%s0013{\"type\":\"missing\"}\\n' \"" mark "\";" \
	"exec cat >/dev/null; };"

static const char node_streams[] = MISSING("node", "$2") "exec node -e \"$0\" \"$@\" 3<&0 4>&1 5>&2 </dev/null";
/* In a function, whose names are not those of the cells. */
static const char node_start[] =
	"(()=>{const fs=require('fs');const size=Number(process.argv[1]);const source=Buffer.alloc(size);"
	"for(let at=0,n;at<size;at+=n){n=fs.readSync(3,source,at,size-at);if(!n)process.exit()}"
	"eval(source.toString())})()";

static const char *const node_argv[] = { "sh", "-c", node_streams, node_start, NULL };

static const char bash_start[] =
	"exec 3<&0 4>&1 5>&2 </dev/null; IFS= read -r -N \"$1\" __driver_source <&3 && eval \"$__driver_source\"";

static const char *const bash_argv[] = { "bash", "-c", bash_start, "bash", NULL };

/* R opens no descriptor by its number, but has those of a child, which an interrupt must not end. */
static const char r_streams[] = MISSING("R", "$2")
	"LC_ALL=C.UTF-8 exec R --no-echo --no-restore --no-save -e \"$0\" --args \"$@\" 3<&0 </dev/null";
static const char r_start[] =
	"local({channel<-pipe(\"trap '' INT;exec cat <&3\",\"rb\");size<-as.integer(commandArgs(TRUE)[1]);"
	"source<-raw(0);while(length(source)<size){piece<-readBin(channel,\"raw\",size-length(source));"
	"if(!length(piece))quit(\"no\");"
	"source<-c(source,piece)};eval(parse(text=rawToChar(source),keep.source=FALSE,encoding=\"UTF-8\"))},"
	"new.env(parent=baseenv()))";

static const char *const r_argv[] = { "sh", "-c", r_streams, r_start, NULL };

/* Java reads a file, which its driver removes. */
static const char java_streams[] = MISSING("jshell", "$2")
	"exec 3<&0 4>&1 5>&2 </dev/null; place=$(mktemp -d) && head -c \"$1\" <&3 >\"$place/Driver.java\" && exec java "
	"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Dfile.encoding=UTF-8 "
	"--add-opens=java.base/java.io=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED "
	"\"$place/Driver.java\" \"$2\" \"$place\"";

static const char *const java_argv[] = { "sh", "-c", java_streams, "java", NULL };

static const struct runtime runtimes[] = {
	{ "python", python_argv, runtime_python, sizeof runtime_python, RUNTIME_JSON, "Python (Debian's python3)" },
	{ "javascript", node_argv, runtime_javascript, sizeof runtime_javascript, RUNTIME_JSON,
	  "Node.js (Debian's nodejs)" },
	{ "typescript", node_argv, runtime_javascript, sizeof runtime_javascript, RUNTIME_JSON,
	  "Node.js (22.13 or newer, or one with the npm package esbuild)" },
	{ "bash", bash_argv, runtime_bash, sizeof runtime_bash, RUNTIME_QUOTED, "bash" },
	{ "r", r_argv, runtime_r, sizeof runtime_r, RUNTIME_COUNTED, "R (Debian's r-base-core)" },
	{ "java", java_argv, runtime_java, sizeof runtime_java, RUNTIME_COUNTED,
	  "a development kit for Java (Debian's default-jdk-headless)" },
};

const char *const runtime_ahead[] = { "python", "javascript", "bash", NULL };

const struct runtime *runtime_find(const char *language)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (str_equal(runtimes[i].language, language))
			return &runtimes[i];
	return NULL;
}

int runtime_make_mark(char out[RUNTIME_MARK_SIZE])
{
	static unsigned long long made;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return str_format(out, RUNTIME_MARK_SIZE, "%llx.%lx.%llx:", (unsigned long long)now.tv_sec,
			  (unsigned long)now.tv_nsec, ++made);
}

void runtime_command(const struct runtime *runtime, const char *mark, char size[RUNTIME_SIZE_MAX],
		     const char *ret_argv[RUNTIME_ARGV_MAX])
{
	size_t count = strv_count(runtime->argv);

	(void)!str_format(size, RUNTIME_SIZE_MAX, "%zu", runtime->size);
	for (size_t i = 0; i < count; i++)
		ret_argv[i] = runtime->argv[i];
	ret_argv[count] = size;
	ret_argv[count + 1] = mark;
	ret_argv[count + 2] = NULL;
}
