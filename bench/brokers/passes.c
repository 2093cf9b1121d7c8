/* SPDX-License-Identifier: Apache-2.0 */
#include "passes.h"

#include "timed.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

struct mark mark_now(size_t messages)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (struct mark){ .time = now_seconds(),
			      .cpu = (double)t.tv_sec + (double)t.tv_nsec / 1e9,
			      .messages = messages };
}

static struct cost cost_between(struct mark first, struct mark last)
{
	double n = (double)(last.messages - first.messages);

	return (struct cost){ .rate = n / (last.time - first.time),
			      .cpu = (last.cpu - first.cpu) * 1e6 / n };
}

void sender_send(struct sender *sender, size_t n)
{
	size_t round = sender->round ? sender->round : n;

	for (size_t at = 0; at < n; at += round)
		sender->ops->publish(sender->broker, sender->window + at,
				     n - at < round ? n - at : round);
	sender->last = mark_now(sender->last.messages + n);
	if (!sender->first.messages)
		sender->first = sender->last;
}

void broker_make(const struct broker *broker)
{
	void *opened = broker->ops->open(broker->url);

	broker->ops->make(opened);
	broker->ops->close(opened);
}

/* Nothing was taken for a duplicate, or lost. */
static void check_count(const struct broker *broker, int messages)
{
	void *opened = broker->ops->open(broker->url);
	long n = messages;

	/* RabbitMQ counts a moment later. */
	for (int i = 0; broker->ops->count && i < 100; i++) {
		n = broker->ops->count(opened);
		if (n == messages)
			break;
		rest(20);
	}
	broker->ops->close(opened);
	if (n != messages)
		die(broker->ops->name, "it has not as many messages as were sent");
}

/* Every pass finds the broker empty, and a NATS server that has seen none of the ids. */
static void make_empty(const struct origin *origin, const struct broker *broker)
{
	broker_make(broker);
	origin->tidy(origin);
}

struct cost relay_pass(const struct origin *origin, const struct broker *broker, int messages)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	struct cost cost;
	double start;

	make_empty(origin, broker);
	target.name = place_target();
	target.to = broker->to;
	target.start = OUTBOX_START_OLDEST;
	config.store = origin->url;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = BATCH;
	config.purge_interval = OUTBOX_NEVER;
	config.registry = timed_registry();
	timed_start(false, 0);
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	start = now_seconds();
	if (outbox_relay_run_once(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	cost = cost_between(timed_first(), mark_now((size_t)messages));
	cost.start = timed_first().time - start;
	outbox_relay_counts(relay, &counts);
	outbox_relay_free(relay);
	if (counts.delivered != (uint64_t)messages)
		die("relay", "not every message was delivered");
	check_count(broker, messages);
	return cost;
}

static struct sender sender_open(const struct origin *origin, const struct broker *broker)
{
	make_empty(origin, broker);
	return (struct sender){ .ops = broker->ops, .broker = broker->ops->open(broker->url) };
}

struct cost bare_pass(const struct origin *origin, const struct broker *broker, int messages,
		      size_t round)
{
	struct sender sender = sender_open(origin, broker);

	sender.round = round;
	origin->read(origin, &sender, messages);
	broker->ops->close(sender.broker);
	check_count(broker, messages);
	return cost_between(sender.first, sender.last);
}

double peer_pass(const struct origin *origin, const struct broker *broker, int messages)
{
	struct sender sender = sender_open(origin, broker);

	classic_pass(origin, &sender, messages);
	broker->ops->close(sender.broker);
	return cost_between(sender.first, sender.last).rate;
}

double publish_pass(const struct broker *broker, int messages, size_t round)
{
	struct sender sender = { .ops = broker->ops, .round = round };
	static char ids[BATCH][40];
	double run = now_seconds() * 1e6;

	broker_make(broker);
	sender.broker = broker->ops->open(broker->url);
	for (int sent = 0; sent < messages; sent += BATCH) {
		for (int i = 0; i < BATCH; i++) { /* ids that no broker has seen */
			snprintf(ids[i], sizeof(ids[i]), "%.0f-%d", run, sent + i);
			sender.window[i] = (struct plain_message){ .id = ids[i],
								   .type = "bench.message",
								   .key = ids[i],
								   .time = PLAIN_TIME,
								   .body = payload(),
								   .size = strlen(payload()) };
		}
		sender_send(&sender, BATCH);
	}
	broker->ops->close(sender.broker);
	return cost_between(sender.first, sender.last).rate;
}

double memory_pass(const struct origin *origin, const struct broker *broker, const char *outbox)
{
	char program[600], store[700], to[700], start[60];
	char words[][16] = { "relay", "--store", "--to", "--start", "--until-idle" };
	char *argv[] = { program, words[0], words[1], store,    words[2],
			 to,      words[3], start,    words[4], NULL };
	const char *target = place_target();
	long peak = 0;
	int status;
	pid_t pid;

	make_empty(origin, broker);
	snprintf(program, sizeof(program), "%s", outbox);
	snprintf(store, sizeof(store), "%s", origin->url);
	snprintf(to, sizeof(to), "%s=%s", target, broker->to + strlen("timed:"));
	snprintf(start, sizeof(start), "%s=oldest", target);
	pid = spawn(argv);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		long kib = peak_kib(pid);

		peak = kib > peak ? kib : peak;
		rest(5);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die("outbox relay", "it failed; BENCH_VERBOSE=1 shows why");
	return (double)peak / 1024;
}
