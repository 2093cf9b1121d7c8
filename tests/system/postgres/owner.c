/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include "store/store.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct outbox_store_ops postgres_store_ops;

#define RETRY_DELAY_MAX (30 * OUTBOX_MILLISECONDS)
#define BUSY_TRIES 1000
#define OPEN_TRIES 500
#define OPEN_PAUSE 10000 /* us */
#define LOOKS_ENOUGH 2

void stage_problem(struct stage *stage, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&stage->lock);
	stage->problems++;
	printf("PROBLEM ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	pthread_mutex_unlock(&stage->lock);
}

void stage_look(struct stage *stage, bool *ret_quiet, bool *ret_draining)
{
	pthread_mutex_lock(&stage->lock);
	*ret_quiet = stage->calm || stage->quiet || stage->draining;
	*ret_draining = stage->draining;
	pthread_mutex_unlock(&stage->lock);
}

static int64_t between(struct owner *o, int64_t low, int64_t high)
{
	return random_between(&o->random.base, low, high);
}

static bool chance(struct owner *o, int per_mille)
{
	return between(o, 1, 1000) <= per_mille;
}

static void nap(struct owner *o, int64_t low_ms, int64_t high_ms)
{
	usleep((useconds_t)between(o, low_ms * 1000, high_ms * 1000));
}

static void give_up(const struct owner *o, const char *what, const struct outbox_error *err)
{
	printf("PROBLEM %s: %s: %s\n", o->name, what, err->message);
	fflush(stdout);
	_exit(1);
}

static void open_store(struct owner *o)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = o->stage->url,
					      .clock = outbox_clock_system(),
					      .random = &o->random.base };
	int r = OUTBOX_ECONN;

	for (int tries = 0; r != OUTBOX_OK && tries < (o->stage->reconnect ? OPEN_TRIES : 1);
	     tries++) {
		if (tries)
			usleep(OPEN_PAUSE);
		r = store_open(&postgres_store_ops, &config, false, &o->store, &err);
	}
	if (r != OUTBOX_OK)
		give_up(o, "open", &err);
}

/* Nothing happened, or nobody knows: the very same request again, on a new connection if need be. */
static bool again(struct owner *o, int r, int tries)
{
	if (tries > BUSY_TRIES)
		return false;
	if ((r == OUTBOX_ECONN || r == OUTBOX_ETIMEDOUT) && o->stage->reconnect) {
		o->store = store_close(o->store);
		open_store(o);
		return true;
	}
	return r == OUTBOX_EBUSY;
}

void owner_init(struct owner *o, struct stage *stage, const char *target, int lane, int number)
{
	*o = (struct owner){ .stage = stage, .target = target, .lane = lane, .number = number };
	random_init(&o->random, stage->seed * 1000 + (uint64_t)number);
	snprintf(o->name, sizeof(o->name), "owner-%d", number);
	o->arena = outbox_arena_new(OWNER_ARENA);
	o->arena_again = outbox_arena_new(OWNER_ARENA);
	o->lost = true;
	open_store(o);
}

void owner_deinit(struct owner *o)
{
	outbox_arena_free(o->arena);
	outbox_arena_free(o->arena_again);
	store_close(o->store);
}

/* Somebody else's lane now, and what was sent of the claim may be sent again. */
static void abandon(struct owner *o)
{
	pthread_mutex_lock(&o->stage->lock);
	for (size_t i = 0; i < o->claim.count; i++) {
		if (o->sent[i]) {
			fprintf(o->stage->log, "A %s %lld\n", o->target,
				(long long)o->claim.items[i].seq);
			o->stage->abandoned++;
		}
	}
	pthread_mutex_unlock(&o->stage->lock);
	o->claim.count = 0;
	o->lost = true;
}

static void take_lane(struct owner *o)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int64_t token = between(o, 1, INT64_MAX);
	int times = !o->stage->calm && chance(o, 100) ? 2 : 1; /* as if the answer was lost */
	int r, tries = 0;

	snprintf(o->name, sizeof(o->name), "owner-%d/%lld", o->number, (long long)(token % 1000));
	while (times-- > 0) {
		do {
			r = store_take_over(o->store, o->target, o->lane, o->name, token, &o->head,
					    &err);
		} while (again(o, r, tries++));
		if (r != OUTBOX_OK)
			give_up(o, "take", &err);
	}
	pthread_mutex_lock(&o->stage->lock);
	o->stage->takes++;
	pthread_mutex_unlock(&o->stage->lock);
	o->claim.count = 0;
	o->lost = o->robbed = false;
}

static void choose_size(struct owner *o)
{
	static const size_t sizes[] = { 1, 2, 7, 20, 100, 200, 500, OWNER_ITEMS_MAX };
	static const size_t bytes[] = { 1, 5000, 20000, 100000, 1000000, 1000000, 1000000, 1000000 };

	/* For a while the same: only then is what was read ahead of use. */
	if (o->max && !o->stage->calm && chance(o, 700))
		return;
	o->max = o->stage->calm ? o->stage->chunk : sizes[between(o, 0, 7)];
	o->max_bytes = o->stage->calm ? o->stage->bytes : bytes[between(o, 0, 7)];
}

static void check_claim(struct owner *o, const struct outbox_claim *claim)
{
	size_t bytes = 0, whole = 0;

	for (size_t i = 0; i < claim->count; i++) {
		const struct outbox_claimed *item = &claim->items[i];

		bytes += item->blocked ? 0 : item->message.size;
		whole += !item->blocked;
		if (item->malformed)
			stage_problem(o->stage, "message %lld is malformed: %s",
				      (long long)item->seq, item->malformed);
	}
	if (claim->count > o->max)
		stage_problem(o->stage, "%zu messages claimed, asked for %zu", claim->count, o->max);
	if (whole > 1 && bytes > o->max_bytes)
		stage_problem(o->stage, "%zu bytes claimed in %zu messages, asked for %zu", bytes,
			      whole, o->max_bytes);
}

static void check_same(struct owner *o, const struct outbox_claim *a, const struct outbox_claim *b)
{
	bool same = a->n == b->n && a->fence_token == b->fence_token && a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = a->items[i].seq == b->items[i].seq &&
		       a->items[i].blocked == b->items[i].blocked;
	if (!same)
		stage_problem(
			o->stage,
			"%s lane %d: asked again, receipt %lld with %zu messages became %lld with %zu",
			o->target, o->lane, (long long)a->n, a->count, (long long)b->n, b->count);
}

static int ask(struct owner *o, const struct outbox_settle_and_claim *request,
	       struct outbox_arena *arena, struct outbox_claim *ret_claim)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r, tries = 0;

	do {
		outbox_arena_reset(arena);
		r = store_settle_and_claim(o->store, request, arena, ret_claim, &err);
	} while (again(o, r, tries++));
	if (r != OUTBOX_OK && r != OUTBOX_EFENCED)
		give_up(o, "advance", &err);
	return r;
}

static void count(struct stage *stage, long *what)
{
	pthread_mutex_lock(&stage->lock);
	(*what)++;
	pthread_mutex_unlock(&stage->lock);
}

/* Settle what is in o->settled and claim the next. */
static void make_request(struct owner *o)
{
	choose_size(o);
	o->request = (struct outbox_settle_and_claim){
		.target = o->target,
		.lane = o->lane,
		.owner = o->name,
		.n = o->head.n,
		.fence_token = o->head.fence_token,
		.new_token = between(o, 1, INT64_MAX),
		.route_version = o->version,
		.settled = o->settled,
		.n_settled = o->claim.count,
		.max_messages = !o->stage->calm && chance(o, 20) ? 0 : o->max,
		.max_bytes = o->max_bytes,
	};
}

/* The answer to o->request; it is in o->arena_again. */
static void take_answer(struct owner *o, const struct outbox_claim *claim)
{
	struct outbox_arena *other = o->arena;
	struct outbox_claim again;
	bool written = claim->n != o->head.n;

	check_claim(o, claim);
	if (written && !o->stage->calm && chance(o, 100)) {
		/* what is read again is put where nothing else is; a fence now is the robber's */
		if (ask(o, &o->request, o->arena, &again) == OUTBOX_OK) {
			check_same(o, claim, &again);
			count(o->stage, &o->stage->repeated);
		}
	}
	if (claim->count && o->looks >= LOOKS_ENOUGH)
		stage_problem(o->stage,
			      "%s lane %d: look says that there is no work, and there are %zu messages",
			      o->target, o->lane, claim->count);
	o->arena = o->arena_again;
	o->arena_again = other;
	o->claim = *claim;
	memset(o->sent, 0, sizeof(o->sent));
	o->head.n = claim->n;
	o->head.fence_token = claim->fence_token;
	o->active = claim->count || written || o->request.max_messages == 0;
}

static void advance(struct owner *o)
{
	struct outbox_claim claim;

	if (ask(o, &o->request, o->arena_again, &claim) == OUTBOX_OK) {
		take_answer(o, &claim);
		return;
	}
	count(o->stage, &o->stage->fenced);
	o->robbed = o->active = true;
	abandon(o);
}

/* Two lanes in one call. Whatever it fails for, each asks again alone. */
static void advance_both(struct owner *o, struct owner *p)
{
	struct outbox_settle_and_claim requests[] = { o->request, p->request };
	struct outbox_arena *arenas[] = { o->arena_again, p->arena_again };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_claim claims[2];
	int r;

	outbox_arena_reset(arenas[0]);
	outbox_arena_reset(arenas[1]);
	r = store_settle_and_claim_lanes(o->store, requests, 2, arenas, claims, &err);
	if (r == OUTBOX_OK) {
		take_answer(o, &claims[0]);
		take_answer(p, &claims[1]);
		count(o->stage, &o->stage->joined);
		return;
	}
	if (r != OUTBOX_EFENCED && !again(o, r, 0))
		give_up(o, "advance both", &err);
	advance(o);
	advance(p);
}

/* As a relay does: is it worth to ask at all? Twice no, at the end, must be true. */
static bool has_work(struct owner *o, bool draining)
{
	struct outbox_look question = { .target = o->target,
					.route_version = o->version,
					.count = 1,
					.lanes = &o->lane,
					.n = &o->head.n,
					.fence_tokens = &o->head.fence_token };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_looked looked;
	int r, tries = 0;

	do {
		r = store_look(o->store, &question, &looked, &err);
	} while (again(o, r, tries++));
	if (r != OUTBOX_OK)
		give_up(o, "look", &err);
	o->looks = !looked.work[0] && draining && !looked.next_due ? o->looks + 1 : 0;
	return looked.work[0] || o->looks >= LOOKS_ENOUGH;
}

static void deliver(struct owner *o, size_t i)
{
	const struct outbox_claimed *item = &o->claim.items[i];

	pthread_mutex_lock(&o->stage->lock);
	fprintf(o->stage->log, "D %s %d %lld %s %s\n", o->target, o->lane, (long long)item->seq,
		item->message.id, item->message.key ? item->message.key : "-");
	o->stage->delivered++;
	pthread_mutex_unlock(&o->stage->lock);
	o->sent[i] = true;
}

/* Is there a message of this key before i that was not sent? */
static bool key_waits(const struct owner *o, size_t i)
{
	const char *key = o->claim.items[i].message.key;

	for (size_t j = 0; key && j < i; j++) {
		const char *other = o->claim.items[j].message.key;

		if (o->settled[j].outcome != OUTBOX_OUT_DELIVERED && other && strcmp(key, other) == 0)
			return true;
	}
	return false;
}

/* How each message of the claim ends: mostly delivered; some wait, and from some place on all go back. */
static void decide(struct owner *o, bool trouble)
{
	size_t back = trouble && chance(o, 100) ? (size_t)between(o, 0, (int64_t)o->claim.count)
						: SIZE_MAX;
	bool waits = trouble && chance(o, 150);

	for (size_t i = 0; i < o->claim.count; i++) {
		const struct outbox_claimed *item = &o->claim.items[i];
		struct outbox_settlement *s = &o->settled[i];

		*s = (struct outbox_settlement){ .seq = item->seq, .attempts = item->attempts };
		if (item->blocked || (waits && key_waits(o, i))) {
			s->outcome = OUTBOX_OUT_PARKED;
		} else if (i >= back) {
			s->outcome = OUTBOX_OUT_RETURNED;
		} else if (waits && chance(o, 30)) {
			s->outcome = OUTBOX_OUT_WAITING;
			s->attempts++;
			s->delay = between(o, 0, RETRY_DELAY_MAX);
			s->error = "not now";
		} else {
			s->outcome = OUTBOX_OUT_DELIVERED;
			deliver(o, i);
		}
	}
}

/* The owner dies with a claim in flight, of which it may have sent a part. */
static void die(struct owner *o)
{
	size_t sent = chance(o, 500) ? (size_t)between(o, 0, (int64_t)o->claim.count) : 0;

	for (size_t i = 0; i < sent && !o->claim.items[i].blocked; i++)
		deliver(o, i);
	abandon(o);
}

/* What a good one does not do. */
static void misbehave(struct owner *o)
{
	if (o->lost)
		nap(o, 1, o->robbed ? 600 : 20); /* let the robber do some work before it is robbed */
	else if (o->claim.count && chance(o, 30))
		nap(o, 1, 60); /* a slow broker: a robber comes in between */
	else if (o->claim.count && chance(o, 15))
		die(o);
	else if (!o->claim.count && chance(o, 10))
		o->lost = true; /* rob whoever has it now */
}

/* Has it anything to ask now? */
static bool prepare(struct owner *o, bool quiet, bool draining)
{
	o->active = false;
	if (quiet && o->robber) {
		abandon(o);
		o->done = true;
		return false;
	}
	if (!quiet)
		misbehave(o);
	if (o->lost)
		take_lane(o);
	if (!o->claim.count && (quiet || chance(o, 500)) && !has_work(o, draining))
		return false;
	decide(o, !quiet);
	make_request(o);
	return true;
}

static void finish(struct owner *o, bool asked, bool draining)
{
	if (!o->active)
		count(o->stage, &o->stage->idle);
	o->done |= asked && !o->active && draining && o->claim.next_due == 0;
}

/* One step of both; p NULL: of one. Whether it found or wrote something. */
static bool step(struct owner *o, struct owner *p)
{
	bool quiet, draining, asks, partner_asks;

	stage_look(o->stage, &quiet, &draining);
	asks = !o->done && prepare(o, quiet, draining);
	partner_asks = p && !p->done && prepare(p, quiet, draining);
	if (asks && partner_asks && chance(o, 600)) {
		advance_both(o, p);
	} else {
		if (asks)
			advance(o);
		if (partner_asks)
			advance(p);
	}
	finish(o, asks, draining);
	if (p)
		finish(p, partner_asks, draining);
	return o->active || (p && p->active);
}

void *owner_run(void *argument)
{
	struct owner *o = argument;

	while (!o->done || (o->partner && !o->partner->done))
		if (!step(o, o->partner))
			nap(o, 1, 4);
	return NULL;
}
