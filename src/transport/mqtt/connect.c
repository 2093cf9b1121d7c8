/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting. The library can do it without blocking, but only to the first address that a name has, and it resolves
 * names itself. So the driver resolves, hands over one address after the other, and waits for each step with its own
 * deadline: the TCP connection, TLS, CONNACK.
 */

#include "transport/mqtt/driver.h"

#include "base/thread.h"
#include "transport/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct attempt {
	struct mqtt_transport *t;
	const struct address *address;
};

/* A TCP connection to one of the name's addresses. */
static int reach(void *context, const struct addrinfo *info, outbox_time until,
		 struct outbox_error *err)
{
	const struct attempt *a = context;
	struct mqtt_transport *t = a->t;
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	char numeric[NI_MAXHOST];
	int fd, rc, r = mqtt_client_new(t, a->address->host, err);

	if (r != OUTBOX_OK)
		return r;
	rc = getnameinfo(info->ai_addr, info->ai_addrlen, numeric, sizeof(numeric), NULL, 0,
			 NI_NUMERICHOST);
	if (rc)
		return outbox_fail_native(err, OUTBOX_ECONN, rc, "%s: cannot find the host: %s",
					  t->shown, gai_strerror(rc));
	rc = mosquitto_connect_async(t->client, numeric, a->address->port, (int)t->keepalive);
	fd = mosquitto_socket(t->client);
	if (rc != MOSQ_ERR_SUCCESS || fd < 0)
		return mqtt_client_fail(t, rc, err);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	socket_keep_alive(fd);
	r = socket_await_connection(fd, t->shown, t->broker.clock, until, err);
	/* With TLS the library has tried to write already, and that took the socket's error. */
	if (r == OUTBOX_OK && getpeername(fd, (struct sockaddr *)&peer, &size) != 0)
		return outbox_fail_native(err, OUTBOX_ECONN, ECONNREFUSED, "%s: cannot connect",
					  t->shown);
	return r;
}

static int fail_refused(const struct mqtt_transport *t, struct outbox_error *err)
{
	const struct mqtt_link *link = &t->link;
	const struct mqtt_code *row = mqtt_code_find(link->connack);
	char text[200];

	return outbox_fail_native(err, row->status, link->connack,
				  "%s: the broker refuses the connection: %s%s%s", t->shown,
				  mqtt_code_text(row, link->connack, text, sizeof(text)),
				  link->server[0] ? "; it names " : "", link->server);
}

/* What the URL asks for and this broker does not have. */
static int check_abilities(const struct mqtt_transport *t, struct outbox_error *err)
{
	if (t->link.qos_max < t->qos)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: the broker takes messages up to QoS %d%s", t->shown,
				   t->link.qos_max,
				   t->link.qos_max ? "; leave qos=2 out"
						   : ", which it does not confirm; use another one");
	if (t->retain && !t->link.retains)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: the broker retains no messages; leave retain=yes out",
				   t->shown);
	return OUTBOX_OK;
}

static int log_in(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && !t->link.answered)
		r = mqtt_client_turn(t, true, deadline, err);
	if (t->link.answered && t->link.connack)
		return fail_refused(t, err);
	return r == OUTBOX_OK ? check_abilities(t, err) : r;
}

static int use_address(void *context, const struct address *address, outbox_time until,
		       struct outbox_error *err)
{
	struct mqtt_transport *t = context;
	struct attempt attempt = { .t = t, .address = address };
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r;

	snprintf(t->shown, sizeof(t->shown), "mqtt %s:%d", address->host, address->port);
	r = socket_try(address, t->shown, t->broker.clock, until, reach, &attempt, &why);
	if (r != OUTBOX_OK && why.native == ECONNREFUSED)
		return outbox_fail_native(err, r, ECONNREFUSED,
					  "%s: nothing listens there: is the broker running, are host "
					  "and port right?",
					  t->shown);
	if (r != OUTBOX_OK)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	if (t->broker.endpoint.tls)
		r = mqtt_tls_handshake(t, until, err);
	return r == OUTBOX_OK ? log_in(t, until, err) : r;
}

int mqtt_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct mqtt_transport *t = mqtt_downcast(transport);
	struct held_signals signals;
	int r;

	signals_hold(&signals);
	r = endpoint_try(&t->broker.endpoint, t->broker.clock, deadline, use_address, t, err);
	if (r != OUTBOX_OK)
		mqtt_client_drop(t);
	signals_release(&signals);
	return r;
}

/* A broker is told, if that costs nothing: it keeps nothing of the client, but logs what left without a word. */
void mqtt_disconnect(struct outbox_transport *transport)
{
	struct mqtt_transport *t = mqtt_downcast(transport);
	struct held_signals signals;

	if (!t->client)
		return;
	signals_hold(&signals);
	if (!t->link.ended && t->link.answered && !mosquitto_want_write(t->client))
		mosquitto_disconnect(t->client);
	mqtt_client_drop(t);
	signals_release(&signals);
}
