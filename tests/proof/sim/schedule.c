/* SPDX-License-Identifier: Apache-2.0 */
/* One seed: a small world, a time of chaos, a time of healing, and what must be true at the end. */
#include "sim.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define HEAL_TIME (30 * OUTBOX_MINUTES)
#define HEAL_STEPS 100000
#define START ((outbox_time)1700000000 * OUTBOX_SECONDS)

static int between(struct sim *s, int low, int high)
{
	return low + (int)sim_pick(s, (uint64_t)(high - low + 1));
}

/* Swarm: each seed switches a random part of the faults on, with a random frequency. */
static void choose_world(struct sim *s)
{
	int chance = between(s, 5, 60);

	for (int i = 0; i < FAULT_CONFIRM_FIRST; i++)
		s->enabled[i] = sim_chance(s, chance);
	for (int i = FAULT_CONFIRM_FIRST; i < FAULT_COUNTER_FIRST; i++)
		s->enabled[i] = wire_pick(s, 100) < (uint64_t)chance;
	for (int i = FAULT_COUNTER_FIRST; i < FAULT_CANCEL; i++)
		s->enabled[i] = s->past.base.next(&s->past.base) % 100 < (uint64_t)chance;
	s->enabled[FAULT_CANCEL] = s->enabled[FAULT_DUE];
	s->percent = between(s, 3, 25);
	s->lanes = 1 << between(s, 0, 2);
	s->n_relays = between(s, 1, SIM_RELAYS);
	s->n_targets = between(s, 1, SIM_TARGETS);
	s->n_keys = between(s, 0, 3);
	s->n_messages_wanted = between(s, 3, 28);
	s->hold = sim_chance(s, 20);
	s->unordered_writers = sim_chance(s, 15);
	s->batch = (size_t)between(s, 1, 10);
	s->max_events = (size_t)between(s, 50, 400);
	s->policy = *outbox_policy_find("default");
	s->policy.max_attempts = between(s, 2, 5);
	s->policy.cap = 8 * OUTBOX_SECONDS;
	s->policy.jitter_percent = sim_chance(s, 50) ? 25 : 0;
	for (int t = 0; t < s->n_targets; t++)
		s->brokers[t].dedupes = sim_chance(s, 25);
	for (int t = 0; t < s->n_targets; t++) {
		s->brokers[t].confirms = wire_pick(s, 2);
		s->brokers[t].by_id = wire_pick(s, 2);
	}
	for (int t = 0; t < s->n_targets; t++) {
		uint64_t draw = s->paths.base.next(&s->paths.base), what = draw % 8;

		s->gets[t] = what == 0 ? GETS_NOTHING : what < 3 ? GETS_SOME : GETS_ALL;
		s->starts_now[t] = draw / 8 % 4 == 0;
	}
}

static void make_world(struct sim *s)
{
	struct outbox_init_options options = { .struct_size = sizeof(options), .lanes = s->lanes };
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = "memory:sim",
					      .clock = &s->clock.base,
					      .random = &s->random.base };
	int r;

	s->db = memory_db_new("sim", &s->clock.base, s->seed + 1);
	s->arena = outbox_arena_new((size_t)8 << 20);
	config.context = s->db;
	r = store_open(&memory_store_ops, &config, true, &s->store, NULL) ||
	    store_init(s->store, &options, NULL) || outbox_registry_new(&s->registry, NULL) ||
	    outbox_registry_add_store(s->registry, sim_full_ops(), s, NULL) ||
	    outbox_registry_add_transport(s->registry, &sim_transport_ops, s, NULL);
	if (r)
		abort();
	for (int i = 0; i < SIM_RELAYS; i++)
		s->relays[i].number = i;
}

static void end_world(struct sim *s)
{
	for (int i = 0; i < SIM_RELAYS; i++)
		s->relays[i].relay = outbox_relay_free(s->relays[i].relay);
	for (int i = 0; i < SIM_WRITERS; i++)
		memory_tx_rollback(s->writers[i].tx);
	store_close(s->store);
	outbox_registry_free(s->registry);
	memory_db_free(s->db);
	outbox_arena_free(s->arena);
}

static void pass_time(struct sim *s)
{
	outbox_time now = sim_mono(s), next = relays_next(s);
	outbox_time step = (outbox_time)sim_pick(s, 2 * OUTBOX_SECONDS);

	if (next > now && next != OUTBOX_NEVER && next - now < step)
		step = next - now;
	frozen_clock_step(&s->clock, step);
}

static void jump_clock(struct sim *s)
{
	outbox_time jump = (outbox_time)sim_pick(s, 40 * OUTBOX_SECONDS) - 20 * OUTBOX_SECONDS;

	if (!sim_fault(s, FAULT_CLOCK_JUMP))
		return;
	frozen_clock_jump(&s->clock, jump);
	s->jumped = true;
	sim_say(s, "the store's clock jumps by %lld ms", (long long)(jump / 1000));
}

void sim_act(struct sim *s)
{
	uint64_t what = sim_pick(s, 100);

	s->events++;
	operators_number(s);
	if (what < 60) {
		if (!relays_step(s))
			pass_time(s);
	} else if (what < 74) {
		writers_act(s);
	} else if (what < 80) {
		operators_act(s);
	} else if (what < 88) {
		relays_trouble(s);
	} else if (what < 92) {
		brokers_trouble(s);
	} else if (what < 94) {
		jump_clock(s);
	} else if (what < 96) {
		ghosts_act(s, false);
	} else {
		pass_time(s);
	}
}

void sim_interlude(struct sim *s, struct sim_relay *busy)
{
	struct sim_relay *current = s->current;

	(void)busy;
	if (s->depth >= 3)
		return;
	s->depth++;
	for (uint64_t n = 1 + sim_pick(s, 8); n > 0; n--)
		sim_act(s);
	s->depth--;
	s->current = current;
}

/* With hold, a failed message keeps its key waiting until an operator comes: that is a fine end. */
static bool held_for_good(struct sim *s, int t, size_t i)
{
	for (size_t j = 0; j < s->n_messages && s->hold; j++)
		if (s->messages[j].seq < s->messages[i].seq && s->messages[j].committed &&
		    s->messages[i].key[0] && !strcmp(s->messages[j].key, s->messages[i].key) &&
		    s->deliveries[t][j].state == OUTBOX_FAILED)
			return true;
	return false;
}

static bool finished(struct sim *s)
{
	for (size_t i = 0; i < s->n_messages; i++) {
		const struct sim_message *m = &s->messages[i];

		for (int t = 0; t < s->n_targets && m->committed && !m->purged; t++) {
			int state = s->deliveries[t][i].state;

			if (!sim_gets(s, t, m))
				continue;
			if (state != OUTBOX_DELIVERED && state != OUTBOX_FAILED &&
			    state != OUTBOX_DISCARDED && !held_for_good(s, t, i))
				return false;
		}
	}
	return writers_done(s);
}

/* All faults end; whoever is down comes back; everything must be finished within a bound. */
static void heal(struct sim *s)
{
	outbox_time end = sim_mono(s) + HEAL_TIME, next;
	int steps = 0;

	s->healing = true;
	sim_say(s, "the world heals");
	brokers_heal(s);
	operators_heal(s);
	ghosts_act(s, true);
	for (; !finished(s); steps++) {
		operators_answer(s);
		for (int i = 0; i < s->n_relays; i++) {
			s->relays[i].stopped = false;
			if (!s->relays[i].relay)
				relays_start(s, i);
		}
		writers_act(s);
		if (relays_step(s))
			continue;
		next = relays_next(s);
		if (next > sim_mono(s))
			frozen_clock_step(&s->clock, next - sim_mono(s));
		if (sim_mono(s) > end || steps > HEAL_STEPS)
			sim_violation(s, "heal", "not everything is finished after %d steps", steps);
	}
	operators_answer(s);
}

bool sim_run(struct sim *s, uint64_t seed, struct sim_totals *totals)
{
	const char *skip = s->skip;
	bool tracing = s->tracing, hashing = s->hashing, canary = s->canary;
	size_t limit = s->limit;

	memset(s, 0, sizeof(*s));
	s->skip = skip;
	s->tracing = tracing;
	s->hashing = hashing;
	s->canary = canary;
	s->limit = limit;
	s->totals = totals;
	s->seed = seed;
	s->hash = 14695981039346656037u;
	random_init(&s->random, seed);
	random_init(&s->wire, ~seed);
	random_init(&s->past, seed * 2654435761u + 1);
	random_init(&s->paths, seed * 3 + 1);
	frozen_clock_init(&s->clock, START);
	s->start_mono = sim_mono(s);
	choose_world(s);
	make_world(s);
	if (limit && limit < s->max_events)
		s->max_events = limit;
	sim_say(s, "seed %llu: %d targets, %d lanes, %d relays, batch %zu, %d attempts%s",
		(unsigned long long)seed, s->n_targets, s->lanes, s->n_relays, s->batch,
		s->policy.max_attempts, s->hold ? ", hold" : "");
	totals->seeds++;
	/* The world of a failed run is left as it is: half-way through a call it cannot be freed. */
	if (setjmp(s->out))
		return false;
	for (int i = 0; i < s->n_relays; i++)
		relays_start(s, i);
	while (s->events < s->max_events)
		sim_act(s);
	heal(s);
	check_end(s);
	frozen_clock_step(&s->clock, OUTBOX_DAYS);
	check_retention(s);
	totals->events += s->events;
	end_world(s);
	return true;
}
