/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_STATEMENTS_LOOK_H
#define STORE_SQLITE_STATEMENTS_LOOK_H

/* The statements of people's ops: list, tail, act, stats, purge. */

/* OUTBOX_REDACTED */
#define REDACTED "{\"redacted\":true}"

/* In the order in which delivery_of_detour() reads. */
#define DETOUR_COLUMNS                                                                           \
	"d.seq, d.id, m.type, d.key, d.lane, d.state, d.why, d.attempts, d.owner, d.last_error," \
	" d.reason, m.event_time, m.created_at, d.last_status_at, d.next_attempt_at"
#define DETOURS " FROM outbox_detour d LEFT JOIN outbox_message m ON m.seq = d.seq"
/* In the order of enum message_column, up to COL_DUE_AT. */
#define LOOK_COLUMNS \
	"m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.created_at, m.event_time, m.due_at"

/* clang-format off */
#define STATEMENTS_LOOK(X)                                                                         \
	X(SQL_LOOK_TARGET_COUNT, "SELECT count(*) FROM outbox_target")                             \
	X(SQL_LOOK_TARGETS, "SELECT name, version, start_seq, hold, unordered, paused, paused_by," \
		" paused_reason, coalesce(resumed_at, created_at) FROM outbox_target"              \
		" WHERE ?1 IS NULL OR name = ?1 ORDER BY name")                                    \
	X(SQL_LOOK_LANES, "SELECT lane, owner, lease_until, takeovers, (SELECT r.owner"            \
		" FROM outbox_receipt r WHERE r.target = l.target AND r.lane = l.lane"             \
		" ORDER BY r.n DESC LIMIT 1) FROM outbox_lane l WHERE target = ?1 ORDER BY lane")  \
	X(SQL_LOOK_COVER, "SELECT from_seq, pos, route_version, settled_at, owner"                 \
		" FROM outbox_receipt WHERE target = ?1 AND lane = ?2 AND pos >= ?3"               \
		" ORDER BY pos, n LIMIT 1")                                                        \
	X(SQL_LOOK_ROWS, "SELECT " LOOK_COLUMNS " FROM outbox_message m"                           \
		" WHERE m.seq > ?1 AND m.seq <= ?2 ORDER BY m.seq")                                \
	X(SQL_LOOK_ID, "SELECT " LOOK_COLUMNS " FROM outbox_message m WHERE m.id = ?1")            \
	X(SQL_LOOK_MESSAGE, "SELECT " MESSAGE_COLUMNS " FROM outbox_message m WHERE m.id = ?1")    \
	X(SQL_LOOK_DETOUR, "SELECT " DETOUR_COLUMNS DETOURS " WHERE d.target = ?1 AND d.seq = ?2") \
	X(SQL_LOOK_DETOURS, "SELECT " DETOUR_COLUMNS DETOURS                                       \
		" WHERE d.target = ?1 AND d.seq >= ?2 ORDER BY d.seq")                             \
	X(SQL_LOOK_DETOURS_IN, "SELECT " DETOUR_COLUMNS DETOURS                                    \
		" WHERE d.target = ?1 AND d.state = ?3 AND d.seq >= ?2 ORDER BY d.seq")            \
	X(SQL_LOOK_AHEAD, "SELECT EXISTS (SELECT 1 FROM outbox_detour"                             \
		" WHERE target = ?1 AND seq > ?2)")                                                \
	/* tail */                                                                                 \
	X(SQL_TAIL_NOW, "SELECT max(number) FROM outbox_receipt")                                  \
	X(SQL_TAIL_RECEIPTS, "SELECT number, target, lane, n, settled_at, from_seq, pos,"          \
		" delivered, owner FROM outbox_receipt WHERE number > ?1 ORDER BY number")         \
	X(SQL_TAIL_DETOURS, "SELECT " DETOUR_COLUMNS DETOURS                                       \
		" WHERE d.target = ?1 AND d.lane = ?2 AND d.n = ?3 AND d.seq > ?4 ORDER BY d.seq") \
	/* act */                                                                                  \
	X(SQL_AUDIT_ACT, "INSERT INTO outbox_audit"                                                \
		" (at, actor, action, target, id, seq, reason, detail)"                            \
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"                                             \
		" json_object('state', ?8, 'why', ?9, 'attempts', ?10, 'error', ?11))")            \
	X(SQL_ACT_REQUEUE, "UPDATE outbox_detour SET state = 'pending', why = 'retry',"            \
		" attempts = 0, next_attempt_at = ?3, failing_since = NULL, last_error = NULL,"    \
		" last_status_at = ?3, reason = ?4, n = NULL, ready_at = ?3"                       \
		" WHERE target = ?1 AND seq = ?2")                                                 \
	X(SQL_ACT_SET, "UPDATE outbox_detour SET state = ?5, why = ?6, next_attempt_at = ?7,"      \
		" last_status_at = ?3, reason = ?4, n = NULL, ready_at = coalesce(?7, ready_at)"   \
		" WHERE target = ?1 AND seq = ?2 AND lane = ?8")                                   \
	X(SQL_ACT_ADD, "INSERT INTO outbox_detour (target, seq, id, key, lane, state, why,"        \
		" next_attempt_at, last_status_at, reason, ready_at)"                              \
		" SELECT ?1, seq, id, key, ?8, ?5, ?6, ?7, ?3, ?4, ?7 FROM outbox_message"         \
		" WHERE seq = ?2")                                                                 \
	/* keys that wait: of state ?2, behind ?3, at ?4, ?5 hold */                              \
	X(SQL_KEYS_BLOCKED, "SELECT " DETOUR_COLUMNS ", coalesce(d.failing_since, d.last_status_at),"\
		" (SELECT count(*) FROM (SELECT 1 FROM outbox_detour p INDEXED BY outbox_detour_key" \
		"  WHERE p.target = ?1 AND p.key = d.key AND p.state = 'pending'"                  \
		"  AND p.seq > d.seq AND p.why = 'parked' LIMIT ?7))" DETOURS                      \
		" WHERE d.target = ?1 AND d.state = ?2 AND d.seq > ?3 AND d.key IS NOT NULL"       \
		" AND (d.state <> 'pending' OR d.why = 'retry')"                                   \
		" AND NOT EXISTS (SELECT 1 FROM outbox_detour b INDEXED BY outbox_detour_key"      \
		"  WHERE b.target = ?1 AND b.key = d.key AND b.state = 'pending' AND b.seq < d.seq"\
		"  AND NOT (b.why = 'deferred' AND b.next_attempt_at > ?4))"                       \
		" AND NOT EXISTS (SELECT 1 FROM outbox_detour b INDEXED BY outbox_detour_key"      \
		"  WHERE b.target = ?1 AND b.key = d.key AND b.state = 'sending' AND b.seq < d.seq)"\
		" AND NOT (?5 AND EXISTS (SELECT 1 FROM outbox_detour b INDEXED BY outbox_detour_key"\
		"  WHERE b.target = ?1 AND b.key = d.key AND b.state = 'failed' AND b.seq < d.seq))"\
		" ORDER BY d.seq LIMIT ?6")                                                        \
	/* redaction: who says so may change one message */                                        \
	X(SQL_REDACT_LOOK, "SELECT seq, key, payload IS '" REDACTED "' AND headers IS NULL"        \
		" AND subject IS NULL AND (key IS NULL OR key GLOB 'redacted-*')"                  \
		" FROM outbox_message WHERE id = ?1")                                              \
	X(SQL_REDACT_MESSAGE, "UPDATE outbox_message SET payload = '" REDACTED "',"                \
		" payload_bin = NULL, headers = NULL, subject = NULL, content_type = NULL,"        \
		" key = CASE WHEN key IS NOT NULL THEN ?2 END WHERE seq = ?1")                     \
	X(SQL_REDACT_DETOUR, "UPDATE outbox_detour SET last_error = NULL, dead_reason = NULL,"     \
		" key = CASE WHEN key IS NOT NULL THEN ?3 END WHERE target = ?1 AND seq = ?2")     \
	X(SQL_REDACT_AUDIT, "UPDATE outbox_audit SET detail = NULL WHERE id = ?1")                 \
	X(SQL_REDACT_AMENDED, "DELETE FROM outbox_amended WHERE seq = ?1")                         \
	X(SQL_SECURE_DELETE, "PRAGMA secure_delete = ON")                                          \
	/* corrections: what it was is kept, or the log refuses */                                 \
	X(SQL_AMEND_KEEP, "INSERT INTO outbox_amended (seq, n, at, actor, reason, content_type,"   \
		" headers, payload, payload_bin) SELECT seq, (SELECT coalesce(max(n), 0) + 1"      \
		" FROM outbox_amended WHERE seq = ?1), ?2, ?3, ?4, content_type, headers, payload,"\
		" payload_bin FROM outbox_message WHERE seq = ?1")                                 \
	X(SQL_AMEND_MESSAGE, "UPDATE outbox_message SET content_type = ?2, headers = ?3,"          \
		" payload = ?4, payload_bin = ?5 WHERE seq = ?1")                                  \
	/* it is here, or was, only because it failed elsewhere */                                 \
	X(SQL_AMEND_DEAD, "SELECT EXISTS (SELECT 1 FROM outbox_detour d"                           \
		" WHERE d.target = ?1 AND d.seq = ?2 AND d.dead_target IS NOT NULL)")              \
	X(SQL_AMEND_PARKED, "SELECT count(*) FROM (SELECT 1 FROM outbox_detour"                    \
		" INDEXED BY outbox_detour_key WHERE target = ?1 AND key = ?2"                     \
		" AND state = 'pending' AND seq > ?3 AND why = 'parked' LIMIT ?4)")                \
	X(SQL_AMENDED_COUNT, "SELECT count(*) FROM outbox_amended"                                 \
		" WHERE seq = (SELECT seq FROM outbox_message WHERE id = ?1)")                     \
	X(SQL_AMENDED_OF, "SELECT at, actor, reason, content_type, headers, payload, payload_bin"  \
		" FROM outbox_amended WHERE seq = (SELECT seq FROM outbox_message WHERE id = ?1)"  \
		" ORDER BY n")                                                                     \
	/* stats */                                                                                \
	X(SQL_STATS_MESSAGES, "SELECT count(*) FROM (SELECT id FROM outbox_message LIMIT ?1)")     \
	X(SQL_STATS_PENDING, "SELECT w.column1, (SELECT count(*) FROM (SELECT 1"                   \
		" FROM outbox_detour d INDEXED BY outbox_detour_why"                               \
		" WHERE d.target = ?1 AND d.state = 'pending' AND d.why = w.column1 LIMIT ?2))"    \
		" FROM (VALUES ('retry'), ('deferred'), ('parked')) w")                            \
	X(SQL_STATS_COUNT, "SELECT count(*) FROM (SELECT 1 FROM outbox_detour"                     \
		" WHERE target = ?1 AND state = ?2 LIMIT ?3)")                                     \
	/* ready_at NULL: since the commit, so the first is the oldest */                          \
	X(SQL_STATS_OLDEST, "SELECT min(t) FROM (SELECT (SELECT m.created_at FROM outbox_message m"\
		"  WHERE m.seq = (SELECT d.seq FROM outbox_detour d INDEXED BY outbox_detour_ready"\
		"   WHERE d.target = ?1 AND d.ready_at IS NULL AND d.state IN ('pending', 'sending')"\
		"   AND NOT (d.state = 'pending' AND d.why = 'deferred' AND d.next_attempt_at > ?2)"\
		"   ORDER BY d.seq LIMIT 1)) AS t UNION ALL SELECT (SELECT d.ready_at"             \
		"  FROM outbox_detour d INDEXED BY outbox_detour_ready WHERE d.target = ?1"        \
		"  AND d.ready_at <= ?2 AND d.state IN ('pending', 'sending')"                     \
		"  ORDER BY d.ready_at LIMIT 1))")                                                 \
	X(SQL_STATS_OUTAGE, "SELECT outage, outage_since FROM outbox_worker"                       \
		" WHERE target = ?1 AND alive_until > ?2 AND outage IS NOT NULL"                   \
		" ORDER BY outage_since LIMIT 1")                                                  \
	X(SQL_STATS_UNSERVED, "SELECT u.target, u.since, u.why FROM outbox_unserved u"             \
		" WHERE u.alive_until > ?1 ORDER BY u.target, u.since, u.owner")                   \
	X(SQL_PURGE_UNSTARTED, "SELECT u.target FROM outbox_unserved u WHERE u.alive_until > ?1"   \
		" AND NOT EXISTS (SELECT 1 FROM outbox_target t WHERE t.name = u.target)"          \
		" ORDER BY u.target LIMIT 1")                                                      \
	X(SQL_RECEIPT_FIRST, "SELECT min(n) FROM outbox_receipt WHERE target = ?1 AND lane = ?2")  \
	X(SQL_RECEIPT_AT, "SELECT settled_at, from_seq, pos, delivered, retried, delivered_total," \
		" retried_total FROM outbox_receipt WHERE target = ?1 AND lane = ?2 AND n = ?3")   \
	/* truncate, purge: only who says so may delete messages */                                \
	X(SQL_JANITOR_IN, "INSERT OR IGNORE INTO outbox_meta (name, value) VALUES ('janitor', 1)") \
	X(SQL_JANITOR_OUT, "DELETE FROM outbox_meta WHERE name = 'janitor'")                       \
	X(SQL_TRUNCATE_MESSAGES, "DELETE FROM outbox_message")                                     \
	X(SQL_TRUNCATE_DETOURS, "DELETE FROM outbox_detour")                                       \
	X(SQL_TRUNCATE_AMENDED, "DELETE FROM outbox_amended")                                      \
	X(SQL_PURGE_AMENDED, "DELETE FROM outbox_amended WHERE NOT EXISTS ("                       \
		"SELECT 1 FROM outbox_message m WHERE m.seq = outbox_amended.seq)")                \
	X(SQL_TRUNCATE_AUDIT, "DELETE FROM outbox_audit")                                          \
	X(SQL_TRUNCATE_RECEIPTS, "DELETE FROM outbox_receipt")                                     \
	X(SQL_TRUNCATE_LANES, "UPDATE outbox_lane SET owner = NULL, lease_until = 0, takeovers = 0,"\
		" refused = NULL, refused_at = NULL")                                              \
	X(SQL_TRUNCATE_WORKERS, "DELETE FROM outbox_worker")                                       \
	X(SQL_TRUNCATE_UNSERVED, "DELETE FROM outbox_unserved")                                    \
	X(SQL_TRUNCATE_SETTLED, "DELETE FROM outbox_meta WHERE name = 'settled'")                  \
	X(SQL_TRUNCATE_TARGETS, "UPDATE outbox_target SET start_seq = ?1")                         \
	X(SQL_PURGE_AGE, "SELECT seq, created_at FROM outbox_message WHERE seq > ?1"               \
		" ORDER BY seq LIMIT 1")                                                           \
	X(SQL_PURGE_DETOUR, "SELECT state, last_status_at FROM outbox_detour"                      \
		" WHERE target = ?1 AND seq = ?2")                                                 \
	X(SQL_PURGE_FAILED, "SELECT " LOOK_COLUMNS " FROM outbox_message m WHERE m.seq IN ("       \
		"SELECT d.seq FROM outbox_target t CROSS JOIN outbox_detour d"                     \
		" ON d.target = t.name AND d.state = 'failed' AND d.seq > ?1 AND d.seq <= ?2"      \
		" AND d.last_status_at < ?3) ORDER BY m.seq")                                      \
	X(SQL_PURGE_DROP_DETOUR, "DELETE FROM outbox_detour WHERE target = ?1 AND seq = ?2")       \
	X(SQL_PURGE_MESSAGE, "DELETE FROM outbox_message WHERE seq = ?1")                          \
	X(SQL_PURGE_WRITE_DOWN, "INSERT INTO outbox_detour (target, seq, id, key, lane, state,"    \
		" last_status_at, owner) SELECT ?1, seq, id, key, ?3, 'delivered', ?4, ?5"         \
		" FROM outbox_message WHERE seq = ?2")                                             \
	X(SQL_PURGE_BARE_ROWS, "SELECT " LOOK_COLUMNS " FROM outbox_message m"                     \
		" WHERE m.seq > ?2 AND m.seq <= ?3 AND NOT EXISTS ("                               \
		"SELECT 1 FROM outbox_detour d WHERE d.target = ?1 AND d.seq = m.seq)"             \
		" ORDER BY m.seq")                                                                 \
	X(SQL_LOG_FIRST, "SELECT min(seq) FROM outbox_message")                                    \
	/* the first receipt that must stay, or where this call's share ends */                    \
	X(SQL_PURGE_RECEIPT_STOP, "SELECT n FROM (SELECT n, pos, settled_at, row_number() OVER ()" \
		" AS i FROM (SELECT n, pos, settled_at FROM outbox_receipt"                        \
		"  WHERE target = ?1 AND lane = ?2 ORDER BY n LIMIT ?5 + 1))"                      \
		" WHERE pos >= ?3 OR settled_at >= ?4 OR i > ?5 ORDER BY n LIMIT 1")               \
	X(SQL_PURGE_RECEIPTS, "DELETE FROM outbox_receipt WHERE target = ?1 AND lane = ?2"         \
		" AND n < ?3")                                                                     \
	/* doctor */                                                                               \
	X(SQL_CHECK_JOURNAL, "PRAGMA journal_mode")                                                \
	X(SQL_CHECK_SYNCHRONOUS, "PRAGMA synchronous")                                             \
	X(SQL_CHECK_PAGES, "SELECT page_count * page_size FROM pragma_page_count,"                 \
		" pragma_page_size")                                                               \
	X(SQL_CHECK_INTEGRITY, "PRAGMA quick_check(1)")                                            \
	X(SQL_CHECK_TRIGGERS, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'"          \
		" AND tbl_name = 'outbox_message' AND name IN ('outbox_message_insert',"           \
		" 'outbox_message_immutable', 'outbox_message_keep')")                             \
	X(SQL_CHECK_JANITOR, "SELECT count(*) FROM outbox_meta WHERE name = 'janitor'")            \
	X(SQL_CHECK_COLUMNS, "SELECT group_concat(name, ', ') FROM pragma_table_info('outbox_message')" \
		" WHERE name NOT IN ('seq', 'id', 'type', 'key', 'kind', 'published', 'priority',"  \
		" 'created_at', 'event_time', 'due_at', 'expires_at', 'content_type', 'source',"   \
		" 'subject', 'topic', 'correlation_id', 'causation_id', 'traceparent', 'headers'," \
		" 'payload', 'payload_bin') HAVING count(*) > 0")                                  \
	X(SQL_CHECK_MAX_SEQ, "SELECT max(seq) FROM outbox_message")                                \
	X(SQL_CHECK_SEQUENCE, "SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'")     \
	/* rebase */                                                                               \
	X(SQL_NUMBERS_GONE, "SELECT " GONE_AFTER ", " GONE_TO ", EXISTS (SELECT 1"                 \
		" FROM outbox_message WHERE seq > " GONE_AFTER " AND seq <= " GONE_TO ")")         \
	X(SQL_REBASE_DETOURS_END, "SELECT max(seq) FROM outbox_detour")                            \
	X(SQL_REBASE_FORGET, "DELETE FROM outbox_detour WHERE NOT EXISTS (SELECT 1"                \
		" FROM outbox_message m WHERE m.seq = outbox_detour.seq AND m.id = outbox_detour.id)")\
	X(SQL_REBASE_SEQUENCE, "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'outbox_message'")\
	X(SQL_REBASE_SEQUENCE_ADD, "INSERT INTO sqlite_sequence (name, seq)"                       \
		" VALUES ('outbox_message', ?1)")                                                  \
	X(SQL_REBASE_DETOUR, "INSERT INTO outbox_detour (target, seq, id, key, lane, state, why,"  \
		" next_attempt_at, last_status_at) SELECT ?1, seq, id, key, ?3, 'pending', 'retry',"\
		" ?4, ?4 FROM outbox_message WHERE seq = ?2")                                      \
	X(SQL_REBASE_ACCEPT, "UPDATE outbox_lane SET refused = NULL, refused_at = NULL"            \
		" WHERE refused IS NOT NULL")
/* clang-format on */

#endif
