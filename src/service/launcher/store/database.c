/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/database.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "base/names.h"
#include "base/str.h"

const char *const key_role_names[KEY_ROLE_COUNT] = {
	[KEY_READ_ONLY] = "read-only", [KEY_USER] = "user", [KEY_ADMIN] = "admin",
};

enum statement {
	ADD_KEY, FIND_KEY, KEY_BY_NUMBER, REVOKE_KEY, EACH_KEY, PUT_SANDBOX, REMOVE_SANDBOX, EACH_SANDBOX, PUT_TEMPLATE,
	REMOVE_TEMPLATE, EACH_TEMPLATE, PUT_FUNCTION, REMOVE_FUNCTION, EACH_FUNCTION, PUT_SECRET,
	REMOVE_SECRET, EACH_SECRET, PUT_INSTANCE, REMOVE_INSTANCE, EACH_INSTANCE, STATEMENT_COUNT,
};

struct database {
	sqlite3 *database;
	sqlite3_stmt *statements[STATEMENT_COUNT];
};

#define KEY_COLUMNS "number, name, owner, shown, role, policy, sandboxes_max, creates_per_minute, memory_mb_max, " \
	"created_ms, revoked"
#define SANDBOX_COLUMNS "id, session, owner, key, state, created_ms, end_ms, left_ms, made, network"
#define TEMPLATE_COLUMNS "id, name, owner, session, snapshot, sandbox, created_ms"
#define FUNCTION_COLUMNS "id, name, owner, key, created_ms, made"
#define SECRET_COLUMNS "id, name, owner, version, created_ms, updated_ms, metadata"

static const char *const statement_texts[STATEMENT_COUNT] = {
	[ADD_KEY] = "INSERT INTO keys (hash, name, owner, shown, role, policy, sandboxes_max, creates_per_minute, "
		    "memory_mb_max, created_ms, revoked) VALUES (?,?,?,?,?,?,?,?,?,?,0)",
	[FIND_KEY] = "SELECT " KEY_COLUMNS " FROM keys WHERE hash = ? AND revoked = 0",
	[KEY_BY_NUMBER] = "SELECT " KEY_COLUMNS " FROM keys WHERE number = ?",
	[REVOKE_KEY] = "UPDATE keys SET revoked = 1 WHERE name = ? AND revoked = 0",
	[EACH_KEY] = "SELECT " KEY_COLUMNS " FROM keys ORDER BY number",
	[PUT_SANDBOX] = "INSERT OR REPLACE INTO sandboxes (" SANDBOX_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?)",
	[REMOVE_SANDBOX] = "DELETE FROM sandboxes WHERE id = ?",
	[EACH_SANDBOX] = "SELECT " SANDBOX_COLUMNS " FROM sandboxes ORDER BY created_ms, rowid",
	[PUT_TEMPLATE] = "INSERT OR REPLACE INTO templates (" TEMPLATE_COLUMNS ") VALUES (?,?,?,?,?,?,?)",
	[REMOVE_TEMPLATE] = "DELETE FROM templates WHERE id = ?",
	[EACH_TEMPLATE] = "SELECT " TEMPLATE_COLUMNS " FROM templates ORDER BY created_ms, rowid",
	[PUT_FUNCTION] = "INSERT OR REPLACE INTO functions (" FUNCTION_COLUMNS ") VALUES (?,?,?,?,?,?)",
	[REMOVE_FUNCTION] = "DELETE FROM functions WHERE id = ?",
	[EACH_FUNCTION] = "SELECT " FUNCTION_COLUMNS " FROM functions ORDER BY created_ms, rowid",
	/* Not OR REPLACE: that would remove another secret of the same name. */
	[PUT_SECRET] = "INSERT INTO secrets (" SECRET_COLUMNS ") VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET "
		       "version = excluded.version, updated_ms = excluded.updated_ms, metadata = excluded.metadata",
	[REMOVE_SECRET] = "DELETE FROM secrets WHERE id = ?",
	[EACH_SECRET] = "SELECT " SECRET_COLUMNS " FROM secrets ORDER BY created_ms, rowid",
	[PUT_INSTANCE] = "INSERT INTO instances (id) VALUES (?)",
	[REMOVE_INSTANCE] = "DELETE FROM instances WHERE id = ?",
	[EACH_INSTANCE] = "SELECT id FROM instances",
};

/* Each brings a database from the version of its index to the next. Never changed: a further one is added. */
static const char *const migrations[] = {
	"CREATE TABLE keys (number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, name TEXT NOT NULL,"
	" owner TEXT NOT NULL,"
	" shown TEXT NOT NULL, role INTEGER NOT NULL, policy TEXT NOT NULL, sandboxes_max INTEGER NOT NULL,"
	" creates_per_minute INTEGER NOT NULL, memory_mb_max INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
	" revoked INTEGER NOT NULL);"
	"CREATE UNIQUE INDEX key_names ON keys (name) WHERE revoked = 0;"
	"CREATE TABLE sandboxes (id TEXT PRIMARY KEY, session TEXT NOT NULL, owner TEXT NOT NULL, key INTEGER NOT NULL,"
	" state INTEGER NOT NULL, created_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, left_ms INTEGER NOT NULL,"
	" made BLOB, network BLOB);"
	"CREATE TABLE templates (id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL,"
	" snapshot TEXT NOT NULL, sandbox TEXT NOT NULL, created_ms INTEGER NOT NULL);",
	"CREATE TABLE functions (id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, key INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL, made BLOB);",
	"CREATE TABLE secrets (id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, version INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, metadata BLOB, UNIQUE (owner, name));",
	"CREATE TABLE builds (id TEXT PRIMARY KEY, template TEXT NOT NULL, owner TEXT NOT NULL, state INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL, session TEXT NOT NULL, snapshot TEXT NOT NULL, step TEXT NOT NULL,"
	" message TEXT NOT NULL, tags TEXT NOT NULL, settings BLOB);"
	"CREATE TABLE build_tags (template TEXT NOT NULL, tag TEXT NOT NULL, build TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL, PRIMARY KEY (template, tag));"
	"CREATE TABLE build_steps (owner TEXT NOT NULL, hash TEXT NOT NULL, session TEXT NOT NULL,"
	" snapshot TEXT NOT NULL, used_ms INTEGER NOT NULL, PRIMARY KEY (owner, hash));",
	"CREATE TABLE instances (id TEXT PRIMARY KEY) WITHOUT ROWID;",
};

const char *database_problem(struct database *store)
{
	return sqlite3_errmsg(store->database);
}

struct sqlite3 *database_handle(struct database *store)
{
	return store->database;
}

/* ---- opening ---- */

static int fail(struct database *store, const char *path, struct err *err)
{
	err_set(err, ERR_STATE, EIO, "store", "%s: %s", path, store->database ? database_problem(store) : "no memory");
	return -EIO;
}

static int read_version(struct database *store, int *ret_version)
{
	sqlite3_stmt *statement;
	int r = sqlite3_prepare_v2(store->database, "PRAGMA user_version", -1, &statement, NULL);

	if (r != SQLITE_OK)
		return -EIO;
	r = sqlite3_step(statement) == SQLITE_ROW ? 0 : -EIO;
	*ret_version = r == 0 ? sqlite3_column_int(statement, 0) : 0;
	sqlite3_finalize(statement);
	return r;
}

static int migrate(struct database *store, const char *path, struct err *err)
{
	int version = 0;

	if (sqlite3_exec(store->database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
	    read_version(store, &version) < 0)
		return fail(store, path, err);
	if (version > (int)ARRAY_SIZE(migrations)) {
		err_set(err, ERR_STATE, EPROTO, "store", "%s was written by a later atoll (version %d)", path, version);
		err_hint(err, "start that one, or move the file away: its keys and sandboxes are forgotten then");
		return -EPROTO;
	}
	for (; version < (int)ARRAY_SIZE(migrations); version++) {
		char text[48];

		if (str_format(text, sizeof text, "PRAGMA user_version = %d", version + 1) < 0 ||
		    sqlite3_exec(store->database, migrations[version], NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(store->database, text, NULL, NULL, NULL) != SQLITE_OK)
			return fail(store, path, err);
	}
	return sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(store, path, err);
}

static int prepare(struct database *store, const char *path, struct err *err)
{
	for (int i = 0; i < STATEMENT_COUNT; i++)
		if (sqlite3_prepare_v3(store->database, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &store->statements[i], NULL) != SQLITE_OK)
			return fail(store, path, err);
	return 0;
}

/* In WAL a commit does not wait for the disk; what does, a checkpoint, is made by database_checkpoint() alone. */
static int set_up(struct database *store, const char *path, struct err *err)
{
	static const char *const settings[] = {
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA wal_autocheckpoint = 0",
		"PRAGMA journal_size_limit = 16777216", "PRAGMA trusted_schema = OFF", "PRAGMA foreign_keys = ON",
	};
	int r;

	sqlite3_busy_timeout(store->database, 2000);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (sqlite3_exec(store->database, settings[i], NULL, NULL, NULL) != SQLITE_OK)
			return fail(store, path, err);
	r = migrate(store, path, err);
	return r < 0 ? r : prepare(store, path, err);
}

int database_open(const char *path, struct database **ret_store, struct err *err)
{
	struct database *store = calloc(1, sizeof *store);
	mode_t before;
	int r;

	if (!store)
		return err_set(err, ERR_INTERNAL, ENOMEM, "store", "out of memory");
	before = umask(077);
	r = sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) == SQLITE_OK ? set_up(store, path, err) : fail(store, path, err);
	umask(before);
	if (r < 0)
		database_close(store);
	else
		*ret_store = store;
	return r;
}

void database_close(struct database *store)
{
	if (!store)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(store->statements[i]);
	sqlite3_close(store->database);
	free(store);
}

void database_checkpoint(struct database *store)
{
	sqlite3_wal_checkpoint_v2(store->database, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* ---- rows ---- */

static sqlite3_stmt *begin(struct database *store, enum statement which)
{
	sqlite3_stmt *statement = store->statements[which];

	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return statement;
}

static void put_text(sqlite3_stmt *statement, int *at, const char *text)
{
	sqlite3_bind_text(statement, (*at)++, text, -1, SQLITE_TRANSIENT);
}

static void put_u64(sqlite3_stmt *statement, int *at, uint64_t number)
{
	sqlite3_bind_int64(statement, (*at)++, number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number);
}

static void put_bytes(sqlite3_stmt *statement, int *at, const struct bytes *bytes)
{
	sqlite3_bind_blob64(statement, (*at)++, bytes->size ? bytes->bytes : "", bytes->size, SQLITE_TRANSIENT);
}

static int to_errno(int result)
{
	static const struct {
		int result, r;
	} results[] = { { SQLITE_DONE, 0 }, { SQLITE_CONSTRAINT, -EEXIST }, { SQLITE_FULL, -ENOSPC } };

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		if (results[i].result == result)
			return results[i].r;
	return -EIO;
}

/* One that gives no rows. */
static int finish(sqlite3_stmt *statement)
{
	int r = sqlite3_step(statement);

	sqlite3_reset(statement);
	return to_errno(r);
}

static void get_text(sqlite3_stmt *statement, int *at, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(statement, (*at)++);

	(void)!str_copy(out, size, text ? (const char *)text : "");
}

/* What was unlimited is so again. */
static uint64_t get_u64(sqlite3_stmt *statement, int *at)
{
	sqlite3_int64 number = sqlite3_column_int64(statement, (*at)++);

	return number == INT64_MAX ? UINT64_MAX : number < 0 ? 0 : (uint64_t)number;
}

static struct bytes get_bytes(sqlite3_stmt *statement, int *at)
{
	struct bytes bytes = { .bytes = sqlite3_column_blob(statement, *at) };

	bytes.size = bytes.bytes ? (size_t)sqlite3_column_bytes(statement, *at) : 0;
	(*at)++;
	return bytes;
}

/* Goes on to the next row: 1, 0 at the end, -EIO. */
static int step(sqlite3_stmt *statement)
{
	int r = sqlite3_step(statement);

	return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : -EIO;
}

static void get_key(sqlite3_stmt *statement, struct key_row *key)
{
	uint64_t role;
	int at = 0;

	*key = (struct key_row){ .number = (int64_t)get_u64(statement, &at) };
	get_text(statement, &at, key->name, sizeof key->name);
	get_text(statement, &at, key->owner, sizeof key->owner);
	get_text(statement, &at, key->shown, sizeof key->shown);
	role = get_u64(statement, &at);
	key->role = role < KEY_ROLE_COUNT ? (enum key_role)role : KEY_READ_ONLY;
	get_text(statement, &at, key->policy, sizeof key->policy);
	key->sandboxes_max = get_u64(statement, &at);
	key->creates_per_minute = get_u64(statement, &at);
	key->memory_mb_max = get_u64(statement, &at);
	key->created_ms = get_u64(statement, &at);
	key->is_revoked = get_u64(statement, &at) != 0;
}

int database_add_key(struct database *store, const struct key_row *key, const struct hash *hash)
{
	sqlite3_stmt *statement = begin(store, ADD_KEY);
	const struct bytes bytes = { hash->bytes, HASH_SIZE };
	int at = 1;

	put_bytes(statement, &at, &bytes);
	put_text(statement, &at, key->name);
	put_text(statement, &at, key->owner);
	put_text(statement, &at, key->shown);
	put_u64(statement, &at, key->role);
	put_text(statement, &at, key->policy);
	put_u64(statement, &at, key->sandboxes_max);
	put_u64(statement, &at, key->creates_per_minute);
	put_u64(statement, &at, key->memory_mb_max);
	put_u64(statement, &at, key->created_ms);
	return finish(statement);
}

static int find_key(sqlite3_stmt *statement, struct key_row *ret_key)
{
	int r = step(statement);

	if (r == 1)
		get_key(statement, ret_key);
	sqlite3_reset(statement);
	return r;
}

int database_find_key(struct database *store, const struct hash *hash, struct key_row *ret_key)
{
	sqlite3_stmt *statement = begin(store, FIND_KEY);
	const struct bytes bytes = { hash->bytes, HASH_SIZE };
	int at = 1;

	put_bytes(statement, &at, &bytes);
	return find_key(statement, ret_key);
}

int database_key_by_number(struct database *store, int64_t number, struct key_row *ret_key)
{
	sqlite3_stmt *statement = begin(store, KEY_BY_NUMBER);
	int at = 1;

	put_u64(statement, &at, (uint64_t)number);
	return find_key(statement, ret_key);
}

int database_revoke_key(struct database *store, const char *name)
{
	sqlite3_stmt *statement = begin(store, REVOKE_KEY);
	int at = 1, r;

	put_text(statement, &at, name);
	r = finish(statement);
	return r < 0 ? r : sqlite3_changes(store->database) > 0;
}

int database_each_key(struct database *store, int (*row)(void *context, const struct key_row *key), void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_KEY);
	struct key_row key;
	int r;

	while ((r = step(statement)) == 1) {
		get_key(statement, &key);
		r = row(context, &key);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}

int database_put_sandbox(struct database *store, const struct sandbox_row *sandbox)
{
	sqlite3_stmt *statement = begin(store, PUT_SANDBOX);
	int at = 1;

	put_text(statement, &at, sandbox->id);
	put_text(statement, &at, sandbox->session);
	put_text(statement, &at, sandbox->owner);
	put_u64(statement, &at, (uint64_t)sandbox->key);
	put_u64(statement, &at, sandbox->state);
	put_u64(statement, &at, sandbox->created_ms);
	put_u64(statement, &at, sandbox->end_ms);
	put_u64(statement, &at, sandbox->left_ms);
	put_bytes(statement, &at, &sandbox->made);
	put_bytes(statement, &at, &sandbox->network);
	return finish(statement);
}

/* One that is given an id alone, and gives no rows. */
static int change_row(struct database *store, enum statement which, const char *id)
{
	sqlite3_stmt *statement = begin(store, which);
	int at = 1;

	put_text(statement, &at, id);
	return finish(statement);
}

int database_remove_sandbox(struct database *store, const char *id)
{
	return change_row(store, REMOVE_SANDBOX, id);
}

static void get_sandbox(sqlite3_stmt *statement, struct sandbox_row *sandbox)
{
	uint64_t state;
	int at = 0;

	*sandbox = (struct sandbox_row){ 0 };
	get_text(statement, &at, sandbox->id, sizeof sandbox->id);
	get_text(statement, &at, sandbox->session, sizeof sandbox->session);
	get_text(statement, &at, sandbox->owner, sizeof sandbox->owner);
	sandbox->key = (int64_t)get_u64(statement, &at);
	state = get_u64(statement, &at);
	sandbox->state = state < SANDBOX_STATE_COUNT ? (enum sandbox_state)state : SANDBOX_KILLING;
	sandbox->created_ms = get_u64(statement, &at);
	sandbox->end_ms = get_u64(statement, &at);
	sandbox->left_ms = get_u64(statement, &at);
	sandbox->made = get_bytes(statement, &at);
	sandbox->network = get_bytes(statement, &at);
}

int database_each_sandbox(struct database *store, int (*row)(void *context, const struct sandbox_row *sandbox),
	void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_SANDBOX);
	struct sandbox_row sandbox;
	int r;

	while ((r = step(statement)) == 1) {
		get_sandbox(statement, &sandbox);
		r = row(context, &sandbox);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}

int database_put_template(struct database *store, const struct template_row *template)
{
	sqlite3_stmt *statement = begin(store, PUT_TEMPLATE);
	int at = 1;

	put_text(statement, &at, template->id);
	put_text(statement, &at, template->name);
	put_text(statement, &at, template->owner);
	put_text(statement, &at, template->session);
	put_text(statement, &at, template->snapshot);
	put_text(statement, &at, template->sandbox);
	put_u64(statement, &at, template->created_ms);
	return finish(statement);
}

int database_remove_template(struct database *store, const char *id)
{
	return change_row(store, REMOVE_TEMPLATE, id);
}

static void get_template(sqlite3_stmt *statement, struct template_row *template)
{
	int at = 0;

	get_text(statement, &at, template->id, sizeof template->id);
	get_text(statement, &at, template->name, sizeof template->name);
	get_text(statement, &at, template->owner, sizeof template->owner);
	get_text(statement, &at, template->session, sizeof template->session);
	get_text(statement, &at, template->snapshot, sizeof template->snapshot);
	get_text(statement, &at, template->sandbox, sizeof template->sandbox);
	template->created_ms = get_u64(statement, &at);
}

int database_each_template(struct database *store, int (*row)(void *context, const struct template_row *template),
			void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_TEMPLATE);
	struct template_row template;
	int r;

	while ((r = step(statement)) == 1) {
		get_template(statement, &template);
		r = row(context, &template);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}

int database_put_function(struct database *store, const struct function_row *function)
{
	sqlite3_stmt *statement = begin(store, PUT_FUNCTION);
	int at = 1;

	put_text(statement, &at, function->id);
	put_text(statement, &at, function->name);
	put_text(statement, &at, function->owner);
	put_u64(statement, &at, (uint64_t)function->key);
	put_u64(statement, &at, function->created_ms);
	put_bytes(statement, &at, &function->made);
	return finish(statement);
}

int database_remove_function(struct database *store, const char *id)
{
	return change_row(store, REMOVE_FUNCTION, id);
}

static void get_function(sqlite3_stmt *statement, struct function_row *function)
{
	int at = 0;

	get_text(statement, &at, function->id, sizeof function->id);
	get_text(statement, &at, function->name, sizeof function->name);
	get_text(statement, &at, function->owner, sizeof function->owner);
	function->key = (int64_t)get_u64(statement, &at);
	function->created_ms = get_u64(statement, &at);
	function->made = get_bytes(statement, &at);
}

int database_each_function(struct database *store, int (*row)(void *context, const struct function_row *function),
			   void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_FUNCTION);
	struct function_row function;
	int r;

	while ((r = step(statement)) == 1) {
		get_function(statement, &function);
		r = row(context, &function);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}

int database_put_secret(struct database *store, const struct secret_row *secret)
{
	sqlite3_stmt *statement = begin(store, PUT_SECRET);
	int at = 1;

	put_text(statement, &at, secret->id);
	put_text(statement, &at, secret->name);
	put_text(statement, &at, secret->owner);
	put_u64(statement, &at, secret->version);
	put_u64(statement, &at, secret->created_ms);
	put_u64(statement, &at, secret->updated_ms);
	put_bytes(statement, &at, &secret->metadata);
	return finish(statement);
}

int database_remove_secret(struct database *store, const char *id)
{
	return change_row(store, REMOVE_SECRET, id);
}

static void get_secret(sqlite3_stmt *statement, struct secret_row *secret)
{
	int at = 0;

	get_text(statement, &at, secret->id, sizeof secret->id);
	get_text(statement, &at, secret->name, sizeof secret->name);
	get_text(statement, &at, secret->owner, sizeof secret->owner);
	secret->version = get_u64(statement, &at);
	secret->created_ms = get_u64(statement, &at);
	secret->updated_ms = get_u64(statement, &at);
	secret->metadata = get_bytes(statement, &at);
}

int database_each_secret(struct database *store, int (*row)(void *context, const struct secret_row *secret),
			 void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_SECRET);
	struct secret_row secret;
	int r;

	while ((r = step(statement)) == 1) {
		get_secret(statement, &secret);
		r = row(context, &secret);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}

int database_put_instance(struct database *store, const char *id)
{
	return change_row(store, PUT_INSTANCE, id);
}

int database_remove_instance(struct database *store, const char *id)
{
	return change_row(store, REMOVE_INSTANCE, id);
}

int database_each_instance(struct database *store, int (*row)(void *context, const char *id), void *context)
{
	sqlite3_stmt *statement = begin(store, EACH_INSTANCE);
	char id[CREDENTIAL_ID_SIZE];
	int r;

	while ((r = step(statement)) == 1) {
		int at = 0;

		get_text(statement, &at, id, sizeof id);
		r = row(context, id);
		if (r < 0)
			break;
	}
	sqlite3_reset(statement);
	return r < 0 ? r : 0;
}
