/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	amqp://user:password@host:port,host:port/vhost?exchange=shop&routing_key={type}
 *
 * Where to: exchange and routing_key are templates. Without an exchange it is the default one, whose routing
 * keys are names of queues. What is to be there: declare=TYPE makes the exchange, queue=NAME a queue bound to
 * it, both durable, at connect().
 */
#include "transport/rabbitmq/driver.h"

#include <string.h>

#define HEARTBEAT_DEFAULT 30

static int copy(const char *text, char **ret_copy, struct outbox_error *err)
{
	*ret_copy = strdup(text);
	return *ret_copy ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- who ----------------------------------------------------------------------------------- */

/* RabbitMQ's guest is for loopback alone, and a broker elsewhere is never entered by a default. */
static int check_login(struct broker *broker, struct outbox_error *err)
{
	struct endpoint *e = &broker->endpoint;
	int r = OUTBOX_OK;

	if (!e->user && !endpoint_is_loopback(e))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: no user; write amqp://user@host/ with password_file=PATH",
				   broker->shown);
	if (e->user && !e->password)
		return outbox_fail_detail(err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
					  "%s: no password; add password_file=PATH", broker->shown);
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
	const char *path = url->path + (url->path[0] == '/');

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
		return OUTBOX_OK; /* said last, see check_place() */
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
	int r = url_choice(url, "declare", "topic, direct, fanout or headers", &type, err);

	if (r == OUTBOX_OK)
		r = url_choice(url, "queue_type", "quorum or classic", &queue_type, err);
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

int rabbit_configure(struct broker *broker, struct url *url,
		     const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct rabbit *rabbit = rabbit_downcast(&broker->base);
	int r = check_login(broker, err);

	(void)config;
	rabbit->confirms = (struct confirms)CONFIRMS_INIT;
	rabbit->exchange_name.max = rabbit->key.max = (size_t)64 << 10;
	rabbit->mandatory_events = true;
	rabbit->heartbeat = HEARTBEAT_DEFAULT;
	if (r == OUTBOX_OK)
		r = set_vhost(rabbit, url, err);
	if (r == OUTBOX_OK)
		r = set_route(rabbit, url, err);
	if (r == OUTBOX_OK)
		r = url_flag(url, "mandatory", &rabbit->mandatory_events, err);
	if (r == OUTBOX_OK)
		r = url_number(url, "heartbeat", 0, 3600, &rabbit->heartbeat, err);
	if (r == OUTBOX_OK)
		r = set_declare(rabbit, url, err);
	/* Before the place is missed: a misspelt option may be the reason. */
	if (r == OUTBOX_OK)
		r = url_finish(url, RABBIT_OPTIONS, err);
	return r == OUTBOX_OK ? check_place(rabbit, err) : r;
}
