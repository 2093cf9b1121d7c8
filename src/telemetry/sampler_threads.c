/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/sampler_threads.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE (2 * OUTBOX_SECONDS)

struct eye {
	struct looker *looker;
	bool slow; /* did not answer in time the last time: nobody waits for it */
	bool seen; /* its source is still there */
};

static struct eye *find_eye(struct eyes *eyes, const char *source)
{
	for (size_t i = 0; i < eyes->count; i++)
		if (strcmp(looker_source(eyes->items[i].looker), source) == 0)
			return &eyes->items[i];
	return NULL;
}

static int add_eye(struct eyes *eyes, const char *source, struct outbox_error *err)
{
	struct eye *items = realloc(eyes->items, (eyes->count + 1) * sizeof(*items));
	struct eye eye = { .seen = true };
	int r;

	if (!items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	eyes->items = items;
	r = looker_start(eyes->daemon, source, eyes->waiting, &eye.looker, err);
	if (r == OUTBOX_OK)
		eyes->items[eyes->count++] = eye;
	return r;
}

/* Its thread may be busy for a while: it is joined when it says that it has left. */
static int let_go(struct eyes *eyes, size_t i, struct outbox_error *err)
{
	struct looker **leaving =
		realloc(eyes->leaving, (eyes->n_leaving + 1) * sizeof(struct looker *));

	if (!leaving)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	eyes->leaving = leaving;
	eyes->leaving[eyes->n_leaving++] = eyes->items[i].looker;
	waiting_lock(eyes->waiting);
	looker_leave(eyes->items[i].looker);
	waiting_unlock(eyes->waiting);
	eyes->items[i] = eyes->items[--eyes->count];
	return OUTBOX_OK;
}

static void reap(struct eyes *eyes)
{
	for (size_t i = eyes->n_leaving; i-- > 0;) {
		bool left;

		waiting_lock(eyes->waiting);
		left = looker_left(eyes->leaving[i]);
		waiting_unlock(eyes->waiting);
		if (!left)
			continue;
		looker_free(eyes->leaving[i]);
		eyes->leaving[i] = eyes->leaving[--eyes->n_leaving];
	}
}

int eyes_follow(struct eyes *eyes, const struct daemon_source *sources, size_t count,
		struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t i = 0; i < eyes->count; i++)
		eyes->items[i].seen = false;
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		struct eye *eye = find_eye(eyes, sources[i].name);

		if (eye)
			eye->seen = true;
		else
			r = add_eye(eyes, sources[i].name, err);
	}
	for (size_t i = eyes->count; r == OUTBOX_OK && i-- > 0;)
		if (!eyes->items[i].seen)
			r = let_go(eyes, i, err);
	reap(eyes);
	return r;
}

static bool all_quick_ones_are_done(const struct eyes *eyes)
{
	for (size_t i = 0; i < eyes->count; i++)
		if (!eyes->items[i].slow && looker_busy(eyes->items[i].looker))
			return false;
	return true;
}

void eyes_ask(struct eyes *eyes, outbox_time patience, bool again, const bool *stopping)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time until;

	if (patience > PATIENCE)
		patience = PATIENCE;
	until = clock->mono(clock) + patience;
	waiting_lock(eyes->waiting);
	for (size_t i = 0; i < eyes->count; i++) {
		struct eye *eye = &eyes->items[i];

		eye->slow = looker_busy(eye->looker);
		if (!eye->slow || again)
			looker_ask(eye->looker, again);
	}
	while (!*stopping && !all_quick_ones_are_done(eyes) && clock->mono(clock) < until)
		waiting_wait(eyes->waiting, until - clock->mono(clock));
	waiting_unlock(eyes->waiting);
}

struct look *eyes_last(struct eyes *eyes, const char *source)
{
	const struct eye *eye = find_eye(eyes, source);

	return eye ? looker_last(eye->looker) : NULL;
}

void eyes_close(struct eyes *eyes)
{
	for (size_t i = 0; i < eyes->count; i++)
		looker_free(eyes->items[i].looker);
	for (size_t i = 0; i < eyes->n_leaving; i++)
		looker_free(eyes->leaving[i]);
	free(eyes->items);
	free(eyes->leaving);
}
