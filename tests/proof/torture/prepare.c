/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"
#include "store/sqlite/ops.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LENGTH 12

void must(int r, const struct outbox_error *err, const char *what)
{
	if (r == OUTBOX_OK)
		return;
	fprintf(stderr, "torture: %s: %s\n", what, err->message);
	abort();
}

void prepare_schema(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	must(store_init(w->store, NULL, &err), &err, "init");
}

void prepare_log(struct world *w)
{
	static const char *const keys[] = { "a", "b", "b", "c", "d", "e", NULL, "f" };
	/* So long that its column lies on a page of its own. */
	static char note[6000];
	static const struct outbox_header headers[] = { { "tenant", "t-1" }, { "note", note } };
	struct outbox_target_def def = { .name = "events", .start = OUTBOX_START_OLDEST };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	memset(note, 'x', sizeof(note) - 1);
	prepare_schema(w);
	must(sqlite_target_put(w->store, &def, NULL, &err), &err, "target");
	for (int i = 0; i < LOG_LENGTH; i++) {
		struct outbox_message m = OUTBOX_MESSAGE_INIT;
		char id[16];

		snprintf(id, sizeof(id), "m-%02d", i + 1);
		m.type = "order.placed";
		m.id = id;
		m.key = keys[i % 8];
		m.data = i == 2 ? "\x00\xff raw" : "{\"n\":1}";
		m.size = i == 2 ? 6 : 7;
		m.content_type = i == 2 ? "application/octet-stream" : NULL;
		m.headers = headers;
		m.n_headers = i % 3 ? 0 : 2;
		m.subject = "a subject";
		m.correlation_id = "c-1";
		must(sqlite_append(w->store, &m, 1, NULL, NULL, &err), &err, "append");
	}
}

void prepare_taken(struct world *w)
{
	struct outbox_lease_request lease = {
		.target = "events", .owner = "me", .duration = OUTBOX_MINUTES, .route_version = 1
	};
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease held;
	struct outbox_head head;

	prepare_log(w);
	must(sqlite_lease(w->store, &lease, &held, &err), &err, "lease");
	must(sqlite_take_over(w->store, "events", 0, "me", 100, &head, &err), &err, "take");
	w->n = head.n;
	w->token = head.fence_token;
	w->n_seqs = 0;
}

static void remember(struct world *w, const struct outbox_claim *claim)
{
	w->n = claim->n;
	w->token = claim->fence_token;
	w->n_seqs = claim->count;
	for (size_t i = 0; i < claim->count; i++)
		w->seqs[i] = claim->items[i].seq;
}

void prepare_claim(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_claim claim;

	prepare_taken(w);
	must(settle_each(w, 8, &claim, &err), &err, "claim");
	remember(w, &claim);
}

void prepare_trouble(struct world *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_claim claim;

	prepare_claim(w);
	must(settle_each(w, 0, &claim, &err), &err, "settle");
	remember(w, &claim);
	frozen_clock_step(&w->clock, 10 * OUTBOX_SECONDS);
}

int settle_each(struct world *w, size_t max, struct outbox_claim *ret_claim, struct outbox_error *err)
{
	static const int outcomes[] = { OUTBOX_OUT_DELIVERED, OUTBOX_OUT_WAITING,
					OUTBOX_OUT_PARKED,    OUTBOX_OUT_FAILED,
					OUTBOX_OUT_DEFERRED,  OUTBOX_OUT_RETURNED,
					OUTBOX_OUT_DELIVERED, OUTBOX_OUT_RETURNED };
	static char why[2000];
	struct outbox_settlement settled[WORLD_MESSAGES];
	struct outbox_settle_and_claim request = {
		.target = "events",
		.owner = "me",
		.n = w->n,
		.fence_token = w->token,
		.new_token = w->token + 1,
		.route_version = 1,
		.settled = settled,
		.n_settled = w->n_seqs,
		.max_messages = max,
		.max_bytes = (size_t)1 << 20,
	};

	memset(why, 'e', sizeof(why) - 1);
	for (size_t i = 0; i < w->n_seqs; i++)
		settled[i] = (struct outbox_settlement){
			.seq = w->seqs[i],
			.outcome = outcomes[i % 8],
			.attempts = 1,
			.delay = 5 * OUTBOX_SECONDS,
			.due_at = WORLD_START + OUTBOX_HOURS,
			.error = why,
		};
	return store_settle_and_claim(w->store, &request, w->arena, ret_claim, err);
}
