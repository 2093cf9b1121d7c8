/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench-isolation OUTBOX [quick|full]: what a target that is down costs another one. One relay, two targets: A drains a
 * log to null:, the fastest there is, so that whatever is taken from it shows most. Beside it B is up and has nothing
 * to do, or B is down and has the whole log before it: nobody listens at its port, or somebody does and never says a
 * word. The passes run in pairs; the median of the pairs' ratios counts. Run by bench/run, which starts PostgreSQL.
 */

#include "../postgres/bench.h"

#include <arpa/inet.h>
#include <outbox/brokers.h>
#include <outbox/outbox.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WANTED 0.95
#define PATIENCE (30 * OUTBOX_SECONDS)

static const struct kind {
	const char *name;
	const char *scheme, *rest; /* around host and port */
} kinds[] = {
	{ "rabbitmq", "amqp://guest:guest@", "/?routing_key=bench" },
	{ "kafka", "kafka://", "/bench" },
	{ "nats", "nats://", "/bench?stream=bench" },
	{ "redis", "redis://", "/?stream=bench" },
};

/* A port that is ours. Where nobody listens the kernel refuses; where somebody listens it accepts, and that is all. */
struct hole {
	int fd, port;
	bool listens;
};

static struct hole hole_make(bool listens)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	struct hole hole = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			     .listens = listens };

	if (hole.fd < 0 || bind(hole.fd, (struct sockaddr *)&address, size) < 0 ||
	    (listens && listen(hole.fd, 100) < 0) ||
	    getsockname(hole.fd, (struct sockaddr *)&address, &size) < 0)
		die("a port of our own", "cannot be had");
	hole.port = ntohs(address.sin_port);
	return hole;
}

/* Did the relay try? Without that the pass says nothing. Ends what waits in the hole. */
static void hole_end(const struct hole *hole, const struct outbox_relay_counts *counts)
{
	struct pollfd tried = { .fd = hole->fd, .events = POLLIN };

	if (hole->listens ? poll(&tried, 1, 0) != 1 : counts->outages == 0)
		die("the target that is down", "was never tried");
	close(hole->fd);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct cost {
	double rate;
	double cpu; /* of the relay, microseconds a message */
};

/* Until A has delivered everything. */
static struct cost drain(struct outbox_relay *relay, int messages,
			 struct outbox_relay_counts *ret_counts)
{
	double start = now_seconds(), cpu = cpu_seconds();
	struct outbox_error err = OUTBOX_ERROR_INIT;

	*ret_counts = (struct outbox_relay_counts)OUTBOX_RELAY_COUNTS_INIT;
	if (outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	do {
		rest(1);
		outbox_relay_counts(relay, ret_counts);
	} while (ret_counts->delivered < (uint64_t)messages);
	return (struct cost){ .rate = messages / (now_seconds() - start),
			      .cpu = (cpu_seconds() - cpu) * 1e6 / messages };
}

/* One pass; hole NULL: B is up and idle. */
static struct cost pass(struct place *place, const struct kind *kind, const struct hole *hole)
{
	struct outbox_target_config targets[2] = { OUTBOX_TARGET_CONFIG_INIT,
						   OUTBOX_TARGET_CONFIG_INIT };
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_registry *registry = NULL;
	struct outbox_relay *relay = NULL;
	struct outbox_relay_counts counts;
	struct cost cost;
	char to[200];

	if (hole)
		snprintf(to, sizeof(to), "%s127.0.0.1:%d%s", kind->scheme, hole->port, kind->rest);
	targets[0].name = place_target();
	targets[0].to = "null:";
	targets[0].start = OUTBOX_START_OLDEST;
	targets[1].name = hole ? kind->name : "idle";
	targets[1].to = hole ? to : "null:";
	targets[1].start = hole ? OUTBOX_START_OLDEST : OUTBOX_START_NOW;
	config.store = place->url;
	config.targets = targets;
	config.n_targets = 2;
	config.purge_interval = OUTBOX_NEVER;
	if (outbox_registry_new(&registry, &err) || outbox_brokers_register(registry, &err))
		die("drivers", err.message);
	config.registry = registry;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	cost = drain(relay, place->bench->sizes.drain_messages, &counts);
	if (hole)
		hole_end(hole, &counts);
	if (outbox_relay_stop(relay, PATIENCE, &err) != OUTBOX_OK)
		die("relay", err.message);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	return cost;
}

/* kind NULL: idle beside idle, to see how far the machine itself moves the ratio. */
static void compare(struct place *place, const struct kind *kind, bool listens)
{
	struct series ratio = { 0 }, down = { 0 }, idle = { 0 }, down_cpu = { 0 }, idle_cpu = { 0 };
	char what[80];

	for (int i = 0; i < place->bench->sizes.repeats; i++) {
		struct cost costs[2];

		for (int k = 0; k < 2; k++) {
			bool is_down = k == i % 2, has_hole = is_down && kind;
			struct hole hole = { 0 };

			if (has_hole)
				hole = hole_make(listens);
			costs[is_down] = pass(place, kind, has_hole ? &hole : NULL);
		}
		series_add(&ratio, costs[1].rate / costs[0].rate);
		series_add(&down, costs[1].rate);
		series_add(&idle, costs[0].rate);
		series_add(&down_cpu, costs[1].cpu);
		series_add(&idle_cpu, costs[0].cpu);
	}
	if (kind)
		snprintf(what, sizeof(what), "beside %s that %s", kind->name,
			 listens ? "never answers" : "refuses");
	else
		snprintf(what, sizeof(what), "beside an idle target, both");
	report(&(struct line){ .bench = "isolation",
			       .what = what,
			       .ours = series_median(&down),
			       .beside = series_median(&idle),
			       .beside_what = "beside an idle target",
			       .value = series_median(&ratio),
			       .unit = "x",
			       .want = kind ? AT_LEAST : WANT_NOTHING,
			       .wanted = WANTED });
	report(&(struct line){ .bench = "isolation",
			       .what = "CPU of both a message",
			       .value = series_median(&down_cpu),
			       .unit = "us",
			       .beside = series_median(&idle_cpu),
			       .beside_what = "beside an idle target" });
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die(name, "is not set; run me by bench/run");
	return value;
}

int main(int argc, char **argv)
{
	static const struct sizes full = { .repeats = 8, .drain_messages = 400000 };
	static const struct sizes quick = { .repeats = 4, .drain_messages = 50000 };
	struct bench bench = { 0 };
	struct place place;
	char server[200];

	if (argc != 3)
		die("bench-isolation", "give OUTBOX, and quick or full");
	snprintf(server, sizeof(server), "postgres://postgres@127.0.0.1:%s", environment("PGPORT"));
	bench.server = server;
	bench.outbox = argv[1];
	bench.bin = environment("PG_BIN");
	bench.data = environment("PGDATA");
	bench.sizes = strcmp(argv[2], "quick") == 0 ? quick : full;
	place_make(&place, &bench, "isolation", 1);
	place_fill(&place, bench.sizes.drain_messages);
	(void)pass(&place, NULL, NULL); /* the first one reads what nobody has read yet */
	compare(&place, NULL, false);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		compare(&place, &kinds[i], false);
		compare(&place, &kinds[i], true);
	}
	place_end(&place);
	return 0;
}
