/* SPDX-License-Identifier: Apache-2.0 */
/* AMQP 1.0 to Artemis by qpid-proton alone, on a blocking socket; its management empties the queue and counts. */
#include "../series.h"
#include "plain.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <proton/codec.h>
#include <proton/connection.h>
#include <proton/connection_driver.h>
#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/link.h>
#include <proton/message.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/terminus.h>

struct artemis {
	int fd;
	pn_connection_driver_t driver;
	pn_session_t *session;
	pn_link_t *sender, *questions, *answers;
	pn_message_t *message, *answer;
	pn_rwbytes_t encoded;
	uint64_t tag;
	size_t open; /* sent and not answered */
	bool answered;
};

static void read_answer(struct artemis *a, pn_delivery_t *delivery)
{
	size_t size = pn_delivery_pending(delivery);
	char *bytes = malloc(size + 1);
	ssize_t n = pn_link_recv(a->answers, bytes, size);

	if (n <= 0 || pn_message_decode(a->answer, bytes, (size_t)n))
		die("artemis", "no answer");
	free(bytes);
	pn_delivery_settle(delivery);
	a->answered = true;
}

static void handle(struct artemis *a, pn_event_t *event)
{
	pn_delivery_t *delivery = pn_event_delivery(event);

	switch (pn_event_type(event)) {
	case PN_DELIVERY:
		if (pn_delivery_link(delivery) == a->answers) {
			if (!pn_delivery_partial(delivery))
				read_answer(a, delivery);
		} else if (pn_delivery_remote_state(delivery) == PN_ACCEPTED) {
			pn_delivery_settle(delivery);
			a->open--;
		} else {
			die("artemis", "not accepted");
		}
		break;
	case PN_TRANSPORT_ERROR:
	case PN_CONNECTION_REMOTE_CLOSE:
	case PN_LINK_REMOTE_CLOSE:
		die("artemis", "closed");
	default:
		break;
	}
}

static void send_all(struct artemis *a)
{
	for (;;) {
		pn_bytes_t out = pn_connection_driver_write_buffer(&a->driver);
		ssize_t n = out.size ? send(a->fd, out.start, out.size, MSG_NOSIGNAL) : 0;

		if (n < 0)
			die("artemis", "send");
		if (n == 0)
			return;
		pn_connection_driver_write_done(&a->driver, (size_t)n);
	}
}

/* Write everything, then wait for something. */
static void turn(struct artemis *a)
{
	pn_rwbytes_t in;
	pn_event_t *event;
	ssize_t n;

	while ((event = pn_connection_driver_next_event(&a->driver)))
		handle(a, event);
	send_all(a);
	in = pn_connection_driver_read_buffer(&a->driver);
	n = recv(a->fd, in.start, in.size, 0);
	if (n <= 0)
		die("artemis", "the connection broke");
	pn_connection_driver_read_done(&a->driver, (size_t)n);
	while ((event = pn_connection_driver_next_event(&a->driver)))
		handle(a, event);
}

static void *open_artemis(const char *url)
{
	struct artemis *a = calloc(1, sizeof(*a));
	struct sockaddr_in address = { .sin_family = AF_INET };
	const int one = 1;
	char host[256];
	int port;

	plain_address(url, host, &port);
	address.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, host, &address.sin_addr);
	a->fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(a->fd, (struct sockaddr *)&address, sizeof(address)))
		die("artemis", "no connection");
	pn_connection_driver_init(&a->driver, NULL, NULL);
	pn_sasl_allowed_mechs(pn_sasl(a->driver.transport), "PLAIN");
	pn_sasl_set_allow_insecure_mechs(pn_sasl(a->driver.transport), true);
	pn_connection_set_user(a->driver.connection, "relay");
	pn_connection_set_password(a->driver.connection, "relay-secret");
	pn_connection_open(a->driver.connection);
	a->session = pn_session(a->driver.connection);
	pn_session_open(a->session);
	a->sender = pn_sender(a->session, "bench");
	pn_terminus_set_address(pn_link_target(a->sender), "bench");
	pn_link_open(a->sender);
	a->message = pn_message();
	a->answer = pn_message();
	while (pn_link_credit(a->sender) == 0)
		turn(a);
	return a;
}

static void put(pn_data_t *map, const char *name, const char *value)
{
	pn_data_put_string(map, pn_bytes(strlen(name), name));
	pn_data_put_string(map, pn_bytes(strlen(value), value));
}

static void send_message(struct artemis *a, pn_link_t *link)
{
	while (pn_link_credit(link) == 0)
		turn(a);
	a->tag++;
	pn_delivery(link, pn_dtag((const char *)&a->tag, sizeof(a->tag)));
	if (pn_message_send(a->message, link, &a->encoded) < 0)
		die("artemis", "encode");
	a->open++;
}

/* An attribute of the queue, or an operation on it. */
static long ask(struct artemis *a, const char *what, const char *name)
{
	pn_data_t *map;
	pn_data_t *body;
	char text[40];
	pn_bytes_t bytes;

	if (!a->questions) {
		a->questions = pn_sender(a->session, "questions");
		pn_terminus_set_address(pn_link_target(a->questions), "activemq.management");
		pn_link_open(a->questions);
		a->answers = pn_receiver(a->session, "answers");
		pn_terminus_set_dynamic(pn_link_source(a->answers), true);
		pn_link_open(a->answers);
		pn_link_flow(a->answers, 1000);
	}
	while (!(pn_link_state(a->answers) & PN_REMOTE_ACTIVE))
		turn(a);
	pn_message_clear(a->message);
	map = pn_message_properties(a->message);
	pn_data_put_map(map);
	pn_data_enter(map);
	put(map, "_AMQ_ResourceName", "queue.bench");
	put(map, what, name);
	pn_data_exit(map);
	pn_data_put_string(pn_message_body(a->message), pn_bytes(2, "[]"));
	pn_message_set_reply_to(a->message,
				pn_terminus_get_address(pn_link_remote_source(a->answers)));
	a->answered = false;
	send_message(a, a->questions);
	while (!a->answered || a->open)
		turn(a);
	body = pn_message_body(a->answer);
	pn_data_rewind(body);
	pn_data_next(body);
	bytes = pn_data_get_bytes(body);
	snprintf(text, sizeof(text), "%.*s", (int)bytes.size, bytes.start);
	return strtol(text + 1, NULL, 10);
}

static void make(void *broker)
{
	ask(broker, "_AMQ_OperationName", "removeAllMessages");
}

static long count(void *broker)
{
	return ask(broker, "_AMQ_Attribute", "MessageCount");
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct artemis *a = broker;

	for (size_t i = 0; i < n; i++) {
		const struct plain_message *m = &messages[i];
		pn_data_t *map;

		pn_message_clear(a->message);
		pn_message_set_durable(a->message, true);
		pn_message_set_inferred(a->message, true);
		pn_message_set_id(a->message,
				  (pn_msgid_t){ .type = PN_STRING,
						.u.as_bytes = pn_bytes(strlen(m->id), m->id) });
		pn_message_set_subject(a->message, m->type);
		pn_message_set_content_type(a->message, PLAIN_CONTENT_TYPE);
		pn_message_set_group_id(a->message, m->key);
		map = pn_message_properties(a->message);
		pn_data_put_map(map);
		pn_data_enter(map);
		put(map, "cloudEvents:specversion", "1.0");
		put(map, "cloudEvents:id", m->id);
		put(map, "cloudEvents:source", PLAIN_SOURCE);
		put(map, "cloudEvents:type", m->type);
		put(map, "cloudEvents:time", m->time);
		put(map, "cloudEvents:partitionkey", m->key);
		pn_data_exit(map);
		pn_data_put_binary(pn_message_body(a->message), pn_bytes(m->size, m->body));
		send_message(a, a->sender);
	}
	while (a->open)
		turn(a);
}

static void close_artemis(void *broker)
{
	struct artemis *a = broker;

	close(a->fd);
	pn_connection_driver_destroy(&a->driver);
	pn_message_free(a->message);
	pn_message_free(a->answer);
	free(a->encoded.start);
	free(a);
}

const struct plain_ops plain_artemis = { .name = "artemis",
					 .env = "OUTBOX_TEST_ARTEMIS",
					 .options = "/bench",
					 .open = open_artemis,
					 .make = make,
					 .count = count,
					 .publish = publish,
					 .close = close_artemis };
