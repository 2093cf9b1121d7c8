/* SPDX-License-Identifier: Apache-2.0 */
/* Chance, and the story of what happened. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define X(name, text) #name,
const char *const sim_fault_names[] = { SIM_FAULTS(X) };
const char *const sim_premise_names[] = { SIM_PREMISES(X) };
#undef X
#define X(name, text) text,
const char *const sim_fault_texts[] = { SIM_FAULTS(X) };
const char *const sim_premise_texts[] = { SIM_PREMISES(X) };
#undef X

uint64_t sim_pick(struct sim *s, uint64_t n)
{
	return s->random.base.next(&s->random.base) % n;
}

bool sim_chance(struct sim *s, int percent)
{
	return sim_pick(s, 100) < (uint64_t)percent;
}

bool sim_fault(struct sim *s, enum sim_fault fault)
{
	/* The draw is made whether or not the fault is on, so that the shrinker can switch one off
	 * without changing every draw behind it. */
	bool happens = sim_chance(s, s->percent);

	if (!happens || s->healing || !s->enabled[fault] || (s->skip && s->skip[fault] == '1'))
		return false;
	s->totals->faults[fault]++;
	return true;
}

uint64_t wire_pick(struct sim *s, uint64_t n)
{
	return s->wire.base.next(&s->wire.base) % n;
}

bool wire_happens(struct sim *s, enum sim_fault fault, int percent)
{
	bool happens = wire_pick(s, 100) < (uint64_t)percent;

	return happens && !s->healing && s->enabled[fault] && !(s->skip && s->skip[fault] == '1');
}

void sim_say(struct sim *s, const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	if (!s->tracing && !s->hashing)
		return;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (int i = 0; i < n && i < (int)sizeof(line) - 1; i++)
		s->hash = (s->hash ^ (unsigned char)line[i]) * 1099511628211u;
	s->hash = (s->hash ^ (uint64_t)sim_now(s)) * 1099511628211u;
	if (s->tracing)
		printf("%9.3f s  %*s%s\n",
		       (double)(sim_mono(s) - SIM_START_MONO(s)) / OUTBOX_SECONDS, 2 * s->depth, "",
		       line);
}

void sim_violation(struct sim *s, const char *invariant, const char *format, ...)
{
	va_list args;
	size_t used;

	s->failed = true;
	snprintf(s->violation, sizeof(s->violation), "%s: ", invariant);
	used = strlen(s->violation);
	va_start(args, format);
	vsnprintf(s->violation + used, sizeof(s->violation) - used, format, args);
	va_end(args);
	sim_say(s, "VIOLATION %s", s->violation);
	longjmp(s->out, 1);
}

void sim_premise(struct sim *s, enum sim_premise premise)
{
	s->totals->premises[premise]++;
}

struct sim_message *sim_message(struct sim *s, int64_t seq)
{
	/* the last one that has this number: those before it are gone */
	for (size_t i = s->n_messages; i-- > 0;)
		if (s->messages[i].seq == seq)
			return &s->messages[i];
	return NULL;
}

struct sim_delivery *sim_delivery(struct sim *s, int target, int64_t seq)
{
	struct sim_message *m = sim_message(s, seq);

	return m ? &s->deliveries[target][m - s->messages] : NULL;
}

int sim_target(const char *name)
{
	return name[1] - '0';
}

struct memory_target *sim_db_target(struct sim *s, int target)
{
	char name[3] = { 't', (char)('0' + target), '\0' };

	return memory_target_find(s->db, name);
}
