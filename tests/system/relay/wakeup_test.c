/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell with real threads, on the memory store with a bell of the test's own. Lanes would poll once
 * an hour: whatever arrives was found because the bell rang, or by the look that follows its hanging.
 */
#include "store/store.h"
#include "world.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

enum kind { BELL_WORKS, BELL_NONE, BELL_BUSY, BELL_BROKEN };

static struct {
	struct world *world;
	enum kind kind;
	int pipe[2];
	_Atomic int listened, awoken; /* how often it was hung up, and taken down */
	_Atomic int rings;            /* that were heard while it hung */
	_Atomic bool hung;
	bool anothers;          /* it is another relay's, who may take it down at any time */
	bool publish_on_listen; /* somebody publishes just before the bell hangs, and does not ring */
	_Atomic bool publish_on_ring; /* somebody publishes and rings while an earlier ring is being heard */
} bell;

static void silence(void)
{
	char text[64];

	while (read(bell.pipe[0], text, sizeof(text)) > 0)
		;
}

/* Late enough for the lanes to be dry again, if they were woken already. That ring is forgotten with the one before. */
static void publish_late(void)
{
	usleep(300000);
	bell.publish_on_ring = false;
	world_publish(bell.world, "order.placed", "late", NULL);
}

static int bell_listen(struct outbox_store *store, int *ret_fd, bool *ret_again,
		       struct outbox_error *err)
{
	if (atomic_load(&bell.hung)) {
		if (bell.publish_on_ring)
			publish_late();
		silence();
		atomic_fetch_add(&bell.rings, 1);
		*ret_again = bell.anothers;
		return OUTBOX_OK;
	}
	(void)store;
	atomic_fetch_add(&bell.listened, 1);
	if (bell.kind == BELL_BROKEN)
		return outbox_fail(err, OUTBOX_ECONN, "no line");
	*ret_fd = bell.kind == BELL_NONE ? -1 : bell.pipe[0];
	*ret_again = bell.kind == BELL_BUSY;
	if (bell.kind != BELL_WORKS)
		return OUTBOX_OK;
	if (bell.publish_on_listen) {
		bell.publish_on_listen = false;
		world_publish(bell.world, "order.placed", "between", NULL);
	}
	atomic_store(&bell.hung, true);
	return OUTBOX_OK;
}

static int bell_stop_listening(struct outbox_store *store, struct outbox_error *err)
{
	(void)store;
	(void)err;
	atomic_store(&bell.hung, false);
	atomic_fetch_add(&bell.awoken, 1);
	silence();
	return OUTBOX_OK;
}

static struct outbox_store_ops ops;

static int bell_open(const struct outbox_store_config *config, bool create,
		     struct outbox_store **ret_store, struct outbox_error *err)
{
	int r = store_open(&memory_store_ops, config, create, ret_store, err);

	if (r == OUTBOX_OK)
		(*ret_store)->ops = &ops;
	return r;
}

static struct outbox_relay *start_polling(struct world *w, enum kind kind, outbox_time poll,
					  struct outbox_registry **registry)
{
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;

	bell.world = w;
	bell.kind = kind;
	atomic_store(&bell.hung, false);
	atomic_store(&bell.listened, 0);
	atomic_store(&bell.awoken, 0);
	atomic_store(&bell.rings, 0);
	assert_int_equal(pipe2(bell.pipe, O_NONBLOCK | O_CLOEXEC), 0);
	ops = memory_store_ops;
	ops.open = bell_open;
	ops.lane.listen = bell_listen;
	ops.lane.stop_listening = bell_stop_listening;
	assert_int_equal(outbox_registry_new(registry, &err), OUTBOX_OK);
	assert_int_equal(outbox_registry_add_store(*registry, &ops, w->db, &err), OUTBOX_OK);
	assert_int_equal(outbox_registry_add_transport(*registry, &memory_transport_ops,
						       w->brokers[0], &err),
			 OUTBOX_OK);
	config.registry = *registry;
	config.clock = NULL;
	config.log = NULL;
	config.instance = "bell";
	config.workers = 2;
	config.poll_min = config.poll_max = poll;
	config.lease =
		OUTBOX_HOURS; /* what is not woken stays asleep: no lane changes hands meanwhile */
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_start(relay, &err), OUTBOX_OK);
	return relay;
}

static struct outbox_relay *start(struct world *w, enum kind kind, struct outbox_registry **registry)
{
	return start_polling(w, kind, OUTBOX_HOURS, registry);
}

static void end(struct world *w, struct outbox_relay *relay, struct outbox_registry *registry)
{
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	close(bell.pipe[0]);
	close(bell.pipe[1]);
	world_free(w);
}

/* Half a minute at the most, and usually a few milliseconds. */
#define WAIT_FOR(condition)                                        \
	do {                                                       \
		for (int i_ = 0; i_ < 30000 && !(condition); i_++) \
			usleep(1000);                              \
		assert_true(condition);                            \
	} while (0)

/* As a publisher does: ring when the bell hangs. */
static void publish(struct world *w)
{
	world_publish(w, "order.placed", NULL, NULL);
	if (atomic_load(&bell.hung))
		assert_int_equal(write(bell.pipe[1], "!", 1), 1);
}

static void a_ring_wakes_a_sleeping_relay(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_WORKS, &registry);

	(void)state;
	for (size_t i = 1; i <= 20; i++) {
		WAIT_FOR(atomic_load(&bell.hung));
		publish(w);
		WAIT_FOR(memory_broker_count(w->brokers[0]) == i);
	}
	end(w, relay, registry);
}

static void who_publishes_while_a_ring_is_heard_is_not_missed(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_WORKS, &registry);

	(void)state;
	WAIT_FOR(atomic_load(&bell.hung));
	bell.publish_on_ring = true;
	publish(w);
	WAIT_FOR(memory_broker_count(w->brokers[0]) == 2);
	end(w, relay, registry);
}

/* Somebody took the bell away: who publishes does not ring, and the lanes must not rely on it any longer. */
static void what_nobody_rang_for_ends_the_listening(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay =
		start_polling(w, BELL_WORKS, 10 * OUTBOX_MILLISECONDS, &registry);

	(void)state;
	for (size_t i = 1; i <= 2; i++) {
		WAIT_FOR(atomic_load(&bell.hung));
		usleep(100000); /* all are asleep */
		world_publish(w, "order.placed", NULL, NULL);
		WAIT_FOR(memory_broker_count(w->brokers[0]) == i);
		WAIT_FOR(atomic_load(&bell.awoken) >= (int)i);
	}
	end(w, relay, registry);
}

static void ring(void)
{
	assert_int_equal(write(bell.pipe[1], "!", 1), 1);
}

/* Little to do: whoever publishes rings, and nobody takes the bell down and hangs it up for each message. */
static void the_bell_hangs_over_several_rings(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_WORKS, &registry);

	(void)state;
	WAIT_FOR(atomic_load(&bell.hung));
	for (int i = 0; i < 1000 && atomic_load(&bell.rings) < 20; i++) {
		if (atomic_load(&bell.hung))
			ring();
		usleep(10000); /* rarely enough */
	}
	assert_int_equal(atomic_load(&bell.rings), 20);
	/* once; a machine that is busy with other things may seem to be busy with this one */
	assert_true(atomic_load(&bell.awoken) < 10);
	end(w, relay, registry);
}

static void a_bell_that_rings_all_the_time_is_taken_down(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_WORKS, &registry);

	(void)state;
	WAIT_FOR(atomic_load(&bell.hung));
	for (int i = 0; i < 30000 && !atomic_load(&bell.awoken); i++) {
		ring();
		usleep(300);
		if (i % 1000 == 999)
			usleep(200000);
	}
	assert_true(atomic_load(&bell.awoken) >= 1);
	WAIT_FOR(atomic_load(&bell.listened) >= 2); /* and hung up again */
	WAIT_FOR(atomic_load(&bell.hung));
	world_publish(w, "order.placed", NULL, NULL);
	ring();
	WAIT_FOR(memory_broker_count(w->brokers[0]) == 1);
	end(w, relay, registry);
}

static _Atomic bool gate_closed;

static void wait_at_the_gate(void *context, const struct outbox_batch *batch)
{
	(void)context;
	(void)batch;
	while (atomic_load(&gate_closed))
		usleep(1000);
}

/* A broker that does not answer: the lane has something in flight for as long. */
static void while_work_lasts_the_bell_is_down(void **state)
{
	struct memory_hooks hooks = { .on_publish = wait_at_the_gate };
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_WORKS, &registry);

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	atomic_store(&gate_closed, true);
	WAIT_FOR(atomic_load(&bell.hung));
	publish(w);
	WAIT_FOR(atomic_load(&bell.awoken) == 1);
	assert_int_equal(atomic_load(&bell.listened), 1);
	atomic_store(&gate_closed, false);
	WAIT_FOR(memory_broker_count(w->brokers[0]) == 1);
	WAIT_FOR(atomic_load(&bell.listened) == 2);
	WAIT_FOR(atomic_load(&bell.hung));
	end(w, relay, registry);
}

/* It may be taken down with the same ring: from then on nobody would ring. */
static void anothers_bell_is_asked_for_again_after_each_ring(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay;

	(void)state;
	bell.anothers = true;
	relay = start(w, BELL_WORKS, &registry);
	for (int i = 1; i <= 3; i++) {
		WAIT_FOR(atomic_load(&bell.listened) == i && atomic_load(&bell.hung));
		publish(w);
		WAIT_FOR(memory_broker_count(w->brokers[0]) == (size_t)i);
		WAIT_FOR(atomic_load(&bell.awoken) == i);
	}
	bell.anothers = false;
	end(w, relay, registry);
}

static void nothing_falls_between_the_last_look_and_the_bell(void **state)
{
	struct world *w = world_new(4);
	struct outbox_registry *registry;
	struct outbox_relay *relay;

	(void)state;
	bell.publish_on_listen = true;
	relay = start(w, BELL_WORKS, &registry);
	WAIT_FOR(memory_broker_count(w->brokers[0]) == 1);
	end(w, relay, registry);
}

static void a_busy_bell_is_asked_again(void **state)
{
	struct world *w = world_new(2);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_BUSY, &registry);

	(void)state;
	WAIT_FOR(atomic_load(&bell.listened) >= 5);
	assert_int_equal(atomic_load(&bell.awoken), 0);
	end(w, relay, registry);
}

static void without_a_bell_the_relay_polls(void **state)
{
	struct world *w = world_new(2);
	struct outbox_registry *registry;
	struct outbox_relay *relay = start(w, BELL_NONE, &registry);

	(void)state;
	WAIT_FOR(atomic_load(&bell.listened) >= 1);
	usleep(50000);
	assert_int_equal(atomic_load(&bell.listened), 1); /* asked once, then never again */
	end(w, relay, registry);
}

static void a_broken_bell_stops_nobody(void **state)
{
	struct world *w = world_new(2);
	struct outbox_registry *registry;
	struct outbox_relay *relay;

	(void)state;
	world_publish_many(w, 5, 0);
	relay = start(w, BELL_BROKEN, &registry);
	WAIT_FOR(memory_broker_count(w->brokers[0]) == 5);
	WAIT_FOR(atomic_load(&bell.listened) >= 1);
	end(w, relay, registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_wakes_a_sleeping_relay),
		cmocka_unit_test(who_publishes_while_a_ring_is_heard_is_not_missed),
		cmocka_unit_test(what_nobody_rang_for_ends_the_listening),
		cmocka_unit_test(the_bell_hangs_over_several_rings),
		cmocka_unit_test(a_bell_that_rings_all_the_time_is_taken_down),
		cmocka_unit_test(while_work_lasts_the_bell_is_down),
		cmocka_unit_test(anothers_bell_is_asked_for_again_after_each_ring),
		cmocka_unit_test(nothing_falls_between_the_last_look_and_the_bell),
		cmocka_unit_test(a_busy_bell_is_asked_again),
		cmocka_unit_test(without_a_bell_the_relay_polls),
		cmocka_unit_test(a_broken_bell_stops_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
