/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MQTT_PLACE_H
#define MQTT_PLACE_H

/* Topics of its own on the test's broker, and what arrives there, read by a subscriber that knows nothing of the driver. */

#include <stddef.h>

#include <mosquitto.h>

struct place;

#define PLACE_HEADERS_MAX 160

struct place_message {
	char *topic, *body;
	size_t size;
	char *content_type; /* NULL: none */
	char *names[PLACE_HEADERS_MAX], *values[PLACE_HEADERS_MAX];
	size_t n_headers;
};

/* The broker's port, from the environment. */
int place_port(void);

/* Subscribes to <name>/#, QoS 1; fails the test when it cannot. */
struct place *place_new(void);
void place_free(struct place *place);
const char *place_name(const struct place *place);

/* Everything that arrived since it was made, in order of arrival. */
void place_read(struct place *place,
		void (*arrived)(void *context, const struct place_message *message), void *context);

#endif
