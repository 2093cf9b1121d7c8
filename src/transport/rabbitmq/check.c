/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acknowledgement means here. AMQP shows little of a broker: not which queues are bound to an exchange,
 * and of a queue only whether a declaration is equal to it. So the one queue that the URL names is declared
 * once more as a durable quorum queue, after a passive look that it exists, and the broker's refusal tells what
 * it is instead. Nothing is changed by that.
 */
#include "transport/rabbitmq/driver.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

#define MEANING "acknowledged when every queue that it was routed to has it"
#define FLEETING                                                                                   \
	"does not outlive a restart or its consumers: acknowledged messages can be lost; make it " \
	"durable"
#define CAPPED \
	"has a limit: when it is reached, acknowledged messages are dropped, unless x-overflow is reject-publish"

/* The queue that the URL names, or NULL: messages go through an exchange, or to queues of a template. */
static const char *queue_of(struct rabbit *rabbit)
{
	if (rabbit->declare.queue)
		return rabbit->declare.queue;
	if (!rabbit->constant || rabbit->exchange.n_parts ||
	    !template_is_constant(&rabbit->routing_key))
		return NULL;
	buf_clear(&rabbit->key);
	return template_render(&rabbit->routing_key, NULL, &rabbit->key, NULL)
		       ? NULL
		       : buf_str(&rabbit->key);
}

static int ask(struct rabbit *rabbit, const char *queue, bool passive, outbox_time deadline,
	       struct outbox_error *err)
{
	int r = rabbit_side(rabbit, deadline, err);

	return r == OUTBOX_OK
		       ? rabbit_declare_queue(rabbit, queue, passive ? NULL : "quorum", "queue", err)
		       : r;
}

/* "inequivalent arg 'x-max-length' for queue ...": which one? */
static bool differs(const char *words, char *name, size_t size)
{
	const char *at = strstr(words, "inequivalent arg '");

	if (!at)
		return false;
	at += strlen("inequivalent arg '");
	snprintf(name, size, "%.*s", (int)strcspn(at, "'"), at);
	return true;
}

/* The broker's refusal of another declaration, the first difference that it found, as what it means. */
static int explain(const char *queue, const char *words, char *text, size_t size)
{
	static const struct {
		const char *argument, *with; /* with: and the words have this, too */
		int level;
		const char *meaning;
	} rows[] = {
		{ "durable", NULL, 2, FLEETING },
		{ "auto_delete", NULL, 2, FLEETING },
		{ "exclusive", NULL, 2, FLEETING },
		{ "x-expires", NULL, 2, "is deleted when unused (x-expires), with what is in it" },
		{ "x-message-ttl", NULL, 2,
		  "drops acknowledged messages that are not consumed in time (x-message-ttl)" },
		{ "x-max-length", NULL, 2, CAPPED " (x-max-length)" },
		{ "x-max-length-bytes", NULL, 2, CAPPED " (x-max-length-bytes)" },
		{ "x-queue-type", "current is 'stream'", 0,
		  "is a stream: an acknowledgement survives the loss of a minority of its nodes, until "
		  "its retention drops it" },
		{ "x-queue-type", NULL, 2,
		  "is a classic queue: an acknowledgement survives a restart, not the loss of the node; "
		  "consider a quorum queue" },
	};
	char argument[100] = "";

	if (!differs(words, argument, sizeof(argument)) && strstr(words, "exclusive access"))
		snprintf(argument, sizeof(argument), "exclusive");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].argument, argument) != 0 ||
		    (rows[i].with && !strstr(words, rows[i].with)))
			continue;
		snprintf(text, size, "queue \"%s\" %s", queue, rows[i].meaning);
		return rows[i].level;
	}
	if (argument[0])
		snprintf(text, size,
			 MEANING
			 "; queue \"%s\" has arguments of its own (%s), which hide its type: see "
			 "rabbitmqctl list_queues name type arguments",
			 queue, argument);
	else
		snprintf(text, size, MEANING "; what queue \"%s\" is cannot be seen by this user",
			 queue);
	return 1;
}

static int check_queue(struct rabbit *rabbit, const char *queue, outbox_time deadline, char *text,
		       size_t size)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = ask(rabbit, queue, true, deadline, &err);

	if (r != OUTBOX_OK) {
		snprintf(text, size, "%s", err.message);
		return 3;
	}
	r = ask(rabbit, queue, false, deadline, &err);
	if (r == OUTBOX_OK) {
		snprintf(text, size,
			 "queue \"%s\" is a quorum queue: an acknowledgement survives the loss of a "
			 "minority of its nodes",
			 queue);
		return 0;
	}
	return explain(queue, err.message, text, size);
}

int rabbit_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct rabbit *rabbit = rabbit_downcast(transport);
	const char *queue;
	int level = 1;

	if (!rabbit->connection) {
		snprintf(text, size, "not connected");
		return 3;
	}
	rabbit_watchdog_arm(&rabbit->watchdog, broker_time_left(&rabbit->broker, deadline));
	queue = queue_of(rabbit);
	if (queue)
		level = check_queue(rabbit, queue, deadline, text, size);
	else if (!rabbit->mandatory_events)
		snprintf(text, size,
			 MEANING
			 ", also when that is none (mandatory=no): events without a queue are lost");
	else
		snprintf(text, size,
			 MEANING
			 ": on disk for a durable classic queue, on most nodes for a quorum queue; which are "
			 "bound, see rabbitmqctl list_bindings");
	if (!queue && !rabbit->mandatory_events)
		level = 2;
	if (rabbit_watchdog_disarm(&rabbit->watchdog))
		rabbit_drop(rabbit, false);
	return level;
}
