/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_CHECK_H
#define STORE_POSTGRES_CHECK_H

/* What `outbox doctor` says about the database. Findings only: nothing is changed. */

#include "store/postgres/db.h"

enum check_level { FINE = 0, NOTE = 1, WARNING = 2, WRONG = 3 };

struct checking {
	struct pg_store *s;
	void (*say)(void *context, int level, const char *subject, const char *text);
	void *context;
};

/* One finding: a sentence, with the remedy where there is something to repair. */
void check_say(const struct checking *c, enum check_level level, const char *subject,
	       const char *format, ...) OUTBOX_PRINTF(4, 5);

/* One picture of the catalogue or of our tables; $1 is the name of the outbox's schema. */
int check_ask(const struct checking *c, const char *sql, PGresult **ret_rows,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The server and what goes on in it. */
int check_server(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_held(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_vacuum(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Our own tables. */
int check_log(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_columns(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_indexes(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_plan(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_partitions(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_rights(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;
int check_positions(const struct checking *c, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
