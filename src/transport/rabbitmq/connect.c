/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: socket, TLS, login, the publishing channel, the topology. Every step has the library's own time
 * limit and, from the login on, the watchdog's. Names are looked up by the system's resolver, which has limits
 * of its own (resolv.conf).
 */
#include "transport/rabbitmq/driver.h"

#include "base/cleanup.h"
#include "transport/socket.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#define FRAME_MAX 131072
#define CHANNEL_MAX 16

struct timeval rabbit_time_left(const struct rabbit *rabbit, outbox_time deadline)
{
	outbox_time left = broker_time_left(&rabbit->broker, deadline);

	left = left < 0 ? 0 : left > OUTBOX_DAYS ? OUTBOX_DAYS : left;
	return (struct timeval){ .tv_sec = (time_t)(left / OUTBOX_SECONDS),
				 .tv_usec = (suseconds_t)(left % OUTBOX_SECONDS) };
}

/* The library's next questions are to be answered by then. */
static void set_rpc_deadline(struct rabbit *rabbit, outbox_time deadline)
{
	struct timeval left = rabbit_time_left(rabbit, deadline);

	amqp_set_rpc_timeout(rabbit->connection, &left);
}

/* ---- letting go ------------------------------------------------------------------------------ */

/* All is answered and eight bytes fit: say goodbye, do not wait for the reply. */
static void say_goodbye(struct rabbit *rabbit)
{
	amqp_connection_close_t bye = { .reply_code = AMQP_REPLY_SUCCESS };
	struct pollfd socket = { .fd = rabbit->watchdog.fd, .events = POLLOUT };

	bye.reply_text = rabbit_bytes("bye", 3);
	if (poll(&socket, 1, 0) == 1 && socket.revents == POLLOUT)
		amqp_send_method(rabbit->connection, 0, AMQP_CONNECTION_CLOSE_METHOD, &bye);
}

void rabbit_drop(struct rabbit *rabbit, bool polite)
{
	bool alive = polite && rabbit->connection && rabbit->watchdog.running;

	if (alive) {
		rabbit_watchdog_arm(&rabbit->watchdog, OUTBOX_SECONDS);
		say_goodbye(rabbit);
	}
	rabbit_watchdog_stop(&rabbit->watchdog);
	if (rabbit->connection)
		amqp_destroy_connection(rabbit->connection);
	rabbit->connection = NULL;
	confirms_reset(&rabbit->confirms);
	rabbit_exchanges_forget(rabbit);
	rabbit->returned = (struct rabbit_return){ 0 };
	rabbit->side_open = rabbit->gone = rabbit->deaf = rabbit->blocked = false;
	rabbit->closed_code = 0;
	rabbit->size_max = 0;
}

/* ---- answers to questions ---------------------------------------------------------------------- */

/* The library has no answer, or the broker closed the connection instead of one. */
static int fail_by_reply(const struct rabbit *rabbit, const amqp_rpc_reply_t *reply,
			 const char *what, struct outbox_error *err)
{
	const amqp_connection_close_t *m = reply->reply.decoded;
	char text[300];

	if (reply->reply_type != AMQP_RESPONSE_SERVER_EXCEPTION)
		return rabbit_fail(rabbit,
				   reply->library_error ? reply->library_error
							: AMQP_STATUS_CONNECTION_CLOSED,
				   NULL, what, err);
	if (reply->reply.id != AMQP_CONNECTION_CLOSE_METHOD)
		return rabbit_fail(rabbit, AMQP_STATUS_WRONG_METHOD, NULL, what, err);
	rabbit_words(m->reply_text, text, sizeof(text));
	return rabbit_fail(rabbit, m->reply_code, text, what, err);
}

int rabbit_reply(struct rabbit *rabbit, amqp_channel_t channel, const char *what,
		 struct outbox_error *err)
{
	amqp_rpc_reply_t reply = amqp_get_rpc_reply(rabbit->connection);
	const amqp_channel_close_t *m = reply.reply.decoded;
	amqp_channel_close_ok_t ok = { 0 };
	char text[300];

	if (reply.reply_type == AMQP_RESPONSE_NORMAL)
		return OUTBOX_OK;
	rabbit->gone = reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION ||
		       reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD;
	if (rabbit->gone)
		return fail_by_reply(rabbit, &reply, what, err);
	rabbit_words(m->reply_text, text, sizeof(text));
	amqp_send_method(rabbit->connection, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
	if (channel == RABBIT_SIDE_CHANNEL)
		rabbit->side_open = false;
	return rabbit_fail(rabbit, m->reply_code, text, what, err);
}

int rabbit_side(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	int r;

	set_rpc_deadline(rabbit, deadline);
	if (rabbit->side_open)
		return OUTBOX_OK;
	amqp_channel_open(rabbit->connection, RABBIT_SIDE_CHANNEL);
	r = rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, "cannot open a channel", err);
	rabbit->side_open = r == OUTBOX_OK;
	return r;
}

int rabbit_open_channel(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	int r;

	set_rpc_deadline(rabbit, deadline);
	amqp_channel_open(rabbit->connection, RABBIT_PUBLISH_CHANNEL);
	r = rabbit_reply(rabbit, RABBIT_PUBLISH_CHANNEL, "cannot open a channel", err);
	if (r != OUTBOX_OK)
		return r;
	amqp_confirm_select(rabbit->connection, RABBIT_PUBLISH_CHANNEL);
	r = rabbit_reply(rabbit, RABBIT_PUBLISH_CHANNEL, "cannot switch confirms on", err);
	if (r != OUTBOX_OK)
		return r;
	confirms_reset(&rabbit->confirms);
	rabbit->returned = (struct rabbit_return){ 0 };
	rabbit->closed_code = 0;
	return OUTBOX_OK;
}

/* ---- connecting -------------------------------------------------------------------------------- */

static int set_tls(const struct rabbit *rabbit, amqp_socket_t *socket, struct outbox_error *err)
{
	const struct endpoint *e = &rabbit->broker.endpoint;
	int status;

	amqp_ssl_socket_set_verify_peer(socket, e->verify);
	amqp_ssl_socket_set_verify_hostname(socket, e->verify);
	status = amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
	if (status == AMQP_STATUS_OK)
		status = amqp_ssl_socket_set_cacert(socket, e->ca);
	if (status != AMQP_STATUS_OK)
		return outbox_fail_native(err, OUTBOX_ECONFIG, status,
					  "%s: cannot use %s as certificate authorities",
					  rabbit->broker.shown, e->ca);
	if (!e->cert)
		return OUTBOX_OK;
	/* Without a password of ours OpenSSL would ask the terminal for one. */
	amqp_ssl_socket_set_key_passwd(socket, "");
	status = amqp_ssl_socket_set_key(socket, e->cert, e->key);
	if (status != AMQP_STATUS_OK)
		return outbox_fail_native(err, OUTBOX_ECONFIG, status,
					  "%s: cannot use the certificate %s with the key %s; "
					  "both are PEM, the key without a password",
					  rabbit->broker.shown, e->cert, e->key);
	return OUTBOX_OK;
}

static int open_socket(struct rabbit *rabbit, const struct address *address, outbox_time deadline,
		       struct outbox_error *err)
{
	struct timeval left = rabbit_time_left(rabbit, deadline);
	amqp_socket_t *socket;
	char what[400];
	int status, r = OUTBOX_OK;

	rabbit->connection = amqp_new_connection();
	if (!rabbit->connection)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	socket = rabbit->broker.endpoint.tls ? amqp_ssl_socket_new(rabbit->connection)
					     : amqp_tcp_socket_new(rabbit->connection);
	if (!socket)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (rabbit->broker.endpoint.tls)
		r = set_tls(rabbit, socket, err);
	if (r != OUTBOX_OK)
		return r;
	status = amqp_socket_open_noblock(socket, address->host, address->port, &left);
	if (status != AMQP_STATUS_OK) {
		snprintf(what, sizeof(what),
			 "cannot connect to %s:%d (is RabbitMQ running, and is this its port?)",
			 address->host, address->port);
		return rabbit_fail(rabbit, status, NULL, what, err);
	}
	socket_keep_alive(amqp_get_sockfd(rabbit->connection));
	return rabbit_watchdog_start(&rabbit->watchdog, rabbit->connection, err);
}

static int log_in(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	amqp_table_entry_t blocked = { .key = rabbit_bytes("connection.blocked", 18),
				       .value = { .kind = AMQP_FIELD_KIND_BOOLEAN,
						  .value.boolean = 1 } };
	amqp_table_entry_t entries[] = {
		{ .key = rabbit_bytes("capabilities", 12),
		  .value = { .kind = AMQP_FIELD_KIND_TABLE, .value.table = { 1, &blocked } } },
		{ .key = rabbit_bytes("connection_name", 15),
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = rabbit_bytes(rabbit->broker.client,
							 strlen(rabbit->broker.client)) } },
	};
	amqp_table_t properties = { (int)ARRAY_SIZE(entries), entries };
	struct timeval left = rabbit_time_left(rabbit, deadline);
	amqp_rpc_reply_t reply;

	amqp_set_handshake_timeout(rabbit->connection, &left);
	set_rpc_deadline(rabbit, deadline);
	reply = amqp_login_with_properties(rabbit->connection, rabbit->vhost, CHANNEL_MAX,
					   FRAME_MAX, (int)rabbit->heartbeat, &properties,
					   AMQP_SASL_METHOD_PLAIN, rabbit->broker.endpoint.user,
					   rabbit->broker.endpoint.password);
	return reply.reply_type == AMQP_RESPONSE_NORMAL
		       ? OUTBOX_OK
		       : fail_by_reply(rabbit, &reply, "cannot log in", err);
}

static int use_socket(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	bool late;
	int r;

	rabbit_watchdog_arm(&rabbit->watchdog, broker_time_left(&rabbit->broker, deadline));
	r = log_in(rabbit, deadline, err);
	if (r == OUTBOX_OK)
		r = rabbit_open_channel(rabbit, deadline, err);
	if (r == OUTBOX_OK)
		r = rabbit_declare_topology(rabbit, deadline, err);
	if (r == OUTBOX_OK)
		rabbit_watchdog_beat(&rabbit->watchdog,
				     (amqp_get_heartbeat(rabbit->connection) + 1) / 2);
	late = rabbit_watchdog_disarm(&rabbit->watchdog);
	if (late)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time",
				   rabbit->broker.shown);
	return r;
}

static int use_address(void *context, const struct address *address, outbox_time deadline,
		       struct outbox_error *err)
{
	struct rabbit *rabbit = context;
	int r = open_socket(rabbit, address, deadline, err);

	if (r == OUTBOX_OK)
		r = use_socket(rabbit, deadline, err);
	if (r != OUTBOX_OK)
		rabbit_drop(rabbit, false);
	return r;
}

int rabbit_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct rabbit *rabbit = rabbit_downcast(transport);

	rabbit_drop(rabbit, true);
	return endpoint_try(&rabbit->broker.endpoint, rabbit->broker.clock, deadline, use_address,
			    rabbit, err);
}
