/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settle and claim: one call of outbox_settle_and_claim(), sql/postgres/settle_and_claim.sql. A claim that was
 * simply delivered is described by four numbers; only other outcomes have an entry each. Rows that were read ahead
 * (readahead.h) are named by their first, last and count; the head of the answer says whether they became the claim.
 */
#include "base/cleanup.h"
#include "base/failpoint.h"
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

static int send_request(struct reader *reader, const struct outbox_settle_and_claim *a,
			struct outbox_error *err)
{
	_cleanup_(outcomes_deinit) struct outcomes o = { 0 };
	size_t n = a->n_settled;
	int ahead = reader->ahead_count, r;
	const PGresult *rows = ahead ? reader->readahead->rows : NULL;

	r = reader->store->ready ? OUTBOX_OK : pg_schema_ready(reader->store, err);
	if (r == OUTBOX_OK)
		r = outcomes_init(&o, a, err);
	if (r != OUTBOX_OK)
		return r;
	return pg_hot_op(
		reader->store,
		"SELECT * FROM @outbox_settle_and_claim("
		"ROW($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)::@outbox_request,"
		" ROW($14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)::@outbox_outcomes)",
		ARGS(ARG_TEXT(a->target), ARG_INT4(a->lane), ARG_TEXT(a->owner), ARG_INT8(a->n),
		     ARG_INT8(a->fence_token), ARG_INT8(a->new_token), ARG_INT8(a->route_version),
		     ARG_INT8((int64_t)a->max_messages), ARG_INT8((int64_t)a->max_bytes),
		     pg_now(reader->store), ARG_INT8(ahead),
		     ARG_INT8(ahead ? pg_int(rows, 0, COL_SEQ) : 0),
		     ARG_INT8(ahead ? pg_int(rows, ahead - 1, COL_SEQ) : 0), ARG_INT4((int64_t)n),
		     ARG_INT8(n ? a->settled[0].seq : 0), ARG_INT8(n ? a->settled[n - 1].seq : 0),
		     ARG_INT8(o.last_kept), ARG_ARRAY(PG_INT8S, o.seqs, o.count),
		     ARG_ARRAY(PG_INT4S, o.outcomes, o.count),
		     ARG_ARRAY(PG_INT4S, o.attempts, o.count), ARG_ARRAY(PG_INT8S, o.delays, o.count),
		     ARG_ARRAY(PG_TIMES, o.dues, o.count), ARG_ARRAY(PG_BOOLS, o.suspects, o.count),
		     ARG_ARRAY(PG_TEXTS, o.errors, o.count)),
		&reader->base, pg_readahead_ask(reader->readahead, a), err);
}

static int load_rows(struct reader *reader, const PGresult *rows, int first, int n,
		     struct outbox_error *err)
{
	struct outbox_claim *claim = &reader->claim;
	const char *source = outbox_arena_text(reader->arena, reader->store->source);
	int r = OUTBOX_OK;

	claim->items = outbox_arena_alloc(reader->arena, (size_t)n * sizeof(*claim->items));
	if (!source || !claim->items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the messages asked for");
	for (int i = 0; i < n && r == OUTBOX_OK; i++) {
		r = pg_message_load(&(struct pg_row){ rows, i, first }, reader->arena, source,
				    i == 0, &claim->items[i], err);
		if (r == OUTBOX_OK && i > 0 && claim->items[i].seq <= claim->items[i - 1].seq)
			r = outbox_fail(err, OUTBOX_EPROTO,
					"outbox_settle_and_claim() gave messages out of order");
	}
	claim->count = (size_t)n;
	return r;
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

/* All rows but the last are messages; the last is the head. */
static int read_claim(struct reader *reader, const PGresult *rows, struct outbox_error *err)
{
	int n = PQntuples(rows) - 1, r;
	int64_t head[HEAD_END] = { 0 };

	if (n < 0 || pg_ints(rows, n, CLAIMED_HEAD, head, HEAD_END) != HEAD_END)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_settle_and_claim() gave no head");
	reader->claim = (struct outbox_claim){
		.n = head[HEAD_N],
		.fence_token = head[HEAD_TOKEN],
		.store_now = head[HEAD_NOW],
		.paused = head[HEAD_PAUSED],
		.stale_route = head[HEAD_STALE],
		.cautious = head[HEAD_CAUTIOUS],
		.next_due = head[HEAD_NEXT_DUE],
	};
	if (head[HEAD_AHEAD] && (n || head[HEAD_AHEAD] != reader->ahead_count))
		return outbox_fail(err, OUTBOX_EPROTO,
				   "outbox_settle_and_claim() claimed rows that it was not given");
	if (reader->ahead_count && !head[HEAD_AHEAD])
		pg_readahead_in_vain(reader->readahead);
	if (head[HEAD_AHEAD])
		return load_rows(reader, reader->readahead->rows, 0, reader->ahead_count, err);
	if (!n)
		return OUTBOX_OK;
	r = load_rows(reader, rows, CLAIMED_MESSAGE, n, err);
	for (int i = 0; i < n && r == OUTBOX_OK; i++) {
		load_delivery(rows, i, &reader->claim.items[i]);
		reader->dead |= (pg_int(rows, i, CLAIMED_FLAGS) & FLAG_DEAD) != 0;
	}
	return r;
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

int pg_settle_and_claim(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			struct outbox_arena *arena, struct outbox_claim *ret_claim,
			struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	struct reader reader = { .base.take = take_claim,
				 .store = s,
				 .readahead = pg_readahead_of(s, request->lane),
				 .arena = arena };
	int r;

	failpoint("before_commit");
	r = pg_prefetch_read(s, err);
	if (r == OUTBOX_OK) {
		reader.ahead_count = pg_readahead_count(reader.readahead, request);
		r = send_request(&reader, request, err);
	}
	failpoint("after_commit");
	pg_readahead_done(reader.readahead, request, r == OUTBOX_OK ? &reader.claim : NULL);
	if (r == OUTBOX_OK && reader.dead)
		r = load_dead(&reader, request->target, err);
	if (r == OUTBOX_OK)
		*ret_claim = reader.claim;
	return pg_note_refusal(s, request->target, request->lane, r);
}
