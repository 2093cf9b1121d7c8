/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver as one for RabbitMQ is: it sends a batch, reads the broker's answers until all are there, the
 * deadline comes or the connection goes, and leaves what they mean to src/transport/confirms.c.
 *
 * There are two kinds. One recognises a returned message by its id, and therefore drops a connection on which
 * answers are missing. The other has put its tag in a header and goes on after a deadline: the answers that
 * were missing come among those to its next batch.
 */
#include "channel.h"

/* False: the connection is gone. */
static bool send_one(struct sim_transport *t, struct outbox_batch *batch, size_t i)
{
	struct sim *s = t->sim;
	const struct sim_message *m = sim_message(s, batch->items[i]->seq);

	if (m->nature == KILLS) {
		s->current->doomed = true;
		sim_say(s, "%d kills its relay", (int)m->seq);
		return false;
	}
	if (m->nature == CUTS && !s->healing) {
		sim_say(s, "%d makes the broker cut the connection", (int)m->seq);
		return false;
	}
	if (m->nature == REJECTED) {
		/* Too large, say: the driver itself refuses it, and it gets no tag. */
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "sim");
		brokers_said(s, t->target, m->seq, OUTBOX_REJECTED);
		return true;
	}
	confirms_send(&t->confirms, i);
	channel_receive(t, batch->items[i]);
	return true;
}

/* One answer, from the wire into the driver's books. */
static int hear(struct sim_transport *t, const struct channel_answer *a, struct outbox_error *err)
{
	static const char *const names[] = { "ack", "nack", "return" };
	uint64_t tag = a->tag;
	int r;

	sim_say(t->sim, "broker t%d: %s %d%s", t->target, names[a->kind], (int)a->tag,
		a->multiple ? " and all before" : "");
	switch (a->kind) {
	case ANSWER_ACK:
		return confirms_ack(&t->confirms, tag, a->multiple, err);
	case ANSWER_NACK:
		return confirms_nack(&t->confirms, tag, a->multiple, err);
	default:
		if (t->sim->brokers[t->target].by_id) {
			r = confirms_find(&t->confirms, sim_message(t->sim, a->seq)->id, &tag, err);
			if (r)
				return r;
		}
		return confirms_return(&t->confirms, tag, 312, "NO_ROUTE", err);
	}
}

/* No answer until the deadline. */
static int out_of_time(struct sim_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct sim *s = t->sim;

	if (sim_mono(s) < deadline)
		frozen_clock_step(&s->clock, deadline - sim_mono(s));
	sim_say(s, "%zu messages are not confirmed in time", t->confirms.open);
	if (s->brokers[t->target].by_id)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "not confirmed in time");
	return OUTBOX_OK;
}

static int gone(struct sim_transport *t, size_t answers, struct outbox_error *err)
{
	if (answers && t->confirms.open)
		t->sim->totals->faults[FAULT_CONFIRM_CUT]++;
	sim_say(t->sim, "connection cut, %zu messages are not confirmed", t->confirms.open);
	return outbox_fail(err, OUTBOX_ECONN, "connection reset");
}

/* Others work meanwhile. They may take the lane, stop the broker, or use the time up. */
static void wait_for_answer(struct sim_transport *t)
{
	struct sim *s = t->sim;

	if (!wire_happens(s, FAULT_CONFIRM_SLOW, s->percent))
		return;
	s->totals->faults[FAULT_CONFIRM_SLOW]++;
	sim_interlude(s, s->current);
}

static int read_answers(struct sim_transport *t, outbox_time deadline, bool dying,
			struct outbox_error *err)
{
	struct sim *s = t->sim;
	size_t answers = 0, last = dying ? wire_pick(s, t->confirms.sent + 1) : SIZE_MAX;
	struct channel_answer answer;
	int r;

	while (t->confirms.open) {
		wait_for_answer(t);
		if (answers == last || t->epoch != s->brokers[t->target].epoch ||
		    wire_happens(s, FAULT_CONFIRM_CUT, s->percent))
			return gone(t, answers, err);
		if (sim_mono(s) >= deadline || wire_happens(s, FAULT_CONFIRM_LATE, s->percent) ||
		    !channel_next(t, &answer))
			return out_of_time(t, deadline, err);
		r = hear(t, &answer, err);
		if (r)
			return r;
		answers++;
	}
	if (dying)
		return gone(t, answers, err);
	for (size_t i = 0; i < t->channel.n_waiting; i++)
		if (!t->channel.waiting[i].late)
			sim_violation(s, "confirms", "%d is taken as answered and is not",
				      (int)t->channel.waiting[i].seq);
	return OUTBOX_OK;
}

int confirm_publish(struct sim_transport *t, struct outbox_batch *batch, outbox_time deadline,
		    struct outbox_error *err)
{
	struct sim *s = t->sim;
	bool cut = sim_fault(s, FAULT_BROKER_CUT);
	size_t i = 0, end = cut ? wire_pick(s, batch->count + 1) : batch->count;
	int r;

	if (t->epoch != s->brokers[t->target].epoch)
		return outbox_fail(err, OUTBOX_ECONN, "broker closed the connection");
	r = confirms_begin(&t->confirms, batch, err);
	if (r)
		return r;
	while (i < end && send_one(t, batch, i))
		i++;
	r = read_answers(t, deadline, i < batch->count || cut, err);
	confirms_finish(&t->confirms);
	channel_give_up(t);
	return r;
}
