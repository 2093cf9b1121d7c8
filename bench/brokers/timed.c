/* SPDX-License-Identifier: Apache-2.0 */
#include "timed.h"

#include "../latency.h"
#include "relay/registry.h"
#include "transport/transport.h"

#include <stdatomic.h>
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
static int refuse_nth;
static _Atomic long good;

static int timed_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err);

static int timed_connect(struct outbox_transport *transport, outbox_time deadline,
			 struct outbox_error *err)
{
	struct timed *t = (struct timed *)transport;

	return t->inner->ops->connect(t->inner, deadline, err);
}

static bool is_bad(const struct outbox_item *item)
{
	return refuse_nth && item->seq % refuse_nth == 0;
}

static int timed_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			 outbox_time deadline, struct outbox_error *err)
{
	struct timed *t = (struct timed *)transport;
	struct outbox_item *kept[BATCH];
	struct outbox_batch others = { .items = kept, .memory = batch->memory };
	int r = OUTBOX_OK;

	if (batch->count > BATCH)
		die("timed", "a batch is too large for this bench");
	for (size_t i = 0; i < batch->count; i++) {
		if (is_bad(batch->items[i]) && !batch->items[i]->attempts)
			outbox_batch_verdict(batch, i, OUTBOX_RETRY, 0, "not now");
		else
			kept[others.count++] = batch->items[i];
	}
	if (others.count)
		r = t->inner->ops->publish(t->inner, &others, deadline, err);
	for (size_t i = 0; i < others.count; i++) {
		if (kept[i]->verdict != OUTBOX_ACKED)
			continue;
		good += !is_bad(kept[i]);
		if (noting)
			latency_note(kept[i]->message->key);
	}
	if (!first.messages)
		first = mark_now((size_t)good);
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

void timed_start(bool notes, int nth)
{
	first = (struct mark){ 0 };
	noting = notes;
	refuse_nth = nth;
	good = 0;
}

long timed_good(void)
{
	return good;
}

struct mark timed_first(void)
{
	return first;
}
