/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LIFECYCLE_H
#define CORE_LIFECYCLE_H

/*
 * The one table of a delivery's life (DESIGN section 3). Stores implement it in SQL; the contract
 * suite proves that they agree with this table; error texts and documents quote its reasons.
 */

#include <outbox/error.h>
#include <outbox/store.h>

#include <stdbool.h>

enum lifecycle_event {
	LIFE_CLAIM = 1, /* a lane's owner claims it */
	LIFE_ACK,       /* the broker confirmed */
	LIFE_RETRY,     /* transient failure, charged */
	LIFE_RETURN,    /* outage, release, take-over: not charged */
	LIFE_FAIL,      /* used up, rejected, expired */
	LIFE_DEFER,
	LIFE_PARK,
	LIFE_REQUEUE,
	LIFE_DISCARD
};

/* The names of enum outbox_state, outbox_why, outbox_action and outbox_kind by number; 0 has none, NULL is behind the last. As a list
 * of all that there are: state_names + 1. */
extern const char *const state_names[], *const why_names[], *const action_names[], *const kind_names[];
extern const char *const verdict_names[]; /* of enum outbox_verdict, likewise */
extern const char *const action_past[];   /* "requeued" */

/* Unset means event. Inline: the library of the brokers' drivers has no copy of lifecycle.c. */
#define KIND_EVENT_NAME "event"
#define KIND_COMMAND_NAME "command"
static inline const char *kind_name(int kind)
{
	return kind == OUTBOX_KIND_COMMAND ? KIND_COMMAND_NAME : KIND_EVENT_NAME;
}

/* enum outbox_kind; `otherwise` where the name is NULL or none of them. */
int kind_parse(const char *name, int otherwise);

/* NULL for an unknown number; 0 for an unknown name. */
const char *verdict_name(int verdict);
int verdict_parse(const char *name);

/* The event (enum lifecycle_event) that an operator's action is; 0: it is none. */
int lifecycle_of_action(int action);

struct lifecycle_rule {
	int from; /* enum outbox_state */
	int event;
	int to;
	const char *when; /* for people and documents */
};

const struct lifecycle_rule *lifecycle_rules(size_t *ret_count);

/* The state after event, or 0 when it is not allowed. */
int lifecycle_next(int from, int event);

/* ECONFLICT with a sentence: "cannot requeue a delivered delivery: only failed ones". */
int lifecycle_check(int from, int event, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
