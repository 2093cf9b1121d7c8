/* SPDX-License-Identifier: Apache-2.0 */
#include <outbox/testing.h>

#include "core/message.h"
#include "frozen_clock.h"
#include "memory_store/memory.h"
#include "memory_transport/memory.h"
#include "store/store.h"

#include <stdlib.h>

#define START (1767225600 * OUTBOX_SECONDS)
#define SEED 1

struct outbox_testing {
	struct frozen_clock clock;
	struct memory_db *db;
	struct memory_broker *broker;
};

static int make_schema(struct outbox_testing *testing, struct outbox_error *err)
{
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = OUTBOX_TESTING_STORE,
					      .clock = &testing->clock.base,
					      .context = testing->db };
	struct outbox_store *store;
	int r = memory_store_ops.open(&config, true, &store, err);

	if (r)
		return r;
	r = store_init(store, NULL, err);
	store_close(store);
	return r;
}

int outbox_testing_new(struct outbox_testing **ret_testing, struct outbox_error *err)
{
	struct outbox_testing *testing;
	int r;

	if (!ret_testing)
		return outbox_fail(err, OUTBOX_EINVAL, "ret_testing must not be NULL");
	testing = calloc(1, sizeof(*testing));
	if (!testing)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	frozen_clock_init(&testing->clock, START);
	testing->db = memory_db_new("test", &testing->clock.base, SEED);
	r = memory_broker_new(&testing->broker, err);
	if (!r)
		r = make_schema(testing, err);
	if (r) {
		outbox_testing_free(testing);
		return r;
	}
	*ret_testing = testing;
	return OUTBOX_OK;
}

struct outbox_testing *outbox_testing_free(struct outbox_testing *testing)
{
	if (!testing)
		return NULL;
	memory_broker_free(testing->broker);
	memory_db_free(testing->db);
	free(testing);
	return NULL;
}

int outbox_testing_register(struct outbox_testing *testing, struct outbox_registry *registry,
			    struct outbox_error *err)
{
	int r;

	if (!testing)
		return outbox_fail(err, OUTBOX_EINVAL, "testing must not be NULL");
	r = outbox_registry_add_store(registry, &memory_store_ops, testing->db, err);
	return r ? r
		 : outbox_registry_add_transport(registry, &memory_transport_ops, testing->broker,
						 err);
}

/* A transaction of the memory store under its public name. */
struct outbox_testing_tx *outbox_testing_begin(struct outbox_testing *testing)
{
	return (struct outbox_testing_tx *)memory_tx_begin(testing->db);
}

int outbox_testing_publish(struct outbox_testing_tx *tx, const struct outbox_message *message,
			   struct outbox_error *err)
{
	struct outbox_message view;
	int r;

	if (!tx || !message)
		return outbox_fail(err, OUTBOX_EINVAL, "tx and message must not be NULL");
	view = message_view(message);
	r = outbox_message_validate(&view, 0, err);
	return r ? r : memory_tx_publish((struct memory_tx *)tx, &view, NULL, err);
}

struct outbox_testing_tx *outbox_testing_commit(struct outbox_testing_tx *tx)
{
	return (struct outbox_testing_tx *)memory_tx_commit((struct memory_tx *)tx);
}

struct outbox_testing_tx *outbox_testing_rollback(struct outbox_testing_tx *tx)
{
	return (struct outbox_testing_tx *)memory_tx_rollback((struct memory_tx *)tx);
}

size_t outbox_testing_count(struct outbox_testing *testing)
{
	return memory_broker_count(testing->broker);
}

int outbox_testing_at(struct outbox_testing *testing, size_t i,
		      struct outbox_testing_record *ret_record, struct outbox_error *err)
{
	const struct memory_record *record = memory_broker_at(testing->broker, i);

	if (!record)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "i: %zu messages arrived, there is no number %zu",
				   memory_broker_count(testing->broker), i);
	*ret_record = (struct outbox_testing_record){
		.id = record->id,
		.type = record->type,
		.key = record->key,
		.body = record->body,
		.size = record->size,
		.content_type = record->content_type,
		.headers = record->headers,
		.n_headers = record->n_headers,
	};
	return OUTBOX_OK;
}

struct outbox_clock *outbox_testing_clock(struct outbox_testing *testing)
{
	return &testing->clock.base;
}

void outbox_testing_step(struct outbox_testing *testing, outbox_time step)
{
	frozen_clock_step(&testing->clock, step);
}
