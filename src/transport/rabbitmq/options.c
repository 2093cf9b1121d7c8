/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	amqp://user:password@host:port,host:port/vhost?exchange=shop&routing_key={type}
 *
 * Where to: exchange and routing_key are templates. Without an exchange it is the default one, whose routing
 * keys are names of queues. What is to be there: declare=TYPE makes the exchange, queue=NAME a queue bound to
 * it, both durable, at connect().
 */
#include "transport/rabbitmq/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS \
	"exchange, routing_key, mandatory, heartbeat, declare, queue, queue_type, bind, " ENDPOINT_OPTIONS
#define HEARTBEAT_DEFAULT 30

static int copy(const char *text, char **ret_copy, struct outbox_error *err)
{
	*ret_copy = strdup(text);
	return *ret_copy ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* One of the words in choices, which are separated by blanks. */
static int choose(struct url *url, const char *name, const char *choices, const char **ret_value,
		  struct outbox_error *err)
{
	const char *value = url_option(url, name);
	size_t length = value ? strlen(value) : 0;
	char shown[80];

	*ret_value = value;
	if (!value)
		return OUTBOX_OK;
	for (const char *at = choices; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == length && memcmp(at, value, n) == 0)
			return OUTBOX_OK;
		at += n;
	}
	return outbox_fail(err, OUTBOX_ECONFIG, "option %s: \"%s\" is none of: %s", name,
			   text_shown(shown, sizeof(shown), value), choices);
}

/* ---- who ----------------------------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "::1") == 0;
}

/* RabbitMQ's guest is for loopback alone, and a broker elsewhere is never entered by a default. */
static int check_login(struct rabbit *rabbit, struct outbox_error *err)
{
	struct endpoint *e = &rabbit->endpoint;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < e->n_addresses; i++)
		if (!e->user && !is_loopback(e->addresses[i].host))
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "rabbitmq %s: no user; write amqp://user@host/ with "
					   "password_file=PATH",
					   e->shown);
	if (e->user && !e->password)
		return outbox_fail_detail(err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
					  "rabbitmq %s: no password; add password_file=PATH",
					  e->shown);
	if (e->user)
		return OUTBOX_OK;
	r = copy("guest", &e->user, err);
	if (r == OUTBOX_OK && !e->password)
		r = copy("guest", &e->password, err);
	return r;
}

/* ---- where --------------------------------------------------------------------------------- */

/* "", "/": the virtual host "/"; "/shop": "shop"; "/%2f": "/". */
static int set_vhost(struct rabbit *rabbit, const struct url *url, struct outbox_error *err)
{
	const char *path = url->path;

	path += path[0] == '/';
	if (strlen(path) > RABBIT_SHORT_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "the virtual host is longer than 255 bytes");
	return copy(path[0] ? path : "/", &rabbit->vhost, err);
}

static int set_route(struct rabbit *rabbit, struct url *url, struct outbox_error *err)
{
	const char *exchange = url_option(url, "exchange"), *key = url_option(url, "routing_key");
	const char *queue = url_option(url, "queue");
	bool none = !exchange || !exchange[0];
	int r;

	if (!key)
		key = none ? queue : "{type}";
	rabbit->constant = true;
	if (!key)
		return OUTBOX_OK; /* said last, see check_place(): a misspelt option may be the reason */
	r = template_parse("exchange", none ? "" : exchange, &rabbit->exchange, err);
	/* A queue's name stands for itself. */
	if (r == OUTBOX_OK && key != queue)
		r = template_parse("routing_key", key, &rabbit->routing_key, err);
	else if (r == OUTBOX_OK && strpbrk(key, "{}"))
		r = outbox_fail(err, OUTBOX_ECONFIG, "option queue: a name, without braces");
	else if (r == OUTBOX_OK)
		r = template_parse("queue", key, &rabbit->routing_key, err);
	rabbit->constant = r == OUTBOX_OK && template_is_constant(&rabbit->exchange);
	return r;
}

static int set_mandatory(struct rabbit *rabbit, struct url *url, struct outbox_error *err)
{
	const char *mandatory;
	int r = choose(url, "mandatory", "yes no", &mandatory, err);

	rabbit->mandatory_events = !mandatory || strcmp(mandatory, "yes") == 0;
	return r;
}

static int set_heartbeat(struct rabbit *rabbit, struct url *url, struct outbox_error *err)
{
	const char *text = url_option(url, "heartbeat");
	int64_t seconds = HEARTBEAT_DEFAULT;
	int r = OUTBOX_OK;

	if (text)
		r = number_parse("option heartbeat", text, 0, 3600, &seconds, err);
	if (r != OUTBOX_OK) {
		if (err)
			err->status = OUTBOX_ECONFIG;
		return OUTBOX_ECONFIG;
	}
	rabbit->heartbeat = (int)seconds;
	return OUTBOX_OK;
}

/* ---- what to make -------------------------------------------------------------------------- */

/* The name and key of a queue, and what belongs to it. */
static int check_queue(const char *queue, const char *queue_type, const char *bind,
		       bool default_exchange, struct outbox_error *err)
{
	if (!queue && (queue_type || bind))
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s belongs to queue=NAME",
				   queue_type ? "queue_type" : "bind");
	if (queue && (!queue[0] || strlen(queue) > RABBIT_SHORT_MAX))
		return outbox_fail(err, OUTBOX_ECONFIG, "option queue: a name has 1 to 255 bytes");
	if (bind && (default_exchange || strlen(bind) > RABBIT_SHORT_MAX))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option bind: for an exchange, and up to 255 bytes");
	return OUTBOX_OK;
}

/* Only one place can be made at connect(), so it must be the same for all messages. */
static int check_declare(const struct rabbit *rabbit, const char *type, const char *queue,
			 struct outbox_error *err)
{
	if ((type || queue) && !rabbit->constant)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "options declare and queue need one exchange; exchange= has places");
	if (type && rabbit->exchange.n_parts == 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option declare: name the exchange with exchange=");
	return OUTBOX_OK;
}

static int set_declare(struct rabbit *rabbit, struct url *url, struct outbox_error *err)
{
	struct rabbit_declare *declare = &rabbit->declare;
	const char *queue = url_option(url, "queue"), *bind = url_option(url, "bind");
	const char *type = NULL, *queue_type = NULL;
	int r;

	r = choose(url, "declare", "topic direct fanout headers", &type, err);
	if (r == OUTBOX_OK)
		r = choose(url, "queue_type", "quorum classic", &queue_type, err);
	if (r == OUTBOX_OK)
		r = check_declare(rabbit, type, queue, err);
	if (r == OUTBOX_OK)
		r = check_queue(queue, queue_type, bind, rabbit->exchange.n_parts == 0, err);
	if (r == OUTBOX_OK && type)
		r = copy(type, &declare->exchange_type, err);
	if (r == OUTBOX_OK && queue)
		r = copy(queue, &declare->queue, err);
	if (r == OUTBOX_OK && queue)
		r = copy(queue_type ? queue_type : "quorum", &declare->queue_type, err);
	if (r == OUTBOX_OK && queue)
		r = copy(bind ? bind : "#", &declare->bind, err);
	return r;
}

static int check_place(const struct rabbit *rabbit, struct outbox_error *err)
{
	if (rabbit->exchange.n_parts > 0 || rabbit->routing_key.n_parts > 0)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONFIG,
			   "amqp: needs a place to go; add exchange=NAME, or routing_key=QUEUE for the "
			   "default exchange");
}

int rabbit_options(struct rabbit *rabbit, const char *text, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	bool tls;
	int r;

	r = url_parse(text, &url, err);
	if (r != OUTBOX_OK)
		return r;
	tls = strcmp(url.scheme, "amqps") == 0;
	r = endpoint_parse(&url, tls ? 5671 : 5672, tls, &rabbit->endpoint, err);
	if (r == OUTBOX_OK)
		r = check_login(rabbit, err);
	if (r == OUTBOX_OK)
		r = set_vhost(rabbit, &url, err);
	if (r == OUTBOX_OK)
		r = set_route(rabbit, &url, err);
	if (r == OUTBOX_OK)
		r = set_mandatory(rabbit, &url, err);
	if (r == OUTBOX_OK)
		r = set_heartbeat(rabbit, &url, err);
	if (r == OUTBOX_OK)
		r = set_declare(rabbit, &url, err);
	if (r == OUTBOX_OK)
		r = url_finish(&url, OPTIONS, err);
	return r == OUTBOX_OK ? check_place(rabbit, err) : r;
}
