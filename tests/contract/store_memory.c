/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/memory.h"

#include "store_contract.h"

#include <stdlib.h>

struct transaction {
	struct memory_tx *tx;
	size_t savepoint;
};

static void *make(struct outbox_clock *clock)
{
	return memory_db_new("contract", clock, 1);
}

static void destroy(void *place)
{
	memory_db_free(place);
}

static const char *url(void *place)
{
	(void)place;
	return "memory:contract";
}

static const char *missing_url(void *place)
{
	(void)place;
	return "memory:other";
}

static void *context(void *place)
{
	return place;
}

static void fake_schema(void *place, int version)
{
	memory_db_set_schema(place, version);
}

static void *begin(void *place)
{
	struct transaction *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->tx = memory_tx_begin(place);
	return t;
}

static int publish(void *tx, const struct outbox_message *message, int64_t *ret_seq,
		   struct outbox_error *err)
{
	return memory_tx_publish(((struct transaction *)tx)->tx, message, ret_seq, err);
}

static void savepoint(void *tx)
{
	struct transaction *t = tx;

	t->savepoint = memory_tx_savepoint(t->tx);
}

static void rollback_to(void *tx)
{
	struct transaction *t = tx;

	memory_tx_rollback_to(t->tx, t->savepoint);
}

static void commit(void *tx)
{
	memory_tx_commit(((struct transaction *)tx)->tx);
	free(tx);
}

static void rollback(void *tx)
{
	memory_tx_rollback(((struct transaction *)tx)->tx);
	free(tx);
}

const struct store_fixture memory_store_fixture = {
	.name = "memory",
	.ops = &memory_store_ops,
	.has = STORE_LATE_COMMITS | STORE_MISSING,
	.make = make,
	.destroy = destroy,
	.url = url,
	.context = context,
	.missing_url = missing_url,
	.fake_schema = fake_schema,
	.begin = begin,
	.publish = publish,
	.savepoint = savepoint,
	.rollback_to = rollback_to,
	.commit = commit,
	.rollback = rollback,
};
