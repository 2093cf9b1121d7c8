/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template can name an exchange that does not exist, and publishing to it would close the channel under the
 * whole window. So every new name is asked for once a connection, and again in each batch while it is missing.
 */
#include "transport/rabbitmq/driver.h"

#include <stdlib.h>
#include <string.h>

static void clear(struct rabbit_exchange *exchange)
{
	free(exchange->name);
	free(exchange->missing);
	*exchange = (struct rabbit_exchange){ 0 };
}

void rabbit_exchanges_forget(struct rabbit *rabbit)
{
	for (size_t i = 0; i < rabbit->n_exchanges; i++)
		clear(&rabbit->exchanges[i]);
	free(rabbit->exchanges);
	rabbit->exchanges = NULL;
	rabbit->n_exchanges = 0;
}

/* What was missing may have been made since. */
static void forget_missing(struct rabbit *rabbit)
{
	size_t kept = 0;

	for (size_t i = 0; i < rabbit->n_exchanges; i++) {
		if (rabbit->exchanges[i].missing)
			clear(&rabbit->exchanges[i]);
		else
			rabbit->exchanges[kept++] = rabbit->exchanges[i];
	}
	rabbit->n_exchanges = kept;
}

const struct rabbit_exchange *rabbit_exchanges_find(const struct rabbit *rabbit, const char *name)
{
	for (size_t i = 0; i < rabbit->n_exchanges; i++)
		if (strcmp(rabbit->exchanges[i].name, name) == 0)
			return &rabbit->exchanges[i];
	return NULL;
}

static int add(struct rabbit *rabbit, const char *name, const struct outbox_error *why,
	       struct outbox_error *err)
{
	struct rabbit_exchange *grown, exchange = { .name = strdup(name), .code = why->native };

	if (why->status)
		exchange.missing = strdup(why->message);
	grown = reallocarray(rabbit->exchanges, rabbit->n_exchanges + 1, sizeof(*grown));
	if (grown)
		rabbit->exchanges = grown;
	if (!grown || !exchange.name || (why->status && !exchange.missing)) {
		clear(&exchange);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	rabbit->exchanges[rabbit->n_exchanges++] = exchange;
	return OUTBOX_OK;
}

static int ask(struct rabbit *rabbit, const char *name, outbox_time deadline,
	       struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = rabbit_find_exchange(rabbit, name, deadline, &why);

	if (r != OUTBOX_OK && rabbit->gone)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	return add(rabbit, name, &why, err);
}

int rabbit_exchanges_prepare(struct rabbit *rabbit, struct outbox_batch *batch,
			     outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (rabbit->constant)
		return OUTBOX_OK;
	forget_missing(rabbit);
	if (rabbit->n_exchanges > RABBIT_EXCHANGES_MAX)
		rabbit_exchanges_forget(rabbit);
	for (size_t i = 0; i < batch->count && r == OUTBOX_OK; i++) {
		struct buf *name = &rabbit->exchange_name;

		buf_clear(name);
		/* What has no name, or one too long, is refused when its turn comes. */
		if (template_render(&rabbit->exchange, batch->items[i]->message, name, NULL) ||
		    name->size > RABBIT_SHORT_MAX || !name->size ||
		    rabbit_exchanges_find(rabbit, name->data))
			continue;
		r = ask(rabbit, name->data, deadline, err);
	}
	return r;
}
