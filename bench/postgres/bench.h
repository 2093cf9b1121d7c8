/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_POSTGRES_BENCH_H
#define BENCH_POSTGRES_BENCH_H

/*
 * Benchmarks of the PostgreSQL store, on a server that was started for the run. What is compared runs in
 * turn in the same run, and medians are reported. One JSON object a line on standard output.
 */

#include "../series.h"

#include <libpq-fe.h>
#include <stdint.h>
#include <sys/types.h>

#define SCALES 4

struct sizes {
	int repeats;
	int drain_messages;  /* in the log that is drained again and again */
	int peer_messages;   /* in the table of the SKIP LOCKED loop */
	int publish_repeats; /* pairs; a publishing run takes publish_seconds */
	int publish_seconds;
	int latency_seconds; /* at each rate */
	int idle_messages;   /* published one by one to a sleeping relay ... */
	int idle_pause;      /* ... so many milliseconds apart */
	int idle_seconds;    /* a relay with nothing to do is watched */
	int calls;           /* in each repeat, of each kind */
	int scale[SCALES];   /* waiting messages; 0 ends */
	int trouble[4];      /* the same, while some are refused */
};

struct bench {
	const char *server; /* "postgres://postgres@127.0.0.1:5432" */
	const char *outbox; /* the program */
	const char *bin;    /* folder of pgbench */
	const char *data;   /* the server's folder */
	const char *here;   /* folder of the pgbench scripts */
	struct sizes sizes;
};

/* One database with an outbox in it. */
struct place {
	const struct bench *bench;
	char url[300];
	PGconn *db;
};

/* ---- server.c ------------------------------------------------------------------------------ */

PGconn *pg_open(const char *url);
void pg_run(PGconn *db, const char *sql);
void pg_runf(PGconn *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
double pg_number(PGconn *db, const char *sql);
double pg_numberf(PGconn *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pg_check(PGconn *db, PGresult *result, ExecStatusType wanted, const char *what);

/* CPU seconds that the whole server has used so far, ended backends included. */
double server_cpu(const struct bench *bench);
/* CPU seconds of one process so far, to the nanosecond. */
double process_cpu(int pid);
double server_wal(PGconn *db);
/* Transactions of this database so far; each connection tells once a second. */
double server_commits(PGconn *db);

/* Make a database and an outbox in it. */
void place_make(struct place *place, const struct bench *bench, const char *name, int lanes);
void place_end(struct place *place);
/* Append n messages, ten thousand keys in turn, and leave the table as autovacuum would. */
void place_fill(struct place *place, int n);
/* The same with so many keys in turn, of which 10,000 is a multiple. */
void place_fill_keys(struct place *place, int n, int keys);
/* A name that no target had before. */
const char *place_target(void);

void rest(long milliseconds);
pid_t spawn(char *const argv[]);
/* `outbox relay` to null:, from the oldest message or from now on. */
pid_t spawn_relay(const struct place *place, const char *target, bool oldest);
void end_process(pid_t pid);

/* ---- report.c ------------------------------------------------------------------------------ */

enum want { WANT_NOTHING, AT_LEAST, AT_MOST };

/* value is what is judged; ours and beside, when not 0, are what it was made from. */
struct line {
	const char *bench;
	const char *what;
	double ours;
	double beside;
	const char *beside_what;
	double value;
	const char *unit;
	enum want want;
	double wanted;
};

void report(const struct line *line);
/* The ratio of two series of rates, by their medians. */
void report_ratio(const char *bench, const char *what, const struct series *ours,
		  const char *beside_what, const struct series *beside, double wanted);

/* ---- peers.c: what ours is compared with ---------------------------------------------------- */

/* What one pass over so many messages took. */
struct pass {
	double rate;     /* messages a second */
	double wal, cpu; /* bytes and microseconds of the server, a message */
	double commits;  /* transactions a message */
};

struct meter {
	double start, wal, cpu, commits;
};

void meter_start(struct meter *meter, const struct place *place);
struct pass meter_end(const struct meter *meter, const struct place *place, int messages);

/* What is done with each batch that was read. */
struct each {
	void (*run)(struct each *each, const PGresult *rows);
};

/* A plain loop over the log in batches; with a small INSERT a batch, or without. each NULL: only look. */
struct pass raw_pass(struct place *place, bool receipts, int batch, int messages, struct each *each);
/* The table of the SKIP LOCKED loop, anew, with so many messages. */
void peer_make(PGconn *db, int messages);
/* The same, all of them sent: statements are not planned for an empty table then. */
void peer_make_done(PGconn *db, int messages);
/* Its statements, once a connection. */
void peer_prepare(PGconn *db);
/* Claim at most 200 by UPDATE ... SKIP LOCKED, do each, mark by UPDATE; how many there were. */
int peer_cycle(PGconn *db, struct each *each);
/* The same until none is left; fills its table first. */
struct pass skip_locked_pass(struct place *place, int messages, struct each *each);

/* ---- the benchmarks ------------------------------------------------------------------------ */

void bench_drain(const struct bench *bench);
void bench_publish(const struct bench *bench);
void bench_publisher(const struct bench *bench);
void bench_latency(const struct bench *bench);
void bench_idle(const struct bench *bench);
void bench_call(const struct bench *bench);
void bench_scale(const struct bench *bench);
void bench_trouble(const struct bench *bench);

#endif
