/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/status.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/signals.h"
#include "cli/sources.h"
#include "cli/table.h"
#include "operate/rules.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct values {
	bool watch;
	outbox_time every;
};

static const struct field options[] = {
	OPTION("watch", FIELD_BOOL, watch, NULL, "refresh until Ctrl-C"),
	OPTION("every", FIELD_DURATION, every, "DURATION", "with --watch: how often (default: 2s)"),
};

static const struct column columns[] = {
	{ "TARGET", false, 8 }, { "STATE", false, 0 },   { "RATE", true, 0 },
	{ "PENDING", true, 0 }, { "SENDING", true, 0 },  { "WAITING", true, 0 },
	{ "PARKED", true, 0 },  { "DEFERRED", true, 0 }, { "FAILED", true, 0 },
	{ "OLDEST", true, 0 },
};

static const struct column lane_columns[] = {
	{ "LANE", true, 0 },  { "TARGET", false, 8 },  { "OWNER", false, 12 },
	{ "LEASE", true, 0 }, { "RECEIPTS", true, 0 }, { "TAKEN OVER", true, 0 },
};

static void count_cell(struct table *table, int colour, int64_t count)
{
	char text[COUNT_TEXT_MAX];

	table_cell(table, count ? colour : DIM, capped_text(count, text));
}

static void target_row(struct table *table, const struct outbox_stats *stats,
		       const struct outbox_target_stats *t)
{
	char text[DURATION_TEXT_MAX];
	enum target_health health = status_health(stats, t);

	table_cell(table, BOLD, t->name);
	table_cell(table,
		   health == HEALTH_RUNNING ? GREEN
		   : health == HEALTH_OUTAGE || health == HEALTH_REFUSED || health == HEALTH_UNSERVED
			   ? RED
			   : YELLOW,
		   health_names[health]);
	table_cell(table, PLAIN, status_rate(t, text, sizeof(text)));
	count_cell(table, PLAIN, t->pending);
	count_cell(table, PLAIN, t->sending);
	count_cell(table, YELLOW, t->waiting);
	count_cell(table, YELLOW, t->parked);
	count_cell(table, PLAIN, t->deferred);
	count_cell(table, RED, t->failed);
	table_cell(table, PLAIN, age_text(stats->store_now, t->oldest, text));
}

/* A name that was mistyped once stays registered, and what is published waits for it: others have a relay. */
static bool seems_unused(const struct outbox_stats *stats, const struct outbox_target_stats *t)
{
	bool others = false;

	for (size_t i = 0; i < stats->n_targets; i++)
		others = others || status_held(stats, &stats->targets[i]);
	return others && status_health(stats, t) == HEALTH_NO_RELAY && status_lag(t);
}

static void note_pause(const struct outbox_target_stats *t)
{
	if (t->paused)
		printable_printf(stdout, "%s is paused by %s: %s", t->name,
				 t->paused_by ? t->paused_by : "?",
				 t->paused_reason ? t->paused_reason : "no reason given");
}

static bool is_told(const struct outbox_target_stats *t, const struct rule_reason *told)
{
	return told && told->rule == RULE_UNSERVED && told->target &&
	       strcmp(told->target, t->name) == 0;
}

/* told: what the head says already */
static void notes(const struct cli *cli, const struct outbox_stats *stats,
		  const struct outbox_target_stats *t, const struct rule_reason *told)
{
	outbox_time drain_time = status_drain(stats, t);
	char lag[COUNT_TEXT_MAX], drain[DURATION_TEXT_MAX];
	size_t refused;
	const struct outbox_lane_stats *lane = status_refused(t, &refused);

	if (lane)
		printable_printf(stdout, "%s: relays refuse %zu of its %zu lanes; %s", t->name,
				 refused, t->n_lanes, lane->refused);
	if (t->unserved && !is_told(t, told))
		printable_printf(stdout, "%s is not served%s: %s", t->name,
				 t->n_lanes ? " by one of its relays" : "", t->unserved);
	note_pause(t);
	if (t->outage)
		printable_printf(stdout, "%s is unreachable: %s", t->name, t->outage);
	if (seems_unused(stats, t))
		printable_printf(
			stdout,
			"%s has no relay; if nobody needs it: outbox target drop %s --reason WHY%s",
			t->name, t->name, cli->store_option);
	if (drain_time > 0)
		printable_printf(stdout, "%s is %s deliver%s behind, about %s at this rate",
				 t->name, capped_text(t->pending + t->sending, lag),
				 t->pending + t->sending == 1 ? "y" : "ies",
				 duration_human(drain_time, drain));
	if (t->failed > 0)
		printf("%s has failed deliveries:%soutbox list --state failed --target %s%s\n",
		       t->name, *cli->store_option ? "\n  " : " ", t->name, cli->store_option);
}

static void lane_rows(struct table *table, const struct outbox_stats *stats,
		      const struct outbox_target_stats *t)
{
	char text[DURATION_TEXT_MAX], count[COUNT_TEXT_MAX];

	for (size_t i = 0; i < t->n_lanes; i++) {
		const struct outbox_lane_stats *lane = &t->lanes[i];
		bool live = lane->owner && lane->lease_until > stats->store_now;

		table_cellf(table, PLAIN, "%d", lane->lane);
		table_cell(table, PLAIN, t->name);
		table_cell(table, live ? PLAIN : DIM, live ? lane->owner : "none");
		if (live)
			table_cell(table, PLAIN,
				   duration_human(lane->lease_until - stats->store_now, text));
		else
			table_cell(table, PLAIN, NULL);
		table_cell(table, PLAIN, count_human(lane->receipts, count));
		count_cell(table, YELLOW, lane->takeovers);
	}
}

/* What a relay that ended by itself leaves behind is no reason to worry. */
static const char *health_word(const struct outbox_stats *stats, enum health_level health)
{
	size_t idle = 0;

	for (size_t i = 0; i < stats->n_targets; i++)
		idle += status_idle(&stats->targets[i]);
	if (health != LEVEL_HEALTHY || idle < stats->n_targets)
		return health_level_name(health);
	return idle ? "idle: no relay runs now" : "idle: no target is registered";
}

/* "shop  healthy, oldest 0.2 s; postgres 15.19, 1,204 messages in the log" */
static void head(const struct cli *cli, const struct outbox_stats *stats, const char *name,
		 enum health_level health)
{
	outbox_time oldest = status_oldest(stats);
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];

	printf("%s%s%s  %s%s%s", colour_on(cli, BOLD), name, colour_off(cli),
	       colour_on(cli, health == LEVEL_HEALTHY    ? GREEN
			      : health == LEVEL_DEGRADED ? YELLOW
							 : RED),
	       health_word(stats, health), colour_off(cli));
	if (oldest)
		printf(", oldest %s", age_text(stats->store_now, oldest, age));
	printf("; %s, %s message%s in the log\n", cli->info.driver,
	       capped_text(stats->messages, count), stats->messages == 1 ? "" : "s");
}

static void note_inbox(const struct outbox_stats *stats)
{
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];

	if (!stats->inbox.there)
		return;
	printf("inbox: %s%s id%s", stats->inbox.estimated ? "about " : "",
	       stats->inbox.estimated ? count_human(stats->inbox.rows, count)
				      : capped_text(stats->inbox.rows, count),
	       stats->inbox.rows == 1 ? "" : "s");
	if (stats->inbox.oldest)
		printf(", the oldest received %s ago",
		       age_text(stats->inbox.store_now, stats->inbox.oldest, age));
	puts("");
}

static void print(struct cli *cli, const struct outbox_stats *stats, const struct holds *holds,
		  const char *name, enum health_level health, const struct rule_reason *why)
{
	_cleanup_(table_deinit) struct table table, lanes;

	table_init(&table, cli, columns, ARRAY_SIZE(columns));
	table_init(&lanes, cli, lane_columns, ARRAY_SIZE(lane_columns));
	head(cli, stats, name, health);
	if (health != LEVEL_HEALTHY)
		printable_printf(stdout, "%s%s%s; what to do: outbox help alert %s",
				 why->target ? why->target : "", why->target ? ": " : "", why->text,
				 rule_names[why->rule]);
	note_inbox(stats);
	if (stats->n_targets == 0) {
		printable_printf(stdout,
				 "no targets: messages wait for one; outbox relay%s registers one",
				 cli->relay_option);
		return;
	}
	for (size_t i = 0; i < stats->n_targets; i++) {
		target_row(&table, stats, &stats->targets[i]);
		lane_rows(&lanes, stats, &stats->targets[i]);
	}
	table_print(&table, stdout);
	for (size_t i = 0; i < stats->n_targets; i++)
		notes(cli, stats, &stats->targets[i], health == LEVEL_HEALTHY ? NULL : why);
	if (holds->count)
		puts("messages past their retention that are still in the log:");
	holds_print(holds, stats->store_now);
	puts("");
	table_print(&lanes, stdout);
}

static int show(struct cli *cli, const char *source, void *context, json_t **ret_json,
		struct outbox_error *err)
{
	struct config_health limits;
	enum health_level health;
	struct outbox_stats stats;
	struct rule_reason why;
	struct holds holds;
	int r = cli->store ? OUTBOX_OK : cli_open(cli, OPEN_READY, err);

	(void)context;
	if (r)
		return r;
	outbox_arena_reset(cli->arena);
	r = store_stats(cli->store, cli->arena, &stats, err);
	if (r == OUTBOX_OK)
		r = holds_retention(cli, &stats, &holds, err);
	if (r == OUTBOX_OK && !cli->config)
		r = config_health_defaults(cli->arena, &limits, err);
	if (r)
		return r;
	health = rule_worst(cli->config ? &cli->config->health : &limits, &stats, &why);
	if (!cli->json) {
		print(cli, &stats, &holds, source ? source : cli->info.name, health, &why);
		return OUTBOX_OK;
	}
	*ret_json = json_status(&cli->info, &stats, health);
	json_object_set_new(*ret_json, "held_back", holds_json(&holds));
	if (*ret_json && source)
		json_object_set_new(*ret_json, "source", json_text(source));
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	outbox_time every = given->every ? given->every : 2 * OUTBOX_SECONDS;
	sigset_t signals;
	int r;

	if (!given->watch)
		return sources_each(cli, show, NULL, false, err);
	signals_block(&signals);
	do {
		if (cli->colour)
			fputs("\033[H\033[2J", stdout);
		cli->exit = 0;
		r = sources_each(cli, show, NULL, false, err);
		if (r && r != OUTBOX_EBUSY)
			return r;
		fflush(stdout);
	} while (!ferror(stdout) && !signals_wait(&signals, every));
	return OUTBOX_OK;
}

const struct command cmd_status = {
	.name = "status",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "show the backlog, failures and throughput of each target",
	TAKES_OPTIONS(options, struct values),
	.about = "RATE is what was delivered in the last minute; OLDEST is how long the oldest unfinished delivery has been ready to send: since its commit, since it was due or requeued, or since the target was resumed (failed ones aside). Works whether a relay runs or not; where none runs and nothing waits, it says idle. With --config and without --source all sources are shown. Targets that hold back messages past their retention are named.",
	.example = "outbox status --store sqlite:app.db\noutbox status --json --watch --every 10s",
	.exits = "0  printed\n5  a source of the file is unreachable; the others were printed",
	.run = run,
};
