/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_ORDERS_H
#define EXAMPLES_ORDERS_H

/*
 * The demo: an order service on SQLite and its relays, each in a process of its own. It uses only the
 * public headers. main.c tells the story; the other files are its parts.
 */

#include <outbox/outbox.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <sys/types.h>

#define ORDERS 200
#define ROLLED_BACK 20   /* every tenth: the card was declined */
#define POISON_ORDER 131 /* carries "total": -1, which the broker's consumer refuses */
#define CUSTOMERS 10     /* the key: orders of one customer are delivered in order */

/* The files of one run, all in one folder. */
struct place {
	char folder[512];
	char database[600];
	char store[640];  /* the database as a URL */
	char broker[600]; /* what the broker received: the consumer's file */
	char down[640];   /* while this file exists, the broker is down */
};

/* ---- shop.c: the business side ------------------------------------------------------------- */

sqlite3 *shop_open(const struct place *place);
/* Place one order and its message in one transaction; every tenth is rolled back. False: an error was printed. */
bool shop_place(sqlite3 *db, int order);
/* The first column of the first row. -1 when there is none. */
int64_t shop_number(sqlite3 *db, const char *sql);
/* The same as text, "" when there is none. */
void shop_text(sqlite3 *db, const char *sql, char *ret_text, size_t size);
void shop_exec(sqlite3 *db, const char *sql);

/* ---- broker.c: the demo's own transport ----------------------------------------------------- */

extern const struct outbox_transport_ops broker_ops;

/* ---- relay.c: processes -------------------------------------------------------------------- */

/* The relay's whole life, in its own process: until SIGTERM. */
int relay_main(const char *instance, const struct place *place);
/* fork and exec this program as a relay. */
pid_t relay_spawn(const char *program, const char *instance, const struct place *place);
/* How often the relay's breaker opened, as the relay recorded it. */
long relay_outages(const struct place *place, const char *instance);
/* Run a command without showing its output; returns its exit code. */
int run_command(char *const argv[]);
void wait_ms(long milliseconds);

/* ---- oracle.c: checks that do not rely on the relay ---------------------------------------- */

/* Complete lines in the consumer's file. */
int64_t oracle_lines(const struct place *place);
/* Remember what was in flight when the relay was killed, and which of it the broker already had. */
void oracle_note_kill(sqlite3 *db, const struct place *place);
/* Compare orders, consumer's file and outbox; print the table; true when all is right. */
bool oracle_judge(sqlite3 *db, const struct place *place);

#endif
