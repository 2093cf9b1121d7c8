/* SPDX-License-Identifier: Apache-2.0 */
/* Messages wait for a subscriber that is away, as they would for one that is slow; to count them is to be it. */
#include "../series.h"
#include "plain.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 200 /* max_inflight_messages of with-mqtt, which our driver is told, too */
#define MARK "mark/bench"

struct mqtt {
	char host[256];
	int port;
	struct mosquitto *client;
	long acknowledged, connected, subscribed;
	long arrived, marks; /* as the subscriber */
};

static void check(int rc, const char *what)
{
	if (rc != MOSQ_ERR_SUCCESS)
		die(what, mosquitto_strerror(rc));
}

static void on_connect(struct mosquitto *client, void *context, int code)
{
	(void)client;
	check(code, "connect");
	((struct mqtt *)context)->connected++;
}

static void on_publish(struct mosquitto *client, void *context, int id, int code,
		       const mosquitto_property *properties)
{
	(void)client;
	(void)id;
	(void)properties;
	if (code)
		die("publish", mosquitto_reason_string(code));
	((struct mqtt *)context)->acknowledged++;
}

static void on_subscribe(struct mosquitto *client, void *context, int id, int count,
			 const int *granted)
{
	(void)client;
	(void)id;
	(void)count;
	(void)granted;
	((struct mqtt *)context)->subscribed++;
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *m)
{
	struct mqtt *mqtt = context;

	(void)client;
	if (strcmp(m->topic, MARK) == 0)
		mqtt->marks++;
	else
		mqtt->arrived++;
}

/*
 * poll() and the library's own steps: the shortest loop without its select(). Like our driver it acknowledges at once what it
 * gets, or mosquitto (Nagle's algorithm) keeps the last answers of each batch for 40 ms.
 */
static void loop_until(struct mosquitto *client, const long *counter, long wanted)
{
	const int one = 1;

	while (*counter < wanted) {
		struct pollfd socket = { .fd = mosquitto_socket(client), .events = POLLIN };

		if (mosquitto_want_write(client))
			socket.events |= POLLOUT;
		setsockopt(socket.fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
		if (poll(&socket, 1, 60000) <= 0)
			die("mqtt", "no answer");
		if (socket.revents & POLLOUT)
			check(mosquitto_loop_write(client, 1), "write");
		if (socket.revents & POLLIN)
			check(mosquitto_loop_read(client, 1), "read");
	}
}

static struct mosquitto *connect_as(struct mqtt *mqtt, const char *id, bool clean)
{
	struct mosquitto *client = mosquitto_new(id, clean, mqtt);
	mosquitto_property *properties = NULL;

	check(mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5), "mqtt");
	check(mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, WINDOW), "mqtt");
	check(mosquitto_int_option(client, MOSQ_OPT_RECEIVE_MAXIMUM, 1000), "mqtt");
	check(mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1), "mqtt");
	check(mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, 3600),
	      "mqtt");
	mosquitto_connect_callback_set(client, on_connect);
	mosquitto_publish_v5_callback_set(client, on_publish);
	mosquitto_subscribe_callback_set(client, on_subscribe);
	mosquitto_message_callback_set(client, on_message);
	check(mosquitto_connect_bind_v5(client, mqtt->host, mqtt->port, 0, NULL, properties),
	      "connect");
	mosquitto_property_free_all(&properties);
	loop_until(client, &mqtt->connected, mqtt->connected + 1);
	return client;
}

static void *open_mqtt(const char *url)
{
	struct mqtt *mqtt = calloc(1, sizeof(*mqtt));

	mosquitto_lib_init();
	plain_address(url, mqtt->host, &mqtt->port);
	mqtt->client = connect_as(mqtt, "bench", true);
	return mqtt;
}

static void make(void *broker)
{
	struct mqtt *mqtt = broker;
	struct mosquitto *reader = connect_as(mqtt, "reader", true);

	check(mosquitto_subscribe(reader, NULL, "bench", 1), "subscribe");
	check(mosquitto_subscribe(reader, NULL, MARK, 1), "subscribe");
	loop_until(reader, &mqtt->subscribed, mqtt->subscribed + 2);
	mosquitto_destroy(reader);
}

static long count(void *broker)
{
	struct mqtt *mqtt = broker;
	struct mosquitto *reader = connect_as(mqtt, "reader", false);

	mqtt->arrived = 0;
	check(mosquitto_publish(reader, NULL, MARK, 0, NULL, 1, false), "mark");
	loop_until(reader, &mqtt->marks, mqtt->marks + 1);
	mosquitto_destroy(reader);
	return mqtt->arrived;
}

static void add(mosquitto_property **properties, const char *name, const char *value)
{
	check(mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY, name, value),
	      "property");
}

/* The library keeps what is beyond the window, and sends it as answers come. */
static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct mqtt *mqtt = broker;
	long before = mqtt->acknowledged;

	for (size_t i = 0; i < n; i++) {
		const struct plain_message *m = &messages[i];
		mosquitto_property *properties = NULL;

		check(mosquitto_property_add_string(&properties, MQTT_PROP_CONTENT_TYPE,
						    PLAIN_CONTENT_TYPE),
		      "property");
		add(&properties, "specversion", "1.0");
		add(&properties, "id", m->id);
		add(&properties, "source", PLAIN_SOURCE);
		add(&properties, "type", m->type);
		add(&properties, "time", m->time);
		add(&properties, "partitionkey", m->key);
		check(mosquitto_publish_v5(mqtt->client, NULL, "bench", (int)m->size, m->body, 1,
					   false, properties),
		      "publish");
		mosquitto_property_free_all(&properties);
	}
	loop_until(mqtt->client, &mqtt->acknowledged, before + (long)n);
}

static void close_mqtt(void *broker)
{
	struct mqtt *mqtt = broker;

	mosquitto_destroy(mqtt->client);
	free(mqtt);
}

const struct plain_ops plain_mqtt = { .name = "mqtt",
				      .env = "OUTBOX_TEST_MQTT",
				      .options = "bench",
				      .open = open_mqtt,
				      .make = make,
				      .count = count,
				      .publish = publish,
				      .close = close_mqtt };
