/* SPDX-License-Identifier: Apache-2.0 */
/* handler: under the transport contract; what arrives is what the callback saw. */

#include "transport_case.h"

#include "transport/handler/handler.h"

#include <stdlib.h>

struct place {
	struct handler_table *table;
	struct arrivals arrivals;
};

static int receive(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	struct arrivals *arrivals = context;
	const struct outbox_message *m = item->message;

	(void)err;
	arrivals_add(arrivals, m->id, m->data, m->size);
	for (size_t i = 0; i < m->n_headers; i++)
		arrivals_header(arrivals, m->headers[i].name, m->headers[i].value);
	return 0;
}

static void *setup(void)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	place->arrivals.arena = outbox_arena_new((size_t)64 << 20);
	assert_non_null(place->arrivals.arena);
	assert_int_equal(handler_table_new(&place->table, NULL), OUTBOX_OK);
	assert_int_equal(handler_table_add(place->table, "*", receive, &place->arrivals, NULL),
			 OUTBOX_OK);
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	handler_table_free(place->table);
	outbox_arena_free(place->arrivals.arena);
	free(place);
}

static const char *url(void *state)
{
	(void)state;
	return "handler:";
}

static void *context(void *state)
{
	return ((struct place *)state)->table;
}

static bool touched(void *state)
{
	return ((struct place *)state)->arrivals.count > 0;
}

static void read_back(void *state, struct arrivals *arrivals)
{
	*arrivals = ((struct place *)state)->arrivals;
}

static const struct bad_url bad_urls[] = {
	{ "handler:order.placed", "handler:" },
	{ "handler://host/", "handler:" },
	{ "handler:nobody", "outbox_registry_handle_as()" },
	{ "handler:?x=1", "x" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_handler",
	.ops = &handler_transport_ops,
	.flags = CONTRACT_NO_OUTAGE | CONTRACT_NO_ENVELOPE | CONTRACT_NO_MISSING,
	.setup = setup,
	.teardown = teardown,
	.url = url,
	.context = context,
	.bad_urls = bad_urls,
	.touched = touched,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
