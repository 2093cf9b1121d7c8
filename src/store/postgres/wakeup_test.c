/* SPDX-License-Identifier: Apache-2.0 */
/* The doorbell: who is told that he may sleep is woken by whatever is published from then on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

#include <poll.h>

#define PATIENCE 20000 /* ms; usually one */

static int setup(void **state)
{
	struct place *p;

	if (place_setup(state))
		return -1;
	p = *state;
	place_sql(p, "SELECT outbox_doorbell(true)");
	return 0;
}

static bool may_sleep(struct place *p, struct outbox_store *store)
{
	bool again = true;
	int fd = -1;

	if (pg_listen(store, &fd, &again, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	assert_int_equal(fd, PQsocket(pg_of(store)->conn));
	return !again;
}

/* Again, after a ring: the descriptor is known. */
static bool go_on(struct place *p, struct outbox_store *store)
{
	bool again = false;
	int fd = -1;

	if (pg_listen(store, &fd, &again, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
	return !again;
}

static void wake(struct place *p, struct outbox_store *store)
{
	if (pg_stop_listening(store, &p->err) != OUTBOX_OK)
		fail_msg("%s", p->err.message);
}

/* Asleep until somebody rings. */
static bool is_woken(struct outbox_store *store)
{
	struct pollfd fd = { .fd = PQsocket(pg_of(store)->conn), .events = POLLIN };

	return poll(&fd, 1, PATIENCE) == 1;
}

static void a_sleeper_is_woken_each_time(void **state)
{
	struct place *p = *state;

	for (int i = 0; i < 5; i++) {
		assert_true(may_sleep(p, p->store));
		place_publish(p, 1);
		assert_true(is_woken(p->store));
		wake(p, p->store);
	}
}

/* How often the bell is held, by the way a publisher would see it. */
static int64_t bells(struct place *p)
{
	return place_number(p, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
			       " AND mode = 'ExclusiveLock'");
}

/* It goes on sleeping without letting go: publishers ring all the while. */
static void the_bell_is_held_over_several_rings(void **state)
{
	struct place *p = *state;
	struct outbox_store *other = place_open(p, p->url);

	assert_true(may_sleep(p, p->store));
	assert_true(may_sleep(p, other)); /* who hears it, too */
	for (int i = 0; i < 5; i++) {
		place_publish(p, 1);
		assert_true(is_woken(p->store));
		assert_int_equal(bells(p), 1);
		assert_true(go_on(p, p->store));
		assert_int_equal(bells(p), 1);
	}
	assert_true(is_woken(other));
	assert_false(go_on(p, other)); /* but not who does not hold it: it begins anew */
	wake(p, other);
	assert_true(may_sleep(p, other));
	wake(p, p->store);
	assert_int_equal(bells(p), 0);
	wake(p, other);
	store_close(other);
}

/* It began when nobody slept, so it does not ring. */
static void nobody_sleeps_while_a_publisher_is_at_work(void **state)
{
	struct place *p = *state;

	place_sql(p, "BEGIN");
	place_publish(p, 1);
	assert_false(may_sleep(p, p->store));
	assert_false(may_sleep(p, p->store));
	place_sql(p, "COMMIT");
	assert_true(may_sleep(p, p->store));
}

/* One has the bell; all who sleep hear it. */
static void all_sleepers_are_woken(void **state)
{
	struct place *p = *state;
	struct outbox_store *other = place_open(p, p->url);

	for (int i = 0; i < 3; i++) {
		assert_true(may_sleep(p, p->store));
		assert_true(may_sleep(p, other));
		place_publish(p, 1);
		assert_true(is_woken(p->store));
		assert_true(is_woken(other));
		wake(p, other); /* it has nothing to let go */
		place_sql(p, "NOTIFY nobody");
		wake(p, p->store);
	}
	store_close(other);
}

/* Who lets the bell go wakes the others: from then on publishers would not ring for them. */
static void the_bell_is_passed_on(void **state)
{
	struct place *p = *state;
	struct outbox_store *other = place_open(p, p->url);

	assert_true(may_sleep(p, p->store));
	assert_true(may_sleep(p, other));
	wake(p, p->store);
	assert_true(is_woken(other));
	wake(p, other);
	assert_true(may_sleep(p, other));
	assert_true(may_sleep(p, p->store));
	place_publish(p, 1);
	assert_true(is_woken(other));
	assert_true(is_woken(p->store));
	wake(p, p->store);
	store_close(other); /* who dies lets go, too */
	for (int i = 0; i < PATIENCE / 10 &&
			place_number(p, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
	     i++)
		poll(NULL, 0, 10);
	assert_true(may_sleep(p, p->store));
	place_publish(p, 1);
	assert_true(is_woken(p->store));
}

/* A publisher that is at work keeps everybody awake, a bell or not. */
static void a_publisher_is_no_sleeper(void **state)
{
	struct place *p = *state;
	struct outbox_store *other = place_open(p, p->url);

	place_sql(p, "BEGIN");
	place_publish(p, 1);
	assert_false(may_sleep(p, p->store));
	assert_false(may_sleep(p, other));
	place_sql(p, "COMMIT");
	store_close(other);
}

/* What was published before, or while nobody slept, rings for nobody. */
static void nobody_rings_when_all_are_awake(void **state)
{
	struct place *p = *state;
	struct pollfd fd = { .fd = PQsocket(pg_of(p->store)->conn), .events = POLLIN };

	assert_true(may_sleep(p, p->store));
	wake(p, p->store);
	place_publish(p, 1);
	place_sql(p, "NOTIFY nobody"); /* whatever is sent before it would have been sent by now */
	assert_int_equal(poll(&fd, 1, 50), 0);
}

static void without_a_bell_there_is_nothing_to_wait_for(void **state)
{
	struct place *p = *state;
	bool again = true;
	int fd = 0;

	place_sql(p, "SELECT outbox_doorbell(false)");
	assert_int_equal(pg_listen(p->store, &fd, &again, &p->err), OUTBOX_OK);
	assert_int_equal(fd, -1);
	assert_false(again);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_sleeper_is_woken_each_time),
		CASE(the_bell_is_held_over_several_rings),
		CASE(nobody_sleeps_while_a_publisher_is_at_work),
		CASE(all_sleepers_are_woken),
		CASE(the_bell_is_passed_on),
		CASE(a_publisher_is_no_sleeper),
		CASE(nobody_rings_when_all_are_awake),
		CASE(without_a_bell_there_is_nothing_to_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
