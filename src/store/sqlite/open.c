/* SPDX-License-Identifier: Apache-2.0 */

/*
 * sqlite:PATH or sqlite:///PATH, with busy=DURATION and name=NAME.
 *
 * A connection belongs to one thread, so it needs no mutex of its own. It commits durably
 * (synchronous=FULL: an acknowledged message's receipt must survive a power cut, or it is sent twice),
 * trusts nothing that the file says about functions, and never checkpoints by itself: see sqlite_maintain().
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/route.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_DEFAULT (5 * OUTBOX_SECONDS)
#define BUSY_MAX (10 * OUTBOX_MINUTES)

/* "app" for /var/lib/app.db */
static void short_name(const char *path, char *out, size_t size)
{
	const char *base = strrchr(path, '/');
	size_t length;

	base = base ? base + 1 : path;
	length = strlen(base);
	for (size_t i = length; i > 1; i--) {
		if (base[i - 1] == '.') {
			length = i - 1;
			break;
		}
	}
	length = utf8_cut(base, length, size - 1);
	memcpy(out, base, length);
	out[length] = '\0';
}

static int parse_path(const struct url *url, char **ret_path, struct outbox_error *err)
{
	/* "file:..." and ":memory:" mean something else to SQLite; here a path is a path. */
	bool special = url->path[0] == ':' || strncmp(url->path, "file:", 5) == 0;
	char *path;

	if (url->has_authority && url->host && url->host[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "sqlite has no host: write sqlite:PATH, or sqlite:///PATH with three "
				   "slashes");
	if (!url->path[0])
		return outbox_fail(err, OUTBOX_ECONFIG, "the path is missing: write sqlite:app.db");
	if (strcmp(url->path, ":memory:") == 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "a database in memory cannot be shared with a relay: name a file");
	if (asprintf(&path, "%s%s", special ? "./" : "", url->path) < 0)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_path = path;
	return OUTBOX_OK;
}

static int parse_options(struct url *url, struct sqlite_store *s, struct outbox_error *err)
{
	const char *busy = url_option(url, "busy"), *name = url_option(url, "name");
	outbox_time wait = BUSY_DEFAULT;
	int r;

	if (busy) {
		r = duration_parse(busy, &wait, err);
		if (r != OUTBOX_OK)
			return outbox_wrap(err, "busy");
		if (wait < 0 || wait > BUSY_MAX)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "busy: \"%s\" is not between 0 and 10 minutes", busy);
	}
	s->busy_ms = (int)(wait / OUTBOX_MILLISECONDS);
	if (!name) {
		short_name(s->path, s->name, sizeof(s->name));
	} else if (!name[0] || strlen(name) >= sizeof(s->name) || !utf8_valid(name, strlen(name))) {
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "name: give 1 to %zu bytes of UTF-8, the store's short name",
				   sizeof(s->name) - 1);
	} else {
		memcpy(s->name, name, strlen(name) + 1);
	}
	sqlite3_snprintf(sizeof(s->source), s->source, "/outbox/%s", s->name);
	return url_finish(url, "busy, name", err);
}

/* Path, names and busy timeout. */
static int parse_url(const char *text, struct sqlite_store *s, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	int r = url_parse(text, &url, err);

	if (r == OUTBOX_OK)
		r = parse_path(&url, &s->path, err);
	return r ? r : parse_options(&url, s, err);
}

int sqlite_check_url(const char *url, struct outbox_error *err)
{
	struct sqlite_store s = { 0 };
	int r = parse_url(url, &s, err);

	free(s.path);
	return r;
}

static void folder_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(out, size, ".");
	else
		snprintf(out, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/*
 * SQLite deletes the -wal of a file that is not there, or is empty, when it makes the database: what
 * was committed there is lost when the file is put back. The -wal is looked for first: whoever makes
 * a database now makes that last.
 */
static int check_orphan(const char *path, struct outbox_error *err)
{
	char wal[PATH_MAX];
	int n = snprintf(wal, sizeof(wal), "%s-wal", path);
	struct stat st;

	if (n < 0 || (size_t)n >= sizeof(wal) || access(wal, F_OK) != 0)
		return OUTBOX_OK;
	if (stat(path, &st) == 0 ? st.st_size > 0 : errno != ENOENT)
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_ENOTFOUND,
		"no database at %s, but its -wal exists: the file was moved or removed; put it back "
		"beside the -wal, which holds the latest commits and which init would "
		"delete, or, to start with an empty database, move the -wal away",
		path);
}

/* There is no file of this name: because of its folder, or simply so. */
static int not_there(const char *path, bool create, int rc, struct outbox_error *err)
{
	char folder[PATH_MAX];
	struct stat st;

	folder_of(path, folder, sizeof(folder));
	if (stat(folder, &st) != 0 && errno != EACCES)
		return outbox_fail_native(
			err, OUTBOX_ENOTFOUND, rc,
			"folder %s does not exist; check the path, or create it first", folder);
	if (!create)
		return outbox_fail_native(
			err, OUTBOX_ENOTFOUND, rc,
			"no database at %s; check the path, or, if it never existed, create it: outbox init "
			"--store sqlite:%s",
			path, path);
	if (access(folder, W_OK | X_OK) != 0)
		return outbox_fail_native(err, OUTBOX_EAUTH, rc, "no permission to create %s", path);
	return outbox_fail_native(err, OUTBOX_ECONN, rc, "%s: cannot be created: %s", path,
				  sqlite3_errstr(rc));
}

/* SQLite says only "unable to open": tell what is wrong. */
static int cannot_open(const char *path, bool create, int rc, struct outbox_error *err)
{
	struct stat st;

	if ((rc & 0xff) != SQLITE_CANTOPEN)
		return sqlite_fail(NULL, rc, path, err);
	if (stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
		return not_there(path, create, rc, err);
	if (access(path, R_OK | W_OK) != 0 && errno == EACCES)
		return outbox_fail_native(err, OUTBOX_EAUTH, rc, "%s: permission denied", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return outbox_fail_native(err, OUTBOX_ECONFIG, rc, "%s is a folder, not a database",
					  path);
	return outbox_fail_native(err, OUTBOX_ECONN, rc, "%s: cannot be opened: %s", path,
				  sqlite3_errstr(rc));
}

static int configure_connection(struct sqlite_store *s, struct outbox_error *err)
{
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, s->busy_ms);
	sqlite3_wal_autocheckpoint(s->db, 0);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	/* The first read: a file that is no database is found here, not later in some op. */
	return sqlite_script(s->db,
			     "PRAGMA mmap_size = 0; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
			     "PRAGMA schema_version;",
			     s->path, err);
}

static struct sqlite_store *store_free(struct sqlite_store *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < DB_STATEMENTS; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close_v2(s->db);
	sqlite_routes_free(s->routes);
	free(s->path);
	free(s);
	return NULL;
}
DEFINE_CLEANUP(struct sqlite_store *, store_free)

int sqlite_open(const struct outbox_store_config *config, bool create,
		struct outbox_store **ret_store, struct outbox_error *err)
{
	_cleanup_(store_freep) struct sqlite_store *s = calloc(1, sizeof(*s));
	struct stat st = { 0 };
	int r, rc;

	if (!s)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!sqlite3_threadsafe())
		return outbox_fail(err, OUTBOX_ENOTSUP,
				   "this SQLite library was built without threads");
	s->base.ops = &sqlite_store_ops;
	s->clock = config->clock;
	s->random = config->random;
	r = parse_url(config->url, s, err);
	if (r == OUTBOX_OK)
		r = check_orphan(s->path, err);
	if (r != OUTBOX_OK)
		return r;
	rc = sqlite3_open_v2(s->path, &s->db,
			     SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) |
				     SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
			     NULL);
	if (rc != SQLITE_OK)
		return cannot_open(s->path, create, rc, err);
	r = configure_connection(s, err);
	if (r != OUTBOX_OK)
		return r;
	if (stat(s->path, &st) != 0)
		return outbox_fail(err, OUTBOX_ECONN, "%s was moved while it was opened", s->path);
	s->device = st.st_dev;
	*ret_store = &s->base;
	s = NULL;
	return OUTBOX_OK;
}

void sqlite_close(struct outbox_store *store)
{
	store_free(sqlite_of(store));
}

/* ---- checkpoints -------------------------------------------------------------------------------- */

/*
 * Checkpoints. None of our connections checkpoints on its own; the one whose worker has
 * nothing else to do does it here. SQLite's own checkpoint lock keeps it to one at a time: the others
 * get BUSY and leave it at that.
 *
 * PASSIVE waits for nobody. A WAL that has grown large all the same (readers that were always in the
 * way) is cut back with TRUNCATE, for which writers wait a moment.
 */
#define WAL_SMALL ((int64_t)1 << 20)
#define WAL_LARGE ((int64_t)64 << 20)

int sqlite_maintain(struct outbox_store *store, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t size = sqlite_wal_size(s);
	int r, rc, frames = 0, copied = 0;

	if (size < WAL_SMALL)
		return OUTBOX_OK;
	/* The -wal must outlive the file: it may be all that is left. */
	r = sqlite_in_place(s, err);
	if (r != OUTBOX_OK)
		return r;
	rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
	/* Cutting the file holds the write lock. It is only worth that when it can be done at once: with a
	 * reader in the way it would keep every publisher waiting for as long as we wait. */
	if (rc == SQLITE_OK && size >= WAL_LARGE && copied == frames) {
		sqlite3_busy_timeout(s->db, 0);
		rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		sqlite3_busy_timeout(s->db, s->busy_ms);
	}
	if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
		return OUTBOX_OK;
	return sqlite_fail(s->db, rc, "checkpoint", err);
}

/* ---- the ops ------------------------------------------------------------------------------------ */

static const char *const schemes[] = { "sqlite", NULL };

const struct outbox_store_ops sqlite_store_ops = {
	.contract = OUTBOX_STORE_CONTRACT,
	.name = "sqlite",
	.schemes = schemes,
	.help = "sqlite:PATH or sqlite:///PATH, options busy=DURATION, name=NAME",
	.open = sqlite_open,
	.close = sqlite_close,
	.check_url = sqlite_check_url,
	.schema = {
		.init = sqlite_init,
		.upgrade = sqlite_upgrade,
		.drop = sqlite_drop,
		.truncate = sqlite_truncate,
		.info = sqlite_info,
		.script = sqlite_script_text,
	},
	.lane = {
		.target_put = sqlite_target_put,
		.wants_start = sqlite_wants_start,
		.bands = sqlite_bands,
		.lease = sqlite_lease,
		.release = sqlite_release,
		.take_over = sqlite_take_over,
		.settle_and_claim = sqlite_settle_and_claim,
		.unserved = sqlite_unserved,
		.maintain = sqlite_maintain,
	},
	.operate = {
		.append = sqlite_append,
		.target_pause = sqlite_target_pause,
		.target_drop = sqlite_target_drop,
		.list = sqlite_list,
		.get = sqlite_get,
		.tail = sqlite_tail,
		.act = sqlite_act,
		.audit = sqlite_audit,
		.audit_add = sqlite_audit_add,
		.stats = sqlite_stats,
		.purge = sqlite_purge,
		.purgeable = sqlite_purgeable,
		.check = sqlite_check,
		.rebase = sqlite_rebase,
		.redact = sqlite_redact,
		.keys = sqlite_keys,
		.amend = sqlite_amend,
		.amendments = sqlite_amendments,
		.attempts = sqlite_attempts,
		.cancel = sqlite_cancel,
		.find_key = sqlite_find_key,
	},
	.inbox = {
		.init = sqlite_inbox_init,
		.drop = sqlite_inbox_drop,
		.script = sqlite_inbox_script,
		.stats = sqlite_inbox_stats,
		.list = sqlite_inbox_list,
		.count = sqlite_inbox_count,
		.prune = sqlite_inbox_prune,
	},
};
