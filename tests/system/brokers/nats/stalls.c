/* SPDX-License-Identifier: Apache-2.0 */
/* Silence, hostile messages, and what doctor says. */

#include "batch.h"
#include "place.h"
#include "transport_proxy.h"

#include "transport/nats/driver.h"
#include "transport/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
	struct place *place;
	struct proxy *proxy;
	struct batch *batch;
	struct outbox_transport *transport;
};

static struct world enter(void)
{
	struct world w = { .place = place_new(), .batch = batch_new() };

	w.proxy = proxy_start(place_port());
	w.transport = transport_to("nats://127.0.0.1:%d/%s.{type}", proxy_port(w.proxy),
				   place_name(w.place));
	return w;
}

static void leave(struct world *w)
{
	w->transport->ops->close(w->transport);
	proxy_stop(w->proxy);
	batch_free(w->batch);
	place_free(w->place);
}

static void connect_again(struct world *w)
{
	w->transport->ops->disconnect(w->transport);
	if (w->transport->ops->connect(w->transport, in_seconds(10), &w->batch->err))
		fail_msg("%s", w->batch->err.message);
}

static void a_silent_server_costs_the_deadline(void **state)
{
	struct world w = enter();

	(void)state;
	batch_add_many(w.batch, "a", 100);
	proxy_stall(w.proxy, true);
	assert_int_equal(batch_publish(w.batch, w.transport, 1), OUTBOX_ETIMEDOUT);
	assert_int_equal(batch_count(w.batch, OUTBOX_UNKNOWN), 100);
	proxy_stall(w.proxy, false);
	connect_again(&w);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 100);
	assert_int_equal(place_count(w.place), 100);
	leave(&w);
}

/* ---- other connections of the process ------------------------------------------------------------- */

struct neighbour {
	struct sockaddr_in address;
	int fd;
};

/* The application connects to the same port while the driver does. */
static void *connect_beside(void *argument)
{
	struct neighbour *n = argument;

	poll(NULL, 0, 300);
	n->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(n->fd, (struct sockaddr *)&n->address, sizeof(n->address)), 0);
	return NULL;
}

/* Nobody answers, and the deadline ends our attempt; what else the process has to that server is not ours. */
static void a_deadline_ends_no_connection_of_others(void **state)
{
	struct place *place = place_new(); /* has one, too, to the real server */
	struct neighbour n = { .address = { .sin_family = AF_INET } };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .clock = outbox_clock_system(),
						  .target = "target" };
	struct outbox_transport *transport = NULL;
	socklen_t size = sizeof(n.address);
	pthread_t thread;
	char url[80], byte;

	(void)state;
	n.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&n.address, size), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&n.address, &size), 0);
	snprintf(url, sizeof(url), "nats://127.0.0.1:%d/x", ntohs(n.address.sin_port));
	assert_int_equal(pthread_create(&thread, NULL, connect_beside, &n), 0);
	config.url = url;
	assert_int_equal(nats_transport_ops.open(&config, &transport, NULL), OUTBOX_OK);
	assert_int_equal(transport->ops->connect(transport, in_seconds(1), NULL), OUTBOX_ETIMEDOUT);
	transport->ops->close(transport);
	pthread_join(thread, NULL);
	assert_int_equal(recv(n.fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(send(n.fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(place_count(place), 0);
	close(n.fd);
	close(listener);
	place_free(place);
}

/* It answered, and ended the connection before we could send the rest: the answer counts, and its reason. */
static void what_was_said_before_the_end_is_heard(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    server;
	socklen_t size = sizeof(address);
	static const char said[] = "MSG a 1 2\r\nok\r\n-ERR 'Maximum Payload Violation'\r\n";
	struct nats_transport t = { .sid = 1 };
	struct nats_frame frame;

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
	server = accept(listener, NULL, NULL);
	wire_init(&t.wire, outbox_clock_system());
	t.wire.fd = client;
	t.wire.ended = false;
	assert_int_equal(send(client, "x", 1, 0), 1); /* unread, which makes the end a reset */
	assert_int_equal(send(server, said, strlen(said), 0), strlen(said));
	close(server);
	buf_text(&t.wire.out, "PONG\r\n");
	wire_wait(&t.wire, OUTBOX_SECONDS);
	assert_true(t.wire.ended);
	assert_true(pump_next(&t, &frame));
	assert_string_equal(frame.data, "ok");
	assert_false(pump_next(&t, &frame));
	assert_string_equal(t.wire.why, "Maximum Payload Violation");
	wire_deinit(&t.wire);
	close(listener);
}

/* More than all buffers between here and there hold. */
static void a_full_socket_costs_the_deadline(void **state)
{
	struct world w = enter();
	size_t size = (size_t)1 << 20;
	char *data = malloc(size);

	(void)state;
	assert_non_null(data);
	memset(data, 'x', size);
	batch_add_many(w.batch, "a", 60);
	for (size_t i = 0; i < 60; i++) {
		w.batch->messages[i].data = data;
		w.batch->messages[i].size = size;
		w.batch->messages[i].content_type = "text/plain";
	}
	proxy_stall(w.proxy, true);
	assert_int_equal(batch_publish(w.batch, w.transport, 1), OUTBOX_ETIMEDOUT);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 0);
	assert_true(batch_count(w.batch, OUTBOX_VERDICT_UNSET) > 0);
	free(data);
	leave(&w);
}

/* ---- a server that hears the first message only ------------------------------------------------------ */

struct half_deaf {
	int listener, port;
	char heard[2][4096]; /* of each connection, up to its first message */
};

static void hear(int fd, char *heard, size_t size, const char *word)
{
	char *found = NULL;

	for (size_t n = strlen(heard); n + 1 < size && (!found || !strstr(found, "\r\n"));
	     n = strlen(heard)) {
		ssize_t got = recv(fd, heard + n, size - n - 1 < 512 ? size - n - 1 : 512, 0);

		if (got <= 0)
			return;
		heard[n + (size_t)got] = '\0';
		found = strstr(heard, word);
	}
}

/* Each of two connections in turn: its first message is answered, and nothing more is read from it. */
static void *half_deaf(void *argument)
{
	static const char info[] = "INFO {\"headers\":true,\"max_payload\":1048576}\r\n",
			  ack[] = "{\"stream\":\"S\",\"seq\":1}";
	struct half_deaf *h = argument;
	int fds[2];

	for (size_t i = 0; i < 2; i++) {
		char reply[200] = "", said[400];

		fds[i] = accept(h->listener, NULL, NULL);
		send(fds[i], info, strlen(info), MSG_NOSIGNAL);
		hear(fds[i], h->heard[i], sizeof(h->heard[i]), "PING");
		h->heard[i][0] = '\0';
		send(fds[i], "PONG\r\n", 6, MSG_NOSIGNAL);
		hear(fds[i], h->heard[i], sizeof(h->heard[i]), "HPUB ");
		sscanf(h->heard[i], "HPUB %*s %199s", reply);
		snprintf(said, sizeof(said), "MSG %s 1 %zu\r\n%s\r\n", reply, strlen(ack), ack);
		send(fds[i], said, strlen(said), MSG_NOSIGNAL);
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static pthread_t half_deaf_start(struct half_deaf *h)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	const int small = 4096;
	pthread_t thread;

	h->listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(h->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(bind(h->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(h->listener, 2), 0);
	assert_int_equal(getsockname(h->listener, (struct sockaddr *)&address, &size), 0);
	h->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&thread, NULL, half_deaf, h), 0);
	return thread;
}

/* They fit into our memory, and not into the socket's. */
static void what_was_not_sent_in_time_is_never_sent(void **state)
{
	struct batch *batch = batch_new(), *next = batch_new();
	struct half_deaf h = { 0 };
	pthread_t thread = half_deaf_start(&h);
	struct outbox_transport *transport = transport_to("nats://127.0.0.1:%d/S.{type}", h.port);
	const int small = 4096;
	char data[2000];

	(void)state;
	setsockopt(nats_downcast(transport)->wire.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	memset(data, 'x', sizeof(data));
	batch_add_many(batch, "a", 300);
	for (size_t i = 0; i < 300; i++) {
		batch->messages[i].data = data;
		batch->messages[i].size = sizeof(data);
		batch->messages[i].content_type = "text/plain";
	}
	assert_int_equal(batch_publish(batch, transport, 1), OUTBOX_ETIMEDOUT);
	assert_non_null(strstr(batch->err.message, "could not be sent in time"));
	assert_int_equal(batch_count(batch, OUTBOX_ACKED), 1);
	assert_int_equal(batch_count(batch, OUTBOX_UNKNOWN), 299);
	/* whoever goes on without disconnect(): nothing of it is ahead of the next */
	batch_add(next, "b")->type = "next";
	assert_int_equal(batch_publish(next, transport, 10), OUTBOX_OK);
	pthread_join(thread, NULL);
	assert_memory_equal(h.heard[1], "HPUB S.next ", strlen("HPUB S.next "));
	transport->ops->close(transport);
	close(h.listener);
	batch_free(batch);
	batch_free(next);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static void send_data(struct wire *wire, int server, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = send(server, data, size, MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
		assert_true(wire_wait(wire, OUTBOX_SECONDS));
	}
}

static void a_huge_answer_is_not_remembered(void **state)
{
	const size_t size = (size_t)8 << 20;
	char head[40], *data = malloc(size + 2);
	struct wire wire;
	struct nats_frame frame;
	int ends[2];

	(void)state;
	assert_non_null(data);
	memset(data, 'x', size);
	memcpy(data + size, "\r\n", 2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	wire_init(&wire, outbox_clock_system());
	wire.fd = ends[0];
	wire.ended = false;
	snprintf(head, sizeof(head), "MSG a 1 %zu\r\n", size);
	send_data(&wire, ends[1], head, strlen(head));
	send_data(&wire, ends[1], data, size + 2);
	assert_true(nats_frame_next(&wire, &frame));
	assert_int_equal(frame.size, size);
	send_data(&wire, ends[1], "PING\r\n", 6);
	assert_true(nats_frame_next(&wire, &frame));
	assert_int_equal(frame.kind, FRAME_PING);
	assert_true(wire.in.capacity <= (size_t)1 << 20);
	wire_deinit(&wire);
	close(ends[1]);
	free(data);
}

/* As after an idle night: the server has ended the connection, and nothing was sent on it. */
static void a_connection_that_ended_while_idle_is_replaced(void **state)
{
	struct world w = enter();

	(void)state;
	batch_add_many(w.batch, "a", 10);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	proxy_down(w.proxy, true);
	proxy_down(w.proxy, false);
	if (batch_publish(w.batch, w.transport, 10) != OUTBOX_OK)
		fail_msg("%s", w.batch->err.message);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 10);
	leave(&w);
}

static void several_hosts_share_the_deadline(void **state)
{
	struct world w = enter();
	struct proxy *silent = proxy_start(place_port());
	struct outbox_transport *transport;

	(void)state;
	proxy_stall(silent, true);
	transport = transport_to("nats://127.0.0.1:%d,127.0.0.1:1,127.0.0.1:%d/%s.{type}",
				 proxy_port(silent), proxy_port(w.proxy), place_name(w.place));
	batch_add_many(w.batch, "a", 10);
	assert_int_equal(batch_publish(w.batch, transport, 10), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 10);
	assert_true(proxy_touched(silent));
	transport->ops->close(transport);
	proxy_stop(silent);
	leave(&w);
}

/* ---- messages that would be commands --------------------------------------------------------------- */

static const struct {
	const char *type, *header, *value, *reason;
} hostile[] = {
	{ "a\r\nPUB b 1\r\nx", NULL, NULL, "cannot be a subject" },
	{ "a b", NULL, NULL, "cannot be a subject" },
	{ "a\tb", NULL, NULL, "cannot be a subject" },
	{ "a..b", NULL, NULL, "cannot be a subject" },
	{ ".a", NULL, NULL, "cannot be a subject" },
	{ "a.", NULL, NULL, "cannot be a subject" },
	{ "a.*", NULL, NULL, "cannot be a subject" },
	{ "a.>", NULL, NULL, "cannot be a subject" },
	{ "a\x7f", NULL, NULL, "cannot be a subject" },
	{ "a\xff", NULL, NULL, "cannot be a subject" },
	{ "$JS.API.STREAM.DELETE.X", NULL, NULL, "commands" },
	{ "a", "x\r\nNats-Rollup", "all", "header" },
	{ "a", "x:y", "z", "header" },
	{ "a", "x y", "z", "header" },
	{ "a", "", "z", "header" },
	{ "a", "x", "a\r\nNats-Rollup: all", "header" },
	{ "a", "x", "a\nb", "header" },
	{ "a", "x", "a\rb", "header" },
	{ "a", "Nats-Rollup", "all", "commands" },
	{ "a", "nats-expected-last-sequence", "7", "commands" },
};
enum { HOSTILE = sizeof(hostile) / sizeof(hostile[0]) };

static void messages_cannot_be_commands(void **state)
{
	struct outbox_header headers[HOSTILE];
	struct world w = enter();
	struct outbox_transport *bare;

	(void)state;
	bare = transport_to("nats://127.0.0.1:%d/{type}", place_port());
	for (size_t i = 0; i < HOSTILE; i++) {
		struct outbox_message *m = batch_add(w.batch, "a");

		m->type = hostile[i].type;
		headers[i] = (struct outbox_header){ hostile[i].header, hostile[i].value };
		if (hostile[i].header) {
			m->headers = &headers[i];
			m->n_headers = 1;
		}
	}
	batch_add(w.batch, "a")->id = "a\r\nNats-Rollup: all";
	/* The server would skip the blank, and take it for a repeat of "a". */
	batch_add(w.batch, "a")->id = " a";
	assert_int_equal(batch_publish(w.batch, bare, 10), OUTBOX_OK);
	for (size_t i = 0; i < HOSTILE; i++)
		assert_verdict(w.batch, i, OUTBOX_REJECTED, hostile[i].reason);
	assert_verdict(w.batch, HOSTILE, OUTBOX_REJECTED, "header");
	assert_verdict(w.batch, HOSTILE + 1, OUTBOX_REJECTED, "begins with a blank");
	bare->ops->close(bare);
	leave(&w);
}

/* ---- doctor ------------------------------------------------------------------------------------------ */

static void on_file(jsStreamConfig *config)
{
	config->Storage = js_FileStorage;
	config->Duplicates = 600 * (int64_t)1000000000;
}

static void on_file_dropping(jsStreamConfig *config)
{
	on_file(config);
	config->MaxMsgs = 1000;
}

static void short_memory(jsStreamConfig *config)
{
	on_file(config);
	config->Duplicates = 1000000000;
}

static void silent(jsStreamConfig *config)
{
	config->NoAck = true;
}

static void check_says(void (*change)(jsStreamConfig *), int level, const char *words)
{
	struct place *place = place_new_with(change);
	struct outbox_transport *transport =
		transport_to("nats://127.0.0.1:%d/%s.{type}", place_port(), place_name(place));
	char text[600];
	int found = transport_check(transport, in_seconds(5), text, sizeof(text));

	if (found != level || !strstr(text, words))
		fail_msg("%d %s; expected %d ... %s", found, text, level, words);
	transport->ops->close(transport);
	place_free(place);
}

/* The stream is there, and would refuse every message. */
static void check_stream_of_other_subjects(void)
{
	struct place *place = place_new_with(on_file);
	struct outbox_transport *transport = transport_to("nats://127.0.0.1:%d/elsewhere?stream=%s",
							  place_port(), place_name(place));
	char text[600];

	assert_int_equal(transport_check(transport, in_seconds(5), text, sizeof(text)), 3);
	assert_non_null(strstr(text, "does not accept the subjects \"elsewhere\""));
	transport->ops->close(transport);
	place_free(place);
}

static void check_tells_what_an_acknowledgement_means(void **state)
{
	struct outbox_transport *transport;
	char text[600];

	(void)state;
	check_says(NULL, 2, "in the memory of one server");
	check_says(on_file, 1, "written to a file of one server");
	check_says(on_file_dropping, 2, "discard old");
	check_says(short_memory, 1, "recognised for 1 s");
	check_says(silent, 3, "never acknowledges");
	transport = transport_to("nats://127.0.0.1:%d/nowhere.{type}", place_port());
	assert_int_equal(transport_check(transport, in_seconds(5), text, sizeof(text)), 3);
	assert_non_null(strstr(text, "no stream accepts the subjects \"nowhere.>\""));
	transport->ops->close(transport);
	transport = transport_to("nats://127.0.0.1:%d/x?stream=NOWHERE", place_port());
	assert_int_equal(transport_check(transport, in_seconds(5), text, sizeof(text)), 3);
	assert_non_null(
		strstr(text,
		       "stream \"NOWHERE\" does not exist, or does not accept the subjects \"x\""));
	transport->ops->close(transport);
	check_stream_of_other_subjects();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_server_costs_the_deadline),
		cmocka_unit_test(a_deadline_ends_no_connection_of_others),
		cmocka_unit_test(what_was_said_before_the_end_is_heard),
		cmocka_unit_test(a_full_socket_costs_the_deadline),
		cmocka_unit_test(what_was_not_sent_in_time_is_never_sent),
		cmocka_unit_test(a_huge_answer_is_not_remembered),
		cmocka_unit_test(a_connection_that_ended_while_idle_is_replaced),
		cmocka_unit_test(several_hosts_share_the_deadline),
		cmocka_unit_test(messages_cannot_be_commands),
		cmocka_unit_test(check_tells_what_an_acknowledgement_means),
	};

	if (!getenv("NATS_PORT")) {
		printf("skipped: no server: run it with tests/support/with-nats\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
