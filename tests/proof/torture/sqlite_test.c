/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the SQLite store and client, with a fault at every allocation and every I/O call.
 *
 * After each run: the call did all or nothing (nothing, unless it said that the outcome is unknown); no
 * transaction is open; the same call without faults leads to the same answer and the same database as if
 * nothing had happened; the database is sound; no memory and no descriptor is left behind.
 */

#include "cases.h"
#include "drive.h"
#include "picture.h"
#include "store/sqlite/db.h"
#include "vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct story {
	const struct store_case *c;
	struct world world;
	struct bytes template;
	struct picture before, after, now;
	char *said; /* by the call without faults */
	int64_t memory;
	bool known; /* the reference run is done */
	bool cut;   /* this run: fewer rows than the reference, as CASE_SHORT allows */
};

/* ---- a clock and a seed that stand still for the client, too -------------------------------- */

static struct outbox_clock *client_clock;

/* NOLINTBEGIN(bugprone-reserved-identifier) */
struct outbox_clock *__wrap_outbox_clock_system(void);
uint64_t __wrap_random_system_seed(void);

struct outbox_clock *__wrap_outbox_clock_system(void)
{
	return client_clock;
}

uint64_t __wrap_random_system_seed(void)
{
	return 1;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- one run ------------------------------------------------------------------------------- */

static void first_difference(const char *a, const char *b, char *out, size_t size)
{
	size_t i = 0, start;

	while (a[i] && a[i] == b[i])
		i++;
	for (start = i; start > 0 && a[start - 1] != '\n'; start--)
		;
	snprintf(out, size, "\"%.150s\" instead of \"%.150s\"", a + start, b + start);
}

static void check_said(struct story *s)
{
	char text[400];

	if (strcmp(s->world.said, s->said) == 0)
		return;
	s->cut = (s->c->flags & CASE_SHORT) && fault_fired() &&
		 strncmp(s->world.said, s->said, s->world.n_said) == 0;
	if (s->cut)
		return;
	first_difference(s->world.said, s->said, text, sizeof(text));
	torture_wrong("a wrong answer: %s", text);
}

/* Neither before nor after: say how. */
static void half_done(const struct story *s, const char *what, struct picture wanted)
{
	char text[400];

	first_difference(s->now.text, wanted.text, text, sizeof(text));
	torture_wrong("%s: %s", what, text);
}

static void check_transaction_ended(const struct story *s)
{
	if (!(s->c->flags & CASE_DDL) && s->world.store &&
	    !sqlite3_get_autocommit(sqlite_of(s->world.store)->db))
		torture_wrong("a transaction is left open");
}

static int call(struct story *s, struct outbox_error *err)
{
	s->world.n_said = 0;
	s->world.said[0] = '\0';
	random_init(&s->world.random, 7); /* what is drawn is the same when it is called again */
	return s->c->call(&s->world, err);
}

static void check_state(struct story *s, int r)
{
	s->now = picture_take(&s->world);
	if (s->cut) {
		if (!picture_sound(s->now))
			half_done(s, "integrity_check", s->after);
		return;
	}
	if (r == OUTBOX_OK) {
		if (!picture_same(s->now, s->after))
			half_done(s, "said done", s->after);
		return;
	}
	if (picture_same(s->now, s->before))
		return;
	if (!picture_same(s->now, s->after))
		half_done(s, "half done", s->before);
	else if (r == OUTBOX_ECONN)
		torture_count_unknown();
	else
		half_done(s, "done although it said that nothing was", s->before);
}

/* Without faults everything comes right, on the same connection where that was not called gone. */
static void repeat(struct story *s, int status)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct world *w = &s->world;
	int r;

	if (!picture_same(s->now, s->before) && !(s->c->flags & CASE_AGAIN))
		return;
	if (status == OUTBOX_ECONN)
		world_close(w);
	if (!w->store && !w->app && !(s->c->flags & CASE_CLOSED))
		world_open(w);
	r = call(s, &err);
	if (r != OUTBOX_OK)
		torture_wrong("fails again without a fault: %s", err.message);
	else
		check_said(s);
}

static void learn(struct story *s)
{
	world_close(&s->world);
	s->after = picture_take(&s->world);
	s->said = strdup(s->world.said);
	if (!s->said)
		abort();
	if (!picture_sound(s->after))
		torture_wrong("integrity_check: %s", s->after.text);
	s->memory = sqlite3_memory_used();
	s->known = true;
}

static void run(void *context)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct story *s = context;
	struct world *w = &s->world;
	int r;

	s->cut = false;
	world_load(w, &s->template);
	if (!(s->c->flags & CASE_CLOSED))
		world_open(w);
	if (s->c->before)
		s->c->before(w);
	fault_on();
	r = call(s, &err);
	if (!torture_persistent())
		fault_off();
	if (r != OUTBOX_OK)
		torture_check_error(r, &err);
	check_transaction_ended(s);
	if (!s->known) {
		fault_off();
		learn(s);
		return;
	}
	if (r == OUTBOX_OK)
		check_said(s);
	if (torture_persistent()) {
		world_close(w); /* with the faults still there */
		fault_off();
	}
	check_state(s, r);
	if (r != OUTBOX_OK)
		repeat(s, r);
	world_close(w);
	check_state(s, OUTBOX_OK);
	if (sqlite3_memory_used() != s->memory)
		torture_wrong("SQLite holds %lld bytes more than before",
			      (long long)(sqlite3_memory_used() - s->memory));
}

/* ---- all of them --------------------------------------------------------------------------- */

static void prepare(struct story *s)
{
	struct world *w = &s->world;

	world_begin(w);
	client_clock = &w->clock.base;
	if (s->c->prepare) {
		world_open(w);
		s->c->prepare(w);
		world_close(w);
		world_save(w, &s->template);
	}
	/* What the call's own preparation writes in each run belongs to "before". */
	world_load(w, &s->template);
	if (s->c->before) {
		world_open(w);
		s->c->before(w);
		world_close(w);
	}
	s->before = picture_take(w);
}

static void torture_case(const struct store_case *c)
{
	struct story story = { .c = c };
	struct scenario scenario = { c->name, run, &story, c->memory_min, c->io_min };

	if (!torture_wanted(c->name))
		return;
	prepare(&story);
	torture(&scenario);
	world_end(&story.world);
	free(story.template.data);
	free(story.said);
	picture_forget();
}

/* "lane", or "lane:2/3": of its cases every third from the second on. "": all of all groups. */
static void torture_groups(const char *wanted)
{
	static const struct {
		const char *name;
		const struct store_case *cases;
	} groups[] = { { "schema", schema_cases },
		       { "client", client_cases },
		       { "lane", lane_cases },
		       { "operator", operator_cases } };
	const char *colon = strchr(wanted, ':');
	size_t length = colon ? (size_t)(colon - wanted) : strlen(wanted);
	long part = 1, parts = 1;
	char *end = NULL;

	if (colon) {
		part = strtol(colon + 1, &end, 10);
		parts = *end == '/' ? strtol(end + 1, &end, 10) : 0;
	}
	if (part < 1 || part > parts || (end && *end)) {
		fprintf(stderr, "torture sqlite: \"%s\" is no part; write for example lane:2/3\n",
			wanted);
		return;
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (length && (strlen(groups[i].name) != length ||
			       memcmp(wanted, groups[i].name, length) != 0))
			continue;
		for (int n = 0; groups[i].cases[n].name; n++) {
			if (n % parts == part - 1)
				torture_case(&groups[i].cases[n]);
		}
	}
}

int main(int argc, char **argv)
{
	long asked, made;

	torture_begin("torture sqlite", argc > 2 ? argc - 1 : 1, argv + 1);
	torture_limit(24);
	vfs_install();
	torture_groups(argc > 1 ? argv[1] : "");
	picture_counts(&asked, &made);
	fprintf(stderr, "%ld pictures, %ld of them drawn\n", asked, made);
	return torture_end();
}
