/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/format.h"
#include "cli/relay_daemon.h"
#include "cli/relay_options.h"
#include "cli/signals.h"
#include "daemon/journal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RELAY(name_, kind_, field_, argument_, help_) \
	OPTION_OF(struct relay_values, name_, kind_, field_, argument_, help_)

static const struct field options[] = {
	RELAY("to", FIELD_REPEATED, to, "NAME=URL",
	      "a target: events=amqp://mq/?exchange=shop, x=kafka://k1/{type}, nats:, redis:, mqtt:, amqp1:, https:, file:out.jsonl, stdout:"),
	RELAY("match", FIELD_REPEATED, match, "NAME=GLOB",
	      "the target gets only these types: partner=order.*; parked=- gets none"),
	RELAY("match-header", FIELD_REPEATED, match_header, "NAME=H=GLOB",
	      "the target gets only what has such a header: partner=tenant=acme; of one name any, of several all"),
	RELAY("kind", FIELD_REPEATED, kind, "NAME=KIND", "the target gets only event or command"),
	RELAY("envelope", FIELD_REPEATED, envelope, "NAME=FORM",
	      "structured, binary, native, or external: published messages only, nothing internal"),
	RELAY("order", FIELD_REPEATED, order, "NAME=ORDER", "strict (default), pipelined or none"),
	RELAY("hold", FIELD_REPEATED, hold, "NAME",
	      "after a failed message, later messages of its key wait (default: it goes on)"),
	RELAY("bands", FIELD_REPEATED, bands, "NAME",
	      "split by priority into NAME-high, NAME and NAME-low, so that bulk messages wait behind the others"),
	RELAY("rate", FIELD_REPEATED, rate, "NAME=RATE",
	      "send at most 50/s, 3000/min or 100/h, all bands together"),
	RELAY("max-size", FIELD_REPEATED, max_size, "NAME=SIZE",
	      "a message with a larger payload fails at once, without being sent: partner=256KiB"),
	RELAY("start", FIELD_REPEATED, start, "NAME=WHERE",
	      "where a new target begins: oldest, now or 2026-11-15T18:00:00Z"),
	RELAY("dead-letter", FIELD_REPEATED, dead_letter, "NAME=TARGET",
	      "what fails at NAME goes to TARGET, with the reason in headers"),
	RELAY("policy", FIELD_REPEATED, policy, "[NAME=]POLICY",
	      "retry policy, for one target or all; outbox policy list"),
	RELAY("config", FIELD_TEXT, config, "FILE",
	      "take all settings from this file instead; outbox config reference prints one"),
	RELAY("set", FIELD_REPEATED, set, "KEY=VALUE",
	      "override a key of the file: targets.events.batch=100"),
	RELAY("source", FIELD_TEXT, source, "NAME", "only this source of the file (default: all)"),
	RELAY("once", FIELD_BOOL, once, NULL, "deliver what is due now, then end"),
	RELAY("until-idle", FIELD_BOOL, until_idle, NULL,
	      "deliver until only deferred and failed deliveries are left, then end; waits for retries and for targets that are unavailable, but not for paused ones: what waits for these stays"),
	RELAY("workers", FIELD_TEXT, workers, "N", "threads for each target (default: 1)"),
	RELAY("batch", FIELD_TEXT, batch, "N", "messages in one batch (default: 500)"),
	RELAY("batch-bytes", FIELD_TEXT, batch_bytes, "SIZE",
	      "bytes of payloads and headers in a batch (default: 8MiB)"),
	RELAY("lease", FIELD_TEXT, lease, "DURATION",
	      "a dead relay's lanes are taken over after this (default: 15s)"),
	RELAY("poll", FIELD_TEXT, poll, "DURATION",
	      "look for messages at least this often (default: 250ms)"),
	RELAY("retain-delivered", FIELD_TEXT, retain_delivered, "DURATION",
	      "keep delivered messages this long, or forever (default: 7d)"),
	RELAY("retain-failed", FIELD_TEXT, retain_failed, "DURATION",
	      "keep failed messages this long (default: forever)"),
	RELAY("instance", FIELD_TEXT, instance, "NAME",
	      "this relay's name; a random suffix makes it unique (default: host:pid)"),
	RELAY("listen", FIELD_TEXT, listen, "ADDRESS",
	      "admin HTTP server: 127.0.0.1:8040, unix:PATH (default: none)"),
	RELAY("shutdown-timeout", FIELD_TEXT, shutdown_timeout, "DURATION",
	      "how long to wait for batches in flight when the relay stops (default: 30s)"),
};

static int check_modes(const struct relay_values *given, struct outbox_error *err)
{
	if (given->once && given->until_idle)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--once and --until-idle cannot be combined; give one of them");
	if (given->listen && (given->once || given->until_idle))
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--listen cannot be combined with --once or --until-idle, which end by themselves");
	return OUTBOX_OK;
}

static int check_stdout(const struct cli *cli, const struct config *config, struct outbox_error *err)
{
	const struct config_target *targets = config->targets.items;
	char scheme[32];

	for (size_t i = 0; cli->json && i < config->targets.count; i++)
		if (url_scheme(targets[i].to, scheme, sizeof(scheme)) &&
		    strcmp(scheme, "stdout") == 0)
			return outbox_fail(
				err, OUTBOX_EINVAL,
				"--json and target \"%s\" both write to stdout; use only one of them",
				targets[i].name);
	return OUTBOX_OK;
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

static int report_end(const struct cli *cli, const struct outbox_relay_counts *counts,
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
	journal(EVENT_DAEMON_END, NULL, "%s", line);
	if (!cli->json)
		return OUTBOX_OK;
	return json_print(json_pack("{s:o, s:o}", "counts", counts_json(counts), "seconds",
				    json_seconds(spent)),
			  err);
}

static int run_daemon(struct cli *cli, struct daemon *daemon, const sigset_t *signals,
		      struct outbox_error *err)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	outbox_time began = mono_now();
	int signal = 0, told = OUTBOX_OK;
	int r = relay_daemon_run(daemon, signals, &signal, err);
	bool ran = daemon_counts(daemon, &counts), ends = daemon_mode(daemon) != DAEMON_RUN;

	if (ran || !ends)
		told = report_end(cli, &counts, mono_now() - began, r ? NULL : err);
	if (ends && signal)
		cli->exit = EXIT_SIGNAL + signal;
	else if (ends && r == OUTBOX_OK && counts.failed > 0)
		cli->exit = EXIT_REPORTED;
	return r ? r : told;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct relay_values *given = values;
	struct daemon_setup setup = { 0 };
	struct config *config = NULL;
	struct daemon *daemon = NULL;
	sigset_t signals;
	int r = check_modes(given, err);

	if (r == OUTBOX_OK)
		r = relay_configure(cli, given, &setup, &config, err);
	if (r)
		return r;
	setup.mode = given->once ? DAEMON_ONCE : given->until_idle ? DAEMON_UNTIL_IDLE : DAEMON_RUN;
	setup.wake = relay_daemon_wake;
	r = check_stdout(cli, config, err);
	if (r) {
		config_free(config);
		return r;
	}
	signal(SIGPIPE, SIG_IGN);
	signals_block(&signals);
	r = daemon_new(&setup, config, &daemon, err);
	if (r == OUTBOX_OK)
		r = run_daemon(cli, daemon, &signals, err);
	daemon_free(daemon);
	return r;
}

const struct command cmd_relay = {
	.name = "relay",
	.group = GROUP_WORK,
	.flags = COMMAND_URL, /* what it takes from a file is more than the store */
	.summary = "deliver messages to their targets, in the foreground",
	TAKES_OPTIONS(options, struct relay_values),
	.about = "Name the targets with --to, or in a file with all other settings: --config. Several relays may run at once; they share the lanes, and with one lane (the default on SQLite) the second one stands by. The relay waits for a database or broker that is unavailable; with --once and --until-idle it needs every database before it delivers anything. Ctrl-C or SIGTERM ends it after the batches in flight, a second signal at once; SIGHUP reloads the file. It logs to stderr.",
	.example = "outbox relay --store sqlite:app.db --to events=file:out.jsonl\n"
		   "outbox relay --config outbox.yaml\n"
		   "outbox relay --store sqlite:app.db --to events=file:out.jsonl --until-idle\n"
		   "outbox relay --store postgres://app@db/shop --to 'e=redis://r1/?stream={type}'",
	.exits = "0  ended by a signal; with --once, --until-idle: nothing failed\n"
		 "1  with --once, --until-idle: deliveries failed (outbox list --state failed)\n"
		 "2  a target's URL or file is wrong, or it is not served (outbox status)\n"
		 "3  no SQLite file or no folder there (outbox init creates the file)\n"
		 "5  with --once: a target is unreachable\n"
		 "6  no permission\n"
		 "7  with --once, --until-idle: no outbox in the database, or another schema\n"
		 "12 batches in flight did not end within --shutdown-timeout\n"
		 "14 with --once, --until-idle: a lane was refused (outbox realign)\n"
		 "128 + N  ended early by signal N",
	.run = run,
};
