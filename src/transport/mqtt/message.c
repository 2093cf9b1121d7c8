/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as MQTT sees it. Everything is checked here, before anything is sent: a broker ends the connection for one
 * string that it does not like, and with it everything that was on its way.
 */

#include "transport/mqtt/driver.h"

#include "base/text.h"

#include <string.h>

#include <mqtt_protocol.h>

/* ---- topic ---------------------------------------------------------------------------------------- */

const char *mqtt_topic_fault(const char *topic, size_t size)
{
	if (!size)
		return "is empty";
	if (size > MQTT_STRING_MAX)
		return "is longer than 65535 bytes";
	if (strpbrk(topic, "+#"))
		return "has a wildcard (+ or #)";
	if (mosquitto_validate_utf8(topic, (int)size) != MOSQ_ERR_SUCCESS)
		return "has control characters, or is not UTF-8 as MQTT wants it";
	return NULL;
}

int mqtt_topic(struct mqtt_transport *t, const struct outbox_message *message,
	       struct outbox_error *err)
{
	const char *fault;
	char shown[200];
	int r;

	buf_clear(&t->text);
	r = template_render(&t->topic, message, &t->text, err);
	if (r != OUTBOX_OK)
		return r;
	fault = mqtt_topic_fault(buf_str(&t->text), t->text.size);
	/* $SYS and its like are the broker's own. A message must not be able to get there. */
	if (!fault && t->text.data[0] == '$' && !t->dollar)
		fault = "begins with $, which brokers keep for themselves";
	if (fault)
		return outbox_fail(err, OUTBOX_EINVAL, "the topic \"%s\" %s",
				   text_shown(shown, sizeof(shown), buf_str(&t->text)), fault);
	return OUTBOX_OK;
}

/* ---- properties ------------------------------------------------------------------------------------ */

static int check_string(const char *what, const char *name, const char *text,
			struct outbox_error *err)
{
	size_t size = strlen(text);
	char shown[100];

	if (size > MQTT_STRING_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "%s \"%s\" has %zu bytes; MQTT allows %d",
				   what, text_shown(shown, sizeof(shown), name), size,
				   MQTT_STRING_MAX);
	if (mosquitto_validate_utf8(text, (int)size) != MOSQ_ERR_SUCCESS)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s \"%s\" has control characters, or is not UTF-8 as MQTT wants it",
				   what, text_shown(shown, sizeof(shown), name));
	return OUTBOX_OK;
}

static int add_headers(const struct outbox_encoded *encoded, mosquitto_property **properties,
		       size_t *size, struct outbox_error *err)
{
	for (size_t i = 0; i < encoded->n_headers; i++) {
		const struct outbox_header *h = &encoded->headers[i];
		int r = check_string("the name of header", h->name, h->name, err);

		if (r == OUTBOX_OK)
			r = check_string("header", h->name, h->value, err);
		if (r != OUTBOX_OK)
			return r;
		if (mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY, h->name,
						       h->value) != MOSQ_ERR_SUCCESS)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		*size += 5 + strlen(h->name) + strlen(h->value);
	}
	return OUTBOX_OK;
}

/* Whole seconds, rounded up, at least one: that it has expired is decided before. */
static uint32_t seconds_left(const struct mqtt_transport *t, outbox_time expires_at)
{
	struct outbox_clock *clock = t->broker.clock;
	outbox_time left = (expires_at - clock->wall(clock) + OUTBOX_SECONDS - 1) / OUTBOX_SECONDS;

	return left < 1 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static int add_properties(const struct mqtt_transport *t, const struct outbox_message *m,
			  const struct outbox_encoded *encoded, mosquitto_property **properties,
			  size_t *size, struct outbox_error *err)
{
	int rc = MOSQ_ERR_SUCCESS;
	int r = check_string("the content type", encoded->content_type, encoded->content_type, err);

	if (r != OUTBOX_OK)
		return r;
	rc = mosquitto_property_add_string(properties, MQTT_PROP_CONTENT_TYPE, encoded->content_type);
	*size = 3 + strlen(encoded->content_type);
	if (rc == MOSQ_ERR_SUCCESS && m->expires_at) {
		rc = mosquitto_property_add_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
						  seconds_left(t, m->expires_at));
		*size += 5;
	}
	if (rc != MOSQ_ERR_SUCCESS)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return add_headers(encoded, properties, size, err);
}

/* ---- size ------------------------------------------------------------------------------------------- */

static size_t varint_size(size_t value)
{
	return value < 128 ? 1 : value < 16384 ? 2 : value < 2097152 ? 3 : 4;
}

static size_t packet_size(const struct mqtt_transport *t, size_t properties, size_t body)
{
	size_t rest = 2 + t->text.size + 2 + body;

	if (t->v5)
		rest += varint_size(properties) + properties;
	return 1 + varint_size(rest) + rest;
}

static int check_size(const struct mqtt_transport *t, size_t size, struct outbox_error *err)
{
	size_t max = t->link.size_max && t->link.size_max < MQTT_PACKET_MAX ? t->link.size_max
									    : MQTT_PACKET_MAX;

	if (size <= max)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "its packet would have %zu bytes; %s %zu", size,
			   max < MQTT_PACKET_MAX ? "this broker takes" : "MQTT allows", max);
}

/* ---- all of it --------------------------------------------------------------------------------------- */

int mqtt_message(struct mqtt_transport *t, const struct outbox_item *item,
		 struct mqtt_message *ret_message, struct outbox_error *err)
{
	mosquitto_property *properties = NULL;
	struct outbox_encoded encoded;
	size_t size = 0;
	int r = mqtt_topic(t, item->message, err);

	if (r == OUTBOX_OK)
		r = outbox_encode(t->broker.encoder, item, &encoded, err);
	if (r == OUTBOX_OK && t->v5)
		r = add_properties(t, item->message, &encoded, &properties, &size, err);
	if (r == OUTBOX_OK)
		r = check_size(t, packet_size(t, size, encoded.size), err);
	if (r != OUTBOX_OK) {
		mosquitto_property_free_all(&properties);
		return r;
	}
	*ret_message = (struct mqtt_message){ .topic = buf_str(&t->text),
					      .body = encoded.body,
					      .size = encoded.size,
					      .properties = properties };
	return OUTBOX_OK;
}
