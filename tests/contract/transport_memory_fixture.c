/* SPDX-License-Identifier: Apache-2.0 */
/* memory: under the transport contract. */

#include "transport_case.h"

#include "memory_transport/memory.h"

static void *setup(void)
{
	struct memory_broker *broker = NULL;

	assert_int_equal(memory_broker_new(&broker, NULL), OUTBOX_OK);
	return broker;
}

static void teardown(void *state)
{
	memory_broker_free(state);
}

static const char *url(void *state)
{
	(void)state;
	return "memory:";
}

static void *context(void *state)
{
	return state;
}

static void outage(void *state, bool on)
{
	if (on)
		memory_broker_down(state, OUTBOX_ECONN);
	else
		memory_broker_up(state);
}

static void outage_after(void *state, size_t n)
{
	/* Both kinds: the answers before the break come through, or are lost with it. */
	memory_broker_lose(state, n, n % 2);
}

static bool touched(void *state)
{
	struct memory_counts counts;

	memory_broker_counts(state, &counts);
	return counts.connects || counts.refused;
}

static void read_back(void *state, struct arrivals *arrivals)
{
	const struct memory_record *record;

	for (size_t i = 0; (record = memory_broker_at(state, i)); i++) {
		arrivals_add(arrivals, record->id, record->body, record->size);
		for (size_t k = 0; k < record->n_headers; k++)
			arrivals_header(arrivals, record->headers[k].name, record->headers[k].value);
	}
}

static const struct bad_url bad_urls[] = {
	{ "memory:somewhere", "memory:" },
	{ "memory://host/", "memory:" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_memory",
	.ops = &memory_transport_ops,
	.flags = CONTRACT_NO_MISSING | CONTRACT_NOT_BUILT_IN,
	.setup = setup,
	.teardown = teardown,
	.url = url,
	.context = context,
	.bad_urls = bad_urls,
	.outage = outage,
	.outage_after = outage_after,
	.touched = touched,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
