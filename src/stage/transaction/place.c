/* SPDX-License-Identifier: Apache-2.0 */

/* Where the transactions of a session are, which there are, and who may work on them. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/use.h"
#include "stage/transaction/transaction.h"

static int fail_use(int r, struct err *err)
{
	if (r == -ENOENT)
		err_set(err, ERR_NOT_FOUND, ENOENT, "apply", "the staged changes of the session were just discarded");
	else
		err_set(err, ERR_STATE, -r, "apply", "the session's directory cannot be locked: %s", strerror(-r));
	return r;
}

int transaction_place_open(int stage_fd, const struct stage_record *record, struct transaction_place *ret_place,
			   struct err *err)
{
	cleanup_fd int applies_fd = FD_NONE, lock_fd = FD_NONE;
	int r = stage_use(stage_fd, record->session);

	if (r < 0)
		return fail_use(r, err);
	if (mkdirat(stage_fd, STAGE_DIRECTORY_APPLIES, 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_STATE, errno, "apply", "the session's directory cannot be written: %s",
			       strerror(errno));
	applies_fd = fd_open_at(stage_fd, STAGE_DIRECTORY_APPLIES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (applies_fd >= 0)
		lock_fd = fd_open_at(applies_fd, TRANSACTION_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (lock_fd < 0)
		return err_set(err, ERR_STATE, applies_fd < 0 ? -applies_fd : -lock_fd, "apply",
			       "the session's lock cannot be opened: %s",
			       strerror(applies_fd < 0 ? -applies_fd : -lock_fd));
	if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0) {
		err_set(err, ERR_STATE, EBUSY, "apply", "another apply or undo of this session is at work");
		err_hint(err, "try again when it has ended");
		return -EBUSY;
	}
	*ret_place = (struct transaction_place){
		.stage_fd = stage_fd, .record = record, .applies_fd = take_fd(&applies_fd),
		.lock_fd = take_fd(&lock_fd), .is_root = geteuid() == 0,
	};
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		ret_place->tree_fds[i] = FD_NONE;
	return 0;
}

void transaction_place_done(struct transaction_place *place)
{
	/* A place that was never opened is all zeros. */
	if (!place->record)
		return;
	for (size_t i = 0; i < STAGE_TREES_MAX; i++)
		close_fd(&place->tree_fds[i]);
	close_fd(&place->applies_fd);
	close_fd(&place->lock_fd);
	place->record = NULL;
}

int transaction_tree(struct transaction_place *place, size_t tree, struct err *err)
{
	cleanup_fd int fd = FD_NONE;

	if (tree >= place->record->tree_count)
		return err_set(err, ERR_STATE, EBADMSG, "apply", "the journal names a tree that is not staged");
	if (place->tree_fds[tree] >= 0)
		return place->tree_fds[tree];
	fd = stage_tree_open(&place->record->trees[tree], err);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err_set(err, ERR_STATE, EBUSY, "apply", "another session is being applied to %s",
			place->record->trees[tree].path);
		err_hint(err, "try again when it has ended");
		return -EBUSY;
	}
	place->tree_fds[tree] = take_fd(&fd);
	return place->tree_fds[tree];
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int read_numbers(DIR *dir, uint32_t **numbers, size_t *count)
{
	struct dirent *entry;
	size_t capacity = 0;

	while ((entry = readdir(dir))) {
		uint64_t number;

		if (num_parse_u64(entry->d_name, &number) < 0 || number == 0 || number >= UINT32_MAX)
			continue;
		if (*count == capacity) {
			uint32_t *grown;

			capacity = capacity ? capacity * 2 : 16;
			grown = realloc(*numbers, capacity * sizeof **numbers);
			if (!grown)
				return -ENOMEM;
			*numbers = grown;
		}
		(*numbers)[(*count)++] = (uint32_t)number;
	}
	if (*count)
		qsort(*numbers, *count, sizeof **numbers, compare_numbers);
	return 0;
}

int transaction_list(int stage_fd, uint32_t **ret_numbers, size_t *ret_count)
{
	DIR *dir = path_list(fd_open_at(stage_fd, STAGE_DIRECTORY_APPLIES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
	uint32_t *numbers = NULL;
	size_t count = 0;
	int r;

	*ret_numbers = NULL;
	*ret_count = 0;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	r = read_numbers(dir, &numbers, &count);
	closedir(dir);
	if (r < 0) {
		free(numbers);
		return r;
	}
	*ret_numbers = numbers;
	*ret_count = count;
	return 0;
}

int transaction_open_directory(int dir_fd, const char *name)
{
	return fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int transaction_open_number(int applies_fd, uint32_t number)
{
	char name[TRANSACTION_SLOT_SIZE];

	return transaction_open_directory(applies_fd, transaction_slot_name(number, name));
}

int transaction_load(int stage_fd, uint32_t number, struct journal *ret_journal)
{
	cleanup_fd int applies_fd = transaction_open_directory(stage_fd, STAGE_DIRECTORY_APPLIES), dir_fd = FD_NONE;

	if (applies_fd < 0)
		return applies_fd;
	dir_fd = transaction_open_number(applies_fd, number);
	if (dir_fd < 0)
		return dir_fd;
	return journal_load(dir_fd, ret_journal);
}

const char *transaction_slot_name(uint32_t slot, char out[TRANSACTION_SLOT_SIZE])
{
	if (str_format(out, TRANSACTION_SLOT_SIZE, "%u", slot) < 0)
		out[0] = 0;
	return out;
}
