/* SPDX-License-Identifier: Apache-2.0 */
#include "core/message.h"
#include "core/routing.h"
#include "memory_store/db.h"
#include "store/store.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* Corrections and cancelling: see struct outbox_amend and struct outbox_cancel. */

struct memory_amended {
	outbox_time at;
	char *actor, *reason;
	struct memory_message *was; /* a copy */
	struct memory_message *now; /* has what the message points to since then */
	struct memory_amended *next;
};

void memory_amended_free(struct memory_message *row)
{
	struct memory_amended *next;

	for (struct memory_amended *a = row->amended; a; a = next) {
		next = a->next;
		free(a->actor);
		free(a->reason);
		memory_log_free(a->was);
		memory_log_free(a->now);
		free(a);
	}
	row->amended = NULL;
}

/* It is here, or was, only because it failed at another target. */
static bool dead_letter_only(const struct memory_db *db, const struct memory_target *target,
			     const struct memory_message *row)
{
	const struct memory_delivery *delivery = memory_delivery(db, target, row->seq);

	return delivery->detour && delivery->detour->dead && !memory_target_routes(target, row);
}

static bool reroutes(const struct memory_target *target, const struct memory_message *row,
		     const struct outbox_message *to)
{
	return route_match_headers(&target->route, row->m.headers, row->m.n_headers) !=
	       route_match_headers(&target->route, to->headers, to->n_headers);
}

static int judge(struct memory_store *s, const struct memory_message *row,
		 const struct outbox_message *to, struct outbox_error *err)
{
	bool alive = false;
	int status = OUTBOX_OK;

	for (size_t i = 0; i < s->db->n_targets && !status; i++) {
		const struct memory_target *target = s->db->targets[i];
		const struct memory_lane *lane = &target->lanes[row->key_hash % target->n_lanes];
		int why, state = memory_delivery_state(s->db, target, row, &why);
		bool dead = dead_letter_only(s->db, target, row);

		if (state == OUTBOX_SENDING && !(lane->owner && lane->lease_until > memory_now(s)))
			state = OUTBOX_PENDING;
		if (!dead || state == OUTBOX_SENDING)
			status = store_amend_judge(target->name, state, err);
		alive |= !dead && (state == OUTBOX_PENDING || state == OUTBOX_FAILED);
	}
	if (!status && !alive)
		return store_amend_nothing(err);
	for (size_t i = 0; i < s->db->n_targets && !status; i++)
		if (reroutes(s->db->targets[i], row, to))
			status = store_amend_reroutes(s->db->targets[i]->name, err);
	return status;
}

static void replace(struct memory_message *row, const struct outbox_amend *amend, outbox_time now)
{
	struct outbox_message view = message_view(amend->message);
	struct memory_amended *a = memory_alloc(sizeof(*a)), **at = &row->amended;

	*a = (struct memory_amended){ .at = now,
				      .actor = memory_text(amend->actor),
				      .reason = memory_text(amend->reason),
				      .was = memory_log_copy(&row->m, row->m.id),
				      .now = memory_log_copy(&view, row->m.id) };
	while (*at)
		at = &(*at)->next;
	*at = a;
	row->m.data = a->now->m.data;
	row->m.size = a->now->m.size;
	row->m.content_type = a->now->m.content_type;
	row->m.headers = a->now->m.headers;
	row->m.n_headers = a->now->m.n_headers;
}

static int64_t parked_behind(const struct memory_target *target, const struct memory_message *row)
{
	const struct memory_key *key = row->m.key ? memory_key_find(target, row->m.key) : NULL;
	int64_t n = 0;

	for (const struct memory_detour *d = key ? key->first : NULL; d; d = d->key_next)
		n += d->message->seq > row->seq && d->state == OUTBOX_PENDING &&
		     d->why == OUTBOX_PARKED;
	return n;
}

static void requeue(struct memory_store *s, struct memory_message *row,
		    const struct outbox_amend *amend, struct outbox_amended *amended)
{
	const struct outbox_act act = { .action = OUTBOX_REQUEUE,
					.actor = amend->actor,
					.reason = amend->reason };
	outbox_time now = memory_now(s);

	for (size_t i = 0; i < s->db->n_targets; i++) {
		struct memory_target *target = s->db->targets[i];
		int why, state = memory_delivery_state(s->db, target, row, &why);

		if (state == OUTBOX_SENDING) { /* of a dead owner */
			memory_lane_take(s->db, target, row->key_hash % target->n_lanes,
					 amend->actor ? amend->actor : "operator",
					 (int64_t)s->random->next(s->random), now);
			state = memory_delivery_state(s->db, target, row, &why);
		}
		if (dead_letter_only(s->db, target, row) ||
		    !(state == OUTBOX_FAILED || (state == OUTBOX_PENDING && why == OUTBOX_WAITING)))
			continue;
		memory_act_change(s, target, row, &act, now);
		amended->requeued++;
		amended->parked += parked_behind(target, row);
	}
}

static bool is_redacted(const struct outbox_message *m)
{
	return m->size == strlen(OUTBOX_REDACTED) &&
	       memcmp(m->data, OUTBOX_REDACTED, m->size) == 0 && !m->n_headers && !m->subject;
}

int memory_amend(struct memory_store *s, const struct outbox_amend *amend,
		 struct outbox_amended *ret_amended, struct outbox_error *err)
{
	struct memory_message *row = memory_log_find(s->db, amend->id);
	struct outbox_amended amended = { 0 };
	int status;

	if (!row || !row->committed)
		return store_no_message(amend->id, err);
	status = is_redacted(&row->m) ? store_amend_nothing(err)
				      : judge(s, row, amend->message, err);
	if (status)
		return status;
	replace(row, amend, memory_now(s));
	memory_audit_add(s->db, &(struct memory_audit){
					.at = memory_now(s),
					.actor = memory_text(amend->actor),
					.action = memory_text("amend"),
					.id = memory_text(amend->id),
					.reason = memory_text(amend->reason),
				});
	requeue(s, row, amend, &amended);
	if (ret_amended)
		*ret_amended = amended;
	return OUTBOX_OK;
}

static int read_amendment(const struct memory_amended *a, struct outbox_arena *arena,
			  struct outbox_amendment *was, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf headers = BUF_INIT(HEADERS_TEXT_MAX);
	const struct outbox_message *m = &a->was->m;
	int status = headers_format(m->headers, m->n_headers, &headers, err);

	if (status)
		return status;
	*was = (struct outbox_amendment){
		.at = a->at,
		.actor = outbox_arena_text(arena, a->actor),
		.reason = outbox_arena_text(arena, a->reason),
		.content_type = outbox_arena_text(arena, m->content_type),
		.headers = m->n_headers ? outbox_arena_text(arena, buf_str(&headers)) : NULL,
		.data = outbox_arena_copy(arena, m->data, m->size),
		.size = m->size,
		.bytes = !message_is_text(m),
	};
	return OUTBOX_OK;
}

int memory_amendments(struct memory_store *s, const char *id, struct outbox_arena *arena,
		      struct outbox_amendment **ret_rows, size_t *ret_count,
		      struct outbox_error *err)
{
	const struct memory_message *row = memory_log_find(s->db, id);
	struct outbox_amendment *rows;
	size_t count = 0, n = 0;
	int status = OUTBOX_OK;

	for (const struct memory_amended *a = row ? row->amended : NULL; a; a = a->next)
		count++;
	rows = outbox_arena_alloc(arena, (count + 1) * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (const struct memory_amended *a = row ? row->amended : NULL; a && !status; a = a->next)
		status = read_amendment(a, arena, &rows[n++], err);
	if (!status) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return status;
}

/* As if a live owner had it in flight, unless that owner is dead. */
static struct outbox_delivery read_delivery(struct memory_store *s,
					    const struct memory_target *target,
					    const struct memory_message *row)
{
	const struct memory_lane *lane = &target->lanes[row->key_hash % target->n_lanes];
	const struct memory_detour *detour = memory_delivery(s->db, target, row->seq)->detour;
	struct outbox_delivery d = { .target = target->name };

	d.state = memory_delivery_state(s->db, target, row, &d.why);
	if (detour)
		d.next_attempt_at = detour->next_attempt_at;
	if (d.state == OUTBOX_SENDING && !(lane->owner && lane->lease_until > memory_now(s))) {
		d.state = OUTBOX_PENDING;
		d.why = detour ? detour->why_before : OUTBOX_NEW;
	}
	return d;
}

static int cancel_judge(struct memory_store *s, const struct memory_message *row, bool *wanted,
			struct outbox_error *err)
{
	int status = store_cancel_check(row->m.due_at, memory_now(s), err);

	for (size_t i = 0; i < s->db->n_targets && !status; i++) {
		const struct outbox_delivery d = read_delivery(s, s->db->targets[i], row);

		status = store_cancel_judge(&d, memory_now(s), &wanted[i], err);
	}
	return status;
}

int memory_cancel(struct memory_store *s, const struct outbox_cancel *cancel, bool *ret_done,
		  struct outbox_error *err)
{
	const struct outbox_act discard = { .action = OUTBOX_DISCARD,
					    .actor = cancel->actor,
					    .reason = cancel->reason };
	struct memory_message *row = memory_log_find(s->db, cancel->id);
	bool before = row && row->cancelled, *wanted;
	int status = OUTBOX_OK;

	if (!row || !row->committed)
		return store_no_message(cancel->id, err);
	wanted = memory_alloc((s->db->n_targets + 1) * sizeof(*wanted));
	if (!before)
		status = cancel_judge(s, row, wanted, err);
	if (!before && !status) {
		for (size_t i = 0; i < s->db->n_targets; i++)
			if (wanted[i])
				memory_act_change(s, s->db->targets[i], row, &discard, memory_now(s));
		row->cancelled = memory_text(cancel->reason);
		memory_audit_add(s->db, &(struct memory_audit){
						.at = memory_now(s),
						.actor = memory_text(cancel->actor),
						.action = memory_text("cancel"),
						.id = memory_text(cancel->id),
						.reason = memory_text(cancel->reason),
					});
	}
	free(wanted);
	if (!status && ret_done)
		*ret_done = !before;
	return status;
}

void memory_cancel_for(struct memory_store *s, struct memory_target *target)
{
	for (size_t i = 0; i < s->db->n_rows; i++) {
		struct memory_message *row = s->db->rows[i];
		struct memory_detour *detour;
		int why;

		if (!row || !row->cancelled || memory_delivery(s->db, target, row->seq)->detour ||
		    memory_delivery_state(s->db, target, row, &why) != OUTBOX_PENDING)
			continue;
		detour = memory_detour_make(s->db, target, row);
		memory_detour_set(target, detour, OUTBOX_DISCARDED, 0, memory_now(s));
		memory_replace(&detour->reason, row->cancelled);
	}
}
