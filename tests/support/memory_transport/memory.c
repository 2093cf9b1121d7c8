/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/url.h"
#include "memory_transport/broker.h"

#include <stdio.h>
#include <stdlib.h>

struct memory_transport {
	struct outbox_transport base;
	struct memory_broker *broker;
	struct outbox_clock *clock;
	struct outbox_encoder *encoder;
	uint64_t connection; /* 0: none */
};

static struct memory_transport *downcast(struct outbox_transport *transport)
{
	return container_of(transport, struct memory_transport, base);
}

static void memory_close(struct outbox_transport *transport)
{
	struct memory_transport *memory;

	if (!transport)
		return;
	memory = downcast(transport);
	outbox_encoder_free(memory->encoder);
	free(memory);
}

static int memory_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err)
{
	int envelope = config->envelope ? config->envelope : OUTBOX_ENVELOPE_NATIVE;
	struct memory_transport *memory;
	int r;

	r = url_check_bare(config->url, err);
	if (r)
		return r;
	if (envelope < OUTBOX_ENVELOPE_CE_STRUCTURED || envelope > OUTBOX_ENVELOPE_EXTERNAL)
		return outbox_fail(err, OUTBOX_ECONFIG, "memory: envelope %d is unknown", envelope);
	if (!config->context)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "memory: is a broker for tests and lives in a program that "
				   "makes it; use file: or null:");
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	memory->base.ops = &memory_transport_ops;
	memory->broker = config->context;
	memory->clock = config->clock;
	r = outbox_encoder_new(envelope, NULL, &memory->encoder, err);
	if (r) {
		memory_close(&memory->base);
		return r;
	}
	*ret_transport = &memory->base;
	return OUTBOX_OK;
}

static int memory_connect(struct outbox_transport *transport, outbox_time deadline,
			  struct outbox_error *err)
{
	struct memory_transport *memory = downcast(transport);

	memory->connection = 0;
	if (memory->clock->mono(memory->clock) >= deadline)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "memory: no time left to connect");
	return broker_connect(memory->broker, &memory->connection, err);
}

static bool fate_keeps(enum memory_fate fate)
{
	return fate == MEMORY_DEFAULT || fate == MEMORY_ACK || fate == MEMORY_UNKNOWN_KEPT ||
	       fate == MEMORY_DROP_KEPT;
}

/* The verdict of item i by its fate; a non-zero return is a lost connection. */
static int give_verdict(struct outbox_batch *batch, size_t i, const struct memory_answer *answer,
			bool acks_lost, struct outbox_error *err)
{
	const char *reason = answer->reason;

	if (acks_lost && answer->fate != MEMORY_DROP && answer->fate != MEMORY_DROP_KEPT)
		return OUTBOX_OK;
	switch (answer->fate) {
	case MEMORY_DEFAULT:
	case MEMORY_ACK:
		outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
		return OUTBOX_OK;
	case MEMORY_ACK_ONCE:
		outbox_batch_duplicate(batch, i);
		return OUTBOX_OK;
	case MEMORY_REJECT:
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s",
				     reason ? reason : "rejected by the broker");
		return OUTBOX_OK;
	case MEMORY_RETRY:
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, 0, "%s",
				     reason ? reason : "refused by the broker for now");
		outbox_batch_retry_after(batch, i, answer->wait);
		return OUTBOX_OK;
	case MEMORY_UNKNOWN_KEPT:
	case MEMORY_UNKNOWN_LOST:
		outbox_batch_verdict(batch, i, OUTBOX_UNKNOWN, 0, "%s",
				     reason ? reason : "the broker's answer was lost");
		return OUTBOX_OK;
	case MEMORY_DROP:
	case MEMORY_DROP_KEPT:
		outbox_batch_back_off(batch, answer->wait);
		break;
	}
	return outbox_fail(err, answer->status, "%s", reason ? reason : "memory: connection lost");
}

static int publish_one(struct memory_transport *memory, const struct memory_call *call,
		       struct outbox_batch *batch, size_t i, struct outbox_error *err)
{
	const struct outbox_item *item = batch->items[i];
	struct outbox_encoded encoded;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct memory_answer answer;
	int r;

	r = outbox_encode(memory->encoder, item, &encoded, &why);
	if (r == OUTBOX_EINVAL) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
		return OUTBOX_OK;
	}
	if (r)
		return outbox_fail(err, r, "%s", why.message);
	answer = broker_answer(memory->broker, memory->connection, item);
	if (answer.fate == MEMORY_ACK_ONCE &&
	    memory_broker_count_id(memory->broker, item->message->id) == 0)
		answer.fate = MEMORY_ACK;
	if (fate_keeps(answer.fate)) {
		bool acked = answer.fate == MEMORY_DEFAULT || answer.fate == MEMORY_ACK;
		struct memory_record origin = {
			.connection = memory->connection,
			.call = call->number,
			.confirmed = acked && !call->acks_lost,
		};

		r = broker_keep(memory->broker, item, &encoded, &origin, err);
		if (r)
			return r;
	}
	return give_verdict(batch, i, &answer, call->acks_lost, err);
}

static int memory_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			  outbox_time deadline, struct outbox_error *err)
{
	struct memory_transport *memory = downcast(transport);
	struct memory_call call;
	int r;

	if (!memory->connection)
		return outbox_fail(err, OUTBOX_ECONN, "memory: not connected");
	r = broker_begin(memory->broker, memory->connection, batch, &call, err);
	for (size_t i = 0; !r && i < batch->count; i++) {
		if (i == call.lost_at)
			r = outbox_fail(err, OUTBOX_ECONN, "memory: connection lost");
		else if (memory->clock->mono(memory->clock) >= deadline)
			r = outbox_fail(err, OUTBOX_ETIMEDOUT, "memory: no answer in time");
		else
			r = publish_one(memory, &call, batch, i, err);
	}
	if (r)
		memory->connection = 0;
	return r;
}

static void memory_disconnect(struct outbox_transport *transport)
{
	downcast(transport)->connection = 0;
}

static int memory_check(struct outbox_transport *transport, outbox_time deadline, char *text,
			size_t size)
{
	(void)transport;
	(void)deadline;
	snprintf(text, size, "acknowledged when it is in this process's memory; for tests only");
	return 2;
}

static const char *const schemes[] = { "memory", NULL };

const struct outbox_transport_ops memory_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "memory",
	.schemes = schemes,
	.help = "memory: (a broker in memory, for tests)",
	.open = memory_open,
	.connect = memory_connect,
	.publish = memory_publish,
	.disconnect = memory_disconnect,
	.close = memory_close,
	.check = memory_check,
};
