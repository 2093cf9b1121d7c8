/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_STATEMENTS_RELAY_H
#define STORE_SQLITE_STATEMENTS_RELAY_H

/* The statements of take_over() and settle_and_claim(): receipts, the log, detours. */

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

/* The number before the next message's; (GONE_AFTER, GONE_TO]: numbers.h. */
#define LOG_END                                                                                    \
	"SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'), 0)," \
	" coalesce((SELECT max(seq) FROM outbox_message), 0))"
#define GONE_AFTER "(SELECT value FROM outbox_meta WHERE name = 'gone_after')"
#define GONE_TO "(SELECT value FROM outbox_meta WHERE name = 'gone_to')"

/* A detour that holds back what is behind it in its key; ?now is the number of that parameter. */
#define NOT_DEFERRED(now) " AND NOT (why = 'deferred' AND next_attempt_at > " now ")"

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
		"  FROM outbox_detour INDEXED BY outbox_detour_due"                                \
		"  WHERE target = ?1 AND lane = ?2 AND state = 'pending'"                          \
		"  AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?3"                      \
		"  ORDER BY next_attempt_at, seq LIMIT ?6) d"                                      \
		" WHERE (d.key IS NULL OR NOT EXISTS (SELECT 1"                                    \
		"  FROM outbox_detour b INDEXED BY outbox_detour_key WHERE b.target = ?1 AND b.key = d.key AND b.state = 'pending'"                  \
		"  AND b.seq < d.seq AND NOT (b.why = 'deferred' AND b.next_attempt_at > ?3)))"    \
		" AND NOT (?5 AND d.key IS NOT NULL AND EXISTS (SELECT 1"                           \
		"  FROM outbox_detour f INDEXED BY outbox_detour_key"                              \
		"  WHERE f.target = ?1 AND f.key = d.key AND f.state = 'failed' AND f.seq < d.seq))"\
		" LIMIT ?4")                                                                       \
	/* are more than so many due? */                                                           \
	X(SQL_DETOUR_DUE_BEHIND, "SELECT 1 FROM outbox_detour INDEXED BY outbox_detour_due"        \
		" WHERE target = ?1 AND lane = ?2 AND state = 'pending'"                           \
		" AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?3"                       \
		" ORDER BY next_attempt_at, seq LIMIT 1 OFFSET ?4")                                \
	X(SQL_DETOUR_DUE_ANY, "SELECT seq, key, suspect"                                           \
		" FROM outbox_detour INDEXED BY outbox_detour_due"                                 \
		" WHERE target = ?1 AND lane = ?2 AND state = 'pending'"                           \
		" AND next_attempt_at IS NOT NULL AND next_attempt_at <= ?3"                       \
		" ORDER BY next_attempt_at, seq LIMIT ?4")                                         \
	/* behind the first of a key: may it come along (parked or due)? */                        \
	X(SQL_DETOUR_RUN, "SELECT seq, why = 'parked' OR next_attempt_at <= ?4, suspect"           \
		" FROM outbox_detour INDEXED BY outbox_detour_key"                                 \
		" WHERE target = ?1 AND key = ?2 AND state = 'pending' AND seq > ?3 AND seq < ?5"  \
		NOT_DEFERRED("?4") " ORDER BY seq")                                                \
	X(SQL_DETOUR_FAILED_AFTER, "SELECT min(seq)"                                               \
		" FROM outbox_detour INDEXED BY outbox_detour_key"                                 \
		" WHERE target = ?1 AND key = ?2 AND state = 'failed' AND seq > ?3")               \
	X(SQL_DETOUR_SENDING, "SELECT seq, suspect, why, attempts, failing_since, ready_at"        \
		" FROM outbox_detour INDEXED BY outbox_detour_sending"                             \
		" WHERE target = ?1 AND lane = ?2 AND state = 'sending' ORDER BY seq")             \
	X(SQL_DETOUR_BLOCKS, "SELECT EXISTS (SELECT 1"                                              \
		"  FROM outbox_detour INDEXED BY outbox_detour_key"                                \
		"  WHERE target = ?1 AND key = ?2 AND state = 'pending' AND seq < ?3"              \
		NOT_DEFERRED("?4") ") OR (?5 AND EXISTS (SELECT 1"                                 \
		"  FROM outbox_detour INDEXED BY outbox_detour_key"                                \
		"  WHERE target = ?1 AND key = ?2 AND state = 'failed' AND seq < ?3))")            \
	X(SQL_DETOUR_PROMOTE, "UPDATE outbox_detour SET next_attempt_at = ?3"                      \
		" WHERE target = ?1 AND next_attempt_at IS NULL AND seq ="                         \
		" (SELECT seq FROM outbox_detour INDEXED BY outbox_detour_key"                     \
		"  WHERE target = ?1 AND key = ?2"                                                 \
		"  AND state = 'pending'" NOT_DEFERRED("?3") " ORDER BY seq LIMIT 1)"              \
		" AND NOT (?4 AND EXISTS (SELECT 1 FROM outbox_detour f WHERE f.target = ?1"       \
		"  AND f.key = ?2 AND f.state = 'failed' AND f.seq < outbox_detour.seq))")         \
	X(SQL_DETOUR_UNPARK, "UPDATE outbox_detour SET next_attempt_at = ?2"                       \
		" WHERE target = ?1 AND state = 'pending' AND next_attempt_at IS NULL")            \
	X(SQL_DETOUR_KEY, "SELECT key FROM outbox_detour WHERE target = ?1 AND seq = ?2")          \
	X(SQL_DETOUR_EXISTS, "SELECT 1 FROM outbox_detour WHERE target = ?1 AND seq = ?2")         \
	/* but one that came as a dead letter while its log row was in this very claim */          \
	X(SQL_DETOUR_EXISTS_NOT_IN, "SELECT 1 FROM outbox_detour WHERE target = ?1 AND seq = ?2"   \
		" AND NOT (coalesce(dead_n = ?3, 0) AND state = 'pending')")                       \
	X(SQL_DETOUR_SUSPECT, "SELECT suspect FROM outbox_detour WHERE target = ?1 AND seq = ?2")  \
	X(SQL_DETOUR_NEXT_DUE, "SELECT next_attempt_at"                                            \
		" FROM outbox_detour INDEXED BY outbox_detour_due"                                 \
		" WHERE target = ?1 AND lane = ?2 AND state = 'pending'"                           \
		" AND next_attempt_at IS NOT NULL AND next_attempt_at > ?3"                        \
		" ORDER BY next_attempt_at LIMIT 1")                                               \
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

#endif
