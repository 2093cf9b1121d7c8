/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Deadlines of whole phases: libmicrohttpd's own timeout begins again with every byte. */
static const outbox_time limits[] = {
	[PHASE_IDLE] = 30 * OUTBOX_SECONDS, [PHASE_HEADERS] = 5 * OUTBOX_SECONDS,
	[PHASE_BODY] = 10 * OUTBOX_SECONDS, [PHASE_SENDING] = 30 * OUTBOX_SECONDS,
	[PHASE_STREAM] = OUTBOX_NEVER,      [PHASE_WORKING] = OUTBOX_NEVER,
};

void connections_init(struct connections *connections)
{
	*connections = (struct connections){ .count = 0 };
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		connections->items[i].fd = -1;
}

/* An IPv6 customer has at least 2^64 addresses: they count as one. */
static void name_address(struct connection *connection, const struct sockaddr *address)
{
	char text[INET6_ADDRSTRLEN] = "";

	memset(connection->key, 0, sizeof(connection->key));
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;

		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		connection->key[0] = 4;
		memcpy(connection->key + 1, &in->sin_addr, 4);
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		connection->key[0] = 6;
		memcpy(connection->key + 1, &in6->sin6_addr, 8);
	}
	snprintf(connection->address, sizeof(connection->address), "%s", text[0] ? text : "unix");
}

static void drop_connection(struct connection *connection)
{
	/* libmicrohttpd sees the end of the stream, tidies up and closes the descriptor */
	shutdown(connection->fd, SHUT_RDWR);
	connection->dropped = true;
}

/* The one to give up among all, or among those of one address; counts those that stay. */
static struct connection *find_victim(struct connections *connections, const unsigned char *key,
				      size_t *ret_count)
{
	struct connection *victim = NULL;
	size_t count = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *item = &connections->items[i];

		if (item->fd < 0 || item->dropped)
			continue;
		if (key && memcmp(item->key, key, ADDRESS_KEY) != 0)
			continue;
		count++;
		/* whoever asks and listens enters a new phase all the time */
		if (item->phase < PHASE_STREAM && (!victim || item->since < victim->since))
			victim = item;
	}
	*ret_count = count;
	return victim;
}

static struct connection *find_free_place(struct connections *connections)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (connections->items[i].fd < 0)
			return &connections->items[i];
	return NULL;
}

struct connection *connections_add(struct connections *connections, int fd,
				   const struct sockaddr *address, outbox_time now)
{
	struct connection new = { .fd = fd, .phase = PHASE_HEADERS, .since = now };
	struct connection *victim, *place = find_free_place(connections);
	size_t count;

	name_address(&new, address);
	victim = find_victim(connections, new.key, &count);
	if (count >= CONNECTIONS_PER_ADDRESS) {
		if (!victim)
			return NULL;
		drop_connection(victim);
	}
	if (!place)
		return NULL;
	*place = new;
	connections->count++;
	/* the last places are kept free: those who were shut down need a moment to go */
	victim = find_victim(connections, NULL, &count);
	if (count > CONNECTIONS_MAX - 8 && victim && victim != place)
		drop_connection(victim);
	return place;
}

struct connection *connections_find(struct connections *connections, int fd)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (connections->items[i].fd == fd)
			return &connections->items[i];
	return NULL;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
	connection->fd = -1;
	connections->count--;
}

void connection_enter(struct connection *connection, enum phase phase, outbox_time now)
{
	connection->phase = phase;
	connection->since = now;
}

void connections_reap(struct connections *connections, outbox_time now)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *item = &connections->items[i];

		if (item->fd >= 0 && !item->dropped && limits[item->phase] != OUTBOX_NEVER &&
		    now - item->since > limits[item->phase])
			drop_connection(item);
	}
}
