/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt:// under the transport contract, with a real mosquitto behind a proxy. */

#include "transport_case.h"
#include "transport_proxied.h"

#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* About what one of the suite's messages takes on the wire. */
#define MESSAGE_BYTES 210
#define WINDOW 200 /* max_inflight_messages of with-mqtt */

extern const struct outbox_transport_ops mqtt_transport_ops;

struct state {
	struct proxied link;
	struct place *place;
};

static const char *unavailable(void)
{
	return getenv("MQTT_PORT") ? NULL : "no broker: run it with tests/support/with-mqtt";
}

static void *setup(void)
{
	struct state *state = calloc(1, sizeof(*state));
	const char *options = getenv("MQTT_OPTIONS"); /* qos=2 */

	assert_non_null(state);
	state->place = place_new();
	state->link.message_bytes = MESSAGE_BYTES;
	state->link.window = WINDOW;
	state->link.proxy = proxy_start(place_port());
	snprintf(state->link.url, sizeof(state->link.url), "mqtt://127.0.0.1:%d/%s/{type}?%s",
		 proxy_port(state->link.proxy), place_name(state->place), options ? options : "");
	snprintf(state->link.missing, sizeof(state->link.missing),
		 "mqtt://127.0.0.1:1,127.0.0.1:2/%s/{type}", place_name(state->place));
	return state;
}

static void teardown(void *data)
{
	struct state *state = data;

	proxy_stop(state->link.proxy);
	place_free(state->place);
	free(state);
}

static const char *id_of(const struct place_message *message)
{
	for (size_t i = 0; i < message->n_headers; i++)
		if (strcmp(message->names[i], "id") == 0)
			return message->values[i];
	fail_msg("a message without an id in %s", message->topic);
	return NULL;
}

static void add_structured(struct arrivals *arrivals, const struct place_message *message)
{
	json_t *json = json_loadb(message->body, message->size, 0, NULL);
	json_t *data = json_object_get(json, "data");
	char *body = data ? json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	assert_non_null(json);
	arrivals_add(arrivals, json_string_value(json_object_get(json, "id")), body,
		     body ? strlen(body) : 0);
	free(body);
	json_decref(json);
}

static void add_arrival(void *context, const struct place_message *message)
{
	struct arrivals *arrivals = context;

	if (!message->content_type || /* MQTT 3.1.1 */
	    strncmp(message->content_type, "application/cloudevents+json", 28) == 0) {
		add_structured(arrivals, message);
		return;
	}
	arrivals_add(arrivals, id_of(message), message->body, message->size);
	for (size_t i = 0; i < message->n_headers; i++)
		arrivals_header(arrivals, message->names[i], message->values[i]);
}

static void read_back(void *data, struct arrivals *arrivals)
{
	place_read(((struct state *)data)->place, add_arrival, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "mqtt:", "host" },
	{ "mqtt:///x", "host" },
	{ "mqtt://host:0/x", "port" },
	{ "mqtt://host/shop/{typ}", "{typ}" },
	{ "mqtt://host/shop/+", "wildcard" },
	{ "mqtt://host/shop/%23", "wildcard" },
	{ "mqtt://host/shop/{type}/+", "wildcard" },
	{ "mqtt://host/a%0ab", "control" },
	{ "mqtt://host/$SYS/x", "broker" },
	{ "mqtt://host/$SYS/{type}", "broker" },
	{ "mqtt://host/x?qos=0", "qos" },
	{ "mqtt://host/x?qos=3", "qos" },
	{ "mqtt://host/x?retain=perhaps", "retain" },
	{ "mqtt://host/x?version=3.1", "version" },
	{ "mqtt://host/x?keepalive=-1", "keepalive" },
	{ "mqtt://host/x?keepalive=4", "keepalive" },
	{ "mqtt://host/x?keepalive=65536", "keepalive" },
	{ "mqtt://host/x?client_id=", "client_id" },
	{ "mqtt://host/x?topic=y", "topic" },
	{ "mqtt://:secret@host/x", "user" },
	{ "mqtt://host/x?ca=/etc/passwd", "TLS" },
	{ "mqtts://host/x?verify=perhaps", "verify" },
	{ "mqtts://host/x?cert=/dev/null", "key" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_mqtt",
	.ops = &mqtt_transport_ops,
	.unavailable = unavailable,
	.setup = setup,
	.teardown = teardown,
	PROXIED_OPS,
	.bad_urls = bad_urls,
	.missing_status = OUTBOX_ECONN,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
