/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One subscriber per place, connected all the time. To read is to publish a mark to a topic of one's own and to take
 * messages until it comes back: what the broker acknowledged before stands before it in the subscriber's queue.
 */
#include "place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mqtt_protocol.h>

#include <cmocka.h>

struct place {
	struct mosquitto *client;
	char name[40], mark[60];
	bool connected, subscribed;
	int marks, marks_seen;
	struct place_message *messages;
	size_t count, capacity;
};

static void must(int rc, const char *what)
{
	if (rc != MOSQ_ERR_SUCCESS)
		fail_msg("%s: %s", what, mosquitto_strerror(rc));
}

int place_port(void)
{
	const char *port = getenv("MQTT_PORT");

	assert_non_null(port);
	return (int)strtol(port, NULL, 10);
}

const char *place_name(const struct place *place)
{
	return place->name;
}

static void on_connect(struct mosquitto *client, void *context, int code)
{
	(void)client;
	assert_int_equal(code, 0);
	((struct place *)context)->connected = true;
}

static void on_subscribe(struct mosquitto *client, void *context, int id, int count,
			 const int *granted)
{
	(void)client;
	(void)id;
	assert_int_equal(count, 1);
	assert_int_equal(granted[0], 1);
	((struct place *)context)->subscribed = true;
}

static char *copy(const void *data, size_t size)
{
	char *bytes = calloc(1, size + 1);

	assert_non_null(bytes);
	if (size)
		memcpy(bytes, data, size);
	return bytes;
}

/* Read at once: the library's own copy of a list of properties does not survive an empty value. */
static void read_properties(const mosquitto_property *properties, struct place_message *message)
{
	const mosquitto_property *at = properties;

	mosquitto_property_read_string(properties, MQTT_PROP_CONTENT_TYPE, &message->content_type,
				       false);
	for (bool more = false;; more = true) {
		size_t n = message->n_headers;

		assert_true(n < PLACE_HEADERS_MAX);
		at = mosquitto_property_read_string_pair(at, MQTT_PROP_USER_PROPERTY,
							 &message->names[n], &message->values[n],
							 more);
		if (!at)
			return;
		message->n_headers++;
	}
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *m,
		       const mosquitto_property *properties)
{
	struct place *place = context;
	struct place_message *message;

	(void)client;
	if (strcmp(m->topic, place->mark) == 0) {
		place->marks_seen++;
		return;
	}
	if (place->count == place->capacity) {
		place->capacity = place->capacity ? 2 * place->capacity : 64;
		place->messages = realloc(place->messages, place->capacity * sizeof(*message));
		assert_non_null(place->messages);
	}
	message = &place->messages[place->count++];
	*message = (struct place_message){ .topic = copy(m->topic, strlen(m->topic)),
					   .body = copy(m->payload, (size_t)m->payloadlen),
					   .size = (size_t)m->payloadlen };
	read_properties(properties, message);
}

/* The deadline is the test's own: nothing of this can take so long. */
static void run_until(struct place *place, const bool *done)
{
	for (int i = 0; i < 60000 && !*done; i++)
		must(mosquitto_loop(place->client, 10, 1), "the subscriber");
	assert_true(*done);
}

struct place *place_new(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));
	char filter[60], id[60];

	assert_non_null(place);
	snprintf(place->name, sizeof(place->name), "p%d-%d", (int)getpid(), ++number);
	snprintf(place->mark, sizeof(place->mark), "%s/mark", place->name);
	snprintf(filter, sizeof(filter), "%s/#", place->name);
	snprintf(id, sizeof(id), "reader-%s", place->name);
	mosquitto_lib_init();
	place->client = mosquitto_new(id, true, place);
	assert_non_null(place->client);
	must(mosquitto_int_option(place->client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5),
	     "MQTT 5");
	must(mosquitto_int_option(place->client, MOSQ_OPT_RECEIVE_MAXIMUM, 1000), "a window");
	mosquitto_connect_callback_set(place->client, on_connect);
	mosquitto_subscribe_callback_set(place->client, on_subscribe);
	mosquitto_message_v5_callback_set(place->client, on_message);
	must(mosquitto_connect(place->client, "127.0.0.1", place_port(), 600), "connect");
	run_until(place, &place->connected);
	must(mosquitto_subscribe(place->client, NULL, filter, 1), "subscribe");
	run_until(place, &place->subscribed);
	return place;
}

static void free_message(struct place_message *message)
{
	for (size_t i = 0; i < message->n_headers; i++) {
		free(message->names[i]);
		free(message->values[i]);
	}
	free(message->topic);
	free(message->body);
	free(message->content_type);
}

void place_free(struct place *place)
{
	for (size_t i = 0; i < place->count; i++)
		free_message(&place->messages[i]);
	mosquitto_destroy(place->client);
	mosquitto_lib_cleanup();
	free(place->messages);
	free(place);
}

void place_read(struct place *place, void (*arrived)(void *, const struct place_message *),
		void *context)
{
	must(mosquitto_publish(place->client, NULL, place->mark, 0, NULL, 1, false), "mark");
	place->marks++;
	for (int i = 0; i < 60000 && place->marks_seen < place->marks; i++)
		must(mosquitto_loop(place->client, 10, 1), "the subscriber");
	assert_int_equal(place->marks_seen, place->marks);
	for (size_t i = 0; i < place->count; i++)
		arrived(context, &place->messages[i]);
}
