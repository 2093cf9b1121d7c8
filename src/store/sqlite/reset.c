/* SPDX-License-Identifier: Apache-2.0 */

/*
 * drop: every object of ours goes, by name, so that an application's own outbox_something stays.
 *
 * truncate: every message, detour and audit row goes. Targets and lanes stay, and every lane stands at
 * the end of the log as if it were new: seq goes on counting, so whatever is published afterwards is
 * delivered. The new receipts have new tokens: relays that were at work are fenced.
 */
#include "base/cleanup.h"
#include "store/sqlite/delivery.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

const char sqlite_drop_code_sql[] = "DROP VIEW IF EXISTS outbox_backlog;"
				    "DROP VIEW IF EXISTS outbox_failed;"
				    "DROP VIEW IF EXISTS outbox_delivery;"
				    "DROP VIEW IF EXISTS outbox_position;"
				    "DROP VIEW IF EXISTS outbox_log;"
				    "DROP TRIGGER IF EXISTS outbox_detour_again;"
				    "DROP TRIGGER IF EXISTS outbox_detour_forget;"
				    "DROP TRIGGER IF EXISTS outbox_message_redacted;"
				    "DROP TRIGGER IF EXISTS outbox_message_forget;"
				    "DROP TRIGGER IF EXISTS outbox_detour_fails;"
				    "DROP TRIGGER IF EXISTS outbox_detour_failed;"
				    "DROP TRIGGER IF EXISTS outbox_dead_letter_insert;"
				    "DROP VIEW IF EXISTS outbox_dead_letter;"
				    "DROP TRIGGER IF EXISTS outbox_message_keep;"
				    "DROP TRIGGER IF EXISTS outbox_message_immutable;"
				    "DROP TRIGGER IF EXISTS outbox_message_replace;"
				    "DROP TRIGGER IF EXISTS outbox_message_insert;";

const char sqlite_drop_tables_sql[] = "DROP TABLE IF EXISTS outbox_cancelled;"
				      "DROP TABLE IF EXISTS outbox_attempt;"
				      "DROP TABLE IF EXISTS outbox_amended;"
				      "DROP TABLE IF EXISTS outbox_audit;"
				      "DROP TABLE IF EXISTS outbox_detour;"
				      "DROP TABLE IF EXISTS outbox_receipt;"
				      "DROP TABLE IF EXISTS outbox_unserved;"
				      "DROP TABLE IF EXISTS outbox_worker;"
				      "DROP TABLE IF EXISTS outbox_lane;"
				      "DROP TABLE IF EXISTS outbox_route_header;"
				      "DROP TABLE IF EXISTS outbox_band;"
				      "DROP TABLE IF EXISTS outbox_route;"
				      "DROP TABLE IF EXISTS outbox_target;"
				      "DROP TABLE IF EXISTS outbox_message;"
				      "DROP TABLE IF EXISTS outbox_meta;";

/* Who may delete messages says so as the janitor. */
static const char truncate_sql[] =
	"UPDATE outbox_target SET start_seq = (" LOG_END ");"
	"UPDATE outbox_lane SET owner = NULL, lease_until = 0, takeovers = 0, refused = NULL,"
	" refused_at = NULL;"
	"INSERT OR IGNORE INTO outbox_meta (name, value) VALUES ('janitor', 1);"
	"DELETE FROM outbox_message;"
	"DELETE FROM outbox_meta WHERE name IN ('janitor', 'settled');"
	"DELETE FROM outbox_detour;"
	"DELETE FROM outbox_receipt;"
	"DELETE FROM outbox_amended;"
	"DELETE FROM outbox_audit;"
	"DELETE FROM outbox_worker;"
	"DELETE FROM outbox_unserved;";

int sqlite_drop(struct outbox_store *store, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r;

	s->ready = false;
	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_script(s->db, sqlite_drop_code_sql, "drop", err);
	if (r == OUTBOX_OK)
		r = sqlite_script(s->db, sqlite_drop_tables_sql, "drop", err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		s->ready = false;
	return r;
}

static int restart_lane(struct sqlite_store *s, const char *target, int lane,
			const struct receipt *last, int64_t end, struct outbox_error *err)
{
	struct lane_op op = { .s = s, .target = target, .lane = lane, .now = sqlite_now(s) };
	int64_t token = sqlite_token(s);
	struct receipt fresh = {
		.n = last->n + 1,
		.fence_token = token,
		.settled_at = op.now,
		.route_version = last->route_version,
		.from_seq = end,
		.pos = end,
		.claim_end = end,
	};

	return receipt_append(&op, NULL, &fresh, err);
}

static int truncate_in(struct sqlite_store *s, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	int64_t end;
	int r = targets_load(s, NULL, &targets, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_LOG_END, NULL, 0, &end, err);
	if (r == OUTBOX_OK)
		r = sqlite_script(s->db, truncate_sql, "truncate", err);
	if (r == OUTBOX_OK)
		r = numbers_mark(s, end, err);
	for (size_t i = 0; i < targets.count && r == OUTBOX_OK; i++) {
		const struct target_info *t = &targets.list[i];

		for (int lane = 0; lane < t->n_lanes && r == OUTBOX_OK; lane++)
			r = restart_lane(s, t->name, lane, &t->lanes[lane].last, end, err);
	}
	return r;
}

int sqlite_truncate(struct outbox_store *store, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	s->purging.seen_seq = 0;
	return r ? r : sqlite_end(s, truncate_in(s, err), err);
}
