/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settle and claim: one call of outbox_next_batch(), sql/postgres/straight.sql. A claim that was
 * simply delivered is described by four numbers; only other outcomes have an entry each. Rows that were read ahead
 * (readahead.h) are named by their first, last and count; the head of the answer says whether they became the claim.
 */
#include "base/cleanup.h"
#include "base/failpoint.h"
#include "core/lifecycle.h"
#include "store/postgres/message.h"
#include "store/postgres/ops.h"
#include "store/postgres/readahead.h"
#include "store/postgres/schema.h"

#include <stdlib.h>

/* Columns of outbox_claimed around those of the message. */
enum {
	CLAIMED_HEAD,
	CLAIMED_MESSAGE,
	CLAIMED_ATTEMPTS = CLAIMED_MESSAGE + COL_MESSAGE_END,
	CLAIMED_FAILING_SINCE,
	CLAIMED_FLAGS
};
enum { FLAG_DETOUR = 1, FLAG_SUSPECT = 2, FLAG_BLOCKED = 4, FLAG_DEAD = 8 };
enum {
	HEAD_N,
	HEAD_TOKEN,
	HEAD_NOW,
	HEAD_PAUSED,
	HEAD_STALE,
	HEAD_CAUTIOUS,
	HEAD_NEXT_DUE,
	HEAD_AHEAD,
	HEAD_END
};

/* The outcomes other than delivered, as arrays. */
struct outcomes {
	size_t count;
	int64_t last_kept; /* the last message that was not returned; 0: none */
	int64_t *seqs, *delays, *dues;
	int32_t *outcomes, *attempts;
	bool *suspects;
	const char **errors;
	void *memory;
};

static void outcomes_deinit(struct outcomes *o)
{
	free(o->memory);
}

static int outcomes_alloc(struct outcomes *o, size_t n, struct outbox_error *err)
{
	size_t each = 3 * sizeof(int64_t) + sizeof(char *) + 2 * sizeof(int32_t) + sizeof(bool);
	char *at = calloc(n ? n : 1, each);

	if (!at)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	o->memory = at;
	o->seqs = (int64_t *)(void *)at;
	o->delays = o->seqs + n;
	o->dues = o->delays + n;
	o->errors = (const char **)(void *)(o->dues + n);
	o->outcomes = (int32_t *)(void *)(o->errors + n);
	o->attempts = o->outcomes + n;
	o->suspects = (bool *)(void *)(o->attempts + n);
	return OUTBOX_OK;
}

static void outcomes_add(struct outcomes *o, const struct outbox_settlement *s)
{
	size_t i = o->count++;

	o->seqs[i] = s->seq;
	o->outcomes[i] = s->outcome;
	o->attempts[i] = s->attempts;
	o->delays[i] = s->delay;
	o->dues[i] = s->due_at;
	o->suspects[i] = s->suspect;
	o->errors[i] = s->error;
}

static int outcomes_init(struct outcomes *o, const struct outbox_settle_and_claim *request,
			 struct outbox_error *err)
{
	size_t others = 0;
	int r;

	for (size_t i = 0; i < request->n_settled; i++)
		others += request->settled[i].outcome != OUTBOX_OUT_DELIVERED;
	r = outcomes_alloc(o, others, err);
	for (size_t i = 0; i < request->n_settled && r == OUTBOX_OK; i++) {
		const struct outbox_settlement *s = &request->settled[i];

		if (s->outcome != OUTBOX_OUT_DELIVERED)
			outcomes_add(o, s);
		if (s->outcome != OUTBOX_OUT_RETURNED)
			o->last_kept = s->seq;
	}
	return r;
}

/* Tries that failed, as arrays. */
struct attempts {
	size_t count;
	int64_t *seqs, *ns;
	int32_t *attempts, *natives;
	const char **verdicts, **reasons, **answers;
	void *memory;
};

static void attempts_deinit(struct attempts *a)
{
	free(a->memory);
}

static int attempts_alloc(struct attempts *a, size_t n, struct outbox_error *err)
{
	char *at = calloc(n, 2 * sizeof(int64_t) + 3 * sizeof(char *) + 2 * sizeof(int32_t));

	if (!at)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	a->memory = at;
	a->seqs = (int64_t *)(void *)at;
	a->ns = a->seqs + n;
	a->verdicts = (const char **)(void *)(a->ns + n);
	a->reasons = a->verdicts + n;
	a->answers = a->reasons + n;
	a->attempts = (int32_t *)(void *)(a->answers + n);
	a->natives = a->attempts + n;
	return OUTBOX_OK;
}

/* n: the receipt that settles it. */
static void attempts_add(struct attempts *a, int64_t n, const struct outbox_settlement *s)
{
	size_t i = a->count++;

	a->seqs[i] = s->seq;
	a->ns[i] = n;
	a->attempts[i] = s->attempt;
	a->verdicts[i] = verdict_name(s->verdict);
	a->natives[i] = s->native;
	a->reasons[i] = s->error;
	a->answers[i] = s->answer;
}

/* The rows of the answer, or those read ahead. */
struct reader {
	struct pg_taker base;
	struct pg_store *store;
	struct pg_readahead *readahead;
	int ahead_count;
	struct outbox_arena *arena;
	struct outbox_claim claim;
	bool dead; /* some of them failed at another target */
};

static const char sql[] =
	"SELECT * FROM @outbox_next_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,"
	" $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";

/* What the store must know of rows read ahead if the lane has detours, as arrays. */
struct ahead {
	size_t count;
	int64_t *seqs, *sizes;
	const char **keys;
	void *memory;
};

static void ahead_deinit(struct ahead *a)
{
	free(a->memory);
}

static int ahead_init(struct ahead *a, const struct reader *reader, struct outbox_error *err)
{
	size_t n = reader->ahead_count && reader->readahead->keyed ? (size_t)reader->ahead_count : 0;
	const PGresult *rows = n ? reader->readahead->rows : NULL;

	a->memory = calloc(n ? n : 1, 2 * sizeof(int64_t) + sizeof(char *));
	if (!a->memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	a->count = n;
	a->seqs = a->memory;
	a->sizes = a->seqs + n;
	a->keys = (const char **)(void *)(a->sizes + n);
	for (int i = 0; i < (int)n; i++) {
		a->seqs[i] = pg_int(rows, i, COL_SEQ);
		a->sizes[i] = PQgetlength(rows, i, COL_PAYLOAD) +
			      PQgetlength(rows, i, COL_PAYLOAD_BIN) +
			      PQgetlength(rows, i, COL_HEADERS);
		a->keys[i] = PQgetisnull(rows, i, COL_KEY) ? NULL : pg_peek(rows, i, COL_KEY);
	}
	return OUTBOX_OK;
}

/* The request as arguments of the statement. */
static int make_arguments(const struct reader *reader, const struct outbox_settle_and_claim *a,
			  struct pg_params *ret_params, struct outbox_error *err)
{
	_cleanup_(outcomes_deinit) struct outcomes o = { 0 };
	_cleanup_(ahead_deinit) struct ahead keyed = { 0 };
	size_t n = a->n_settled;
	int ahead = reader->ahead_count, r = outcomes_init(&o, a, err);
	const PGresult *rows = ahead ? reader->readahead->rows : NULL;

	if (r == OUTBOX_OK)
		r = ahead_init(&keyed, reader, err);
	if (r != OUTBOX_OK)
		return r;
	if (!pg_params_init(ret_params,
			    ARGS(ARG_TEXT(a->target), ARG_INT4(a->lane), ARG_TEXT(a->owner),
				 ARG_INT8(a->n), ARG_INT8(a->fence_token), ARG_INT8(a->new_token),
				 ARG_INT8(a->route_version), ARG_INT8((int64_t)a->max_messages),
				 ARG_INT8((int64_t)a->max_bytes), pg_now(reader->store),
				 ARG_INT8(ahead), ARG_INT8(ahead ? pg_int(rows, 0, COL_SEQ) : 0),
				 ARG_INT8(ahead ? pg_int(rows, ahead - 1, COL_SEQ) : 0),
				 ARG_INT4((int64_t)n), ARG_INT8(n ? a->settled[0].seq : 0),
				 ARG_INT8(n ? a->settled[n - 1].seq : 0), ARG_INT8(o.last_kept),
				 ARG_ARRAY(PG_INT8S, o.seqs, o.count),
				 ARG_ARRAY(PG_INT4S, o.outcomes, o.count),
				 ARG_ARRAY(PG_INT4S, o.attempts, o.count),
				 ARG_ARRAY(PG_INT8S, o.delays, o.count),
				 ARG_ARRAY(PG_TIMES, o.dues, o.count),
				 ARG_ARRAY(PG_BOOLS, o.suspects, o.count),
				 ARG_ARRAY(PG_TEXTS, o.errors, o.count),
				 ARG_ARRAY(PG_INT8S, keyed.seqs, keyed.count),
				 ARG_ARRAY(PG_TEXTS, keyed.keys, keyed.count),
				 ARG_ARRAY(PG_INT8S, keyed.sizes, keyed.count))))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

/* What a claim knows of a message besides itself. */
static void load_delivery(const PGresult *rows, int row, struct outbox_claimed *item)
{
	int64_t flags = pg_int(rows, row, CLAIMED_FLAGS);

	if (!PQgetisnull(rows, row, CLAIMED_HEAD))
		(void)pg_ints(rows, row, CLAIMED_HEAD, &item->ready_at, 1);
	item->attempts = (int)pg_int(rows, row, CLAIMED_ATTEMPTS);
	item->failing_since = pg_time(rows, row, CLAIMED_FAILING_SINCE);
	item->detour = flags & FLAG_DETOUR;
	item->suspect = flags & FLAG_SUSPECT;
	item->blocked = flags & FLAG_BLOCKED;
	if (item->blocked) /* empty and not there are not the same */
		item->message.data = NULL;
}

/* The next message of a claim: of the n rows of the answer, or of the first `ahead` rows that were read ahead, whichever
 * comes first in the log. One that is in both is blocked: the answer has it without its payload. */
struct merge {
	const PGresult *rows, *ahead_rows;
	int n, ahead, row, ahead_row;
};

static struct pg_row merge_next(struct merge *m)
{
	int64_t answered =
		m->row < m->n ? pg_int(m->rows, m->row, CLAIMED_MESSAGE + COL_SEQ) : INT64_MAX;
	int64_t read =
		m->ahead_row < m->ahead ? pg_int(m->ahead_rows, m->ahead_row, COL_SEQ) : INT64_MAX;

	m->ahead_row += read <= answered;
	if (read < answered)
		return (struct pg_row){ m->ahead_rows, m->ahead_row - 1, 0 };
	return (struct pg_row){ m->rows, m->row++, CLAIMED_MESSAGE };
}

static int load_rows(struct reader *reader, struct merge *m, struct outbox_error *err)
{
	struct outbox_claim *claim = &reader->claim;
	const char *source = outbox_arena_text(reader->arena, reader->store->source);
	size_t most = (size_t)m->n + (size_t)m->ahead;
	int r = OUTBOX_OK;

	claim->items = outbox_arena_alloc(reader->arena, most * sizeof(*claim->items));
	if (!source || !claim->items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the messages asked for");
	while (r == OUTBOX_OK && (m->row < m->n || m->ahead_row < m->ahead)) {
		struct pg_row row = merge_next(m);
		struct outbox_claimed *item = &claim->items[claim->count];

		r = pg_message_load(&row, reader->arena, source, !claim->count, item, err);
		if (r == OUTBOX_OK && claim->count && item->seq <= item[-1].seq)
			r = outbox_fail(err, OUTBOX_EPROTO,
					"outbox_next_batch() gave messages out of order");
		if (r == OUTBOX_OK && row.result == m->rows) {
			load_delivery(m->rows, row.row, item);
			reader->dead |= (pg_int(m->rows, row.row, CLAIMED_FLAGS) & FLAG_DEAD) != 0;
		}
		claim->count++;
	}
	return r;
}

/* All rows but the last are messages; the last is the head. */
static int read_claim(struct reader *reader, const PGresult *rows, struct outbox_error *err)
{
	int n = PQntuples(rows) - 1;
	int64_t head[HEAD_END] = { 0 };

	if (n < 0 || pg_ints(rows, n, CLAIMED_HEAD, head, HEAD_END) != HEAD_END)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_next_batch() gave no head");
	reader->claim = (struct outbox_claim){
		.n = head[HEAD_N],
		.fence_token = head[HEAD_TOKEN],
		.store_now = head[HEAD_NOW],
		.paused = head[HEAD_PAUSED],
		.stale_route = head[HEAD_STALE],
		.cautious = head[HEAD_CAUTIOUS],
		.next_due = head[HEAD_NEXT_DUE],
	};
	if (head[HEAD_AHEAD] < 0 || head[HEAD_AHEAD] > reader->ahead_count)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "outbox_next_batch() claimed rows that it was not given");
	if (reader->ahead_count && !head[HEAD_AHEAD])
		pg_readahead_in_vain(reader->readahead);
	if (!n && !head[HEAD_AHEAD])
		return OUTBOX_OK;
	return load_rows(reader,
			 &(struct merge){ .rows = rows,
					  .n = n,
					  .ahead_rows =
						  head[HEAD_AHEAD] ? reader->readahead->rows : NULL,
					  .ahead = (int)head[HEAD_AHEAD] },
			 err);
}

static int take_claim(struct pg_taker *taker, PGresult *rows, struct outbox_error *err)
{
	int r = read_claim((struct reader *)taker, rows, err);

	PQclear(rows);
	return r;
}

/* Where they failed before. Asked for only when there are any: then the claim is made already, and if this
 * look fails, the whole request is repeated and finds it. */
static int load_dead(struct reader *reader, const char *target, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	struct outbox_claim *claim = &reader->claim;
	int64_t *seqs = outbox_arena_alloc(reader->arena, claim->count * sizeof(*seqs));
	int at = 0, r;

	if (!seqs)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the messages asked for");
	for (size_t i = 0; i < claim->count; i++)
		seqs[i] = claim->items[i].seq;
	r = pg_op(reader->store, PG_READ, "SELECT * FROM @outbox_dead($1, $2)",
		  ARGS(ARG_TEXT(target), ARG_ARRAY(PG_INT8S, seqs, claim->count)), &rows, err);
	for (size_t i = 0; r == OUTBOX_OK && i < claim->count && at < PQntuples(rows); i++) {
		struct outbox_claimed *item = &claim->items[i];

		if (item->seq != pg_int(rows, at, 0))
			continue;
		item->dead_target = outbox_arena_text(reader->arena, pg_peek(rows, at, 1));
		if (!PQgetisnull(rows, at, 2))
			item->dead_reason = outbox_arena_text(reader->arena, pg_peek(rows, at, 2));
		item->dead_attempts = (int)pg_int(rows, at, 3);
		item->dead_at = pg_time(rows, at, 4);
		at++;
	}
	return r;
}

/* Tries that failed, of all requests: rows of the history, in the same transaction. */
static int make_attempts(const struct outbox_settle_and_claim *requests, size_t count,
			 struct pg_around *ret_around, struct outbox_error *err)
{
	_cleanup_(attempts_deinit) struct attempts a = { 0 };
	size_t most = 0;
	int r;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < requests[i].n_settled; k++)
			most += requests[i].settled[k].attempt > 0;
	if (!most)
		return OUTBOX_OK;
	r = attempts_alloc(&a, most, err);
	if (r != OUTBOX_OK)
		return r;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < requests[i].n_settled; k++)
			if (requests[i].settled[k].attempt > 0)
				attempts_add(&a, requests[i].n + 1, &requests[i].settled[k]);
	if (!pg_params_init(&ret_around->last_params,
			    ARGS(ARG_TEXT(requests[0].target), ARG_ARRAY(PG_INT8S, a.seqs, a.count),
				 ARG_ARRAY(PG_INT8S, a.ns, a.count),
				 ARG_ARRAY(PG_INT4S, a.attempts, a.count),
				 ARG_ARRAY(PG_TEXTS, a.verdicts, a.count),
				 ARG_ARRAY(PG_INT4S, a.natives, a.count),
				 ARG_ARRAY(PG_TEXTS, a.reasons, a.count),
				 ARG_ARRAY(PG_TEXTS, a.answers, a.count))))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	ret_around->last = "SELECT @outbox_add_attempts($1, $2, $3, $4, $5, $6, $7, $8)";
	return OUTBOX_OK;
}

static void around_deinit(struct pg_around *around)
{
	pg_params_deinit(&around->last_params);
}

/* All requests in one call. */
static int send_requests(struct pg_store *s, const struct outbox_settle_and_claim *requests,
			 size_t count, struct reader *readers, struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct pg_hot *hots = calloc(count, sizeof(*hots));
	_cleanup_(around_deinit) struct pg_around around = { 0 };
	size_t made = 0;
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);

	if (!hots)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (; r == OUTBOX_OK && made < count; made += r == OUTBOX_OK) {
		struct reader *reader = &readers[made];

		around.settles |= requests[made].n_settled > 0;
		reader->ahead_count = pg_readahead_count(reader->readahead, &requests[made]);
		hots[made].taker = &reader->base;
		hots[made].prefetch = pg_readahead_ask(reader->readahead, &requests[made]);
		r = make_arguments(reader, &requests[made], &hots[made].params, err);
	}
	if (r == OUTBOX_OK)
		r = make_attempts(requests, count, &around, err);
	if (r == OUTBOX_OK)
		return pg_hot_op(s, sql, hots, count, &around, err);
	while (made-- > 0)
		pg_params_deinit(&hots[made].params);
	return r;
}

int pg_settle_and_claim_lanes(struct outbox_store *store,
			      const struct outbox_settle_and_claim *requests, size_t count,
			      struct outbox_arena *const *arenas, struct outbox_claim *ret_claims,
			      struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	_cleanup_(cleanup_free) struct reader *readers = calloc(count, sizeof(*readers));
	int r;

	if (!readers)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		readers[i] = (struct reader){ .base.take = take_claim,
					      .store = s,
					      .readahead = pg_readahead_of(s, requests[i].lane),
					      .arena = arenas[i] };
	failpoint("before_commit");
	r = pg_prefetch_read(s, err);
	if (r == OUTBOX_OK)
		r = send_requests(s, requests, count, readers, err);
	failpoint("after_commit");
	for (size_t i = 0; i < count; i++)
		pg_readahead_done(readers[i].readahead, &requests[i],
				  r == OUTBOX_OK ? &readers[i].claim : NULL);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++)
		if (readers[i].dead)
			r = load_dead(&readers[i], requests[i].target, err);
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		ret_claims[i] = readers[i].claim;
		/* all are answered together: the time of the last one is nearest to that */
		ret_claims[i].store_now = readers[count - 1].claim.store_now;
	}
	return r;
}

int pg_settle_and_claim(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			struct outbox_arena *arena, struct outbox_claim *ret_claim,
			struct outbox_error *err)
{
	int r = pg_settle_and_claim_lanes(store, request, 1, &arena, ret_claim, err);

	return pg_note_refusal(pg_of(store), request->target, request->lane, r);
}

int pg_look(struct outbox_store *store, const struct outbox_look *look,
	    struct outbox_looked *ret_looked, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	int64_t work[OUTBOX_LANES_MAX];
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);
	size_t n;

	if (r == OUTBOX_OK)
		r = pg_look_op(s, "SELECT * FROM @outbox_lanes_with_work($1, $2, $3, $4, $5, $6)",
			       ARGS(ARG_TEXT(look->target), ARG_INT8(look->route_version),
				    ARG_ARRAY(PG_INT4S, look->lanes, look->count),
				    ARG_ARRAY(PG_INT8S, look->n, look->count),
				    ARG_ARRAY(PG_INT8S, look->fence_tokens, look->count), pg_now(s)),
			       &row, err);
	if (r != OUTBOX_OK)
		return r;
	ret_looked->store_now = pg_time(row, 0, 0);
	ret_looked->next_due = pg_time(row, 0, 1);
	n = pg_ints(row, 0, 2, work, OUTBOX_LANES_MAX);
	for (size_t i = 0; i < look->count; i++) {
		ret_looked->work[i] = false;
		for (size_t k = 0; k < n && k < OUTBOX_LANES_MAX; k++)
			ret_looked->work[i] |= work[k] == look->lanes[i];
	}
	return OUTBOX_OK;
}
