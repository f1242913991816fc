/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/instances.h"

#include <errno.h>
#include <sqlite3.h>

static int change(struct database *store, const char *text, const char *id)
{
	sqlite3_stmt *statement = NULL;
	int r = sqlite3_prepare_v2(database_handle(store), text, -1, &statement, NULL);

	if (r == SQLITE_OK)
		r = sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
	if (r == SQLITE_OK)
		r = sqlite3_step(statement);
	sqlite3_finalize(statement);
	return r == SQLITE_DONE ? 0 : r == SQLITE_FULL ? -ENOSPC : -EIO;
}

int instances_put(struct database *store, const char *id)
{
	return change(store, "INSERT OR REPLACE INTO instances (id) VALUES (?)", id);
}

int instances_remove(struct database *store, const char *id)
{
	return change(store, "DELETE FROM instances WHERE id = ?", id);
}

int instances_each(struct database *store, int (*row)(void *context, const char *id), void *context)
{
	sqlite3_stmt *statement = NULL;
	int step, r = 0;

	if (sqlite3_prepare_v2(database_handle(store), "SELECT id FROM instances", -1, &statement, NULL) != SQLITE_OK)
		return -EIO;
	while (r >= 0 && (step = sqlite3_step(statement)) == SQLITE_ROW)
		r = row(context, (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return r < 0 ? r : step == SQLITE_DONE ? 0 : -EIO;
}
