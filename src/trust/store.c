/* SPDX-License-Identifier: Apache-2.0 */
#include "trust/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "trust/store-format.h"

enum { NAME_ROOM = TRUST_AGENT_MAX + 8, NS_PER_S = 1000000000 };

const char *const trust_fault_texts[TRUST_FAULT_COUNT] = {
	[TRUST_FINE] = "it is whole",
	[TRUST_UNREADABLE] = "it cannot be read",
	[TRUST_FOREIGN] = "it does not belong to you alone",
	[TRUST_DAMAGED] = "it is damaged",
	[TRUST_ROLLED_BACK] = "it is older than what was last written",
	[TRUST_LOST] = "it has gone",
};

_Static_assert(TRUST_ENTRIES_KEPT + TRUST_RECALLED_MAX + TRUST_OPEN_MAX < TRUST_ENTRIES_MAX,
	       "what goes on is said again in the room left");

static const char records_name[] = "trust", witness_name[] = "trust.seen";

int trust_directory(const struct trust_home *place, char *out, size_t size)
{
	return path_join(out, size, place->state_dir, records_name);
}

/* ---- reading ---- */

/* Of this user alone. */
static bool is_own(const struct stat *st, mode_t type)
{
	return (st->st_mode & S_IFMT) == type && st->st_uid == geteuid() && !(st->st_mode & 077) &&
	       (type != S_IFREG || st->st_nlink <= 1); /* 0: it was replaced since it was opened */
}

/* The directory of records or of witnesses; -ENOENT, -EPERM: somebody else's. */
static int open_directory(const char *base, const char *name)
{
	cleanup_fd int fd = FD_NONE;
	char path[PATH_MAX];
	struct stat st;
	int r = path_join(path, sizeof path, base, name);

	if (r < 0)
		return r;
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return is_own(&st, S_IFDIR) ? take_fd(&fd) : -EPERM;
}

static int make_directory(const char *base, const char *name)
{
	char path[PATH_MAX];
	int r = path_join(path, sizeof path, base, name);

	return r < 0 ? r : path_make_directories(AT_FDCWD, path, 0700);
}

/* -ENOENT, -EPERM (foreign), -EFBIG, or another errno. */
static int read_own(const char *base, const char *directory, const char *name, size_t max, char **ret_bytes,
		    size_t *ret_size)
{
	cleanup_fd int dir_fd = open_directory(base, directory), fd = FD_NONE;
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	fd = fd_open_at(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_own(&st, S_IFREG))
		return -EPERM;
	return fd_read_sized(fd, st.st_size, max, ret_bytes, ret_size);
}

static enum trust_fault fault_of(int r)
{
	if (r == -EPERM)
		return TRUST_FOREIGN;
	return r == -EFBIG || r == -EBADMSG || r == -ENODATA ? TRUST_DAMAGED : TRUST_UNREADABLE;
}

/* What another place knows of the end of a record. */
struct seen {
	bool is_there;
	struct trust_witness witness;
};

static int read_seen(const char *base, const char *agent, struct seen *ret_seen)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = read_own(base, witness_name, agent, sizeof ret_seen->witness, &bytes, &size);

	*ret_seen = (struct seen){ 0 };
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = trust_witness_check(bytes, size, agent, &ret_seen->witness);
	ret_seen->is_there = r == 0;
	return r;
}

static int read_book(const struct trust_home *place, struct trust_book *book)
{
	cleanup_free char *bytes = NULL;
	char name[NAME_ROOM];
	size_t size;
	int r = str_format(name, sizeof name, "%s.bin", book->agent);

	if (r == 0)
		r = read_own(place->state_dir, records_name, name, TRUST_FILE_MAX, &bytes, &size);
	if (r == 0)
		r = trust_file_parse(bytes, size, book);
	book->exists = r == 0;
	return r;
}

/* Whether the book goes on from what was seen of it. is_forgetful: the place may have missed some. */
static enum trust_fault compare(const struct trust_book *book, const struct seen *seen, bool is_forgetful)
{
	uint64_t last = book->base_seq + book->count, seq = seen->witness.seq;
	struct hash head;

	if (seq > last)
		return TRUST_ROLLED_BACK;
	if (seq < book->base_seq)
		return is_forgetful ? TRUST_FINE : TRUST_DAMAGED;
	if (trust_book_head(book, seq, &head) < 0 || memcmp(&head, &seen->witness.head, sizeof head) != 0)
		return TRUST_DAMAGED;
	return TRUST_FINE;
}

/* The witnesses are read first: a book that is written meanwhile is ahead of them, and never behind. */
static int judge(const struct trust_home *place, struct trust_book *book)
{
	struct seen kept, recent;
	int kept_r = read_seen(place->state_dir, book->agent, &kept);
	int recent_r = read_seen(place->runtime_dir, book->agent, &recent);
	int r = read_book(place, book);

	if (r == -ENOMEM || kept_r == -ENOMEM || recent_r == -ENOMEM)
		return -ENOMEM;
	book->known_seq = book->exists ? book->base_seq + book->count : 0;
	if (kept.is_there && kept.witness.seq > book->known_seq)
		book->known_seq = kept.witness.seq;
	if (recent.is_there && recent.witness.seq > book->known_seq)
		book->known_seq = recent.witness.seq;
	if (r == -ENOENT)
		/* The first witness of all is written before the first record. */
		book->fault = kept_r < 0 || recent_r < 0 || book->known_seq ? TRUST_LOST : TRUST_FINE;
	else if (r < 0)
		book->fault = fault_of(r);
	else if (kept_r < 0 || recent_r < 0)
		book->fault = fault_of(kept_r < 0 ? kept_r : recent_r);
	else if (!kept.is_there)
		book->fault = TRUST_ROLLED_BACK;
	else
		book->fault = compare(book, &kept, false);
	if (book->fault == TRUST_FINE && book->exists && recent.is_there)
		book->fault = compare(book, &recent, true);
	return 0;
}

/* Until a run has said what its policy has. */
static const struct trust_settings unknown = {
	.start = TRUST_LOW, .ceiling = TRUST_FULL, .floor = TRUST_NONE, .half_life_ms = TRUST_HALF_LIFE_MS,
};

static int read_whole(const struct trust_home *place, const char *agent, struct trust_book *ret_book)
{
	*ret_book = (struct trust_book){ .lock_fd = FD_NONE, .settings = unknown };
	if (!trust_agent_is_valid(agent) || str_copy(ret_book->agent, sizeof ret_book->agent, agent) < 0)
		return -EINVAL;
	return judge(place, ret_book);
}

int trust_book_read(const struct trust_home *place, const char *agent, struct trust_book *ret_book)
{
	int r = read_whole(place, agent, ret_book);

	/* The first record of all may have been written between the look for its witness and for itself. */
	if (r < 0 || ret_book->fault != TRUST_ROLLED_BACK)
		return r;
	trust_book_done(ret_book);
	return read_whole(place, agent, ret_book);
}

int trust_book_lock(const struct trust_home *place, const char *agent, unsigned patience_ms,
		    struct trust_book *ret_book)
{
	cleanup_fd int dir_fd = FD_NONE, lock_fd = FD_NONE;
	char name[NAME_ROOM];
	int r = make_directory(place->state_dir, records_name);

	*ret_book = (struct trust_book){ .lock_fd = FD_NONE };
	if (!trust_agent_is_valid(agent))
		return -EINVAL;
	if (r == 0)
		r = dir_fd = open_directory(place->state_dir, records_name);
	if (r >= 0)
		r = str_format(name, sizeof name, "%s.lock", agent);
	if (r >= 0)
		r = lock_fd = fd_open_at(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (r >= 0)
		r = fd_lock_within(lock_fd, LOCK_EX, patience_ms);
	if (r >= 0)
		r = trust_book_read(place, agent, ret_book);
	if (r == 0)
		ret_book->lock_fd = take_fd(&lock_fd);
	return r;
}

void trust_book_done(struct trust_book *book)
{
	free(book->entries);
	book->entries = NULL;
	book->count = 0;
	close_fd(&book->lock_fd);
}

/* ---- what is in it ---- */

static struct trust_state state_after(const struct trust_entry *entry)
{
	return (struct trust_state){
		.has_grant = entry->has_grant,
		.granted = (enum trust_level)entry->granted,
		.drop = entry->drop,
		.strain = entry->strain,
		.strain_s = entry->strain_s,
		.clean = entry->clean,
	};
}

struct trust_state trust_book_state(const struct trust_book *book)
{
	if (book->fault != TRUST_FINE)
		return (struct trust_state){ .has_grant = true, .granted = TRUST_NONE };
	return book->count ? state_after(&book->entries[book->count - 1]) : (struct trust_state){ 0 };
}

uint32_t trust_entry_strain(const struct trust_book *book, const struct trust_entry *entry)
{
	struct trust_state state = state_after(entry);

	return trust_strain_at(&state, &book->settings, entry->time_ns / NS_PER_S);
}

static bool ends_session(uint32_t event)
{
	return event == TRUST_CLEAN || event == TRUST_ENDED || event == TRUST_KILLED;
}

static void note_begun(char sessions[][SESSION_ID_SIZE], size_t *count, const char *session)
{
	for (size_t i = 0; i < *count; i++)
		if (str_equal(sessions[i], session))
			return;
	if (*count < TRUST_OPEN_MAX && str_copy(sessions[*count], SESSION_ID_SIZE, session) == 0)
		++*count;
}

static void note_ended(char sessions[][SESSION_ID_SIZE], size_t *count, const char *session)
{
	for (size_t i = 0; i < *count; i++)
		if (str_equal(sessions[i], session)) {
			memmove(sessions[i], sessions[i + 1], (*count - i - 1) * SESSION_ID_SIZE);
			--*count;
			return;
		}
}

size_t trust_book_open(const struct trust_book *book, char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE])
{
	size_t count = 0;

	for (size_t i = 0; i < book->count; i++) {
		const struct trust_entry *entry = &book->entries[i];

		if (entry->event == TRUST_BEGUN || entry->event == TRUST_CARRIED)
			note_begun(sessions, &count, entry->session);
		else if (ends_session(entry->event))
			note_ended(sessions, &count, entry->session);
	}
	return count;
}

int trust_book_head(const struct trust_book *book, uint64_t seq, struct hash *ret_hash)
{
	if (seq < book->base_seq || seq > book->base_seq + book->count)
		return -ENOENT;
	if (seq == book->base_seq + book->count) {
		*ret_hash = book->head;
		return 0;
	}
	*ret_hash = book->base;
	for (size_t i = 0; i < seq - book->base_seq; i++)
		trust_chain(ret_hash, &book->entries[i]);
	return 0;
}

bool trust_book_is_chained(const struct trust_book *book)
{
	struct hash chain = book->base;

	for (size_t i = 0; i < book->count; i++)
		trust_chain(&chain, &book->entries[i]);
	return memcmp(&chain, &book->head, sizeof chain) == 0;
}

/* ---- changing ---- */

static struct trust_entry *append(struct trust_book *book, const struct trust_news *news)
{
	struct trust_state before = trust_book_state(book), after;
	struct trust_entry *entry = &book->entries[book->count];

	after = trust_step(&before, &book->settings, news->event, news->level, news->now_ns / NS_PER_S);
	*entry = (struct trust_entry){
		.seq = book->base_seq + book->count + 1,
		.time_ns = news->now_ns,
		.strain_s = after.strain_s,
		.event = news->event,
		.uid = getuid(),
		.strain = after.strain,
		.drop = after.drop,
		.clean = after.clean,
		.granted = after.granted,
		.before = trust_level_of(&before, &book->settings),
		.after = trust_level_of(&after, &book->settings),
		.level = news->level,
		.has_grant = after.has_grant,
	};
	if (news->session && str_copy(entry->session, SESSION_ID_SIZE, news->session) < 0)
		entry->session[0] = 0;
	if (news->cause)
		memcpy(entry->cause, news->cause, strnlen(news->cause, sizeof entry->cause - 1));
	trust_chain(&book->head, entry);
	book->count++;
	return entry;
}

/* Why the level is what it is: whatever lowered it, and what a person said. A raise and a reset forgive all before. */
static bool is_cause(const struct trust_entry *entry)
{
	return entry->event == TRUST_RECALLED || entry->event == TRUST_RAISED || entry->event == TRUST_LOWERED ||
	       trust_rules[entry->event].is_lasting ||
	       (trust_rules[entry->event].is_bad && entry->after < entry->before);
}

static bool forgives(const struct trust_entry *entry)
{
	return entry->event == TRUST_RAISED || entry->event == TRUST_RESET;
}

/* How many causes that count still are newer than this one. */
static size_t count_newer(const struct trust_book *book, size_t first, size_t at)
{
	size_t count = 0;

	for (size_t i = first; i < book->count; i++) {
		uint64_t time_ns = book->entries[i].time_ns, than_ns = book->entries[at].time_ns;

		count += is_cause(&book->entries[i]) && (time_ns > than_ns || (time_ns == than_ns && i > at));
	}
	return count;
}

/* Those of the newest causes that are among the first `gone` entries, in their order. How many. */
static size_t find_causes(const struct trust_book *book, size_t gone, struct trust_entry causes[TRUST_RECALLED_MAX])
{
	size_t first = 0, count = 0;

	for (size_t i = 0; i < book->count; i++)
		if (forgives(&book->entries[i]))
			first = i;
	for (size_t i = first; i < gone; i++)
		if (is_cause(&book->entries[i]) && count_newer(book, first, i) < TRUST_RECALLED_MAX)
			causes[count++] = book->entries[i];
	return count;
}

static void recall(struct trust_book *book, const struct trust_entry *cause)
{
	char text[TRUST_CAUSE_SIZE], to[16] = "";
	bool is_named = cause->event == TRUST_RAISED || cause->event == TRUST_LOWERED;

	if (is_named && str_format(to, sizeof to, " to %s", trust_level_names[cause->level]) < 0)
		to[0] = 0;
	/* Cut where it is too long. */
	if (cause->event == TRUST_RECALLED)
		memcpy(text, cause->cause, sizeof text);
	else
		(void)!snprintf(text, sizeof text, "%s%s%s%s", trust_rules[cause->event].words, to,
				*cause->cause ? ": " : "", cause->cause);
	append(book, &(struct trust_news){ TRUST_RECALLED, 0, cause->session, text, cause->time_ns });
}

/*
 * The oldest entries go. What goes on of them is said again, so that its end is still waited for, and so is why the
 * level is what it is.
 */
static void forget(struct trust_book *book, uint64_t now_ns)
{
	char before[TRUST_OPEN_MAX][SESSION_ID_SIZE], left[TRUST_OPEN_MAX][SESSION_ID_SIZE];
	struct trust_entry causes[TRUST_RECALLED_MAX];
	size_t gone = book->count - TRUST_ENTRIES_KEPT, before_count = trust_book_open(book, before), left_count;
	size_t cause_count = find_causes(book, gone, causes);

	for (size_t i = 0; i < gone; i++)
		trust_chain(&book->base, &book->entries[i]);
	book->base_seq += gone;
	book->count -= gone;
	memmove(book->entries, book->entries + gone, book->count * sizeof *book->entries);
	for (size_t i = 0; i < cause_count; i++)
		recall(book, &causes[i]);
	left_count = trust_book_open(book, left);
	for (size_t i = 0; i < before_count; i++) {
		size_t at = 0;

		while (at < left_count && !str_equal(left[at], before[i]))
			at++;
		if (at == left_count)
			append(book, &(struct trust_news){ TRUST_CARRIED, 0, before[i], NULL, now_ns });
	}
}

const struct trust_entry *trust_book_add(struct trust_book *book, const struct trust_news *news)
{
	if (book->fault != TRUST_FINE)
		return NULL;
	if (!book->entries)
		book->entries = calloc(TRUST_ENTRIES_MAX, sizeof *book->entries);
	if (!book->entries)
		return NULL;
	if (!book->exists) {
		trust_chain_begin(&book->base, book->agent);
		book->head = book->base;
		book->exists = true;
	}
	if (book->count == TRUST_ENTRIES_MAX)
		forget(book, news->now_ns);
	return append(book, news);
}

void trust_book_reset(struct trust_book *book)
{
	free(book->entries);
	book->entries = NULL;
	book->count = 0;
	book->exists = true;
	book->fault = TRUST_FINE;
	book->base_seq = book->known_seq;
	trust_chain_begin(&book->base, book->agent);
	book->head = book->base;
}

/* ---- writing ---- */

static int sync_directory(int dir_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 ? fd : fsync(fd) < 0 || fsync(dir_fd) < 0 ? -errno : 0;
}

static int write_in(const char *base, const char *directory, const char *name, const void *bytes, size_t size)
{
	cleanup_fd int dir_fd = open_directory(base, directory);
	int r = dir_fd == -ENOENT ? make_directory(base, directory) : 0;

	if (r == 0 && dir_fd == -ENOENT)
		dir_fd = open_directory(base, directory);
	r = r < 0 ? r : dir_fd;
	return r < 0 ? r : fd_replace_file_at(dir_fd, name, bytes, size, 0600);
}

static int write_witness(const char *base, const struct trust_book *book, uint64_t seq)
{
	struct trust_witness witness;
	struct hash head;
	int r = trust_book_head(book, seq, &head);

	if (r < 0)
		return r;
	trust_witness_make(&witness, book->agent, seq, &head);
	return write_in(base, witness_name, book->agent, &witness, sizeof witness);
}

static bool has_witness(const struct trust_home *place, const char *agent)
{
	struct seen seen;

	return read_seen(place->state_dir, agent, &seen) == 0 && seen.is_there;
}

/* Whether name, of a file beside witnesses, can be an agent's own: whoever writes for one has locked it first. */
static bool is_of_agent(const char *base, const char *name)
{
	cleanup_fd int dir_fd = open_directory(base, records_name);
	char lock[NAME_MAX + sizeof ".lock"];
	struct stat st;

	return dir_fd < 0 || str_format(lock, sizeof lock, "%s.lock", name) < 0 ||
	       fstatat(dir_fd, lock, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/*
 * fd_replace_file_at() writes beside its file. Who is killed there leaves that behind, and nobody who holds the lock of
 * name's agent has one of their own at this time. Best effort: what stays is read by nobody.
 */
static void remove_leftovers(const char *base, const char *directory, const char *name)
{
	static const char mark[] = ".tmp.";
	size_t length = strlen(name), cut = strlen(mark);
	DIR *dir = path_list(open_directory(base, directory));
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *rest = entry->d_name + length;

		if (strncmp(entry->d_name, name, length) != 0 || strncmp(rest, mark, cut) != 0 ||
		    strlen(rest + cut) != SESSION_ID_SIZE - 1 ||
		    strspn(rest + cut, "abcdefghijklmnopqrstuvwxyz0123456789") != SESSION_ID_SIZE - 1)
			continue;
		if (!is_of_agent(base, entry->d_name))
			(void)!unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}

int trust_book_write(const struct trust_home *place, const struct trust_book *book, bool is_durable)
{
	uint64_t last = book->base_seq + book->count;
	cleanup_buf struct buf out;
	char name[NAME_ROOM];
	int r = str_format(name, sizeof name, "%s.bin", book->agent);

	buf_init(&out, TRUST_FILE_MAX);
	trust_file_format(book, &out);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0 && book->lock_fd >= 0) {
		remove_leftovers(place->state_dir, records_name, name);
		remove_leftovers(place->state_dir, witness_name, book->agent);
	}
	/* Once the first record is there its witness must not be missing. */
	if (r == 0 && !has_witness(place, book->agent))
		r = write_witness(place->state_dir, book, book->base_seq);
	if (r == 0)
		r = write_in(place->state_dir, records_name, name, out.bytes, out.size);
	if (r == 0 && is_durable) {
		cleanup_fd int dir_fd = open_directory(place->state_dir, records_name);

		r = dir_fd < 0 ? dir_fd : sync_directory(dir_fd, name);
	}
	if (r == 0)
		r = write_witness(place->state_dir, book, last);
	return r < 0 ? r : write_witness(place->runtime_dir, book, last);
}

/* ---- which there are ---- */

struct names {
	char **items;
	size_t count;
};

static int add_name(struct names *names, const char *name)
{
	char **grown;

	for (size_t i = 0; i < names->count; i++)
		if (str_equal(names->items[i], name))
			return 0;
	if (names->count == TRUST_AGENTS_MAX)
		return 0;
	grown = reallocarray(names->items, names->count + 2, sizeof *grown);
	if (!grown)
		return -ENOMEM;
	names->items = grown;
	grown[names->count] = str_dup(name);
	grown[names->count + 1] = NULL;
	return grown[names->count++] ? 0 : -ENOMEM;
}

/* Files of this ending, whose names without it are those of agents. A directory that is not there has none. */
static int add_names(struct names *names, const char *base, const char *directory, const char *ending)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = path_join(path, sizeof path, base, directory);

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir))) {
		size_t length = strlen(entry->d_name), cut = strlen(ending);

		if (length <= cut || !str_has_suffix(entry->d_name, ending))
			continue;
		entry->d_name[length - cut] = 0;
		/* What a write that was cut off has left is none. */
		if (trust_agent_is_valid(entry->d_name) && !strstr(entry->d_name, ".tmp."))
			r = add_name(names, entry->d_name);
	}
	closedir(dir);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int trust_agents(const struct trust_home *place, char ***ret_names)
{
	struct names names = { calloc(1, sizeof *names.items), 0 };
	int r = names.items ? 0 : -ENOMEM;

	if (r == 0)
		r = add_names(&names, place->state_dir, records_name, ".bin");
	/* One whose record has gone is listed as such. */
	if (r == 0)
		r = add_names(&names, place->state_dir, witness_name, "");
	if (r < 0) {
		strv_free(names.items);
		return r;
	}
	qsort(names.items, names.count, sizeof *names.items, compare_names);
	*ret_names = names.items;
	return 0;
}
