/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_MEMORY_H
#define MEMORY_STORE_MEMORY_H

/*
 * The memory store: the reference implementation of the store contract, for tests and the simulator.
 *
 * The database is an explicit object. Stores are opened with it as their context; all of them share
 * it, from any thread. It must outlive them. Nothing here depends on addresses or on hash order, so
 * the same calls give the same answers in every run.
 *
 * Its transactions are like PostgreSQL's: a message gets its seq when it is inserted and becomes
 * visible when its transaction commits, so a lower seq may appear after a higher one was settled.
 *
 * Out of memory ends the process: it is no store for production.
 */

#include <outbox/store.h>

#include <stdint.h>

struct memory_db;
struct memory_tx;

/* Where a fault callback is called: before the op is applied, and after it was applied and worked. */
enum memory_phase { MEMORY_BEFORE = 1, MEMORY_AFTER = 2 };

/*
 * Answers 0: go on. Not 0: the op fails with this status; with MEMORY_BEFORE nothing happened, with
 * MEMORY_AFTER everything happened and only the reply is lost (what was handed out must not be used).
 * op is the name of the member of struct outbox_store_ops: "settle_and_claim". Called without the database's
 * lock, on the caller's thread. err may be NULL.
 */
typedef int (*memory_fault_fn)(void *context, const char *op, enum memory_phase phase,
			       struct outbox_error *err);

extern const struct outbox_store_ops memory_store_ops;

/*
 * A database without a schema (say init). name is what its URL says: "memory:NAME". clock serves the
 * transactions below (stores bring their own) and outlives the database; seed makes ids and tokens.
 */
struct memory_db *memory_db_new(const char *name, struct outbox_clock *clock, uint64_t seed);

/* No store and no transaction may be open any more. */
struct memory_db *memory_db_free(struct memory_db *db);

/* fault NULL: none. Not while other threads use the database. */
void memory_db_set_fault(struct memory_db *db, memory_fault_fn fault, void *context);

/* Pretend that the schema has this version. */
void memory_db_set_schema(struct memory_db *db, int version);

/* Set the log's counter: the next message gets the first free number behind `last`, also one that another
 * message had. Every lane is refused from then on until it is rebased. */
void memory_db_set_counter(struct memory_db *db, int64_t last);

/* ---- an application's own transactions ----------------------------------------------------- */

struct memory_tx *memory_tx_begin(struct memory_db *db);

/*
 * The message was validated. ret_seq may be NULL. An id that is in the log gives its seq and writes
 * nothing. EBUSY: another open transaction has published this id.
 */
int memory_tx_publish(struct memory_tx *tx, const struct outbox_message *message, int64_t *ret_seq,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A savepoint is a number for rollback_to, which undoes what was published after it. */
size_t memory_tx_savepoint(struct memory_tx *tx);
void memory_tx_rollback_to(struct memory_tx *tx, size_t savepoint);

/* Both free the transaction and return NULL; NULL is legal. */
struct memory_tx *memory_tx_commit(struct memory_tx *tx);
struct memory_tx *memory_tx_rollback(struct memory_tx *tx);

#endif
