/* SPDX-License-Identifier: Apache-2.0 */
#include "timed.h"

#include "../latency.h"
#include "relay/registry.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#define SCHEME "timed:"

struct timed {
	struct outbox_transport base;
	struct outbox_transport_ops ops; /* with the flags of the one inside */
	struct outbox_transport *inner;
};

/* Set while no relay runs. */
static struct mark first;
static bool noting;

static int timed_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err);

static int timed_connect(struct outbox_transport *transport, outbox_time deadline,
			 struct outbox_error *err)
{
	struct timed *t = (struct timed *)transport;

	return t->inner->ops->connect(t->inner, deadline, err);
}

static int timed_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			 outbox_time deadline, struct outbox_error *err)
{
	struct timed *t = (struct timed *)transport;
	int r = t->inner->ops->publish(t->inner, batch, deadline, err);

	if (!first.messages)
		first = mark_now(batch->count);
	for (size_t i = 0; noting && i < batch->count; i++)
		if (batch->items[i]->verdict == OUTBOX_ACKED)
			latency_note(batch->items[i]->message->key);
	return r;
}

static void timed_disconnect(struct outbox_transport *transport)
{
	struct timed *t = (struct timed *)transport;

	t->inner->ops->disconnect(t->inner);
}

static void timed_close(struct outbox_transport *transport)
{
	struct timed *t = (struct timed *)transport;

	if (!t)
		return;
	transport_close(t->inner);
	free(t);
}

static const char *const schemes[] = { "timed", NULL };

static const struct outbox_transport_ops timed_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "timed",
	.schemes = schemes,
	.help = SCHEME "URL of another transport",
	.open = timed_open,
	.connect = timed_connect,
	.publish = timed_publish,
	.disconnect = timed_disconnect,
	.close = timed_close,
};

static int timed_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct outbox_transport_config inner = *config;
	struct timed *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		die("timed", "out of memory");
	inner.url += strlen(SCHEME);
	inner.context = NULL;
	r = registry_open_transport(NULL, &inner, &t->inner, err);
	if (r) {
		free(t);
		return r;
	}
	t->ops = timed_ops;
	t->ops.flags = t->inner->ops->flags;
	t->base.ops = &t->ops;
	*ret_transport = &t->base;
	return OUTBOX_OK;
}

const struct outbox_registry *timed_registry(void)
{
	static struct outbox_registry *registry;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (!registry &&
	    (outbox_registry_new(&registry, &err) != OUTBOX_OK ||
	     outbox_registry_add_transport(registry, &timed_ops, NULL, &err) != OUTBOX_OK))
		die("registry", err.message);
	return registry;
}

void timed_start(bool notes)
{
	first = (struct mark){ 0 };
	noting = notes;
}

struct mark timed_first(void)
{
	return first;
}
