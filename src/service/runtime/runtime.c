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

/* A shell moves the three streams, which Node.js cannot. */
static const char shell_streams[] = "exec node -e \"$0\" \"$@\" 3<&0 4>&1 5>&2 </dev/null";
static const char node_start[] =
	"const fs=require('fs');const size=Number(process.argv[1]);const source=Buffer.alloc(size);"
	"for(let at=0,n;at<size;at+=n){n=fs.readSync(3,source,at,size-at);if(!n)process.exit()}eval(source.toString())";

static const char *const node_argv[] = { "sh", "-c", shell_streams, node_start, NULL };

static const char bash_start[] =
	"exec 3<&0 4>&1 5>&2 </dev/null; IFS= read -r -N \"$1\" __driver_source <&3 && eval \"$__driver_source\"";

static const char *const bash_argv[] = { "bash", "-c", bash_start, "bash", NULL };

static const struct runtime runtimes[] = {
	{ "python", python_argv, runtime_python, sizeof runtime_python, false },
	{ "javascript", node_argv, runtime_javascript, sizeof runtime_javascript, false },
	{ "typescript", node_argv, runtime_javascript, sizeof runtime_javascript, false },
	{ "bash", bash_argv, runtime_bash, sizeof runtime_bash, true },
};

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
