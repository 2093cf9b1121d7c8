/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <stdlib.h>

/* The history of failed attempts, which a detour has: it goes with it. */

struct memory_attempt {
	outbox_time at;
	int attempt, verdict, native;
	char *reason, *answer;
	struct memory_attempt *next;
};

static struct memory_attempt *attempt_free(struct memory_attempt *a)
{
	struct memory_attempt *next = a->next;

	free(a->reason);
	free(a->answer);
	free(a);
	return next;
}

void memory_attempts_free(struct memory_detour *detour)
{
	while (detour->tried)
		detour->tried = attempt_free(detour->tried);
}

/* The first one and the last ones stay. */
void memory_attempt_add(struct memory_detour *detour, const struct outbox_settlement *s,
			outbox_time now)
{
	struct memory_attempt *a = memory_alloc(sizeof(*a)), **at = &detour->tried;
	size_t count = 1;

	*a = (struct memory_attempt){ .at = now,
				      .attempt = s->attempt,
				      .verdict = s->verdict,
				      .native = s->native,
				      .reason = memory_text(s->error),
				      .answer = memory_text(s->answer) };
	for (; *at; at = &(*at)->next)
		count++;
	*at = a;
	if (count > OUTBOX_ATTEMPTS_KEPT)
		detour->tried->next = attempt_free(detour->tried->next);
}

void memory_attempts_redact(struct memory_detour *detour)
{
	for (struct memory_attempt *a = detour->tried; a; a = a->next) {
		memory_replace(&a->reason, NULL);
		memory_replace(&a->answer, NULL);
	}
}

int memory_attempts(struct memory_store *s, const char *id, struct outbox_arena *arena,
		    struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	const struct memory_message *row = memory_log_find(s->db, id);
	size_t count = 0;
	struct outbox_attempt *rows =
		outbox_arena_alloc(arena,
				   (s->db->n_targets * OUTBOX_ATTEMPTS_KEPT + 1) * sizeof(*rows));

	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; row && i < s->db->n_targets; i++) {
		const struct memory_target *target = s->db->targets[i];
		const struct memory_detour *detour =
			memory_delivery(s->db, target, row->seq)->detour;

		for (struct memory_attempt *a = detour ? detour->tried : NULL; a; a = a->next)
			rows[count++] = (struct outbox_attempt){
				.target = outbox_arena_text(arena, target->name),
				.at = a->at,
				.attempt = a->attempt,
				.verdict = a->verdict,
				.native = a->native,
				.reason = outbox_arena_text(arena, a->reason),
				.answer = outbox_arena_text(arena, a->answer)
			};
	}
	*ret_rows = rows;
	*ret_count = count;
	return OUTBOX_OK;
}
