/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is read ahead is exactly what the next claim would read. Behind a receipt whose window goes on, the next
 * claim is the messages of the lane and the routing that are visible in the window's snapshots, from where this claim
 * ends. The receipt, which never changes, says all of that; and what was visible when the window was made is visible
 * to every later statement. So nothing has to be compared row by row: that receipt is still the last one, with
 * the same token, and the lane has no detours, or none in the keys of these rows, which it is told then.
 * outbox_next_batch() looks at both, with the lane locked.
 *
 * Not in the transaction of the claim: the lane must not stay locked, nor the commit wait, while rows are written to
 * somebody who is busy with a broker. What does not fit into the sockets' buffers waits in the server for the next
 * call, in the middle of a statement that reads the log, hence the small budget.
 */
#include "store/postgres/readahead.h"

#include "store/postgres/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For the rows of one lane. A larger message is left to the claim, which has a budget for bytes. */
#define AHEAD_BYTES ((size_t)1 << 20)
/* After one that was too large, or rows that were not claimed. */
#define AHEAD_REST 16

/*
 * Snapshots by way of text: taken out of a row they are packed, and would be unpacked for every message. The row of
 * the receipt is made once (OFFSET 0), the log read in its order behind it.
 */
static const char readahead_sql[] =
	"SELECT m.* FROM (SELECT greatest(r.claim_end, r.floor, r.prev_seq) AS low,"
	" @outbox_reach(greatest(r.claim_end, r.floor), r.prev_seq, r.cur_seq, @outbox_scan_max()) AS high,"
	" r.prev::text::pg_snapshot AS prev, r.cur::text::pg_snapshot AS cur,"
	" (SELECT value::integer FROM @outbox_meta WHERE name = 'lanes') AS lanes,"
	" o.types, o.kind, coalesce(o.published_only, false) AS published_only, o.bands, o.headers"
	" FROM @outbox_receipt r LEFT JOIN @outbox_route o ON o.target = $1 AND o.version = $5"
	" WHERE r.target = $1 AND r.lane = $2 AND r.n = $3 AND r.token = $4"
	" AND r.claim_count > 0 AND r.claim_end < r.cur_seq OFFSET 0) w"
	" CROSS JOIN LATERAL (SELECT " MESSAGE_ATTRIBUTES ","
	" CASE WHEN octet_length(m.headers) <= $7 THEN m.headers END AS headers,"
	" CASE WHEN octet_length(m.payload) + coalesce(octet_length(m.headers), 0) <= $7"
	" THEN m.payload END AS payload,"
	" CASE WHEN octet_length(m.payload_bin) + coalesce(octet_length(m.headers), 0) <= $7"
	" THEN m.payload_bin END AS payload_bin"
	" FROM @outbox_stretch(w.low, w.high, w.prev, w.cur, $2, w.lanes, w.types, w.kind,"
	" w.published_only, false, w.bands, w.headers) m ORDER BY m.seq LIMIT $6) m";

static void take_rows(struct pg_prefetch *prefetch, PGresult *rows);

struct pg_readahead *pg_readahead_of(struct pg_store *s, int lane)
{
	if (!s->readahead)
		s->readahead = calloc(OUTBOX_LANES_MAX, sizeof(*s->readahead));
	if (!s->readahead || lane < 0 || lane >= OUTBOX_LANES_MAX)
		return NULL;
	s->readahead[lane].prefetch.sql = readahead_sql;
	s->readahead[lane].prefetch.take = take_rows;
	return &s->readahead[lane];
}

static void forget_rows(struct pg_readahead *ahead)
{
	PQclear(ahead->rows);
	ahead->rows = NULL;
	ahead->count = 0;
	ahead->bytes = 0;
}

void pg_readahead_free(struct pg_store *s)
{
	for (int i = 0; s->readahead && i < OUTBOX_LANES_MAX; i++)
		forget_rows(&s->readahead[i]);
	free(s->readahead);
}

/* With one that was too large to come along all are left to the claim: a part would make a small one. */
static void take_rows(struct pg_prefetch *prefetch, PGresult *rows)
{
	struct pg_readahead *ahead = (struct pg_readahead *)prefetch;

	forget_rows(ahead);
	ahead->rows = rows;
	for (int row = 0; row < PQntuples(rows); row++) {
		if (PQgetisnull(rows, row, COL_PAYLOAD) && PQgetisnull(rows, row, COL_PAYLOAD_BIN)) {
			forget_rows(ahead);
			ahead->rest = AHEAD_REST;
			return;
		}
		ahead->bytes += (size_t)PQgetlength(rows, row, COL_PAYLOAD) +
				(size_t)PQgetlength(rows, row, COL_PAYLOAD_BIN) +
				(size_t)PQgetlength(rows, row, COL_HEADERS);
	}
	ahead->count = PQntuples(rows);
}

int pg_readahead_count(const struct pg_readahead *ahead,
		       const struct outbox_settle_and_claim *request)
{
	if (!ahead || !ahead->count || ahead->n != request->n ||
	    ahead->fence_token != request->fence_token ||
	    strcmp(ahead->target, request->target) != 0)
		return 0;
	/* What was read for another limit or by another route is not what is asked for now. */
	if (ahead->max != request->max_messages || ahead->bytes > request->max_bytes ||
	    ahead->route_version != request->route_version)
		return 0;
	return ahead->count;
}

struct pg_prefetch *pg_readahead_ask(struct pg_readahead *ahead,
				     const struct outbox_settle_and_claim *request)
{
	size_t max = request->max_messages;

	if (!ahead || !ahead->full || max < 2)
		return NULL;
	if (ahead->rest > 0) {
		ahead->rest--;
		return NULL;
	}
	if (!pg_params_init(&ahead->prefetch.params,
			    ARGS(ARG_TEXT(request->target), ARG_INT4(request->lane),
				 ARG_INT8(request->n + 1), ARG_INT8(request->new_token),
				 ARG_INT8(request->route_version), ARG_INT8((int64_t)max),
				 ARG_INT4((int64_t)(AHEAD_BYTES / max)))))
		return NULL;
	ahead->asked = true;
	return &ahead->prefetch;
}

void pg_readahead_in_vain(struct pg_readahead *ahead)
{
	if (ahead->keyed)
		ahead->rest = AHEAD_REST;
	ahead->keyed = !ahead->keyed;
}

void pg_readahead_done(struct pg_readahead *ahead, const struct outbox_settle_and_claim *request,
		       const struct outbox_claim *claim)
{
	if (!ahead)
		return;
	if (ahead->asked)
		pg_params_deinit(&ahead->prefetch.params);
	ahead->asked = false;
	ahead->full = claim && claim->count == request->max_messages;
	forget_rows(ahead);
	if (!claim)
		return;
	ahead->n = claim->n;
	ahead->fence_token = claim->fence_token;
	ahead->max = request->max_messages;
	ahead->route_version = request->route_version;
	snprintf(ahead->target, sizeof(ahead->target), "%s", request->target);
}
