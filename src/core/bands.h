/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BANDS_H
#define CORE_BANDS_H

/*
 * Bands of priority, and which target of a family gets which of them, by a message's place in the log.
 *
 * What a target gets is a list of pieces: behind a place, these bands, up to the next piece's place. Bands are
 * switched on or off by adding a piece to each target of the family, all with the same place, the log's end at
 * that moment. So every message belongs to one target, for ever, however far each of them has read, and whoever
 * is still at work by the pieces before. target_put() in outbox/store.h says the same for people.
 */

#include <outbox/store.h>

#define BANDS_ALL (OUTBOX_BAND_HIGH | OUTBOX_BAND_NORMAL | OUTBOX_BAND_LOW)
#define BAND_PIECES_MAX 64

struct band_piece {
	int64_t above; /* seq; of the first piece it is only where the target began */
	unsigned bands;
};

struct band_plan {
	size_t count; /* 0: every band, everywhere */
	struct band_piece pieces[BAND_PIECES_MAX];
};

/* "high", "normal", "low", "none"; 0 for another word, NULL for another bit. */
unsigned band_parse(const char *name);
const char *band_name(unsigned band);

bool band_plan_takes(const struct band_plan *plan, int priority, int64_t seq);

/* A target of the family as the store knows it. */
struct band_state {
	const char *band_of; /* NULL: of no family */
	struct band_plan plan;
};

/*
 * The plan of a target that is put. known: as it is, NULL when it is new; leader: the target that def->band_of
 * names, NULL when there is none (or it is this one). ret_start: a new one starts behind this place, whatever
 * def->start says; 0: as that says. ECONFIG.
 */
int band_plan_next(const struct outbox_target_def *def, const struct band_state *known,
		   const struct band_state *leader, int64_t log_end, struct band_plan *ret_plan,
		   int64_t *ret_start, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Did a put take the bands from a target? Then the others of its family get OUTBOX_BAND_NONE. */
bool band_plan_ends(const struct outbox_target_def *def, const struct band_state *known);

/* From this place on, these. */
int band_plan_add(struct band_plan *plan, int64_t above, unsigned bands,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
