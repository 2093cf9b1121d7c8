/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_STATEMENTS_H
#define STORE_SQLITE_STATEMENTS_H

/*
 * Every statement of the driver, by name. Each is prepared once per connection, when first used.
 * Those of the relay's way are in statements_relay.h, those for people in statements_look.h.
 */

#include "store/sqlite/statements_look.h"
#include "store/sqlite/statements_relay.h"

/* clang-format off */
#define STATEMENTS_BASE(X)                                                                  \
	X(SQL_BEGIN_READ, "BEGIN")                                                                 \
	X(SQL_BEGIN_WRITE, "BEGIN IMMEDIATE")                                                      \
	X(SQL_COMMIT, "COMMIT")                                                                    \
	X(SQL_ROLLBACK, "ROLLBACK")                                                                \
	X(SQL_ENCODING, "PRAGMA encoding")                                                         \
	X(SQL_WAL, "PRAGMA journal_mode = WAL")                                                    \
	X(SQL_META_EXISTS, "SELECT count(*) = 2 FROM pragma_table_info('outbox_meta')"             \
		" WHERE name IN ('name', 'value')")                                                \
	X(SQL_META_GET, "SELECT value FROM outbox_meta WHERE name = ?1")                           \
	X(SQL_META_PUT, "INSERT INTO outbox_meta (name, value) VALUES (?1, ?2)"                    \
		" ON CONFLICT (name) DO UPDATE SET value = excluded.value")                        \
	X(SQL_META_DELETE, "DELETE FROM outbox_meta WHERE name = ?1")                              \
	/* names that a version behind ?1 is the first to have */                                  \
	X(SQL_FOREIGN_OBJECT, "SELECT type, name FROM sqlite_master WHERE (?1 < 1 AND name IN ("   \
		"'outbox_meta', 'outbox_message', 'outbox_target', 'outbox_route', 'outbox_lane'," \
		" 'outbox_worker', 'outbox_receipt', 'outbox_detour', 'outbox_audit',"             \
		" 'outbox_log', 'outbox_position', 'outbox_delivery', 'outbox_failed',"            \
		" 'outbox_backlog')) OR (?1 < 2 AND name IN ('outbox_band',"                       \
		" 'outbox_dead_letter')) OR (?1 < 3 AND name IN ('outbox_unserved',"		\
		" 'outbox_amended')) LIMIT 1")						\
	/* targets */                                                                              \
	X(SQL_TARGET_GET, "SELECT version, route, hold, unordered, paused, dead_letter"            \
		" FROM outbox_target WHERE name = ?1")                                             \
	X(SQL_TARGET_DEAD, "UPDATE outbox_target SET dead_letter = ?2 WHERE name = ?1")            \
	X(SQL_TARGET_DEAD_OF, "SELECT name FROM outbox_target WHERE dead_letter = ?1"              \
		" ORDER BY name LIMIT 1")                                                          \
	X(SQL_LOG_SINCE, "SELECT seq FROM outbox_message WHERE seq > ?2 AND created_at >= ?1"      \
		" ORDER BY seq LIMIT 1")                                                           \
	X(SQL_TARGET_VERSION, "SELECT version FROM outbox_target WHERE name = ?1")                 \
	X(SQL_TARGET_OPEN, "SELECT coalesce(resumed_at, created_at) FROM outbox_target"            \
		" WHERE name = ?1")                                                                \
	X(SQL_TARGET_ADD, "INSERT INTO outbox_target"                                              \
		" (name, version, route, hold, unordered, created_at, start_seq)"                   \
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                            \
	X(SQL_TARGET_CHANGE, "UPDATE outbox_target SET version = ?2, route = ?3, hold = ?4,"       \
		" unordered = ?5 WHERE name = ?1")                                                 \
	X(SQL_TARGET_PAUSE, "UPDATE outbox_target SET paused = ?2, paused_by = ?3,"                \
		" paused_reason = ?4, paused_at = ?5, resumed_at = coalesce(?6, resumed_at)"       \
		" WHERE name = ?1")                                                                \
	X(SQL_ROUTE_GET, "SELECT type_glob, kind, published_only FROM outbox_route"                \
		" WHERE target = ?1 AND version = ?2")                                             \
	X(SQL_ROUTE_PUT, "INSERT OR IGNORE INTO outbox_route"                                      \
		" (target, version, type_glob, kind, published_only) VALUES (?1, ?2, ?3, ?4, ?5)")  \
	X(SQL_BAND_GET, "SELECT above, bands FROM outbox_band WHERE target = ?1 AND version = ?2"  \
		" ORDER BY above")                                                                 \
	X(SQL_BAND_PUT, "INSERT INTO outbox_band (target, version, above, bands)"                  \
		" VALUES (?1, ?2, ?3, ?4)")                                                        \
	X(SQL_BAND_OF, "SELECT version, band_of FROM outbox_target WHERE name = ?1")               \
	X(SQL_BAND_SET, "UPDATE outbox_target SET band_of = ?2 WHERE name = ?1")                   \
	X(SQL_BAND_FAMILY, "SELECT name, version, route FROM outbox_target"                        \
		" WHERE band_of = ?1 AND name > ?2 AND name <> ?1 ORDER BY name LIMIT 1")          \
	X(SQL_BAND_END, "UPDATE outbox_target SET version = ?2, route = ?3 WHERE name = ?1")       \
	X(SQL_BAND_NAMED, "SELECT 1 FROM outbox_target WHERE name = ?1 AND band_of = ?2")          \
	X(SQL_ROUTE_NEWEST, "SELECT max(version) FROM outbox_route WHERE target = ?1")             \
	X(SQL_LOG_END, LOG_END)                                                                    \
	X(SQL_SETTLED_EVER, "SELECT EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'settled')"     \
		" OR EXISTS (SELECT 1 FROM outbox_target t CROSS JOIN outbox_receipt r"             \
		" ON r.target = t.name WHERE r.pos > t.start_seq)")                                \
	X(SQL_SETTLED_NOTE, "INSERT OR IGNORE INTO outbox_meta (name, value)"                      \
		" SELECT 'settled', 1 FROM outbox_target t WHERE t.name = ?1 AND EXISTS"            \
		" (SELECT 1 FROM outbox_receipt r WHERE r.target = t.name AND r.pos > t.start_seq)")\
	X(SQL_DROP_DETOURS, "DELETE FROM outbox_detour WHERE target = ?1")                         \
	X(SQL_DROP_RECEIPTS, "DELETE FROM outbox_receipt WHERE target = ?1")                       \
	X(SQL_DROP_LANES, "DELETE FROM outbox_lane WHERE target = ?1")                             \
	X(SQL_DROP_WORKERS, "DELETE FROM outbox_worker WHERE target = ?1")                         \
	X(SQL_DROP_UNSERVED, "DELETE FROM outbox_unserved WHERE target = ?1")                      \
	/* the newest version's rules stay: its number must never be used again */                 \
	X(SQL_DROP_ROUTES, "DELETE FROM outbox_route WHERE target = ?1 AND version <"              \
		" (SELECT max(version) FROM outbox_route WHERE target = ?1)")                      \
	X(SQL_DROP_TARGET, "DELETE FROM outbox_target WHERE name = ?1")                            \
	/* leases */                                                                               \
	X(SQL_WORKER_EXPIRE, "DELETE FROM outbox_worker WHERE target = ?1 AND alive_until <= ?2")  \
	X(SQL_WORKER_FORGET, "DELETE FROM outbox_worker WHERE target = ?1 AND owner = ?2")         \
	X(SQL_WORKER_PUT, "INSERT INTO outbox_worker"                                              \
		" (target, owner, alive_until, outage, outage_since, place)"                       \
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (target, owner)"                     \
		" DO UPDATE SET alive_until = excluded.alive_until, outage = excluded.outage,"     \
		" outage_since = excluded.outage_since, place = excluded.place")                   \
	X(SQL_WORKER_ELSEWHERE, "SELECT place, owner FROM outbox_worker WHERE target = ?1"         \
		" AND owner <> ?2 AND place <> ?3 ORDER BY owner LIMIT 1")                         \
	X(SQL_WORKER_RANK, "SELECT count(*), count(CASE WHEN owner < ?2 THEN 1 END)"               \
		" FROM outbox_worker WHERE target = ?1")                                           \
	X(SQL_UNSERVED_EXPIRE, "DELETE FROM outbox_unserved WHERE alive_until <= ?1")              \
	X(SQL_UNSERVED_FORGET, "DELETE FROM outbox_unserved WHERE target = ?1 AND owner = ?2")     \
	X(SQL_UNSERVED_PUT, "INSERT INTO outbox_unserved (target, owner, alive_until, since, why)" \
		" VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (target, owner)"                         \
		" DO UPDATE SET alive_until = excluded.alive_until, why = excluded.why")           \
	X(SQL_LANE_ADD, "INSERT INTO outbox_lane (target, lane) VALUES (?1, ?2)")                  \
	X(SQL_LANE_COUNT, "SELECT count(*) FROM outbox_lane WHERE target = ?1")                    \
	X(SQL_LANE_LIST, "SELECT lane, owner IS ?2, owner IS NULL OR lease_until <= ?3"            \
		" FROM outbox_lane WHERE target = ?1 ORDER BY lane")                               \
	X(SQL_LANE_HOLD, "UPDATE outbox_lane SET owner = ?3, lease_until = ?4"                     \
		" WHERE target = ?1 AND lane = ?2")                                                \
	X(SQL_LANE_RELEASE, "UPDATE outbox_lane SET owner = NULL, lease_until = 0"                 \
		" WHERE target = ?1 AND lane = ?2 AND owner = ?3")                                 \
	X(SQL_LANE_TAKEN, "UPDATE outbox_lane SET takeovers = takeovers + 1"                       \
		" WHERE target = ?1 AND lane = ?2")                                                \
	/* audit */                                                                                \
	X(SQL_AUDIT_ADD, "INSERT INTO outbox_audit"                                                \
		" (at, actor, action, target, id, seq, reason, detail)"                            \
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                        \
	X(SQL_AUDIT_OF, "SELECT number, at, actor, action, target, id, reason, detail"             \
		" FROM outbox_audit WHERE id = ?2 ORDER BY number DESC LIMIT ?1")                  \
	X(SQL_AUDIT_ALL, "SELECT number, at, actor, action, target, id, reason, detail"            \
		" FROM outbox_audit ORDER BY number DESC LIMIT ?1")
/* clang-format on */

#define STATEMENT_NAME(name, text) name,
enum sqlite_statement {
	STATEMENTS_BASE(STATEMENT_NAME) STATEMENTS_RELAY(STATEMENT_NAME)
		STATEMENTS_LOOK(STATEMENT_NAME) DB_STATEMENTS
};
#undef STATEMENT_NAME

const char *sqlite_statement_text(enum sqlite_statement id);

#endif
