/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's client. Two of its habits reach into the rest of the process: a new client makes SIGPIPE ignored, for
 * everybody, and it writes with write(), which raises it. The first is undone at once; for the second every op of the
 * driver holds the signal back while it works.
 */

#include "transport/mqtt/driver.h"

#include "base/random.h"
#include "transport/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <mqtt_protocol.h>

/* ---- what the library says -------------------------------------------------------------------- */

/* MQTT 3.1.1 counts from 1: the version, the client id, not available, the password, not authorized. */
static int as_reason_code(int code)
{
	static const int codes[] = { 0, 0x84, 0x85, 0x88, 0x86, 0x87 };

	return code >= 0 && code < (int)(sizeof(codes) / sizeof(codes[0])) ? codes[code] : code;
}

static void on_connect(struct mosquitto *client, void *context, int code, int flags,
		       const mosquitto_property *properties)
{
	struct mqtt_transport *t = context;
	struct mqtt_link *link = &t->link;
	uint16_t window = MQTT_WINDOW_MAX;
	uint8_t retains = 1;
	char *server = NULL;

	(void)client;
	(void)flags;
	link->answered = true;
	link->connack = as_reason_code(code);
	link->qos_max = 2;
	mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &window, false);
	mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, &link->size_max,
				      false);
	mosquitto_property_read_byte(properties, MQTT_PROP_MAXIMUM_QOS, &link->qos_max, false);
	mosquitto_property_read_byte(properties, MQTT_PROP_RETAIN_AVAILABLE, &retains, false);
	mosquitto_property_read_string(properties, MQTT_PROP_SERVER_REFERENCE, &server, false);
	link->retains = retains;
	link->window = window < 1 ? 1 : window < MQTT_WINDOW_MAX ? window : MQTT_WINDOW_MAX;
	snprintf(link->server, sizeof(link->server), "%s", server ? server : "");
	free(server);
}

/* Also called when reading failed, with the library's own status, and once more after a DISCONNECT. */
static void on_disconnect(struct mosquitto *client, void *context, int code,
			  const mosquitto_property *properties)
{
	struct mqtt_transport *t = context;

	(void)client;
	(void)properties;
	if (!t->link.ended && code >= MQTT_REFUSED)
		t->link.ended_code = code;
	t->link.ended = true;
}

static void on_publish(struct mosquitto *client, void *context, int id, int code,
		       const mosquitto_property *properties)
{
	(void)client;
	mqtt_settle(context, id, code, properties);
}

static void on_subscribe(struct mosquitto *client, void *context, int id, int count,
			 const int *codes, const mosquitto_property *properties)
{
	struct mqtt_transport *t = context;

	(void)client;
	(void)id;
	(void)properties;
	t->answer.subscribed++;
	t->answer.code = count > 0 ? codes[0] : MQTT_REFUSED;
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *m,
		       const mosquitto_property *properties)
{
	struct mqtt_transport *t = context;

	(void)client;
	(void)properties;
	if (m->payloadlen > 0)
		snprintf(t->answer.version, sizeof(t->answer.version), "%.*s", m->payloadlen,
			 (const char *)m->payload);
}

/* "OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed" */
static void on_log(struct mosquitto *client, void *context, int level, const char *text)
{
	struct mqtt_transport *t = context;
	const char *code = strstr(text, "error:");

	(void)client;
	if (level == MOSQ_LOG_ERR && strncmp(text, "OpenSSL", 7) == 0 && code)
		t->link.tls_error = strtoul(code + strlen("error:"), NULL, 16);
}

/* ---- one client ---------------------------------------------------------------------------------- */

static void init_library(void)
{
	mosquitto_lib_init();
}

static struct mosquitto *new_client(const char *id, void *context)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the process's SIGPIPE */
	struct sigaction before;
	struct mosquitto *client;

	pthread_once(&once, init_library);
	pthread_mutex_lock(&mutex);
	sigaction(SIGPIPE, NULL, &before);
	client = mosquitto_new(id, true, context);
	sigaction(SIGPIPE, &before, NULL);
	pthread_mutex_unlock(&mutex);
	return client;
}

static int set_up(struct mqtt_transport *t, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	struct mosquitto *client = t->client;
	SSL_CTX *context = NULL;
	int rc, r;

	mosquitto_connect_v5_callback_set(client, on_connect);
	mosquitto_disconnect_v5_callback_set(client, on_disconnect);
	mosquitto_publish_v5_callback_set(client, on_publish);
	mosquitto_subscribe_v5_callback_set(client, on_subscribe);
	mosquitto_message_v5_callback_set(client, on_message);
	mosquitto_log_callback_set(client, on_log);
	rc = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION,
				  t->v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, MQTT_WINDOW_MAX);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
	if (rc == MOSQ_ERR_SUCCESS && e->user)
		rc = mosquitto_username_pw_set(client, e->user, e->password);
	if (rc == MOSQ_ERR_SUCCESS && e->tls) {
		r = mqtt_tls_context(t, &context, err);
		if (r != OUTBOX_OK)
			return r;
		rc = mosquitto_void_option(client, MOSQ_OPT_SSL_CTX, context);
		SSL_CTX_free(context); /* the library has its own reference */
	}
	if (rc == MOSQ_ERR_SUCCESS && e->tls)
		rc = mosquitto_int_option(client, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
	return rc == MOSQ_ERR_SUCCESS ? OUTBOX_OK : mqtt_client_fail(t, rc, err);
}

int mqtt_client_new(struct mqtt_transport *t, const char *host, struct outbox_error *err)
{
	char id[24];
	int r;

	mqtt_client_drop(t);
	t->host = host;
	/* 22 letters and digits: what every broker must take. */
	snprintf(id, sizeof(id), "outbox%016llx", (unsigned long long)random_system_seed());
	t->client = new_client(t->client_id ? t->client_id : id, t);
	if (!t->client)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = set_up(t, err);
	if (r != OUTBOX_OK)
		mqtt_client_drop(t);
	return r;
}

void mqtt_client_drop(struct mqtt_transport *t)
{
	mosquitto_destroy(t->client);
	t->client = NULL;
	t->link = (struct mqtt_link){ 0 };
	t->last_id = 0;
}

int mqtt_client_fail(struct mqtt_transport *t, int status, struct outbox_error *err)
{
	const struct mqtt_code *row = mqtt_code_find(t->link.ended_code);
	int number = errno, r;
	char text[200];

	if (t->link.ended_code)
		return outbox_fail_native(err, row->status, t->link.ended_code,
					  "%s: the broker ended the connection: %s", t->shown,
					  mqtt_code_text(row, t->link.ended_code, text,
							 sizeof(text)));
	r = mqtt_tls_fail(t, err);
	if (r != OUTBOX_OK)
		return r;
	switch (status) {
	case MOSQ_ERR_NOMEM:
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	case MOSQ_ERR_ERRNO:
		return outbox_fail_native(err, OUTBOX_ECONN, number, "%s: connection lost: %s",
					  t->shown, strerror_r(number, text, sizeof(text)));
	case MOSQ_ERR_PROTOCOL:
	case MOSQ_ERR_MALFORMED_PACKET:
	case MOSQ_ERR_MALFORMED_UTF8:
	case MOSQ_ERR_DUPLICATE_PROPERTY:
	case MOSQ_ERR_OVERSIZE_PACKET:
		return outbox_fail(err, OUTBOX_EPROTO,
				   "%s: the answer is not MQTT (%s): is it an MQTT %s port%s?",
				   t->shown, mosquitto_strerror(status), t->v5 ? "5" : "3.1.1",
				   t->broker.endpoint.tls ? "" : " without TLS");
	default:
		return outbox_fail(err, OUTBOX_ECONN, "%s: connection closed by the broker",
				   t->shown);
	}
}

/* ---- one turn -------------------------------------------------------------------------------------- */

static int poll_now(int fd, short events, short *ret_events)
{
	struct pollfd watched = { .fd = fd, .events = events };
	int n = poll(&watched, 1, 0);

	*ret_events = watched.revents;
	return n;
}

/*
 * mosquitto answers each message by itself and does not switch Nagle's algorithm off (set_tcp_nodelay): its second answer
 * waits for our TCP's acknowledgement of the first, which our TCP delays by 40 ms, unless it is told not to.
 */
static void acknowledge_at_once(int fd)
{
	static const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one)); /* it forgets: every time anew */
}

/* The library's steps for what the socket is ready for. */
static int step(struct mqtt_transport *t, short events, bool waited)
{
	int rc = MOSQ_ERR_SUCCESS;

	if (events & POLLOUT)
		rc = mosquitto_loop_write(t->client, 1);
	if (rc == MOSQ_ERR_SUCCESS && (events & (POLLIN | POLLHUP | POLLERR)))
		rc = mosquitto_loop_read(t->client, 1);
	if (rc == MOSQ_ERR_SUCCESS && !t->link.ended && waited)
		rc = mosquitto_loop_misc(t->client);
	return rc;
}

int mqtt_client_turn(struct mqtt_transport *t, bool wait, outbox_time deadline,
		     struct outbox_error *err)
{
	short wanted = POLLIN | (mosquitto_want_write(t->client) ? POLLOUT : 0), events = 0;
	int fd = mosquitto_socket(t->client), rc, n;

	if (t->link.ended || fd < 0)
		return mqtt_client_fail(t, MOSQ_ERR_CONN_LOST, err);
	if (wait)
		acknowledge_at_once(fd);
	n = wait ? socket_wait(fd, wanted, t->broker.clock, deadline, &events)
		 : poll_now(fd, wanted, &events);
	if (n == 0 && wait)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", t->shown);
	if (n < 0)
		return mqtt_client_fail(t, MOSQ_ERR_ERRNO, err);
	rc = step(t, events, wait);
	return rc != MOSQ_ERR_SUCCESS || t->link.ended ? mqtt_client_fail(t, rc, err) : OUTBOX_OK;
}
