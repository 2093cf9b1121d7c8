/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of few keys in one command: a script adds them one after the other and stops at the first that is refused,
 * so that nothing of its key can follow. It tells only how many it added. The one that was refused is sent again by
 * itself: what the server says to a plain XADD is what the table of codes knows, and inside a script it has other
 * words in every version. The next script waits for the answer to the one before, since it would run whatever that
 * one met.
 *
 * A server does nothing else while a script runs, so that one script is small. Nothing is loaded there: the text goes
 * along, which costs less than a message and cannot be forgotten by the server (NOSCRIPT).
 *
 * Whoever may not run scripts, or meets streams of different nodes, sends one message of a key at a time.
 */

#include "transport/redis/driver.h"

#include "base/cleanup.h"
#include "transport/transport.h"

#define SCRIPT_MESSAGES 128
#define SCRIPT_BYTES ((size_t)128 << 10) /* less than the least proto-max-bulk-len: 1 MiB */
#define WORDS_KEEP ((size_t)1 << 20)     /* one huge message is not remembered for ever */

static const char script[] = "local words, i, n = ARGV, 1, 0\n"
			     "while words[i] do\n"
			     "  local last = i + words[i]\n"
			     "  local id = redis.pcall(unpack(words, i + 1, last))\n"
			     "  if type(id) ~= 'string' then break end\n"
			     "  i, n = last + 1, n + 1\n"
			     "end\n"
			     "return n\n";

/* What one script is to add; a chunk of one is sent without. */
struct chunk {
	uint32_t items[SCRIPT_MESSAGES];
	size_t n, n_words, n_streams;
};

/* The streams are named as keys, for the server's rights and for a cluster's node. */
static void name_stream(struct redis_transport *t, struct chunk *chunk)
{
	if (t->fixed && chunk->n_streams)
		return;
	redis_wire_argument(&t->streams, "", t->key.data, t->key.size);
	chunk->n_streams++;
}

/* Messages from *at on that wait, in order. What cannot be encoded is rejected and stops nobody. */
static int fill_chunk(struct redis_run *run, size_t *at, struct chunk *chunk,
		      struct outbox_error *err)
{
	struct redis_transport *t = run->t;
	size_t most = run->no_script ? 1 : SCRIPT_MESSAGES;

	*chunk = (struct chunk){ 0 };
	buf_clear(&t->words);
	buf_clear(&t->streams);
	for (; *at < run->batch->count && chunk->n < most; ++*at) {
		struct outbox_error why = OUTBOX_ERROR_INIT;
		size_t before = t->words.size, n = 0;
		int r;

		if (!t->order.waits[*at])
			continue;
		r = redis_command_words(t, run->batch->items[*at], &t->words, &n, &why);
		if (r) {
			r = transport_reject(run->batch, *at, r, &why, err);
			if (r)
				return r;
			key_order_settle(&t->order, run->batch, *at);
			continue;
		}
		if (chunk->n && t->words.size > SCRIPT_BYTES) {
			t->words.size = before;
			break; /* it begins the next one */
		}
		chunk->items[chunk->n++] = (uint32_t)*at;
		chunk->n_words += n;
		name_stream(t, chunk);
	}
	return t->words.failed || t->streams.failed
		       ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory")
		       : OUTBOX_OK;
}

/* An error: it did not run, for a reason that passes, or that does not. */
static void script_refused(struct redis_run *run, const char *text)
{
	const char *remedy;

	switch (redis_refusal_of(text, &remedy)) {
	case REDIS_FULL:
	case REDIS_AWAY:
		break;
	default:
		run->t->no_scripts = true;
	}
	run->no_script = true;
}

/* What was filled last, as a command. */
static void write_script(struct redis_transport *t, const struct chunk *chunk)
{
	struct buf *out = &t->wire.out;

	redis_wire_begin(out, 3 + chunk->n_streams + chunk->n_words);
	redis_wire_text(out, "EVAL");
	redis_wire_text(out, script);
	redis_wire_number(out, (int64_t)chunk->n_streams);
	buf_append(out, t->streams.data, t->streams.size);
	buf_append(out, t->words.data, t->words.size);
	redis_wire_end(out);
}

/* Wait for the answer. *ret_added: so many of the chunk are in their streams, the first ones. */
static int await_script(struct redis_run *run, const struct chunk *chunk, size_t *ret_added,
			struct outbox_error *err)
{
	struct redis_wire *wire = &run->t->wire;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int r = redis_wire_ask(wire, false, run->deadline, &reply, err);

	if (r)
		return r;
	if (redis_wire_in_reply(wire) || !redis_wire_flushed(wire))
		return redis_out_of_step(run, err);
	if (reply->type == REDIS_REPLY_ERROR) {
		script_refused(run, reply->str);
		return OUTBOX_OK;
	}
	if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 ||
	    reply->integer > (long long)chunk->n)
		return redis_out_of_step(run, err);
	*ret_added = (size_t)reply->integer;
	for (size_t k = 0; k < *ret_added; k++) {
		outbox_batch_verdict(run->batch, chunk->items[k], OUTBOX_ACKED, 0, NULL);
		key_order_settle(&run->t->order, run->batch, chunk->items[k]);
	}
	run->acked += *ret_added;
	return OUTBOX_OK;
}

/* Send the chunk, and fill the next one while the server works; it is filled again if the script stopped. */
static int send_chunk(struct redis_run *run, const struct chunk *chunk, struct chunk *next,
		      size_t *at, struct outbox_error *err)
{
	struct redis_transport *t = run->t;
	size_t added = 0;
	int r = OUTBOX_OK;

	if (chunk->n > 1) {
		write_script(t, chunk);
		r = redis_wire_send(&t->wire, err);
		if (!r)
			r = fill_chunk(run, at, next, err);
		if (!r)
			r = await_script(run, chunk, &added, err);
	}
	if (r || added == chunk->n)
		return r;
	r = redis_send(run, &chunk->items[added], 1, err);
	if (r)
		return r;
	key_order_settle(&t->order, run->batch, chunk->items[added]);
	*at = chunk->items[added] + 1;
	return fill_chunk(run, at, next, err);
}

int redis_script_send(struct redis_run *run, struct outbox_error *err)
{
	struct chunk chunks[2];
	size_t at = 0, k = 0;
	int r = fill_chunk(run, &at, &chunks[0], err);

	for (; !r && chunks[k].n && redis_may_go_on(run); k = !k)
		r = send_chunk(run, &chunks[k], &chunks[!k], &at, err);
	if (run->t->words.capacity > WORDS_KEEP)
		buf_deinit(&run->t->words);
	return r;
}
