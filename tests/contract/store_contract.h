/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_CONTRACT_H
#define STORE_CONTRACT_H

/*
 * The contract of include/outbox/store.h as tests. A driver's test is a fixture: how to make an empty
 * place for a database, and how an application publishes there in a transaction of its own.
 * docs/internals/stores.md explains it field by field.
 */

#include <outbox/store.h>

/* What not every driver has; cases that need it are bound only where it is there. */
#define STORE_LATE_COMMITS 1u  /* several transactions may be open and commit in any order */
#define STORE_MISSING 2u       /* there are URLs of databases that do not exist */
#define STORE_LOOKS 4u         /* its ops have look: no need to say so */
#define STORE_JOINS 8u         /* likewise settle_and_claim_lanes */
#define STORE_CANCELS 16u      /* likewise the fixture has cancel */
#define STORE_COMMIT_FAILS 32u /* likewise try_commit */
#define STORE_INBOX 64u        /* likewise accept */

struct store_fixture {
	const char *name;
	const struct outbox_store_ops *ops;
	unsigned has; /* STORE_* */

	/* NULL when it can run, else why it is skipped (exit status 77). Optional. */
	const char *(*unavailable)(void);

	/* Before and after each case: a place for one database, without a schema. */
	void *(*make)(struct outbox_clock *clock);
	void (*destroy)(void *place);

	const char *(*url)(void *place);
	void *(*context)(void *place);           /* optional */
	const char *(*missing_url)(void *place); /* with STORE_MISSING */

	/* Make the schema look like that version's, which must not be understood by this program. */
	void (*fake_schema)(void *place, int version);

	/*
	 * An application's transaction, on a connection of its own. publish() fails as the client
	 * library does. One savepoint at a time. commit and rollback end it.
	 */
	void *(*begin)(void *place);
	int (*publish)(void *tx, const struct outbox_message *message, int64_t *ret_seq,
		       struct outbox_error *err);
	/* Optional, as the client library does it. */
	int (*cancel)(void *tx, const char *id, bool *ret_done, struct outbox_error *err);
	/* Optional, both or none: as the client library does it; and a row of the inbox that was received at this time. */
	int (*accept)(void *tx, const char *consumer, const char *id, bool *ret_first,
		      struct outbox_error *err);
	void (*received)(void *place, const char *consumer, const char *id, outbox_time at);
	void (*savepoint)(void *tx);
	void (*rollback_to)(void *tx);
	/* Optional, where what was cancelled may be read before the commit: ECONFLICT, and it ends all the same. */
	int (*try_commit)(void *tx, struct outbox_error *err);
	void (*commit)(void *tx);
	void (*rollback)(void *tx);

	/* Optional, for a store with a clock of its own: a message that was written at this time. */
	int64_t (*publish_at)(void *place, outbox_time time);
};

extern const struct store_fixture memory_store_fixture, sqlite_store_fixture, postgres_store_fixture;

/* Run the suite; the result is main()'s. An argument is a filter: only cases whose name has it. */
int store_contract_run(const struct store_fixture *fixture, int argc, char **argv);

#endif
