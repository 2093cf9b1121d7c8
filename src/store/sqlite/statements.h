/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_STATEMENTS_H
#define STORE_SQLITE_STATEMENTS_H

/*
 * Every statement of the driver but those of insert.c and of scripts, by name. Each is prepared once per connection,
 * when first used.
 * STATEMENTS_RELAY are those of take_over and settle_and_claim, STATEMENTS_LOOK those of operators' ops.
 */

/* In the order of enum message_column. */
#define MESSAGE_HEAD_COLUMNS \
	"m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.created_at"
#define MESSAGE_COLUMNS                                                                         \
	MESSAGE_HEAD_COLUMNS ", m.event_time, m.due_at, m.expires_at, m.content_type,"          \
			     " m.source, m.subject, m.topic, m.correlation_id, m.causation_id," \
			     " m.traceparent, m.headers, m.payload, m.payload_bin"

/* In the order of struct receipt. */
#define RECEIPT_COLUMNS                                                                \
	"n, token, settled_at, route_version, from_seq, pos, claim_end, claim_count,"  \
	" claim_detours, claim_seq, claim_last, takeovers, caution_end, caution_left," \
	" suspect_seq, delivered, retried, failed, parked, deferred, delivered_total," \
	" retried_total"

/* The number before the next message's; (GONE_AFTER, GONE_TO]: lane.h. */
#define LOG_END                                                                                    \
	"SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'), 0)," \
	" coalesce((SELECT max(seq) FROM outbox_message), 0))"
#define GONE_AFTER "(SELECT value FROM outbox_meta WHERE name = 'gone_after')"
#define GONE_TO "(SELECT value FROM outbox_meta WHERE name = 'gone_to')"

/* A detour that holds back what is behind it in its key; ?now is the number of that parameter. */
#define NOT_DEFERRED(now) " AND NOT (why = 'deferred' AND next_attempt_at > " now ")"

/* Failed attempts of the message ?1. */
#define ATTEMPTS_OF                                                              \
	" FROM outbox_target t CROSS JOIN outbox_attempt a ON a.target = t.name" \
	" AND a.seq = (SELECT m.seq FROM outbox_message m WHERE m.id = ?1)"

/* Of target ?1 and key ?2, in a state. */
#define DETOURS_OF_KEY(state)                              \
	" FROM outbox_detour INDEXED BY outbox_detour_key" \
	" WHERE target = ?1 AND key = ?2 AND state = '" state "'"
/* Of target ?1, lane ?2, due or not yet at ?3. */
#define DETOURS_DUE(when)                                                  \
	" FROM outbox_detour INDEXED BY outbox_detour_due"                 \
	" WHERE target = ?1 AND lane = ?2 AND state = 'pending'"           \
	" AND next_attempt_at IS NOT NULL AND next_attempt_at " when " ?3" \
	" ORDER BY next_attempt_at, seq"
/* Is there a detour b before detour d of the same key, in a state? */
#define EXISTS_BEFORE(state, and)                                                                \
	" EXISTS (SELECT 1 FROM outbox_detour b INDEXED BY outbox_detour_key"                    \
	" WHERE b.target = ?1 AND b.key = d.key AND b.state = '" state "' AND b.seq < d.seq" and \
		")"

/* clang-format off */
#define STATEMENTS_RELAY(X)                                                                 \
	X(SQL_RECEIPT_LAST, "SELECT " RECEIPT_COLUMNS " FROM outbox_receipt"                       \
		" WHERE target = ?1 AND lane = ?2 ORDER BY n DESC LIMIT 1")                        \
	X(SQL_RECEIPT_ADD, "INSERT INTO outbox_receipt (target, lane, owner, " RECEIPT_COLUMNS ")" \
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"  \
		" ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)")                                   \
	X(SQL_LANE_VIEW, "SELECT version, paused, hold, unordered, (" LOG_END "),"                 \
		" EXISTS (SELECT 1 FROM outbox_detour WHERE target = ?1 AND state = 'pending'),"    \
		" EXISTS (SELECT 1 FROM outbox_detour WHERE target = ?1 AND state = 'failed'),"     \
		" EXISTS (SELECT 1 FROM outbox_detour WHERE target = ?1 AND seq > ?2),"            \
		" " GONE_TO ", (SELECT m.seq FROM outbox_message m"                                \
		"  WHERE m.seq > " GONE_AFTER " AND m.seq <= " GONE_TO " LIMIT 1),"                \
		" (SELECT max(lane) + 1 FROM outbox_lane WHERE target = ?1),"                      \
		" (SELECT value FROM outbox_meta WHERE name = 'lanes'),"                           \
		" EXISTS (SELECT 1 FROM outbox_lane WHERE target = ?1 AND lane = ?3"                \
		"  AND refused IS NOT NULL)"                                                       \
		" FROM outbox_target WHERE name = ?1")                                             \
	X(SQL_LANE_REFUSED, "SELECT refused FROM outbox_lane WHERE target = ?1 AND lane = ?2")     \
	X(SQL_LANE_REFUSE, "UPDATE outbox_lane SET refused = ?3, refused_at = ?4"                  \
		" WHERE target = ?1 AND lane = ?2")                                                \
	X(SQL_NUMBERS_MARK, "UPDATE outbox_meta SET value = CASE name"                             \
		" WHEN 'gone_to' THEN max(value, ?1, (" LOG_END "))"                               \
		" ELSE coalesce((SELECT max(seq) FROM outbox_message), 0) END"                     \
		" WHERE name IN ('gone_to', 'gone_after')")                                        \
	X(SQL_LOG_ROWS, "SELECT " MESSAGE_COLUMNS " FROM outbox_message m"                         \
		" WHERE m.seq > ?1 AND m.seq <= ?2 ORDER BY m.seq")                                \
	X(SQL_LOG_HEADS, "SELECT " MESSAGE_HEAD_COLUMNS " FROM outbox_message m"                   \
		" WHERE m.seq > ?1 ORDER BY m.seq")                                                \
	/* due, and nothing before it in its key holds it back */                                  \
	X(SQL_DETOUR_DUE, "SELECT d.seq, d.key, d.suspect FROM (SELECT seq, key, suspect"          \
		DETOURS_DUE("<=") " LIMIT ?6) d WHERE (d.key IS NULL OR NOT"                       \
		EXISTS_BEFORE("pending", " AND NOT (b.why = 'deferred' AND b.next_attempt_at > ?3)") \
		") AND NOT (?5 AND d.key IS NOT NULL AND" EXISTS_BEFORE("failed", "") ") LIMIT ?4") \
	/* are more than so many due? */                                                           \
	X(SQL_DETOUR_DUE_BEHIND, "SELECT 1" DETOURS_DUE("<=") " LIMIT 1 OFFSET ?4")                \
	X(SQL_DETOUR_DUE_ANY, "SELECT seq, key, suspect" DETOURS_DUE("<=") " LIMIT ?4")            \
	/* behind the first of a key: may it come along (parked or due)? */                        \
	X(SQL_DETOUR_RUN, "SELECT seq, why = 'parked' OR next_attempt_at <= ?4, suspect"           \
		DETOURS_OF_KEY("pending") " AND seq > ?3 AND seq < ?5" NOT_DEFERRED("?4")          \
		" ORDER BY seq")                                                                   \
	X(SQL_DETOUR_FAILED_AFTER, "SELECT min(seq)" DETOURS_OF_KEY("failed") " AND seq > ?3")     \
	X(SQL_DETOUR_SENDING, "SELECT seq, suspect, why, attempts, failing_since, ready_at"        \
		" FROM outbox_detour INDEXED BY outbox_detour_sending"                             \
		" WHERE target = ?1 AND lane = ?2 AND state = 'sending' ORDER BY seq")             \
	X(SQL_DETOUR_BLOCKS, "SELECT EXISTS (SELECT 1" DETOURS_OF_KEY("pending") " AND seq < ?3"   \
		NOT_DEFERRED("?4") ") OR (?5 AND EXISTS (SELECT 1" DETOURS_OF_KEY("failed")        \
		" AND seq < ?3))")                                                                 \
	X(SQL_DETOUR_PROMOTE, "UPDATE outbox_detour SET next_attempt_at = ?3"                      \
		" WHERE target = ?1 AND next_attempt_at IS NULL AND seq = (SELECT seq"             \
		DETOURS_OF_KEY("pending") NOT_DEFERRED("?3") " ORDER BY seq LIMIT 1)"              \
		" AND NOT (?4 AND EXISTS (SELECT 1 FROM outbox_detour f WHERE f.target = ?1"       \
		"  AND f.key = ?2 AND f.state = 'failed' AND f.seq < outbox_detour.seq))")         \
	X(SQL_DETOUR_UNPARK, "UPDATE outbox_detour SET next_attempt_at = ?2"                       \
		" WHERE target = ?1 AND state = 'pending' AND next_attempt_at IS NULL")            \
	X(SQL_DETOUR_KEY, "SELECT key FROM outbox_detour WHERE target = ?1 AND seq = ?2")          \
	/* but one that came as a dead letter while its log row was in claim ?3, if one is given */ \
	X(SQL_DETOUR_EXISTS, "SELECT 1 FROM outbox_detour WHERE target = ?1 AND seq = ?2"   \
		" AND NOT (coalesce(dead_n = ?3, 0) AND state = 'pending')")                       \
	X(SQL_DETOUR_SUSPECT, "SELECT suspect FROM outbox_detour WHERE target = ?1 AND seq = ?2")  \
	X(SQL_DETOUR_NEXT_DUE, "SELECT next_attempt_at" DETOURS_DUE(">") " LIMIT 1")               \
	X(SQL_DETOUR_MESSAGE, "SELECT d.seq, d.id, m.type, d.key, m.kind, m.published, m.priority,"\
		" m.created_at, m.event_time, m.due_at, m.expires_at, m.content_type,"  \
		" m.source, m.subject, m.topic, m.correlation_id, m.causation_id, m.traceparent,"   \
		" m.headers, m.payload, m.payload_bin, d.attempts, d.failing_since, d.suspect,"    \
		" d.dead_target, d.dead_reason, d.dead_attempts, d.dead_at, d.ready_at"            \
		" FROM outbox_detour d LEFT JOIN outbox_message m ON m.seq = d.seq"                \
		" WHERE d.target = ?1 AND d.seq = ?2")                                             \
	X(SQL_DETOUR_SEND, "UPDATE outbox_detour SET state = 'sending', owner = ?3,"               \
		" last_status_at = ?4 WHERE target = ?1 AND seq = ?2")                             \
	X(SQL_DETOUR_RECLAIM, "UPDATE outbox_detour SET state = 'pending', why = 'retry',"         \
		" next_attempt_at = ?3, last_status_at = ?3"                                       \
		" WHERE target = ?1 AND lane = ?2 AND state = 'sending'")                          \
	/* settling: the same parameters in both */                                                \
	X(SQL_DETOUR_ADD, "INSERT INTO outbox_detour (target, seq, id, key, lane, state, why,"     \
		" attempts, next_attempt_at, failing_since, suspect, last_error, last_status_at,"  \
		" owner, n, ready_at) SELECT ?1, seq, id, key, ?14, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"   \
		" ?10, ?11, ?12, coalesce(?13, CASE WHEN due_at > created_at THEN due_at END)"     \
		" FROM outbox_message WHERE seq = ?2"                                              \
		/* it came as a dead letter while its log row was in flight */                     \
		" ON CONFLICT (target, seq) DO UPDATE SET state = excluded.state,"                 \
		" why = excluded.why, attempts = excluded.attempts,"                               \
		" next_attempt_at = excluded.next_attempt_at,"                                     \
		" failing_since = excluded.failing_since, suspect = excluded.suspect,"             \
		" last_error = excluded.last_error, last_status_at = excluded.last_status_at,"     \
		" owner = excluded.owner, n = excluded.n, ready_at = excluded.ready_at")           \
	X(SQL_DETOUR_SET, "UPDATE outbox_detour SET state = ?3, why = ?4, attempts = ?5,"          \
		" next_attempt_at = ?6, failing_since = ?7, suspect = ?8,"                         \
		" last_error = coalesce(?9, last_error), last_status_at = ?10, owner = ?11,"       \
		" n = coalesce(?12, n), ready_at = ?13 WHERE target = ?1 AND seq = ?2 AND lane = ?14")
/* clang-format on */

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
	X(SQL_LOOK_TARGETS, "SELECT name, version, start_seq, hold, unordered, paused, paused_by," \
		" paused_reason, coalesce(resumed_at, created_at) FROM outbox_target"              \
		" WHERE ?1 IS NULL OR name = ?1 ORDER BY name")                                    \
	X(SQL_LOOK_LANES, "SELECT lane, owner, lease_until, takeovers, (SELECT r.owner"            \
		" FROM outbox_receipt r WHERE r.target = l.target AND r.lane = l.lane"             \
		" ORDER BY r.n DESC LIMIT 1) FROM outbox_lane l WHERE target = ?1 ORDER BY lane")  \
	X(SQL_LOOK_COVER, "SELECT " RECEIPT_COLUMNS ", owner"                                      \
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
	X(SQL_TAIL_RECEIPTS, "SELECT " RECEIPT_COLUMNS ", number, target, lane, owner"             \
		" FROM outbox_receipt WHERE number > ?1 ORDER BY number")         \
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
	X(SQL_KEYS_BLOCKED, "SELECT " DETOUR_COLUMNS ", coalesce(d.failing_since, d.last_status_at)," \
		" (SELECT count(*) FROM (SELECT 1 FROM outbox_detour p INDEXED BY outbox_detour_key" \
		"  WHERE p.target = ?1 AND p.key = d.key AND p.state = 'pending'"                  \
		"  AND p.seq > d.seq AND p.why = 'parked' LIMIT ?7))" DETOURS                      \
		" WHERE d.target = ?1 AND d.state = ?2 AND d.seq > ?3 AND d.key IS NOT NULL"       \
		" AND (d.state <> 'pending' OR d.why = 'retry') AND NOT"                           \
		EXISTS_BEFORE("pending", " AND NOT (b.why = 'deferred' AND b.next_attempt_at > ?4)") \
		" AND NOT" EXISTS_BEFORE("sending", "") " AND NOT (?5 AND" EXISTS_BEFORE("failed", "") \
		") ORDER BY d.seq LIMIT ?6")                                                       \
	/* the log, to look for keys in it */                                                      \
	X(SQL_FIND_KEY, "SELECT seq, id, key FROM outbox_message WHERE seq > ?1 ORDER BY seq LIMIT ?2") \
	/* redaction: who says so may change one message, ?1; ?2 becomes its key, ?3 is its id */  \
	X(SQL_REDACT_LOOK, "SELECT seq, key, payload IS '" REDACTED "' AND headers IS NULL"        \
		" AND subject IS NULL AND (key IS NULL OR key GLOB 'redacted-*')"                  \
		" FROM outbox_message WHERE id = ?1")                                              \
	X(SQL_REDACT_MESSAGE, "UPDATE outbox_message SET payload = '" REDACTED "',"                \
		" payload_bin = NULL, headers = NULL, subject = NULL, content_type = NULL,"        \
		" key = CASE WHEN key IS NOT NULL THEN ?2 END WHERE seq = ?1")                     \
	X(SQL_REDACT_DETOURS, "UPDATE outbox_detour SET last_error = NULL, dead_reason = NULL,"     \
		" key = CASE WHEN key IS NOT NULL THEN ?2 END"                                     \
		" WHERE target IN (SELECT name FROM outbox_target) AND seq = ?1")                  \
	X(SQL_REDACT_AUDIT, "UPDATE outbox_audit SET detail = NULL WHERE id = ?3")                 \
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
	X(SQL_AMEND_PARKED, "SELECT count(*) FROM (SELECT 1" DETOURS_OF_KEY("pending")             \
		" AND seq > ?3 AND why = 'parked' LIMIT ?4)")                                      \
	X(SQL_AMENDED_COUNT, "SELECT count(*) FROM outbox_amended"                                 \
		" WHERE seq = (SELECT seq FROM outbox_message WHERE id = ?1)")                     \
	X(SQL_AMENDED_OF, "SELECT at, actor, reason, content_type, headers, payload, payload_bin"  \
		" FROM outbox_amended WHERE seq = (SELECT seq FROM outbox_message WHERE id = ?1)"  \
		" ORDER BY n")                                                                     \
	/* cancelled: a row of another message that had this number does not count */              \
	X(SQL_CANCELLED, "SELECT 1 FROM outbox_cancelled WHERE seq = ?1 AND id = ?2")              \
	X(SQL_CANCELLED_ADD, "INSERT OR REPLACE INTO outbox_cancelled (seq, id, at, actor, reason)"\
		" VALUES (?1, ?2, ?3, ?4, ?5)")                                                    \
	X(SQL_CANCELLED_FOR, "SELECT " LOOK_COLUMNS ", c.reason FROM outbox_cancelled c"           \
		" CROSS JOIN outbox_message m ON m.seq = c.seq AND m.id = c.id"                    \
		" WHERE NOT EXISTS (SELECT 1 FROM outbox_detour d WHERE d.target = ?1"             \
		"  AND d.seq = c.seq)")                                                            \
	/* the history: ?3 of the last ones stay, and the first */                                 \
	X(SQL_ATTEMPT_ADD, "INSERT INTO outbox_attempt (target, seq, n, at, attempt, verdict,"     \
		" native, reason, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")            \
	X(SQL_ATTEMPT_CUT, "DELETE FROM outbox_attempt WHERE target = ?1 AND seq = ?2 AND n <="    \
		" (SELECT n FROM outbox_attempt WHERE target = ?1 AND seq = ?2"                    \
		"  ORDER BY n DESC LIMIT 1 OFFSET ?3) AND n > (SELECT min(n) FROM outbox_attempt"  \
		"  WHERE target = ?1 AND seq = ?2)")                                               \
	X(SQL_ATTEMPT_COUNT, "SELECT count(*)" ATTEMPTS_OF)                                        \
	X(SQL_ATTEMPTS_OF, "SELECT a.target, a.at, a.attempt, a.verdict, a.native, a.reason,"      \
		" a.answer" ATTEMPTS_OF " ORDER BY a.target, a.n")                                 \
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
	X(SQL_RECEIPT_AT, "SELECT " RECEIPT_COLUMNS " FROM outbox_receipt"                         \
		" WHERE target = ?1 AND lane = ?2 AND n = ?3")                                     \
	/* purge */                                                                                \
	X(SQL_PURGE_AMENDED, "DELETE FROM outbox_amended WHERE NOT EXISTS ("                       \
		"SELECT 1 FROM outbox_message m WHERE m.seq = outbox_amended.seq)")                \
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
		" 'outbox_message_immutable', 'outbox_message_keep', 'outbox_message_replace')") \
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
		" 'outbox_amended')) OR (?1 < 4 AND name IN ('outbox_attempt',"                \
		" 'outbox_cancelled')) OR (?1 < 5 AND name = 'outbox_route_header') LIMIT 1")                                                   \
	/* targets */                                                                              \
	X(SQL_TARGET_GET, "SELECT version, route, hold, unordered, paused, dead_letter, band_of,"  \
		" coalesce(resumed_at, created_at) FROM outbox_target WHERE name = ?1")            \
	X(SQL_TARGET_DEAD, "UPDATE outbox_target SET dead_letter = ?2 WHERE name = ?1")            \
	X(SQL_TARGET_DEAD_OF, "SELECT name FROM outbox_target WHERE dead_letter = ?1"              \
		" ORDER BY name LIMIT 1")                                                          \
	X(SQL_LOG_SINCE, "SELECT seq FROM outbox_message WHERE seq > ?2 AND created_at >= ?1"      \
		" ORDER BY seq LIMIT 1")                                                           \
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
	X(SQL_ROUTE_HEADERS, "SELECT name || '=' || glob FROM outbox_route_header"                 \
		" WHERE target = ?1 AND version = ?2")                                             \
	X(SQL_ROUTE_HEADER_PUT, "INSERT OR IGNORE INTO outbox_route_header"                        \
		" (target, version, name, glob) VALUES (?1, ?2, ?3, ?4)")                          \
	X(SQL_ROUTES_BY_HEADERS, "SELECT DISTINCT h.target, h.version FROM outbox_route_header h"  \
		" CROSS JOIN outbox_target t ON t.name = h.target")                                \
	X(SQL_HEADERS_OF, "SELECT headers FROM outbox_message WHERE seq = ?1")                     \
	X(SQL_BAND_GET, "SELECT above, bands FROM outbox_band WHERE target = ?1 AND version = ?2"  \
		" ORDER BY above")                                                                 \
	X(SQL_BAND_PUT, "INSERT INTO outbox_band (target, version, above, bands)"                  \
		" VALUES (?1, ?2, ?3, ?4)")                                                        \
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
	/* the inbox: 0: none, 1: ours, 2: something else */                                       \
	X(SQL_INBOX_KIND, "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM sqlite_master"              \
		" WHERE name = 'outbox_inbox') THEN 0 WHEN (SELECT count(*)"                       \
		" FROM pragma_table_info('outbox_inbox') WHERE (name = 'consumer' AND pk = 1)"     \
		" OR (name = 'id' AND pk = 2) OR name = 'received_at') = 3 THEN 1 ELSE 2 END")     \
	X(SQL_INBOX_OLDEST, "SELECT received_at FROM outbox_inbox ORDER BY received_at LIMIT 1")   \
	X(SQL_INBOX_LIST, "SELECT consumer, id, received_at FROM outbox_inbox"                     \
		" WHERE received_at < ?1 AND (?2 IS NULL OR consumer = ?2) AND received_at >= ?3"  \
		" AND (received_at, consumer, id) > (?3, ?4, ?5)"                                  \
		" ORDER BY received_at, consumer, id LIMIT ?6")                                    \
	X(SQL_INBOX_COUNT, "SELECT count(*) FROM (SELECT 1 FROM outbox_inbox"                      \
		" WHERE received_at < ?1 AND (?2 IS NULL OR consumer = ?2) LIMIT ?3)")             \
	X(SQL_INBOX_PRUNE, "DELETE FROM outbox_inbox WHERE (consumer, id) IN (SELECT consumer, id" \
		" FROM outbox_inbox WHERE received_at < ?1 AND (?2 IS NULL OR consumer = ?2)"      \
		" ORDER BY received_at LIMIT ?3)")                                                 \
	/* audit */                                                                                \
	X(SQL_AUDIT_ADD, "INSERT INTO outbox_audit"                                                \
		" (at, actor, action, target, id, seq, reason, detail)"                            \
		" VALUES (?1, ?2, ?3, ?4, ?5,"                                                     \
		" (SELECT seq FROM outbox_message WHERE id = ?5), ?6, ?7)")                        \
	X(SQL_AUDIT_OF, "SELECT number, at, actor, action, target, id, reason, detail"             \
		" FROM outbox_audit WHERE id = ?2 ORDER BY number DESC LIMIT ?1")                  \
	X(SQL_AUDIT_ALL, "SELECT number, at, actor, action, target, id, reason, detail"            \
		" FROM outbox_audit ORDER BY number DESC LIMIT ?1")
/* clang-format on */

/* Of SQL_TARGET_GET. */
enum target_column {
	TARGET_VERSION, /* never 0 */
	TARGET_ROUTE,
	TARGET_HOLD,
	TARGET_UNORDERED,
	TARGET_PAUSED,
	TARGET_DEAD_LETTER,
	TARGET_BAND_OF,
	TARGET_OPEN_SINCE,
};

#define STATEMENT_NAME(name, text) name,
enum sqlite_statement {
	STATEMENTS_BASE(STATEMENT_NAME) STATEMENTS_RELAY(STATEMENT_NAME)
		STATEMENTS_LOOK(STATEMENT_NAME) DB_STATEMENTS
};
#undef STATEMENT_NAME

#endif
