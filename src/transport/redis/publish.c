/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline of XADDs is written in chunks without waiting, and answered in the same order. The k-th reply
 * belongs to the k-th command, so everything hangs on never being one off: a reply of a kind that XADD does not
 * have, one too many, or bytes between two batches, and the connection is dropped and nothing of it is ACKED.
 *
 * A server may refuse one command and take the next: memory was freed in between, or a role changed. So a pipeline
 * has one message of a key, and the next pipeline those behind the ones that were taken. When that would be only a
 * few, the rest goes by script.c, which keeps order in one command.
 *
 * A server that is full or has become a replica refuses commands one by one and may take others of the same
 * pipeline. Every reply is a verdict of its own; what was refused like this has none, and EFULL or EAUTH say that
 * it was not sent. That is true only when every command was answered, so after a break it is ECONN.
 *
 * With wait=N a WAIT follows the last of all, and without its answer nothing is ACKED, whatever the XADDs said.
 */

#include "transport/redis/driver.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "transport/transport.h"

#include <string.h>

#define CHUNK ((size_t)64 << 10) /* bytes written before they are sent */

/* ---- out ------------------------------------------------------------------------------------- */

static bool all_written(const struct redis_run *p)
{
	return p->stopped || p->written == p->n_list;
}

/* Skip what was rejected before it was written: no reply will come for it. */
static bool all_answered(struct redis_run *p)
{
	while (p->answered < p->written &&
	       p->batch->items[p->list[p->answered]]->verdict == OUTBOX_REJECTED)
		p->answered++;
	return p->answered == p->written;
}

/* Is there something that the replicas have not been asked about? */
static bool owes_wait(const struct redis_run *p)
{
	return p->last && p->t->replicas && p->acked && !p->wait_written;
}

static bool done(struct redis_run *p)
{
	return all_written(p) && all_answered(p) && p->wait_written == p->waited && !owes_wait(p);
}

/* Write up to a chunk. */
static int fill(struct redis_run *p, struct outbox_error *err)
{
	struct redis_wire *wire = &p->t->wire;
	bool begun = false;

	while (!all_written(p) && wire->out.size < CHUNK) {
		struct outbox_error why = OUTBOX_ERROR_INIT;
		size_t i = p->list[p->written++];
		int r = redis_command_add(p->t, p->batch->items[i], &why);

		begun |= !r;
		if (r)
			r = transport_reject(p->batch, i, r, &why, err);
		if (r)
			return r;
	}
	if (all_written(p) && p->last && p->t->replicas && !p->wait_written && (begun || p->acked)) {
		outbox_time left = broker_time_left(&p->t->broker, p->deadline);

		/* Its answer must come before our own deadline. */
		redis_command_wait(p->t, left - left / 4);
		p->wait_written = true;
	}
	return OUTBOX_OK;
}

static int write_on(struct redis_run *p, struct outbox_error *err)
{
	struct redis_wire *wire = &p->t->wire;
	int r = OUTBOX_OK;

	do {
		if (redis_wire_flushed(wire))
			r = fill(p, err);
		if (r || redis_wire_flushed(wire))
			break; /* nothing is left to be written */
		r = redis_wire_send(wire, err);
	} while (!r && redis_wire_flushed(wire));
	return r;
}

/* ---- in -------------------------------------------------------------------------------------- */

/* "1700000000000-0": what a stream calls an entry. */
static bool is_entry_id(const redisReply *reply)
{
	static const char digits[] = "0123456789";
	size_t first = strspn(reply->str, digits), second;

	if (!first || reply->str[first] != '-')
		return false;
	second = strspn(reply->str + first + 1, digits);
	return second && first + 1 + second == reply->len;
}

/* The server as a whole refuses: nothing more is written, and the item counts as not sent. */
static void refused_by_server(struct redis_run *p, int status, const char *text, const char *remedy)
{
	char shown[200];

	p->stopped = true;
	if (!p->refusal.status)
		outbox_fail(&p->refusal, status, "%s: %s%s", p->t->wire.shown,
			    text_shown(shown, sizeof(shown), text), remedy);
}

/* Its name; made again, the buffer has seen others since. */
static const char *stream_of(struct redis_run *p, size_t i)
{
	struct redis_transport *t = p->t;

	if (!t->fixed) {
		buf_clear(&t->key);
		if (template_render(&t->stream, p->batch->items[i]->message, &t->key, NULL))
			return "?";
	}
	return buf_str(&t->key);
}

#define MAKE_IT "; make it, or leave out create=no"

/* With create=no. When it is the stream of all messages, none of them is to blame. */
static void no_stream(struct redis_run *p, size_t i)
{
	char text[200];

	if (p->t->fixed) {
		snprintf(text, sizeof(text), "stream %s does not exist", stream_of(p, i));
		refused_by_server(p, OUTBOX_EAUTH, text, MAKE_IT);
	} else {
		outbox_batch_verdict(p->batch, i, OUTBOX_RETRY, 0,
				     "stream %s: does not exist" MAKE_IT, stream_of(p, i));
	}
}

static int refused(struct redis_run *p, size_t i, const char *text, struct outbox_error *err)
{
	const char *remedy;

	switch (redis_refusal_of(text, &remedy)) {
	case REDIS_ROUTE:
		if (p->t->fixed) {
			refused_by_server(p, OUTBOX_EAUTH, text, remedy);
			return OUTBOX_OK;
		}
		outbox_batch_verdict(p->batch, i, OUTBOX_RETRY, 0, "stream %s: %s%s",
				     stream_of(p, i), text, remedy);
		return OUTBOX_OK;
	case REDIS_MESSAGE:
		outbox_batch_verdict(p->batch, i, OUTBOX_REJECTED, 0, "%s%s", text, remedy);
		return outbox_fail(err, OUTBOX_ECONN,
				   "%s: the server hung up after a refusal: %.200s",
				   p->t->wire.shown, text);
	case REDIS_FULL:
	case REDIS_AWAY:
		/* EFULL for both: it alone says that what has no verdict was not sent. */
		refused_by_server(p, OUTBOX_EFULL, text, remedy);
		return OUTBOX_OK;
	case REDIS_LOGIN:
	case REDIS_WRONG:
		refused_by_server(p, OUTBOX_EAUTH, text, remedy);
		return OUTBOX_OK;
	case REDIS_AGAIN:
	default:
		outbox_batch_verdict(p->batch, i, OUTBOX_RETRY, 0, "%s%s", text, remedy);
		return OUTBOX_OK;
	}
}

int redis_out_of_step(struct redis_run *run, struct outbox_error *err)
{
	run->out_of_step = true;
	return outbox_fail(err, OUTBOX_ECONN, "%s: the server's answers do not fit the commands",
			   run->t->wire.shown);
}

/* A failover passes by itself; what we may not do, or cannot, is for somebody to repair. */
static void wait_refused(struct redis_run *p, const char *text)
{
	const char *remedy;

	switch (redis_refusal_of(text, &remedy)) {
	case REDIS_LOGIN:
	case REDIS_ROUTE:
	case REDIS_WRONG:
		refused_by_server(p, OUTBOX_EAUTH, text, remedy);
		return;
	default:
		refused_by_server(p, OUTBOX_ECONN, text, remedy);
	}
}

static int replicas_said(struct redis_run *p, const redisReply *reply, struct outbox_error *err)
{
	p->waited = true;
	if (reply->type == REDIS_REPLY_ERROR) {
		wait_refused(p, reply->str);
		return OUTBOX_OK;
	}
	if (reply->type != REDIS_REPLY_INTEGER)
		return redis_out_of_step(p, err);
	p->enough = reply->integer >= p->t->replicas;
	if (p->enough)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONN, "%s: only %lld of %lld replicas confirmed in time",
			   p->t->wire.shown, reply->integer, (long long)p->t->replicas);
}

static int take_reply(struct redis_run *p, const redisReply *reply, struct outbox_error *err)
{
	size_t i;

	if (all_answered(p))
		return p->wait_written && !p->waited ? replicas_said(p, reply, err)
						     : redis_out_of_step(p, err);
	i = p->list[p->answered++];
	if (reply->type == REDIS_REPLY_ERROR)
		return refused(p, i, reply->str, err);
	if (reply->type == REDIS_REPLY_NIL && !p->t->create) {
		no_stream(p, i);
		return OUTBOX_OK;
	}
	if (reply->type != REDIS_REPLY_STRING || !is_entry_id(reply))
		return redis_out_of_step(p, err);
	outbox_batch_verdict(p->batch, i, OUTBOX_ACKED, 0, NULL);
	p->acked++;
	return OUTBOX_OK;
}

static int read_on(struct redis_run *p, bool *ret_any, struct outbox_error *err)
{
	int r = redis_wire_receive(&p->t->wire, ret_any, err);

	while (!r) {
		_cleanup_(redis_reply_free) redisReply *reply = NULL;

		r = redis_wire_next(&p->t->wire, false, &reply, err);
		if (r || !reply)
			break;
		r = take_reply(p, reply, err);
	}
	return r;
}

/* ---- the batch ------------------------------------------------------------------------------- */

static int run_pipeline(struct redis_run *p, struct outbox_error *err)
{
	struct redis_wire *wire = &p->t->wire;
	int r = OUTBOX_OK;

	while (!r && !done(p)) {
		bool readable = false, any = true;

		r = write_on(p, err);
		/* It broke while writing: what was answered before that is still to be read. */
		while (r == OUTBOX_ECONN && any)
			if (read_on(p, &any, NULL))
				any = false;
		if (r || done(p))
			break;
		r = redis_wire_wait(wire, p->deadline, &readable, err);
		if (!r && readable)
			r = read_on(p, &any, err);
	}
	/* The beginning of an answer to nothing. */
	if (!r && redis_wire_in_reply(wire))
		r = redis_out_of_step(p, err);
	return r;
}

int redis_send(struct redis_run *run, const uint32_t *list, size_t n, struct outbox_error *err)
{
	run->list = list;
	run->n_list = n;
	run->written = run->answered = 0;
	return run_pipeline(run, err);
}

bool redis_may_go_on(const struct redis_run *run)
{
	return !run->stopped && run->t->order.left &&
	       broker_time_left(&run->t->broker, run->deadline) > run->enough_time;
}

/* One message of a key at a time, or by the script where that is too few. */
static int send_all(struct redis_run *p, struct outbox_error *err)
{
	struct redis_transport *t = p->t;
	struct key_order *order = &t->order;
	int r = key_order_begin(order, p->batch, t->unordered, err);

	while (!r && redis_may_go_on(p)) {
		p->last = order->n_ready == order->left;
		if (!p->last && order->n_ready < REDIS_FEW && !t->no_scripts)
			return redis_script_send(p, err);
		r = redis_send(p, order->ready, order->n_ready, err);
		key_order_next(order, p->batch);
	}
	return r;
}

static void take_back(struct outbox_batch *batch, const char *why)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->items[i]->verdict == OUTBOX_ACKED)
			outbox_batch_verdict(batch, i, OUTBOX_UNKNOWN, 0, "%s", why);
}

int redis_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err)
{
	struct redis_transport *t = redis_downcast(transport);
	struct redis_run p = { .t = t,
			       .batch = batch,
			       .deadline = deadline,
			       .enough_time = broker_time_left(&t->broker, deadline) / 2,
			       .enough = !t->replicas };
	int r = broker_ready(&t->broker, t->wire.fd >= 0, deadline, err);

	if (r)
		return r;
	r = redis_wire_check_quiet(&t->wire, err);
	if (!r)
		r = send_all(&p, err);
	if (!r && t->replicas && !p.wait_written) {
		p.last = true;
		r = redis_send(&p, NULL, 0, err);
	}
	if (p.out_of_step)
		take_back(batch, "the server's answers did not fit the commands");
	else if (!p.enough)
		take_back(batch, "written, but not confirmed by the replicas");
	if (!r && p.refusal.status)
		r = outbox_fail(err, p.refusal.status, "%s", p.refusal.message);
	if (r)
		redis_wire_close(&t->wire);
	return r;
}
