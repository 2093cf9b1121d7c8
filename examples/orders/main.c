/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The story: two relays run, one as a standby. Orders are placed all the time. The broker is down for
 * three seconds; the relay that holds the lane is killed at message 97, and the other takes over when
 * the lease ends; order 131 carries a message that the consumer never accepts. At the end an oracle
 * compares what was committed with what arrived.
 *
 *   orders --dir FOLDER --outbox PATH-OF-OUTBOX
 *   orders --dir FOLDER --judge       compare again, after somebody has changed the files
 */

#include "orders.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_AT 97

static pid_t relays[2] = { -1, -1 };
static const char *const names[2] = { "relay-a", "relay-b" };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void end_relay(int i, int number)
{
	if (relays[i] <= 0)
		return;
	kill(relays[i], number);
	while (waitpid(relays[i], NULL, 0) < 0 && errno == EINTR)
		;
	relays[i] = -1;
}

static void end_relays(void)
{
	end_relay(0, SIGTERM);
	end_relay(1, SIGTERM);
}

static void give_up(const char *what)
{
	printf("\n  WRONG: %s; the relays' logs are beside the database\n", what);
	exit(1);
}

/* Wait until the query returns the number, or give up after 15 s. */
static void await(sqlite3 *db, const char *sql, int64_t wanted, const char *what)
{
	for (double end = now() + 15; shop_number(db, sql) != wanted; wait_ms(10))
		if (now() > end)
			give_up(what);
}

static void await_lines(const struct place *place, int64_t wanted)
{
	for (double end = now() + 15; oracle_lines(place) < wanted; wait_ms(1))
		if (now() > end)
			give_up("messages did not arrive in 15 s");
}

static void place_orders(sqlite3 *db, int from, int to)
{
	for (int order = from; order <= to; order++) {
		if (!shop_place(db, order))
			exit(1);
		wait_ms(5);
	}
}

static void tell(const char *what)
{
	printf("  %-38s", what);
	fflush(stdout);
}

/* Orders go on while the broker is down: nothing is lost, no attempts are charged. */
static void outage(sqlite3 *db, const struct place *place)
{
	double end = now() + 3;
	FILE *cue = fopen(place->down, "w");
	int64_t charged;
	long opened;

	if (!cue)
		give_up("cannot write the file that stops the broker");
	fclose(cue);
	tell("the broker is down for 3 s");
	place_orders(db, 61, 115);
	while (now() < end)
		wait_ms(10);
	opened = relay_outages(place, names[0]);
	charged = shop_number(db, "SELECT coalesce(sum(attempts), 0) FROM outbox_delivery");
	unlink(place->down);
	printf("breaker %s: %lld attempts charged\n", opened > 0 ? "open" : "CLOSED",
	       (long long)charged);
	if (opened == 0 || charged != 0)
		give_up("an outage must open the breaker and charge no attempts");
}

static void kill_relay(sqlite3 *db, const struct place *place)
{
	double killed;
	char text[64];

	await_lines(place, KILL_AT);
	end_relay(0, SIGKILL);
	killed = now();
	snprintf(text, sizeof(text), "relay killed (SIGKILL) at message %lld",
		 (long long)oracle_lines(place));
	tell(text);
	oracle_note_kill(db, place);
	await(db, "SELECT count(*) FROM outbox_lane WHERE owner LIKE 'relay-b%'", 1,
	      "no relay took over the lane");
	printf("lane 0 taken over after %.1f s\n", now() - killed);
}

static void poison(sqlite3 *db)
{
	char text[64], why[256];

	snprintf(text, sizeof(text), "order %d carries a poison message", POISON_ORDER);
	tell(text);
	await(db, "SELECT count(*) FROM outbox_failed", 1, "the poison message did not fail");
	shop_text(db,
		  "SELECT 'failed after ' || attempts || ' attempts: ' || last_error"
		  " FROM outbox_failed",
		  why, sizeof(why));
	printf("%s\n", why);
}

static void look_around(sqlite3 *db, const struct place *place, const char *outbox)
{
	char id[64];

	shop_text(db, "SELECT id FROM outbox_failed", id, sizeof(id));
	printf("\nlook around:  %s status --store %s\n", outbox, place->store);
	printf("              %s list --store %s --state failed\n", outbox, place->store);
	printf("              %s show --store %s %s\n", outbox, place->store, id);
}

static int story(const char *program, const char *outbox, const struct place *place)
{
	char *init[] = { (char *)(uintptr_t)outbox, (char *)(uintptr_t) "init",
			 (char *)(uintptr_t) "--store", (char *)(uintptr_t)place->store, NULL };
	sqlite3 *db;
	bool right;

	if (run_command(init) != 0)
		return 1;
	db = shop_open(place);
	atexit(end_relays);
	for (int i = 0; i < 2; i++) {
		relays[i] = relay_spawn(program, names[i], place);
		await(db,
		      i == 0 ? "SELECT count(*) FROM outbox_lane WHERE owner LIKE 'relay-a%'"
			     : "SELECT count(*) > 1 FROM outbox_worker",
		      1, "a relay did not start");
	}
	printf("\n  an order service places orders; relay-a delivers, relay-b is the standby\n");
	place_orders(db, 1, 60);
	/* not in the middle of a batch, or an acknowledgement may be lost, which is not part of this story */
	await(db, "SELECT count(*) FROM outbox_delivery WHERE state IN ('pending', 'sending')", 0,
	      "messages still wait");
	outage(db, place);
	kill_relay(db, place);
	place_orders(db, 116, ORDERS);
	printf("  placed %d orders in transactions, %d of them rolled back\n", ORDERS, ROLLED_BACK);
	poison(db);
	await(db, "SELECT count(*) FROM outbox_delivery WHERE state IN ('pending', 'sending')", 0,
	      "messages still wait");
	end_relays();
	right = oracle_judge(db, place);
	if (right)
		look_around(db, place, outbox);
	sqlite3_close(db);
	return right ? 0 : 1;
}

static int judge_again(const struct place *place)
{
	sqlite3 *db = shop_open(place);
	bool right = oracle_judge(db, place);

	sqlite3_close(db);
	return right ? 0 : 1;
}

static void set_place(struct place *place, const char *folder)
{
	snprintf(place->folder, sizeof(place->folder), "%s", folder);
	snprintf(place->database, sizeof(place->database), "%s/demo.db", place->folder);
	snprintf(place->store, sizeof(place->store), "sqlite:%s", place->database);
	snprintf(place->broker, sizeof(place->broker), "%s/broker.jsonl", place->folder);
	snprintf(place->down, sizeof(place->down), "%s.down", place->broker);
}

/* Files of an earlier run; the folder itself stays. */
static void clean(const struct place *place)
{
	static const char *const files[] = { "demo.db", "demo.db-wal", "demo.db-shm",
					     "broker.jsonl", "broker.jsonl.down" };
	char path[600];

	mkdir(place->folder, 0755);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", place->folder, files[i]);
		unlink(path);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ "outbox", required_argument, NULL, 'o' },
		{ "relay", required_argument, NULL, 'r' },
		{ "judge", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	const char *folder = "demo", *outbox = "./build/outbox", *relay = NULL;
	struct place place;
	bool judge = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			folder = optarg;
		else if (option == 'o')
			outbox = optarg;
		else if (option == 'r')
			relay = optarg;
		else if (option == 'j')
			judge = true;
		else
			return 2;
	}
	set_place(&place, folder);
	if (relay)
		return relay_main(relay, &place);
	if (judge)
		return judge_again(&place);
	clean(&place);
	return story("/proc/self/exe", outbox, &place);
}
