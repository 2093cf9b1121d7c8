/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler: delivers to callbacks of the application that runs the relay.
 *
 * A handler's failure is always RETRY, whatever status it returned: only the retry policy may give a
 * message up, and a handler that cannot parse today's payload may be repaired tomorrow. A type that
 * nobody handles is REJECTED: no number of tries invents a handler.
 *
 * Handlers cannot be interrupted. Between two of them the deadline is looked at, because the lane's
 * lease goes on: past it the rest of the batch stays untouched and publish() says ETIMEDOUT, which
 * charges nobody.
 */

#include "transport/handler/handler.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"
#include "core/routing.h"

#include <stdio.h>
#include <stdlib.h>

struct handler_transport {
	struct outbox_transport base;
	const struct handler_table *table;
	struct outbox_clock *clock;
	bool connected;
};

static struct handler_transport *downcast(struct outbox_transport *transport)
{
	return container_of(transport, struct handler_transport, base);
}

/*
 * "handler:" or "handler:NAME". With an empty table every message would fail for good: that is never what was
 * meant.
 */
static int find_table(const struct outbox_transport_config *config,
		      const struct handler_table **ret_table, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	char shown[80];
	int r = url_parse(config->url, &url, err);

	if (r)
		return r;
	if (url.has_authority || (url.path[0] && target_name_check(url.path, NULL)))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "handler: \"%s\" names no table of handlers; write handler:, or "
				   "handler:NAME for those of outbox_registry_handle_as()",
				   text_shown(shown, sizeof(shown), config->url));
	r = url_finish(&url, NULL, err);
	if (r)
		return r;
	*ret_table = handler_table_lookup(config->context, url.path);
	if (!*ret_table && url.path[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "handler:%s: no handler is registered under this name; call "
				   "outbox_registry_handle_as() in the program that runs the relay",
				   url.path);
	if (!*ret_table || handler_table_count(*ret_table) == 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "handler: no handler is registered; call "
				   "outbox_registry_handle() in the program that runs the relay");
	return OUTBOX_OK;
}

static int handler_open(const struct outbox_transport_config *config,
			struct outbox_transport **ret_transport, struct outbox_error *err)
{
	const struct handler_table *table = NULL;
	struct handler_transport *handler;
	int r = find_table(config, &table, err);

	if (r)
		return r;
	/* An envelope is for a wire; a handler gets the message itself. */
	if (config->envelope != OUTBOX_ENVELOPE_UNSET && config->envelope != OUTBOX_ENVELOPE_NATIVE)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "handler: has no envelope but native; remove the setting");
	handler = calloc(1, sizeof(*handler));
	if (!handler)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	handler->base.ops = &handler_transport_ops;
	handler->table = table;
	handler->clock = config->clock;
	*ret_transport = &handler->base;
	return OUTBOX_OK;
}

static int handler_connect(struct outbox_transport *transport, outbox_time deadline,
			   struct outbox_error *err)
{
	(void)deadline;
	(void)err;
	downcast(transport)->connected = true;
	return OUTBOX_OK;
}

static void handle_one(const struct handler_table *table, struct outbox_batch *batch, size_t i)
{
	const struct outbox_item *item = batch->items[i];
	const struct handler_entry *entry = handler_table_find(table, item->message->type);
	struct outbox_error why = OUTBOX_ERROR_INIT;
	char shown[80];
	int r;

	if (!entry) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "unknown event type \"%s\"",
				     text_shown(shown, sizeof(shown), item->message->type));
		return;
	}
	r = entry->handler(entry->context, item, &why);
	if (r == 0)
		outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
	else if (why.message[0])
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, why.native ? why.native : r, "%s",
				     why.message);
	else
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, r, "handler returned %d", r);
}

static int handler_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			   outbox_time deadline, struct outbox_error *err)
{
	struct handler_transport *handler = downcast(transport);

	if (!handler->connected)
		return outbox_fail(err, OUTBOX_ECONN, "handler: not connected");
	for (size_t i = 0; i < batch->count; i++) {
		if (handler->clock->mono(handler->clock) >= deadline)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "handlers took too long: %zu of %zu messages not yet "
					   "handled at the deadline",
					   batch->count - i, batch->count);
		handle_one(handler->table, batch, i);
	}
	return OUTBOX_OK;
}

static void handler_disconnect(struct outbox_transport *transport)
{
	downcast(transport)->connected = false;
}

static void handler_close(struct outbox_transport *transport)
{
	free(downcast(transport));
}

static int handler_check(struct outbox_transport *transport, outbox_time deadline, char *text,
			 size_t size)
{
	(void)deadline;
	snprintf(text, size, "acknowledged when the handler returned 0; %zu types are handled",
		 handler_table_count(downcast(transport)->table));
	return 0;
}

static const char *const schemes[] = { "handler", NULL };

const struct outbox_transport_ops handler_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "handler",
	.schemes = schemes,
	.help = "handler:[NAME] (callbacks of this program, registered per event type)",
	.open = handler_open,
	.connect = handler_connect,
	.publish = handler_publish,
	.disconnect = handler_disconnect,
	.close = handler_close,
	.check = handler_check,
};
