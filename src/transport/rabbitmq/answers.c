/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker says: confirms, returns, alarms, and that it closes the channel or the connection. */
#include "transport/rabbitmq/driver.h"

#include <stdio.h>
#include <string.h>

static int unexpected(const struct rabbit *rabbit, const char *what, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EPROTO, "%s: the broker sent %s out of place",
			   rabbit->broker.shown, what);
}

/* ---- returns: method, properties, body --------------------------------------------------------- */

static int begin_return(struct rabbit *rabbit, const amqp_basic_return_t *m, struct outbox_error *err)
{
	struct rabbit_return *returned = &rabbit->returned;
	char text[100], exchange[80], key[100];

	if (returned->state != RETURN_NONE)
		return unexpected(rabbit, "basic.return", err);
	rabbit_words(m->reply_text, text, sizeof(text));
	rabbit_words(m->exchange, exchange, sizeof(exchange));
	rabbit_words(m->routing_key, key, sizeof(key));
	returned->state = RETURN_METHOD;
	returned->code = m->reply_code;
	snprintf(returned->text, sizeof(returned->text),
		 "%s from exchange \"%s\" with routing key \"%s\"", text, exchange, key);
	return OUTBOX_OK;
}

/* The properties tell which message it is. */
static int return_header(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	struct rabbit_return *returned = &rabbit->returned;
	const amqp_basic_properties_t *p = frame->payload.properties.decoded;
	char id[RABBIT_SHORT_MAX + 1];
	uint64_t tag;
	int r;

	if (returned->state != RETURN_METHOD ||
	    frame->payload.properties.class_id != AMQP_BASIC_CLASS ||
	    !(p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) || p->message_id.len > RABBIT_SHORT_MAX)
		return unexpected(rabbit, "properties", err);
	memcpy(id, p->message_id.bytes, p->message_id.len);
	id[p->message_id.len] = '\0';
	returned->left = frame->payload.properties.body_size;
	returned->state = returned->left ? RETURN_BODY : RETURN_NONE;
	r = confirms_find(&rabbit->confirms, id, &tag, err);
	return r ? r : confirms_return(&rabbit->confirms, tag, returned->code, returned->text, err);
}

static int return_body(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	struct rabbit_return *returned = &rabbit->returned;
	size_t size = frame->payload.body_fragment.len;

	if (returned->state != RETURN_BODY || size > returned->left)
		return unexpected(rabbit, "a body", err);
	returned->left -= size;
	if (!returned->left)
		returned->state = RETURN_NONE;
	return OUTBOX_OK;
}

/* ---- closing ------------------------------------------------------------------------------------- */

static int close_channel(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	const amqp_channel_close_t *m = frame->payload.method.decoded;
	amqp_channel_close_ok_t ok = { 0 };
	int status;

	if (frame->channel == RABBIT_SIDE_CHANNEL) {
		rabbit->side_open = false;
	} else if (frame->channel == RABBIT_PUBLISH_CHANNEL) {
		rabbit->closed_code = m->reply_code ? m->reply_code : AMQP_INTERNAL_ERROR;
		rabbit_words(m->reply_text, rabbit->closed_text, sizeof(rabbit->closed_text));
	}
	status = amqp_send_method(rabbit->connection, frame->channel, AMQP_CHANNEL_CLOSE_OK_METHOD,
				  &ok);
	return status < 0 ? rabbit_fail(rabbit, status, NULL, "connection lost", err) : OUTBOX_OK;
}

static int close_connection(struct rabbit *rabbit, const amqp_frame_t *frame,
			    struct outbox_error *err)
{
	const amqp_connection_close_t *m = frame->payload.method.decoded;
	amqp_connection_close_ok_t ok = { 0 };
	char text[300];

	rabbit_words(m->reply_text, text, sizeof(text));
	amqp_send_method(rabbit->connection, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
	return rabbit_fail(rabbit, m->reply_code, text, "connection closed by the broker", err);
}

/* ---- frames --------------------------------------------------------------------------------------- */

static int take_confirm(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	const amqp_method_t *method = &frame->payload.method;

	if (frame->channel != RABBIT_PUBLISH_CHANNEL)
		return unexpected(rabbit, "a confirm", err);
	if (method->id == AMQP_BASIC_ACK_METHOD) {
		const amqp_basic_ack_t *m = method->decoded;

		return confirms_ack(&rabbit->confirms, m->delivery_tag, m->multiple, err);
	} else {
		const amqp_basic_nack_t *m = method->decoded;

		return confirms_nack(&rabbit->confirms, m->delivery_tag, m->multiple, err);
	}
}

static int take_method(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	const amqp_method_t *method = &frame->payload.method;

	switch (method->id) {
	case AMQP_BASIC_ACK_METHOD:
	case AMQP_BASIC_NACK_METHOD:
		return take_confirm(rabbit, frame, err);
	case AMQP_BASIC_RETURN_METHOD:
		if (frame->channel != RABBIT_PUBLISH_CHANNEL)
			return unexpected(rabbit, "basic.return", err);
		return begin_return(rabbit, method->decoded, err);
	case AMQP_CHANNEL_CLOSE_METHOD:
		return close_channel(rabbit, frame, err);
	case AMQP_CONNECTION_CLOSE_METHOD:
		return close_connection(rabbit, frame, err);
	case AMQP_CONNECTION_BLOCKED_METHOD:
		rabbit->blocked = true;
		rabbit_words(((amqp_connection_blocked_t *)method->decoded)->reason,
			     rabbit->blocked_reason, sizeof(rabbit->blocked_reason));
		return OUTBOX_OK;
	case AMQP_CONNECTION_UNBLOCKED_METHOD:
		rabbit->blocked = false;
		return OUTBOX_OK;
	default:
		return unexpected(rabbit, amqp_method_name(method->id), err);
	}
}

static int take_frame(struct rabbit *rabbit, const amqp_frame_t *frame, struct outbox_error *err)
{
	bool ours = frame->channel == RABBIT_PUBLISH_CHANNEL;

	switch (frame->frame_type) {
	case AMQP_FRAME_METHOD:
		return take_method(rabbit, frame, err);
	case AMQP_FRAME_HEADER:
		return ours ? return_header(rabbit, frame, err)
			    : unexpected(rabbit, "properties", err);
	case AMQP_FRAME_BODY:
		return ours ? return_body(rabbit, frame, err) : unexpected(rabbit, "a body", err);
	case AMQP_FRAME_HEARTBEAT:
		return OUTBOX_OK;
	default:
		return unexpected(rabbit, "a frame of no known kind", err);
	}
}

static int read_frames(struct rabbit *rabbit, bool wait, outbox_time deadline,
		       struct outbox_error *err)
{
	struct timeval left = { 0 };
	int r = OUTBOX_OK;

	if (wait)
		left = rabbit_time_left(rabbit, deadline);
	while (r == OUTBOX_OK && !rabbit->closed_code) {
		amqp_frame_t frame = { 0 };
		int status = amqp_simple_wait_frame_noblock(rabbit->connection, &frame, &left);

		if (status == AMQP_STATUS_TIMEOUT)
			return OUTBOX_OK;
		if (status != AMQP_STATUS_OK)
			return rabbit_fail(rabbit, status, NULL, "connection lost", err);
		r = take_frame(rabbit, &frame, err);
		amqp_maybe_release_buffers(rabbit->connection);
		left = (struct timeval){ 0 }; /* something came: now only what is there */
		/* What is in the library's memory costs nothing; the socket is asked when it is needed. */
		if (wait && !amqp_frames_enqueued(rabbit->connection) &&
		    !amqp_data_in_buffer(rabbit->connection))
			break;
	}
	return r;
}

int rabbit_answers(struct rabbit *rabbit, bool wait, outbox_time deadline, struct outbox_error *err)
{
	int r = read_frames(rabbit, wait, deadline, err);

	rabbit->deaf = r != OUTBOX_OK;
	return r;
}
