/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a new target begins to read, and what gets its failures.
 *
 * To find the first message of a time the log is read from its old end, which takes seconds when it is
 * long. That is done before the write transaction, so that publishers do not wait; what was published
 * meanwhile is looked at inside it.
 */
#include "store/sqlite/target_start.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sqlite/ops.h"

#include <string.h>

static int since(struct sqlite_store *s, const struct outbox_target_def *def, struct start *start,
		 struct outbox_error *err)
{
	return sqlite_number(s, SQL_LOG_SINCE,
			     ARGS(ARG_INT(def->start_time), ARG_INT(start->looked)), 0,
			     &start->first, err);
}

int start_look(struct sqlite_store *s, const struct outbox_target_def *def, struct start *ret_start,
	       struct outbox_error *err)
{
	struct start start = { 0 };
	char time[TIME_TEXT_MAX];
	int64_t known = 0;
	int r;

	*ret_start = start;
	if (def->start != OUTBOX_START_TIME)
		return OUTBOX_OK;
	r = sqlite_enter(s, DB_READ, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_number(s, SQL_TARGET_VERSION, ARGS(ARG_TEXT(def->name)), 0, &known, err);
	if (r == OUTBOX_OK && !known && def->start_time > sqlite_now(s))
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"start: %s lies ahead; a target can start at a time that is past, at "
				"oldest or now",
				time_format(def->start_time, time));
	if (r == OUTBOX_OK && !known)
		r = since(s, def, &start, err);
	if (r == OUTBOX_OK && !known && !start.first)
		r = sqlite_number(s, SQL_LOG_END, NULL, 0, &start.looked, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_start = start;
	return r;
}

int start_of(struct sqlite_store *s, const struct outbox_target_def *def, struct start *start,
	     int64_t *ret_seq, struct outbox_error *err)
{
	int64_t settled = 0;
	int r = OUTBOX_OK;

	if (def->start == OUTBOX_START_TIME && !start->first)
		r = since(s, def, start, err);
	if (r != OUTBOX_OK)
		return r;
	if (def->start == OUTBOX_START_NOW || (def->start == OUTBOX_START_TIME && !start->first))
		return sqlite_number(s, SQL_LOG_END, NULL, 0, ret_seq, err);
	if (def->start == OUTBOX_START_UNSET) {
		r = sqlite_number(s, SQL_SETTLED_EVER, NULL, 0, &settled, err);
		if (r != OUTBOX_OK)
			return r;
		if (settled)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "it is new, and messages were already delivered here: say "
					   "where it starts, oldest, now or a time");
	}
	*ret_seq = def->start == OUTBOX_START_TIME ? start->first - 1 : 0;
	return OUTBOX_OK;
}

/* The dead letter of a target: its name in `link`, empty for none. ret_there: is there such a target? */
static int next_link(struct sqlite_store *s, char link[OUTBOX_TARGET_NAME_MAX + 1], bool *ret_there,
		     struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r;

	r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(link)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(s, q, ret_there, err);
	if (r == OUTBOX_OK && *ret_there)
		sqlite3_snprintf(OUTBOX_TARGET_NAME_MAX + 1, link, "%s", sqlite_peek(q, 5, &r, err));
	return r;
}

int dead_letter_put(struct sqlite_store *s, const struct outbox_target_def *def,
		    struct outbox_error *err)
{
	char link[OUTBOX_TARGET_NAME_MAX + 1];
	bool there = true;
	int r = OUTBOX_OK;

	sqlite3_snprintf(sizeof(link), link, "%s", def->dead_letter ? def->dead_letter : "");
	while (link[0] && r == OUTBOX_OK) {
		char name[sizeof(link)];

		if (strcmp(link, def->name) == 0)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: %s leads back to %s; a dead letter must end "
					   "somewhere",
					   def->dead_letter, def->name);
		memcpy(name, link, sizeof(name));
		r = next_link(s, link, &there, err);
		if (r == OUTBOX_OK && !there)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: no target \"%s\" is registered here; register it "
					   "first",
					   name);
	}
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_TARGET_DEAD,
			       ARGS(ARG_TEXT(def->name), ARG_TEXT(def->dead_letter)), NULL, err);
	return r;
}

int dead_letter_free(struct sqlite_store *s, const char *target, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *whose;
	bool row;
	int r;

	r = sqlite_query(s, SQL_TARGET_DEAD_OF, ARGS(ARG_TEXT(target)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(s, q, &row, err);
	if (r != OUTBOX_OK || !row)
		return r;
	whose = sqlite_peek(q, 0, &r, err);
	if (r != OUTBOX_OK)
		return r;
	return outbox_fail(err, OUTBOX_ECONFLICT,
			   "target \"%s\" is the dead letter of \"%s\"; take that away first, or drop "
			   "\"%s\"",
			   target, whose, whose);
}

int sqlite_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		       struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t version = 0, settled = 0;
	int r = sqlite_enter(s, DB_READ, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_number(s, SQL_TARGET_VERSION, ARGS(ARG_TEXT(target)), 0, &version, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_SETTLED_EVER, NULL, 0, &settled, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_wants = !version && settled;
	return r;
}
