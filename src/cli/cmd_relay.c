/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/json_out.h"
#include "cli/outages.h"
#include "cli/relay_options.h"
#include "cli/relay_run.h"
#include "cli/safe.h"
#include "cli/stop.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct option options[] = {
	OPTION("to", OPTION_LIST, struct relay_values, to, "NAME=URL",
	       "a target: events=amqp://mq/?exchange=shop, x=kafka://k1/{type}, nats:, redis:, file:out.jsonl, stdout:"),
	OPTION("match", OPTION_LIST, struct relay_values, match, "NAME=GLOB",
	       "the target gets these types only: partner=order.*"),
	OPTION("kind", OPTION_LIST, struct relay_values, kind, "NAME=KIND",
	       "the target gets only event or command"),
	OPTION("envelope", OPTION_LIST, struct relay_values, envelope, "NAME=FORM",
	       "structured, binary, native, or external: published messages only, nothing internal"),
	OPTION("order", OPTION_LIST, struct relay_values, order, "NAME=ORDER",
	       "strict (default), pipelined or none"),
	OPTION("hold", OPTION_LIST, struct relay_values, hold, "NAME",
	       "behind a failed message its key waits (default: it goes on)"),
	OPTION("start", OPTION_LIST, struct relay_values, start, "NAME=WHERE",
	       "where a new target begins: oldest or now"),
	OPTION("policy", OPTION_LIST, struct relay_values, policy, "[NAME=]POLICY",
	       "retry policy, for one target or all; outbox policy list"),
	OPTION("config", OPTION_TEXT, struct relay_values, config, "FILE",
	       "all of it from outbox.yaml instead; outbox config reference shows one"),
	OPTION("set", OPTION_LIST, struct relay_values, set, "KEY=VALUE",
	       "over the file: targets.events.batch=100"),
	OPTION("source", OPTION_TEXT, struct relay_values, source, "NAME",
	       "which of the file's sources, when there are several"),
	OPTION("once", OPTION_FLAG, struct relay_values, once, NULL,
	       "deliver what is due now, then end"),
	OPTION("until-idle", OPTION_FLAG, struct relay_values, until_idle, NULL,
	       "deliver until nothing is left but deferred and failed; waits for retries"),
	OPTION_RANGE("workers", struct relay_values, workers, 1, 64,
		     "threads for each target (default: 1)"),
	OPTION_RANGE("batch", struct relay_values, batch, 1, 100000,
		     "messages in one batch (default: 500)"),
	OPTION("batch-bytes", OPTION_SIZE, struct relay_values, batch_bytes, "SIZE",
	       "payload bytes in one batch (default: 8MiB)"),
	OPTION("lease", OPTION_DURATION, struct relay_values, lease, "DURATION",
	       "a dead relay's lanes are taken over after this (default: 15s)"),
	OPTION("poll", OPTION_DURATION, struct relay_values, poll, "DURATION",
	       "look for messages at least this often (default: 250ms)"),
	OPTION("retain-delivered", OPTION_KEEP, struct relay_values, retain_delivered, "DURATION",
	       "keep delivered messages, or forever (default: 7d)"),
	OPTION("retain-failed", OPTION_KEEP, struct relay_values, retain_failed, "DURATION",
	       "keep failed ones (default: forever)"),
	OPTION("instance", OPTION_TEXT, struct relay_values, instance, "NAME",
	       "this relay's name (default: host:pid:random)"),
	OPTION("shutdown-timeout", OPTION_DURATION, struct relay_values, shutdown_timeout,
	       "DURATION", "how long batches in flight may take at the end (default: 30s)"),
};

static enum relay_mode mode_of(const struct relay_values *given)
{
	return given->once ? RELAY_ONCE : given->until_idle ? RELAY_UNTIL_IDLE : RELAY_DAEMON;
}

static int check(const struct cli *cli, const struct relay_setup *setup,
		 const struct relay_values *given, struct outbox_error *err)
{
	char scheme[32];

	if (given->once && given->until_idle)
		return outbox_fail(err, OUTBOX_EINVAL, "--once or --until-idle, not both");
	if (given->config && cli->store_option[0])
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--store and --config do not go together; the file names the store");
	for (size_t i = 0; cli->json && i < setup->config.n_targets; i++)
		if (url_scheme(setup->config.targets[i].to, scheme, sizeof(scheme)) &&
		    strcmp(scheme, "stdout") == 0)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "--json and target \"%s\" both want stdout; give one up",
					   setup->config.targets[i].name);
	return OUTBOX_OK;
}

/* One line: where from, where to. All of a relay's words go to stderr, stdout may be a target. */
static void tell_start(const struct cli *cli, const struct relay_setup *setup, enum relay_mode mode)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4096);
	char masked[300];

	url_mask(cli->store_url, masked, sizeof(masked));
	buf_printf(&line, "relay: %s ->", masked);
	for (size_t i = 0; i < setup->config.n_targets; i++) {
		const struct outbox_target_config *target = &setup->config.targets[i];

		url_mask(target->to, masked, sizeof(masked));
		buf_printf(&line, "%s %s (%s)", i ? "," : "", target->name, masked);
	}
	buf_printf(&line, "; %s",
		   mode == RELAY_DAEMON ? "Ctrl-C ends"
		   : mode == RELAY_ONCE ? "what is due now"
					: "until idle");
	relay_log(NULL, OUTBOX_LOG_INFO, buf_str(&line));
}

static json_t *counts_json(const struct outbox_relay_counts *counts)
{
	const struct {
		const char *name;
		uint64_t count;
	} rows[] = {
		{ "delivered", counts->delivered },
		{ "failed", counts->failed },
		{ "retried", counts->retried },
		{ "parked", counts->parked },
		{ "deferred", counts->deferred },
		{ "returned", counts->returned },
		{ "batches", counts->batches },
		{ "outages", counts->outages },
		{ "takeovers", counts->takeovers },
		{ "fenced", counts->fenced },
		{ "unknown", counts->unknown },
		{ "possible_duplicates", counts->possible_duplicates },
		{ "duplicates", counts->duplicates },
	};
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		json_object_set_new(object, rows[i].name, json_integer((json_int_t)rows[i].count));
	return object;
}

static int tell_end(const struct cli *cli, const struct outbox_relay_counts *counts,
		    outbox_time spent, struct outbox_error *err)
{
	char delivered[COUNT_TEXT_MAX], took[DURATION_TEXT_MAX], line[300];
	char known[60] = ""; /* most brokers do not tell */

	if (counts->duplicates > 0)
		snprintf(known, sizeof(known), ", recognised by the broker %" PRIu64,
			 counts->duplicates);
	snprintf(line, sizeof(line),
		 "delivered %s, failed %" PRIu64 ", retried %" PRIu64
		 ", possible duplicates %" PRIu64 "%s, in %s",
		 count_human((int64_t)counts->delivered, delivered), counts->failed, counts->retried,
		 counts->unknown + counts->possible_duplicates, known, duration_human(spent, took));
	relay_log(NULL, OUTBOX_LOG_INFO, line);
	if (!cli->json)
		return OUTBOX_OK;
	return json_print(json_pack("{s:o, s:o}", "counts", counts_json(counts), "seconds",
				    json_seconds(spent)),
			  err);
}

/* A database that is locked for long is no reason to give up: wait, say so once, obey signals. */
static int start_up(struct outbox_relay **ret_relay, const struct outbox_relay_config *config,
		    const sigset_t *signals, struct outbox_error *err)
{
	struct outbox_error busy = OUTBOX_ERROR_INIT;
	bool told = false;
	int r;

	while ((r = outbox_relay_new(ret_relay, config, &busy)) == OUTBOX_EBUSY) {
		if (!told)
			relay_log(NULL, OUTBOX_LOG_WARN, busy.message);
		told = true;
		if (stop_wait(signals, OUTBOX_SECONDS))
			break;
	}
	if (r)
		outbox_fail_native(err, r, busy.native, "%s", busy.message);
	return r;
}

/* The library says what is missing; here is how it is given on the command line or in the file. */
static int name_start_option(const struct relay_setup *setup, int r, struct outbox_error *err)
{
	struct outbox_error found = *err;
	char prefix[OUTBOX_TARGET_NAME_MAX + 16];

	for (size_t i = 0; r == OUTBOX_ECONFIG && i < setup->config.n_targets; i++) {
		const struct outbox_target_config *target = &setup->config.targets[i];

		snprintf(prefix, sizeof(prefix), "target \"%s\"", target->name);
		if (target->start != OUTBOX_START_UNSET ||
		    strncmp(found.message, prefix, strlen(prefix)) != 0 ||
		    !strstr(found.message, "where it starts"))
			continue;
		if (setup->file)
			return outbox_fail_native(err, r, found.native,
						  "%.300s: write start: oldest or start: now",
						  found.message);
		return outbox_fail_native(err, r, found.native,
					  "%.300s: --start %s=oldest or --start %s=now",
					  found.message, target->name, target->name);
	}
	return r;
}

static int run_relay(struct cli *cli, struct relay_setup *setup, const struct relay_values *given,
		     const sigset_t *signals, struct outbox_error *err)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time began = clock->mono(clock);
	struct outbox_relay *relay;
	enum relay_mode mode = mode_of(given);
	struct outages outages;
	int ended_by = 0, told, r;

	outages_init(&outages);
	setup->config.log = mode == RELAY_ONCE ? outages_log : relay_log;
	setup->config.log_context = &outages;
	r = start_up(&relay, &setup->config, signals, err);
	if (r) {
		outages_deinit(&outages);
		return name_start_option(setup, r, err);
	}
	tell_start(cli, setup, mode);
	r = relay_run(relay, mode, setup->shutdown_timeout, &ended_by, err);
	outages_tell(&outages, r ? err : NULL);
	outbox_relay_counts(relay, &counts);
	told = tell_end(cli, &counts, clock->mono(clock) - began, r ? NULL : err);
	if (mode != RELAY_DAEMON && ended_by)
		cli->exit = EXIT_SIGNAL + ended_by;
	else if (mode != RELAY_DAEMON && r == OUTBOX_OK && counts.failed > 0)
		cli->exit = EXIT_REPORTED;
	outbox_relay_free(relay);
	outages_deinit(&outages);
	return r ? r : told;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(relay_setup_freep) struct relay_setup *setup = calloc(1, sizeof(*setup));
	const struct relay_values *given = values;
	sigset_t signals;
	int r;

	if (!setup)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = relay_setup_make(given, setup, err);
	if (r == OUTBOX_OK && setup->file)
		cli->store_url = setup->config.store;
	if (r == OUTBOX_OK)
		r = check(cli, setup, given, err);
	/* opened once to say what is wrong with the store in the words of every other command */
	if (r == OUTBOX_OK)
		r = cli_open(cli, OPEN_READY, err);
	cli_close(cli);
	if (r)
		return r;
	signal(SIGPIPE, SIG_IGN);
	stop_block(&signals);
	setup->config.store = cli->store_url;
	return run_relay(cli, setup, given, &signals, err);
}

const struct command cmd_relay = {
	.name = "relay",
	.group = GROUP_WORK,
	.flags = COMMAND_STORE,
	.summary = "deliver messages to their targets, in the foreground",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct relay_values),
	.about = "Several relays may run at once; they share the lanes, and with one lane (the default on SQLite) the second stands by. Ctrl-C or SIGTERM ends it after the batches in flight, a second one at once. Everything it says goes to stderr.",
	.example = "outbox relay --store sqlite:app.db --to events=file:out.jsonl\n"
		   "outbox relay --config outbox.yaml\n"
		   "outbox relay --store sqlite:app.db --to events=file:out.jsonl --until-idle\n"
		   "outbox relay --store postgres://app@db/shop --to 'e=redis://r1/?stream={type}'",
	.exits = "0  ended by a signal; with --once, --until-idle: nothing failed\n"
		 "1  with --once, --until-idle: deliveries failed (outbox list --state failed)\n"
		 "2  a target's URL or file is wrong (no folder, not JSON lines)\n"
		 "5  with --once: a target is out of reach\n"
		 "12 batches in flight did not end within --shutdown-timeout\n"
		 "128 + N  ended early by signal N",
	.run = run,
};
