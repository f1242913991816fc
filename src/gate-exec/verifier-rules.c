/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/verifier-rules.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/fd.h"
#include "supervise/run.h"
#include "wire/verify.h"

enum {
	INDEX_VERSION = 1, INDEX_MAX = 1 << 20, KEPT_MAX = 32, GLOBS_MAX = 2 * VERIFY_WORTH_MAX,
	SOURCES_MAX = 2 * (VERIFY_RULE_FILES_MAX + 1), SOURCE_SIZE_MIN = 50,
};

/* ---- where they are ---- */

static int shipped_directory(const struct run *run, char out[PATH_MAX])
{
	return path_beside(out, PATH_MAX, run->request->init_path, "policies/verify");
}

/* "": the user has no place for any. */
static int own_directory(const struct run *run, char out[PATH_MAX])
{
	const char *config = env_find(run->request->command.env, "XDG_CONFIG_HOME"), *home = run->request->home;

	*out = '\0';
	if (config && *config == '/')
		return str_format(out, PATH_MAX, "%s/atoll/verify", config);
	return home && *home ? str_format(out, PATH_MAX, "%s/.config/atoll/verify", home) : 0;
}

/* What decides which rules these are, and who makes what of them: another build may make something else. */
static int kept_path(const struct run *run, char out[PATH_MAX])
{
	char shipped[PATH_MAX], own[PATH_MAX], program[PATH_MAX], hex[HASH_HEX_SIZE];
	struct seen seen;
	struct hash key;
	int r = shipped_directory(run, shipped);

	if (r == 0)
		r = own_directory(run, own);
	if (r == 0)
		r = path_beside(program, sizeof program, run->request->init_path, "atoll-verify");
	if (r == 0)
		r = seen_look(program, &seen);
	if (r < 0)
		return r;
	const uint64_t numbers[] = { INDEX_VERSION, geteuid(), seen.exists, seen.device, seen.inode, seen.size,
				     (uint64_t)seen.mtime_ns, (uint64_t)seen.ctime_ns };
	const struct hash_piece pieces[] = {
		{ numbers, sizeof numbers }, { shipped, strlen(shipped) + 1 }, { own, strlen(own) + 1 },
	};

	hash_pieces(&key, pieces, ARRAY_SIZE(pieces));
	hash_to_hex(&key, hex);
	return str_format(out, PATH_MAX, "%s/verify/%s.bin", run->request->state_dir, hex);
}

/* ---- globs ---- */

static void globs_done(struct globs *globs)
{
	free(globs->names);
	free(globs->patterns);
	*globs = (struct globs){ .name_count = 0 };
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int globs_make(struct globs *globs, char **all)
{
	size_t count = strv_count((const char *const *)all);

	globs->names = calloc(count + 1, sizeof *globs->names);
	globs->patterns = calloc(count + 1, sizeof *globs->patterns);
	if (!globs->names || !globs->patterns)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (str_equal(all[i], "*"))
			globs->has_all = true;
		else if (strpbrk(all[i], "*?[\\"))
			globs->patterns[globs->pattern_count++] = all[i];
		else
			globs->names[globs->name_count++] = all[i];
	}
	qsort(globs->names, globs->name_count, sizeof *globs->names, compare_names);
	return 0;
}

/* Two vectors of a frame, whose bytes stay. */
static int take_globs(struct verifier_rules *rules, struct frame *frame)
{
	cleanup_free char **programs = frame_get_strv(frame);
	cleanup_free char **words = frame_get_strv(frame);
	int r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	if (strv_count((const char *const *)programs) + strv_count((const char *const *)words) > GLOBS_MAX)
		return -EBADMSG;
	globs_done(&rules->programs);
	globs_done(&rules->words);
	r = globs_make(&rules->programs, programs);
	if (r == 0)
		r = globs_make(&rules->words, words);
	rules->is_known = r == 0;
	return r;
}

static bool is_meta(char c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

/*
 * fnmatch(3) takes its time, and most patterns are told not to match by how they begin, or by the byte after their
 * first *. In whatever case of letters.
 */
static bool may_match(const char *pattern, const char *text)
{
	for (; *pattern && !is_meta(*pattern); pattern++, text++)
		if (tolower((unsigned char)*pattern) != tolower((unsigned char)*text))
			return false;
	if (*pattern != '*' || !pattern[1] || is_meta(pattern[1]))
		return true;
	return strchr(text, tolower((unsigned char)pattern[1])) || strchr(text, toupper((unsigned char)pattern[1]));
}

static bool has_pattern(const struct globs *globs, const char *text, int flags)
{
	for (size_t i = 0; i < globs->pattern_count; i++)
		if (may_match(globs->patterns[i], text) && fnmatch(globs->patterns[i], text, flags) == 0)
			return true;
	return false;
}

bool verifier_rules_name(const struct verifier_rules *rules, const char *path)
{
	const struct globs *globs = &rules->programs;
	const char *name = path_basename(path);

	/* bsearch(3) wants an array, even one of nothing. */
	if (globs->name_count && bsearch(&name, globs->names, globs->name_count, sizeof *globs->names, compare_names))
		return true;
	return has_pattern(globs, name, 0);
}

bool verifier_rules_word(const struct verifier_rules *rules, const char *word)
{
	const struct globs *globs = &rules->words;

	for (size_t i = 0; i < globs->name_count; i++)
		if (strcasecmp(globs->names[i], word) == 0)
			return true;
	return has_pattern(globs, word, FNM_CASEFOLD) || globs->has_all || rules->programs.has_all;
}

/* ---- what was kept ---- */

static void sources_done(struct verifier_rules *rules)
{
	for (size_t i = 0; i < rules->source_count; i++)
		free(rules->sources[i].path);
	free(rules->sources);
	rules->sources = NULL;
	rules->source_count = 0;
}

/* The first frame of the file, in rules->bytes. */
static int read_index(struct verifier_rules *rules, size_t file_size, struct frame *ret_frame)
{
	uint8_t header[FRAME_HEADER_SIZE];
	size_t size;

	if (pread(rules->compiled_fd, header, sizeof header, 0) != sizeof header)
		return -EBADMSG;
	size = frame_peek_size(header);
	if (size < sizeof header || size > INDEX_MAX || size >= file_size)
		return -EBADMSG;
	rules->bytes = malloc(size);
	if (!rules->bytes)
		return -ENOMEM;
	if (pread(rules->compiled_fd, rules->bytes, size, 0) != (ssize_t)size)
		return -EBADMSG;
	rules->offset = size;
	if (frame_open(ret_frame, rules->bytes, size) < 0 || ret_frame->type != VERIFY_INDEX ||
	    frame_get_u32(ret_frame) != INDEX_VERSION)
		return -EBADMSG;
	return 0;
}

static int are_sources_fresh(struct frame *frame, int64_t made_ns)
{
	uint32_t count = frame_get_u32(frame);

	if (!count || count > SOURCES_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		const char *path = frame_get_string(frame);
		struct seen seen = { .exists = frame_get_u32(frame) };

		seen.device = frame_get_u64(frame);
		seen.inode = frame_get_u64(frame);
		seen.size = frame_get_u64(frame);
		seen.mtime_ns = (int64_t)frame_get_u64(frame);
		seen.ctime_ns = (int64_t)frame_get_u64(frame);
		if (!path || frame->error)
			return -EBADMSG;
		if (!seen_is_fresh(path, &seen, made_ns))
			return -ESTALE;
	}
	return 0;
}

static int find(const struct run *run, struct verifier_rules *rules)
{
	char path[PATH_MAX];
	struct frame frame;
	struct stat st;
	int r = kept_path(run, path);

	if (r < 0)
		return r;
	r = rules->compiled_fd = seen_open_kept(path, VERIFY_COMPILED_MAX, &st);
	if (r >= 0)
		r = read_index(rules, (size_t)st.st_size, &frame);
	if (r == 0)
		r = are_sources_fresh(&frame, seen_time_ns(st.st_mtim));
	return r < 0 ? r : take_globs(rules, &frame);
}

int verifier_rules_find(const struct run *run, struct verifier_rules *rules)
{
	int r = find(run, rules);

	if (r < 0)
		verifier_rules_done(rules);
	return r;
}

/* ---- as they are ---- */

struct gathered {
	struct verifier_rules *rules;
	struct buf files;            /* fields of the frame, without the count */
	uint32_t count;
};

/* Looked at before it is read: what changes in between is not what was seen. */
static int add_source(struct verifier_rules *rules, const char *path)
{
	struct rule_source *sources;
	struct seen seen;
	int r = seen_look(path, &seen);

	if (r < 0)
		return r;
	if (rules->source_count == SOURCES_MAX)
		return -E2BIG;
	sources = reallocarray(rules->sources, rules->source_count + 1, sizeof *sources);
	if (!sources)
		return -ENOMEM;
	rules->sources = sources;
	sources[rules->source_count] = (struct rule_source){ str_dup(path), seen };
	return sources[rules->source_count++].path ? 0 : -ENOMEM;
}

static int add_file(struct gathered *gathered, const char *directory, const char *name)
{
	cleanup_free char *bytes = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	int r = path_join(path, sizeof path, directory, name);

	if (r == 0)
		r = add_source(gathered->rules, path);
	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, VERIFY_RULES_MAX, &bytes, &size);
	if (r < 0)
		return r;
	frame_put_string(&gathered->files, path);
	frame_put_bytes(&gathered->files, bytes, size);
	gathered->count++;
	return 0;
}

/* By name, so that errors are the same each time. A directory that is not there is looked for again. */
static int add_directory(struct gathered *gathered, const char *directory)
{
	char *names[VERIFY_RULE_FILES_MAX];
	const struct dirent *entry;
	size_t count = 0;
	int r = add_source(gathered->rules, directory);
	DIR *stream = r == 0 ? opendir(directory) : NULL;

	if (!stream)
		return r < 0 ? r : errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.' || !str_has_suffix(entry->d_name, ".yaml"))
			continue;
		r = count == VERIFY_RULE_FILES_MAX ? -E2BIG : 0;
		if (r == 0 && !(names[count++] = str_dup(entry->d_name)))
			r = -ENOMEM;
	}
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && names[i])
			r = add_file(gathered, directory, names[i]);
		free(names[i]);
	}
	closedir(stream);
	return r;
}

static int gather(const struct run *run, struct gathered *gathered)
{
	char directory[PATH_MAX];
	int r = shipped_directory(run, directory);

	if (r == 0)
		r = add_directory(gathered, directory);
	if (r == 0 && !gathered->count)
		r = -ENOENT;
	if (r == 0)
		r = own_directory(run, directory);
	if (r == 0 && *directory)
		r = add_directory(gathered, directory);
	return r == 0 ? buf_error(&gathered->files) : r;
}

int verifier_rules_gather(const struct run *run, struct verifier_rules *rules, int *ret_fd)
{
	struct gathered gathered = { .rules = rules };
	struct buf frame;
	int r;

	buf_init(&gathered.files, VERIFY_RULES_MAX);
	buf_init(&frame, VERIFY_RULES_MAX + FRAME_MESSAGE_MAX);
	sources_done(rules);
	r = gather(run, &gathered);
	if (r == 0) {
		frame_begin(&frame, VERIFY_RULES);
		frame_put_u32(&frame, gathered.count);
		buf_put(&frame, gathered.files.bytes, gathered.files.size);
		r = frame_end(&frame);
	}
	if (r == 0)
		r = *ret_fd = fd_memfd_sealed("atoll-rules", frame.bytes, frame.size);
	buf_done(&gathered.files);
	buf_done(&frame);
	return r < 0 ? r : 0;
}

/* ---- keeping ---- */

static int put_index(const struct verifier_rules *rules, const struct frame *globs, struct buf *out)
{
	frame_begin(out, VERIFY_INDEX);
	frame_put_u32(out, INDEX_VERSION);
	frame_put_u32(out, (uint32_t)rules->source_count);
	for (size_t i = 0; i < rules->source_count; i++) {
		const struct seen *seen = &rules->sources[i].seen;

		frame_put_string(out, rules->sources[i].path);
		frame_put_u32(out, seen->exists);
		frame_put_u64(out, seen->device);
		frame_put_u64(out, seen->inode);
		frame_put_u64(out, seen->size);
		frame_put_u64(out, (uint64_t)seen->mtime_ns);
		frame_put_u64(out, (uint64_t)seen->ctime_ns);
	}
	/* The two vectors as they came. */
	buf_put(out, globs->bytes + globs->at, globs->size - globs->at);
	return frame_end(out);
}

/*
 * Only what is sealed already when READY has come: from then on atoll-verify reads what a sandbox chose, and what is
 * kept here judges all later ones.
 */
static int store_compiled(const struct run *run, const struct verifier_rules *rules, const struct frame *globs,
			  int compiled_fd)
{
	cleanup_free void *compiled = NULL;
	char path[PATH_MAX];
	struct buf out;
	struct stat st;
	int r = fcntl(compiled_fd, F_GET_SEALS);

	if (r < 0 || !(r & F_SEAL_WRITE) || !(r & F_SEAL_SHRINK) || fstat(compiled_fd, &st) < 0)
		return -EPERM;
	if (st.st_size < FRAME_HEADER_SIZE || st.st_size > VERIFY_COMPILED_MAX - INDEX_MAX)
		return -EFBIG;
	compiled = malloc((size_t)st.st_size);
	if (!compiled)
		return -ENOMEM;
	if (pread(compiled_fd, compiled, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	buf_init(&out, VERIFY_COMPILED_MAX);
	r = kept_path(run, path);
	if (r == 0)
		r = put_index(rules, globs, &out);
	if (r == 0)
		buf_put(&out, compiled, (size_t)st.st_size);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0)
		r = seen_keep(path, out.bytes, out.size, KEPT_MAX);
	buf_done(&out);
	return r;
}

int verifier_rules_learn(const struct run *run, struct verifier_rules *rules, struct frame *frame, int compiled_fd)
{
	cleanup_fd int compiled = compiled_fd;
	struct frame own = *frame;
	int r;

	/* The caller's bytes are its buffer's. */
	free(rules->bytes);
	rules->bytes = malloc(frame->size);
	if (!rules->bytes)
		return -ENOMEM;
	memcpy(rules->bytes, frame->bytes, frame->size);
	own.bytes = rules->bytes;
	r = take_globs(rules, &own);
	if (r < 0)
		return r;
	r = store_compiled(run, rules, frame, compiled);
	if (r == -EPERM || r == -EFBIG)
		return 0;
	/* Where it cannot be kept, this sandbox still has it. */
	close_fd(&rules->compiled_fd);
	rules->compiled_fd = take_fd(&compiled);
	rules->offset = 0;
	return 0;
}

void verifier_rules_drop(const struct run *run, struct verifier_rules *rules)
{
	char path[PATH_MAX];

	if (kept_path(run, path) == 0)
		(void)!unlink(path);
	verifier_rules_done(rules);
}

void verifier_rules_done(struct verifier_rules *rules)
{
	sources_done(rules);
	close_fd(&rules->compiled_fd);
	free(rules->bytes);
	globs_done(&rules->programs);
	globs_done(&rules->words);
	*rules = VERIFIER_RULES_NONE;
}
