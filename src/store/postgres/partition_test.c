/* SPDX-License-Identifier: Apache-2.0 */
/* The log in partitions: retention drops them, the janitor may be away, and publishing never suffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "store/postgres/place_test.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int64_t partitions(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_partitions()");
}

static int64_t in_default(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_message_default");
}

static int64_t messages(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM outbox_message");
}

static void a_new_log_has_partitions_ahead(void **state)
{
	struct place *p = *state;

	assert_int_equal(partitions(p), 3);
	place_publish(p, 25);
	assert_int_equal(in_default(p), 0);
	place_purge(p, OUTBOX_DAYS);
	assert_true(place_number(p, "SELECT max(high) FROM outbox_partitions()") > 25 + 2 * 10);
	assert_int_equal(place_drain(p, "events"), 25);
}

static void old_partitions_go_whole(void **state)
{
	struct place *p = *state;
	struct outbox_purged purged;

	place_publish(p, 25);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish(p, 1);
	purged = place_purge(p, OUTBOX_HOURS);
	assert_int_equal(purged.messages, 20);
	assert_int_equal(messages(p), 6);
	assert_int_equal(place_number(p, "SELECT min(low) FROM outbox_partitions()"), 21);
	assert_int_equal(place_drain(p, "events"), 1);
}

/* What one target has not settled keeps the partition for all. */
static void a_slow_target_keeps_them(void **state)
{
	struct place *p = *state;

	place_target(p, "slow");
	place_publish(p, 25);
	place_drain(p, "events");
	place_settle(p, "slow", OUTBOX_OUT_DELIVERED, NULL, 15);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 25); /* its window is not read to the end */
	place_drain(p, "slow");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 5);
}

/* A transaction that is still open may hold low places in the log: its messages come later. */
static void a_late_commit_keeps_its_partition(void **state)
{
	struct place *p = *state;
	PGconn *late = place_connect(p);
	int64_t seqs[40];

	PQclear(PQexec(late,
		       "BEGIN; INSERT INTO outbox_message (type, payload) VALUES ('late', '{}')"));
	place_publish(p, 29);
	assert_int_equal(place_drain(p, "events"), 29);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_drain(p, "events");
	PQclear(PQexec(late, "COMMIT"));
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message WHERE type = 'late'"),
			 1);
	assert_int_equal(place_settle(p, "events", OUTBOX_OUT_DELIVERED, seqs, 40), 1);
	assert_int_equal(seqs[0], 1);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 0);
	PQfinish(late);
}

/* What a detour needs outlives its partition, is sent from where it is kept, and goes in the end. */
static void a_failed_one_is_kept(void **state)
{
	struct place *p = *state;
	struct outbox_filter filter = { .struct_size = sizeof(filter), .target = "events" };
	struct outbox_act act = { .action = OUTBOX_REQUEUE, .actor = "anna", .filter = &filter };
	struct outbox_acted acted;
	struct outbox_page page;
	int64_t seqs[40];

	place_target(p, "other");
	place_publish(p, 25);
	assert_int_equal(place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 2), 2);
	place_drain(p, "events");
	place_drain(p, "other");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 18);
	assert_int_equal(messages(p), 5);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_kept"), 2);
	filter.target = "other"; /* and it is still told what became of it there */
	filter.limit = 1;
	assert_int_equal(store_list(p->store, &filter, p->arena, &page, &p->err), OUTBOX_OK);
	assert_int_equal(page.rows[0].seq, 1);
	assert_int_equal(page.rows[0].state, OUTBOX_DELIVERED);
	filter.target = "events";
	filter.limit = 0;
	assert_int_equal(store_act(p->store, &act, &acted, &p->err), OUTBOX_OK);
	assert_int_equal(acted.done, 2);
	assert_int_equal(place_settle(p, "events", OUTBOX_OUT_DELIVERED, seqs, 40), 2);
	assert_int_equal(seqs[1], 2);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_kept"), 0);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_detour"), 0);
}

/* Nobody waits for the janitor: an open writer is in its way, not the other way round. */
static void an_open_writer_stops_the_janitor_not_others(void **state)
{
	struct place *p = *state;
	PGconn *writer = place_connect(p);

	place_publish(p, 25);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	PQclear(PQexec(writer,
		       "BEGIN; INSERT INTO outbox_message (type, payload) VALUES ('open', '{}')"));
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 25); /* dropping must wait, and attaching, too */
	place_publish(p, 1);
	PQclear(PQexec(writer, "COMMIT"));
	PQfinish(writer);
	assert_int_equal(place_drain(p, "events"), 2);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(messages(p), 7);
}

static void *purge_for_a_while(void *argument)
{
	struct place *p = argument;

	for (int i = 0; i < 20; i++)
		place_purge(p, OUTBOX_HOURS);
	return NULL;
}

/* A statement that runs while partitions are attached goes to its end, also past the old ones. */
static void a_long_statement_is_not_refused(void **state)
{
	struct place *p = *state;
	PGconn *writer = place_connect(p);
	pthread_t janitor;
	PGresult *result;

	assert_int_equal(pthread_create(&janitor, NULL, purge_for_a_while, p), 0);
	result = PQexec(writer, "INSERT INTO outbox_message (type, payload) SELECT 't', '{}'"
				" FROM generate_series(1, 80) WHERE pg_sleep(0.01) IS NOT NULL");
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s", PQerrorMessage(writer));
	PQclear(result);
	PQfinish(writer);
	pthread_join(janitor, NULL);
	assert_int_equal(place_drain(p, "events"), 80);
}

static void *drop_old(void *argument)
{
	struct place *p = argument;
	PGconn *janitor = place_connect(p);
	char sql[160];

	snprintf(sql, sizeof(sql),
		 "SELECT outbox_drop_partition(to_timestamp(%lld), 9223372036854775807, 1000)",
		 (long long)((p->clock.wall - OUTBOX_HOURS) / OUTBOX_SECONDS));
	for (int i = 0; i < 50; i++)
		PQclear(PQexec(janitor, sql));
	PQfinish(janitor);
	return NULL;
}

/* The janitor found all settled, waits for the lock, and the last writer commits. */
static void a_commit_while_the_janitor_waits_is_kept(void **state)
{
	struct place *p = *state;
	PGconn *late = place_connect(p);
	pthread_t janitor;

	PQclear(PQexec(late,
		       "BEGIN; INSERT INTO outbox_message (type, payload) VALUES ('late', '{}')"));
	place_publish(p, 29);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_drain(p, "events");
	assert_int_equal(pthread_create(&janitor, NULL, drop_old, p), 0);
	for (int i = 0; i < 10000; i++) { /* until it waits for us */
		if (place_number(p, "SELECT count(*) FROM pg_locks WHERE NOT granted"
				    " AND relation = 'outbox_message'::regclass"))
			break;
	}
	PQclear(PQexec(late, "COMMIT"));
	PQfinish(late);
	pthread_join(janitor, NULL);
	assert_int_equal(place_drain(p, "events"), 1);
}

/* An open writer in the default partition makes attaching wait for the next call. */
static void attaching_gives_way(void **state)
{
	struct place *p = *state;
	PGconn *writer = place_connect(p);
	int64_t before;

	place_publish(p, 35); /* the last five are in the default partition */
	assert_int_equal(in_default(p), 5);
	before = partitions(p);
	PQclear(PQexec(writer,
		       "BEGIN; INSERT INTO outbox_message (type, payload) VALUES ('open', '{}')"));
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(partitions(p), before);
	place_publish(p, 1);
	PQclear(PQexec(writer, "COMMIT"));
	PQfinish(writer);
	place_purge(p, OUTBOX_HOURS);
	assert_true(partitions(p) > before);
	place_publish(p, 40);
	assert_int_equal(place_drain(p, "events"), 77);
}

/* Away for long: the default partition is large, and no attaching may look through it under a lock. */
static void a_large_default_partition_is_passed(void **state)
{
	struct place *p = *state;
	int64_t caught;
	size_t got = 0;

	place_sql(p, "INSERT INTO outbox_message (type, payload)"
		     " SELECT 't', repeat('x', 5000) || random() FROM generate_series(1, 40)");
	place_sql(p, "ALTER TABLE outbox_message_default ALTER payload SET STORAGE PLAIN");
	place_sql(p, "INSERT INTO outbox_message (type, payload)"
		     " SELECT 't', repeat('x', 5000) FROM generate_series(1, 3000)");
	assert_true(place_number(p, "SELECT pg_relation_size('outbox_message_default')") > 8 << 20);
	caught = in_default(p);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(
		place_number(p,
			     "SELECT count(*) FROM pg_constraint WHERE conname LIKE 'outbox_gap%%'"),
		0);
	place_publish(p, 10);
	assert_int_equal(in_default(p), caught); /* they go to a partition again */
	place_purge(p, OUTBOX_HOURS);
	place_publish(p, 10);
	assert_int_equal(in_default(p), caught);
	got = place_drain(p, "events");
	assert_int_equal(got, 40 + 3000 + 20);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_publish(p, 5);
	place_drain(p, "events");
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(in_default(p), 0);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(place_number(p, "SELECT pg_relation_size('outbox_message_default')"), 0);
}

static void given_ids_are_accepted_once(void **state)
{
	struct place *p = *state;
	static const char twice[] =
		"SELECT repeated::integer FROM outbox_publish('t', '{}', id => 'mine')";

	assert_int_equal(place_number(p, twice), 0);
	assert_int_equal(place_number(p, twice), 1);
	place_publish(p, 24);
	assert_int_equal(place_number(p, twice), 1);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	place_purge(p, OUTBOX_HOURS);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_id"), 0);
	assert_int_equal(place_number(p, twice), 0);
}

/* An INSERT of its own may repeat an id: what is redacted is all of them. */
static void every_message_of_an_id_is_redacted(void **state)
{
	struct outbox_redact redact = { .id = "mine", .actor = "me", .reason = "erasure" };
	struct place *p = *state;

	place_sql(p, "INSERT INTO outbox_message (id, type, key, payload)"
		     " SELECT 'mine', 't', k, k FROM unnest('{1,2}'::text[]) k");
	place_drain(p, "events");
	assert_int_equal(store_redact(p->store, &redact, NULL, NULL), OUTBOX_OK);
	assert_int_equal(place_number(p,
				      "SELECT count(*) FROM outbox_message WHERE payload ~ '[12]'"),
			 0);
}

/* What an archive gets is what goes. */
static void an_archive_gets_what_goes(void **state)
{
	struct place *p = *state;
	struct outbox_purge what = { 0 };
	struct outbox_claimed *found;
	struct outbox_purged purged;
	size_t count;

	place_publish(p, 25);
	place_settle(p, "events", OUTBOX_OUT_FAILED, NULL, 1);
	place_drain(p, "events");
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	what.delivered_before = p->clock.wall - OUTBOX_HOURS;
	assert_int_equal(pg_purgeable(p->store, &what, 0, p->arena, &found, &count, &p->err),
			 OUTBOX_OK);
	assert_int_equal(count, 19);
	assert_int_equal(found[0].seq, 2);
	assert_int_equal(found[18].seq, 20);
	what.through_seq = 15; /* an archive that got no further: the second partition stays */
	do {
		assert_int_equal(pg_purge(p->store, &what, &purged, &p->err), OUTBOX_OK);
	} while (purged.more);
	assert_int_equal(place_number(p, "SELECT min(seq) FROM outbox_message"), 11);
}

/* A chunk in the middle of sixty partitions touches one of them. */
static void reading_prunes(void **state)
{
	struct place *p = *state;
	int64_t n;

	for (int i = 0; i < 57; i++)
		place_sql(p, "SELECT outbox_attach(%d, %d)", 31 + 10 * i, 41 + 10 * i);
	place_publish(p, 600);
	assert_int_equal(in_default(p), 0);
	place_settle(p, "events", OUTBOX_OUT_DELIVERED, NULL, 305);
	place_sql(p, "CREATE TABLE plan (line text)");
	place_sql(p,
		  "DO $$ DECLARE l text; BEGIN FOR l IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF)"
		  " SELECT w.seq FROM outbox_window(305, '3:3:', 0, NULL, pg_current_snapshot(), 600, 0, 1, NULL, NULL, false, NULL, NULL, 5, 8) w"
		  " LOOP INSERT INTO plan VALUES (l); END LOOP; END $$");
	n = place_number(
		p,
		"SELECT count(*) FROM plan WHERE line ~ 'Scan.*outbox_message_[0-9]' AND line !~ 'never executed'");
	assert_true(n >= 1 && n <= 2);
	assert_int_equal(place_drain(p, "events"), 295);
}

static void partitions_are_chosen_at_the_first_init(void **state)
{
	struct place *p = *state;
	struct outbox_init_options options = { .struct_size = sizeof(options), .partition = true };

	assert_int_equal(store_init(p->store, &options, &p->err), OUTBOX_ECONFIG);
	assert_non_null(strstr(p->err.message, "leave --partition out"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup_partitioned, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_new_log_has_partitions_ahead),
		CASE(old_partitions_go_whole),
		CASE(a_slow_target_keeps_them),
		CASE(a_late_commit_keeps_its_partition),
		CASE(a_failed_one_is_kept),
		CASE(an_open_writer_stops_the_janitor_not_others),
		CASE(attaching_gives_way),
		CASE(a_long_statement_is_not_refused),
		CASE(a_commit_while_the_janitor_waits_is_kept),
		CASE(a_large_default_partition_is_passed),
		CASE(given_ids_are_accepted_once),
		CASE(every_message_of_an_id_is_redacted),
		CASE(an_archive_gets_what_goes),
		CASE(reading_prunes),
		cmocka_unit_test_setup_teardown(partitions_are_chosen_at_the_first_init,
						place_setup, place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
