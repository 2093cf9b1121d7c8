/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/replay.h"
#include "base/buf.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/selection.h"
#include "cli/signals.h"
#include "cli/sources.h"
#include "cli/terminal.h"
#include "core/routing.h"
#include "daemon/journal.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct values {
	const char *target, *to, *spool, *reason;
	struct replay_filter filter;
	double rate;
	bool from_log, dry_run, salvage, yes;
};

static const struct field options[] = {
	OPTION_REQUIRED("target", FIELD_TEXT, target, "NAME",
			"send to this target of the file, and to no other"),
	OPTION("to", FIELD_TEXT, to, "URL", "the URL of the target, without --config"),
	OPTION("from-log", FIELD_BOOL, from_log, NULL,
	       "replay from the log instead of a FILE: messages that every target has finished with"),
	PAST_OPTIONS,
	OPTION("rate", FIELD_PER_SECOND, rate, "RATE",
	       "at most this rate, 100/s or 3000/min (default: the target's own rate)"),
	OPTION("spool", FIELD_TEXT, spool, "FILE",
	       "where the replay keeps its state (default: beside the archive)"),
	OPTION("salvage", FIELD_BOOL, salvage, NULL, "send what is intact in a damaged archive"),
	OPTION_REASON,
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL, "read and check all of it, count, send nothing"),
	OPTION_YES,
};

struct replaying {
	struct cli *cli;
	struct replay run;
	sigset_t signals;
	int signal; /* that ended it early; 0: none */
};

static int check(const struct cli *cli, const struct values *given, struct outbox_error *err)
{
	if ((cli->n_words == 1) == given->from_log)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: give the archive's FILE, or --from-log",
				   given->from_log ? "FILE and --from-log cannot be combined"
						   : "no messages are named");
	if (given->to && cli->config)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--to cannot be combined with --config; the file has the URL of \"%s\"",
			given->target);
	if (!given->to && !cli->config)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the target has no URL: give --config FILE, or --to URL");
	if (given->from_log && cli->n_sources > 1)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"the file has several sources; give --source NAME to choose the log");
	if (given->filter.after && given->filter.before &&
	    given->filter.after >= given->filter.before)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--after is not earlier than --before: nothing can match");
	return target_name_check(given->target, err);
}

/* As the file has it; what belongs to a place in another store is left out. */
static int target_of_file(const struct cli *cli, const char *name,
			  struct outbox_target_config *ret_target, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(2000);
	struct outbox_relay_config relay;
	char shown[80];
	int r = config_relay(cli->config, cli->config->sources.items, &relay, err);

	for (size_t i = 0; r == OUTBOX_OK && i < relay.n_targets; i++) {
		if (strcmp(relay.targets[i].name, name) == 0) {
			*ret_target = relay.targets[i];
			return OUTBOX_OK;
		}
		buf_printf(&names, "%s%s", i ? ", " : "", relay.targets[i].name);
	}
	return r ? r
		 : outbox_fail(err, OUTBOX_ENOTFOUND, "no target \"%s\" in the file; there are: %s",
			       text_shown(shown, sizeof(shown), name), buf_str(&names));
}

static int choose_target(struct replaying *replay, const struct values *given,
			 struct outbox_error *err)
{
	struct outbox_target_config *target = &replay->run.target;
	int r = OUTBOX_OK;

	*target = (struct outbox_target_config)OUTBOX_TARGET_CONFIG_INIT;
	target->name = given->target;
	target->to = given->to;
	if (replay->cli->config)
		r = target_of_file(replay->cli, given->target, target, err);
	if (r)
		return r;
	target->start = OUTBOX_START_OLDEST;
	target->dead_letter = NULL; /* what fails stays in the spool */
	if (given->rate > 0) {
		target->rate_count = (int64_t)(given->rate * 60 + 0.5);
		target->rate_period = OUTBOX_MINUTES;
		target->rate_burst = 0;
	}
	replay->run.filter = given->filter;
	replay->run.filter.route = &target->route;
	return OUTBOX_OK;
}

/* Which replay this is, in words: a spool goes on only with the same one. */
static void describe(const struct replaying *replay, const struct values *given, struct buf *out)
{
	const struct replay_filter *filter = &given->filter;
	const struct cli *cli = replay->cli;
	char time[TIME_TEXT_MAX];
	struct stat file;

	if (given->from_log)
		buf_printf(out, "the log of %s", cli->info.name);
	else
		buf_printf(out, "%s (%lld bytes)", cli->words[0],
			   stat(cli->words[0], &file) ? -1LL : (long long)file.st_size);
	buf_printf(out, " to %s", given->target);
	if (filter->type)
		buf_printf(out, ", type %s", filter->type);
	if (filter->key)
		buf_printf(out, ", key %s", filter->key);
	if (filter->after)
		buf_printf(out, ", after %s", time_format(filter->after, time));
	if (filter->before)
		buf_printf(out, ", before %s", time_format(filter->before, time));
}

/* Opening a transport connects to nothing, but looks at all of its URL: before a spool or an audit row is written. */
static int try_target(struct replaying *replay, struct outbox_error *err)
{
	const struct outbox_target_config *target = &replay->run.target;
	struct outbox_transport_config config = OUTBOX_SIZED(struct outbox_transport_config);
	struct outbox_transport *transport = NULL;
	int r;

	config.url = target->to;
	config.target = target->name;
	config.envelope = target->envelope;
	config.clock = replay->cli->clock;
	config.random = &replay->cli->random.base;
	r = registry_open_transport(NULL, &config, &transport, err);
	transport_close(transport);
	return r ? outbox_wrap(err, "target \"%s\"; nothing was written", target->name) : OUTBOX_OK;
}

static int open_feed(struct replaying *replay, const struct values *given, outbox_time now,
		     struct outbox_error *err)
{
	replay->run.source = replay_source_free(replay->run.source);
	if (given->from_log)
		return replay_source_log(replay->cli->store, now, &replay->run.source, err);
	return replay_source_archive(replay->cli->words[0], given->salvage, &replay->run.source, err);
}

static int tell_json(const struct replaying *replay, const struct values *given,
		     struct outbox_error *err)
{
	struct replay_source_state state = replay_source_state(replay->run.source);
	int64_t unreadable = state.salvaged + replay->run.unfit;

	return json_print(
		json_pack("{s:o, s:b, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "target",
			  json_text(given->target), "dry_run", given->dry_run, "messages",
			  (json_int_t)replay->run.wanted, "oldest", json_time(replay->run.oldest),
			  "newest", json_time(replay->run.newest), "delivered",
			  (json_int_t)replay->run.counts.delivered, "failed",
			  (json_int_t)replay->run.counts.failed, "left", (json_int_t)replay->run.left,
			  "malformed", (json_int_t)state.malformed, "unreadable",
			  (json_int_t)unreadable, "damage", json_text(state.damage), "spool",
			  json_text(replay->run.left || replay->signal ? replay->run.spool->path
								       : NULL)),
		err);
}

static void tell_left_out(const struct replaying *replay)
{
	struct replay_source_state state = replay_source_state(replay->run.source);
	int64_t unreadable = state.salvaged + replay->run.unfit;

	if (state.malformed)
		printable_printf(stderr, "left out %lld message%s that could never be delivered",
				 (long long)state.malformed, state.malformed == 1 ? "" : "s");
	if (unreadable)
		printable_printf(stderr, "left out %lld line%s that cannot be read",
				 (long long)unreadable, unreadable == 1 ? "" : "s");
	if (state.damage)
		printable_printf(stderr, "%s; nothing after it was read", state.damage);
}

static void tell_left(const struct replaying *replay)
{
	_cleanup_(buf_deinit) struct buf word = BUF_INIT(4096);

	buf_shell_word(&word, replay->run.spool->url);
	printable_printf(
		stderr,
		"%lld %s kept. List, requeue or discard there, then run the same command again:",
		(long long)replay->run.left,
		replay->run.left == 1 ? "message was not delivered and is"
				      : "messages were not delivered and are");
	printable_line(stderr, "  outbox list --store ", buf_str(&word));
}

static int tell_end(struct replaying *replay, const struct values *given, struct outbox_error *err)
{
	char count[COUNT_TEXT_MAX];

	if (replay->signal) {
		replay->cli->exit = EXIT_SIGNAL + replay->signal;
		printable_printf(
			stderr,
			"interrupted; run the same command again to go on: it continues after %s %s (its state is in %s)",
			given->from_log ? "seq" : "line",
			count_human(replay->run.spool->position, count), replay->run.spool->path);
	} else if (replay->run.left) {
		replay->cli->exit = EXIT_REPORTED;
		tell_left(replay);
	}
	if (replay->cli->json)
		return tell_json(replay, given, err);
	printable_printf(stdout, "replayed %s message%s to %s",
			 count_human((int64_t)replay->run.counts.delivered, count),
			 replay->run.counts.delivered == 1 ? "" : "s", given->target);
	tell_left_out(replay);
	return OUTBOX_OK;
}

static int tell_dry(const struct replaying *replay, const struct values *given,
		    struct outbox_error *err)
{
	char count[COUNT_TEXT_MAX], oldest[TIME_TEXT_MAX], newest[TIME_TEXT_MAX];

	if (replay->cli->json)
		return tell_json(replay, given, err);
	if (replay->run.wanted == 0)
		puts("no message matches: nothing would be replayed");
	else
		printable_printf(
			stdout,
			"would replay %s message%s to %s (from %s to %s). Run again without --dry-run; "
			"add --rate 100/s to limit the rate.",
			count_human(replay->run.wanted, count), replay->run.wanted == 1 ? "" : "s",
			given->target, time_format(replay->run.oldest, oldest),
			time_format(replay->run.newest, newest));
	tell_left_out(replay);
	return OUTBOX_OK;
}

static char *spool_path(const struct replaying *replay, const struct values *given)
{
	const struct cli *cli = replay->cli;
	char *path = NULL;

	if (given->spool)
		return strdup(given->spool);
	if (asprintf(&path, "%s%s.%s.replay", given->from_log ? "outbox-" : "",
		     given->from_log ? cli->info.name : cli->words[0], given->target) < 0)
		return NULL;
	return path;
}

static int write_audit(struct replaying *replay, const struct values *given, const char *what,
		       struct outbox_error *err)
{
	struct outbox_store *store = replay->cli->store;
	json_t *detail = json_pack("{s:o, s:I}", "from", json_text(what), "messages",
				   (json_int_t)replay->run.wanted);
	_cleanup_(cleanup_free) char *text = detail ? json_dumps(detail, JSON_COMPACT) : NULL;
	struct outbox_audit row = { .actor = replay->cli->actor,
				    .action = "replay",
				    .target = given->target,
				    .reason = given->reason,
				    .detail = text };

	json_decref(detail);
	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return store_audit_add(store, &row, err);
}

/*
 * In the store that the messages came from, when it is known. An archive outlives its database, so that one
 * which is away is told and is no obstacle.
 */
static int audit(struct replaying *replay, const struct values *given, const char *what,
		 struct outbox_error *err)
{
	struct cli *cli = replay->cli;
	struct outbox_error own = OUTBOX_ERROR_INIT;
	int r = OUTBOX_OK;

	if (replay->run.spool->resumed)
		return OUTBOX_OK;
	if (!cli->store && (!cli->store_url || cli->n_sources > 1)) {
		printable_printf(stderr,
				 "not in the audit: give --source or --store to name its database");
		return OUTBOX_OK;
	}
	if (!cli->store) {
		cli->arena = outbox_arena_free(cli->arena);
		r = cli_open(cli, OPEN_READY, &own);
	}
	if (r == OUTBOX_OK)
		r = write_audit(replay, given, what, &own);
	if (r && given->from_log)
		return outbox_fail_native(err, r, own.native, "%s", own.message);
	if (r)
		printable_printf(stderr, "not in the audit: %s", own.message);
	return OUTBOX_OK;
}

/* A window's relay runs in a thread of its own, so that this one hears signals. */
struct window_run {
	struct outbox_relay *relay;
	volatile int stop;
	_Atomic bool done;
	int status;
	struct outbox_error err;
};

static void *run_until_idle(void *argument)
{
	struct window_run *run = argument;

	run->status = outbox_relay_run_until_idle(run->relay, &run->stop, &run->err);
	atomic_store(&run->done, true);
	kill(getpid(), SIGUSR1);
	return NULL;
}

/* Returns the signal that ended it; 0: it ended by itself. */
static int wait_for_end(struct window_run *run, const sigset_t *signals)
{
	struct signal_wish last = { 0 };
	size_t batches, messages;
	int first = 0;

	while (!atomic_load(&run->done)) {
		int signal = signals_wait(signals, OUTBOX_MINUTES);

		if (signal == 0 || signal == SIGUSR1 || signals_repeat(&last, signal))
			continue;
		if (first)
			signals_leave(signal);
		first = signal;
		outbox_relay_in_flight(run->relay, &batches, &messages);
		signals_announce(batches, messages);
		__atomic_store_n(&run->stop, 1, __ATOMIC_RELAXED);
	}
	return first;
}

static int run_window(void *context, struct outbox_relay *relay, bool *ret_ended,
		      struct outbox_error *err)
{
	struct replaying *replaying = context;
	struct window_run run = { .relay = relay, .err = OUTBOX_ERROR_INIT };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_until_idle, &run))
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	replaying->signal = wait_for_end(&run, &replaying->signals);
	pthread_join(thread, NULL);
	*ret_ended = replaying->signal != 0;
	return run.status
		       ? outbox_fail_native(err, run.status, run.err.native, "%s", run.err.message)
		       : OUTBOX_OK;
}

static int deliver(struct replaying *replay, struct outbox_error *err)
{
	struct shown_work work = { 0 };
	int r;

	journal_choose(false, OUTBOX_LOG_WARN);
	work_begin(&work, "replayed", replay->run.wanted);
	replay->signals = work.signals;
	sigaddset(&replay->signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &replay->signals, NULL);
	replay->run.arena = replay->cli->arena; /* the audit may have replaced it */
	r = replay_deliver(&replay->run, &work.bulk, err);
	work_end(&work);
	return r;
}

static int send_all(struct replaying *replay, const struct values *given, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf what = BUF_INIT(8192);
	_cleanup_(cleanup_free) char *path = spool_path(replay, given);
	char question[300], count[COUNT_TEXT_MAX];
	int r;

	snprintf(question, sizeof(question), "replay %s message%s to %.100s",
		 count_human(replay->run.wanted, count), replay->run.wanted == 1 ? "" : "s",
		 given->target);
	r = confirm_yes(replay->cli, given->yes, question, err);
	if (r)
		return r;
	describe(replay, given, &what);
	if (!path || what.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	umask(077); /* there will be payloads in the spool */
	r = spool_open(path, buf_str(&what), replay->cli->clock, &replay->cli->random.base,
		       &replay->run.spool, err);
	if (r == OUTBOX_OK)
		r = audit(replay, given, buf_str(&what), err);
	if (r == OUTBOX_OK)
		r = open_feed(replay, given, replay->run.spool->began, err);
	if (r == OUTBOX_OK)
		r = deliver(replay, err);
	if (r == OUTBOX_OK)
		r = tell_end(replay, given, err);
	if (r == OUTBOX_OK && !replay->run.left && !replay->signal)
		spool_remove(replay->run.spool);
	return r;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	struct replaying replay = { .cli = cli,
				    .run = { .from_log = given->from_log,
					     .salvage = given->salvage,
					     .log = journal_sink,
					     .run = run_window,
					     .context = &replay } };
	int r = check(cli, given, err);

	if (r == OUTBOX_OK)
		r = given->from_log ? cli_open(cli, OPEN_READY, err) : cli_begin(cli, err);
	if (r == OUTBOX_OK)
		r = choose_target(&replay, given, err);
	if (r == OUTBOX_OK)
		r = try_target(&replay, err);
	if (r)
		return r;
	replay.run.arena = cli->arena;
	replay.run.clock = cli->clock;
	replay.run.began = cli->clock->wall(cli->clock);
	r = open_feed(&replay, given, replay.run.began, err);
	if (r == OUTBOX_OK)
		r = replay_scan(&replay.run, err);
	if (r == OUTBOX_EPROTO && !given->salvage && !given->from_log)
		r = outbox_wrap(err, "nothing was sent (--salvage sends what is intact)");
	if (r == OUTBOX_OK)
		r = given->dry_run || !replay.run.wanted ? tell_dry(&replay, given, err)
							 : send_all(&replay, given, err);
	replay_source_free(replay.run.source);
	spool_close(replay.run.spool);
	return r;
}

const struct command cmd_replay = {
	.name = "replay",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_MANY,
	.summary = "send past messages again, to one target",
	TAKES_WORDS("[FILE]", 0, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "FILE is an archive that outbox purge or outbox archive wrote. Messages are sent as they were, with their ids and in order per key, with the header \"replayed\" and with the target's own envelope, retries and rate. Consumers that remember ids ignore them. The whole file is read and checked before the first message is sent. If the command is interrupted or killed, run it again: it goes on where it stopped.",
	.example = "outbox replay old.jsonl.zst --config outbox.yaml --target partner --dry-run\n"
		   "outbox replay old.jsonl.zst --to file:again.jsonl --target again --yes\n"
		   "outbox replay --from-log --config outbox.yaml --target partner --after 2h",
	.exits = "0  replayed (or nothing matches)\n1  some were not delivered and are kept\n"
		 "3  no such file or target\n4  the spool belongs to another replay\n"
		 "10 not confirmed: nothing was sent\n"
		 "14 the archive is damaged: nothing was sent\n130  interrupted: run the same command again",
	.run = run,
};
