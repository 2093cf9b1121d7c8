/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/format.h"
#include "cli/sources.h"
#include "cli/store_url.h"
#include "cli/table.h"
#include "core/routing.h"
#include "core/secrets.h"
#include "daemon/configure.h"
#include "operate/inbox.h"
#include "operate/status.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <stdarg.h>
#include <stdio.h>

#define CONNECT_WAIT (5 * OUTBOX_SECONDS)

enum finding { OK = 0, NOTE, WARNING, ERROR };

struct values {
	struct list to;
	bool brokers;
};

static const struct field options[] = {
	OPTION("to", FIELD_REPEATED, to, "NAME=URL",
	       "also connect to this target and say what its acknowledgement means"),
	OPTION("brokers", FIELD_BOOL, brokers, NULL,
	       "the same for every target of the source in --config"),
};

struct doctor {
	struct cli *cli;
	json_t *findings; /* NULL for people */
	const char *area;
	int worst;
};

/* What a store's own check finds, and report(). */
static void add_finding(void *context, int level, const char *subject, const char *text)
{
	static const char *const names[] = { "ok", "note", "warning", "error" };
	static const int colours[] = { GREEN, PLAIN, YELLOW, RED };
	struct doctor *doctor = context;
	char line[160], shown[OUTBOX_TARGET_NAME_MAX + 16];

	level = level < OK || level > ERROR ? ERROR : level;
	doctor->worst = level > doctor->worst ? level : doctor->worst;
	if (doctor->findings) {
		json_array_append_new(doctor->findings,
				      json_pack("{s:s, s:o, s:s, s:o}", "area", doctor->area,
						"subject", json_text(subject), "level",
						names[level], "text", json_text(text)));
		return;
	}
	text_shown(shown, sizeof(shown), subject);
	snprintf(line, sizeof(line), "%-8s %-18.*s ", doctor->area,
		 doctor->cli->width == UNCUT ? (int)sizeof(shown) : 18, shown);
	printf("%s%s%-7s%s ", line, colour_on(doctor->cli, colours[level]), names[level],
	       colour_off(doctor->cli));
	printable_wrap(stdout, &(struct wrap){ 36, 36, doctor->cli->width == UNCUT ? UNCUT : 80 },
		       text);
}

static void OUTBOX_PRINTF(4, 5)
	report(struct doctor *doctor, int level, const char *subject, const char *format, ...)
{
	char text[800];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_finding(doctor, level, subject, text);
}

static void check_schema(struct doctor *doctor)
{
	const struct outbox_store_info *info = &doctor->cli->info;
	const char *store = doctor->cli->store_option;

	if (info->schema_version == 0 && info->elsewhere[0])
		report(doctor, ERROR, "schema",
		       "there is no outbox here, but there is one in schema \"%s\": put schema=%s into "
		       "the store's URL",
		       info->elsewhere, info->elsewhere);
	else if (info->schema_version == 0)
		report(doctor, ERROR, "schema",
		       "there is no outbox here; create one: outbox init%s", store);
	else if (info->schema_version < info->program_version)
		report(doctor, ERROR, "schema", "is %d, this program needs %d: outbox upgrade%s",
		       info->schema_version, info->program_version, store);
	else if (info->schema_version > info->program_version)
		report(doctor, WARNING, "schema",
		       "is %d, newer than this program's %d: upgrade outbox", info->schema_version,
		       info->program_version);
	else if (!store_has_check(doctor->cli->store))
		report(doctor, OK, "schema", "version %d, %d lane%s", info->schema_version,
		       info->lanes, info->lanes == 1 ? "" : "s");
}

static void check_target(struct doctor *doctor, const struct outbox_stats *stats,
			 const struct outbox_target_stats *t)
{
	char count[COUNT_TEXT_MAX], age[DURATION_TEXT_MAX];
	enum target_health health = status_health(stats, t);
	const struct outbox_lane_stats *lane;
	int64_t lag = status_lag(t);
	size_t refused;

	lane = status_refused(t, &refused);
	if (lane)
		report(doctor, ERROR, t->name, "relays refuse %zu of its %zu lanes; %.400s",
		       refused, t->n_lanes, lane->refused);
	else if (t->unserved)
		report(doctor, ERROR, t->name, "not served for %s: %.600s",
		       age_text(stats->store_now, t->unserved_since, age), t->unserved);
	else if (health == HEALTH_PAUSED)
		report(doctor, NOTE, t->name, "paused by %.80s: %.200s",
		       t->paused_by ? t->paused_by : "?",
		       t->paused_reason ? t->paused_reason : "no reason given");
	else if (health == HEALTH_OUTAGE)
		report(doctor, WARNING, t->name, "unreachable for %s: %.300s",
		       age_text(stats->store_now, t->outage_since, age), t->outage);
	else if (health == HEALTH_NO_RELAY && lag > 0)
		report(doctor, WARNING, t->name,
		       "no relay works for it and %s %s (oldest %s); start outbox relay, or, if nobody needs it: outbox target drop %s --reason WHY%s",
		       capped_text(lag, count), lag == 1 ? "delivery waits" : "deliveries wait",
		       age_text(stats->store_now, t->oldest, age), t->name,
		       doctor->cli->store_option);
	else if (lag)
		report(doctor, OK, t->name, "%s; %s unfinished, oldest %s", health_names[health],
		       capped_text(lag, count), age_text(stats->store_now, t->oldest, age));
	else
		add_finding(doctor, OK, t->name, "nothing waits");
	if (t->failed)
		report(doctor, WARNING, t->name,
		       "%s failed: outbox list --state failed --target %s%s",
		       capped_text(t->failed, count), t->name, doctor->cli->store_option);
}

/* A target that nobody feeds, or that keeps what failed, and so the log grows. */
static int check_retention(struct doctor *doctor, const struct outbox_stats *stats,
			   struct outbox_error *err)
{
	struct holds holds;
	int r = holds_retention(doctor->cli, stats, &holds, err);

	if (r)
		return r;
	for (size_t i = 0; i < holds.count; i++) {
		char hold[HOLD_TEXT_MAX];

		report(doctor, WARNING, holds.list[i].target, "retention: it %s",
		       hold_text(&holds.list[i], stats->store_now, hold));
	}
	return OUTBOX_OK;
}

static void check_inbox(struct doctor *doctor, const struct outbox_inbox_stats *inbox)
{
	const struct config *config = doctor->cli->config;
	outbox_time kept = config ? config->relay.retain_inbox : INBOX_RETAIN_DEFAULT;
	char text[400], count[COUNT_TEXT_MAX];

	if (!inbox->there)
		return;
	doctor->area = "inbox";
	if (inbox_kept_too_short(config, kept, text, sizeof(text)))
		add_finding(doctor, WARNING, "retention", text);
	else
		report(doctor, OK, "ids", "%s%s", inbox->estimated ? "about " : "",
		       inbox->estimated ? count_human(inbox->rows, count)
					: capped_text(inbox->rows, count));
}

/* What else a consumer's database has: nothing, as a rule. */
static int check_inbox_alone(struct doctor *doctor, struct outbox_error *err)
{
	struct outbox_inbox_stats inbox;
	int r = store_inbox_stats(doctor->cli->store, &inbox, err);

	if (r == OUTBOX_OK)
		check_inbox(doctor, &inbox);
	return r;
}

static int check_store(struct doctor *doctor, struct outbox_error *err)
{
	struct cli *cli = doctor->cli;
	struct outbox_stats stats;
	int r;

	doctor->area = "store";
	add_finding(doctor, OK, cli->info.name, cli->info.driver);
	check_schema(doctor);
	if (cli->info.schema_version == 0)
		return check_inbox_alone(doctor, err);
	if (doctor->worst == ERROR)
		return OUTBOX_OK;
	r = store_check(cli->store, add_finding, doctor, err);
	if (r)
		return r;
	doctor->area = "target";
	r = store_stats(cli->store, cli->arena, &stats, err);
	if (r == OUTBOX_EAUTH) { /* a finding like others: rows or tables are kept from this role */
		add_finding(doctor, ERROR, "all", err->message);
		return OUTBOX_OK;
	}
	if (r)
		return r;
	if (stats.n_targets == 0 && !store_has_check(cli->store)) /* a store's own check tells it */
		add_finding(doctor, NOTE, "none",
			    "no target is registered: messages wait and nothing is purged");
	for (size_t i = 0; i < stats.n_targets; i++)
		check_target(doctor, &stats, &stats.targets[i]);
	r = check_retention(doctor, &stats, err);
	check_inbox(doctor, &stats.inbox);
	return r;
}

/* A broker out of reach is a finding, not the end of the examination. */
static void check_transport(struct doctor *doctor, const char *name, const char *url)
{
	struct cli *cli = doctor->cli;
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .url = url,
						  .target = name,
						  .clock = cli->clock,
						  .random = &cli->random.base };
	struct outbox_error found = OUTBOX_ERROR_INIT;
	struct outbox_transport *transport = NULL;
	char text[600] = "";
	outbox_time deadline = cli->clock->mono(cli->clock) + CONNECT_WAIT;
	int level = OK, r;

	r = registry_open_transport(NULL, &config, &transport, &found);
	if (r == OUTBOX_OK)
		r = transport->ops->connect(transport, deadline, &found);
	if (r == OUTBOX_OK) {
		level = transport_check(transport, deadline, text, sizeof(text));
		if (!text[0])
			snprintf(text, sizeof(text), "%s: connected", transport->ops->name);
	}
	hide_secrets_in(found.message, sizeof(found.message));
	hide_secrets_in(text, sizeof(text));
	add_finding(doctor, r ? ERROR : level, name, r ? found.message : text);
	transport_close(transport);
}

static int check_pair(struct doctor *doctor, const char *pair, struct outbox_error *err)
{
	char name[OUTBOX_TARGET_NAME_MAX + 1];
	const char *url;
	int r = pair_split("to", pair, name, sizeof(name), &url, err);

	if (r == OUTBOX_OK)
		r = target_name_check(name, err);
	if (r)
		return r;
	url_warn("to", url);
	check_transport(doctor, name, url);
	return OUTBOX_OK;
}

/* Not unasked: a file is made by who opens it first, and that must not be whoever looks. */
static int check_brokers(struct doctor *doctor, const char *name, struct outbox_error *err)
{
	const struct cli *cli = doctor->cli;
	const struct config_source *source;
	struct outbox_relay_config relay;
	int r = config_source_find(cli->config, name, &source, err);

	if (r == OUTBOX_OK)
		r = config_relay(cli->config, source, &relay, err);
	for (size_t i = 0; r == OUTBOX_OK && i < relay.n_targets; i++)
		check_transport(doctor, relay.targets[i].name, relay.targets[i].to);
	return r;
}

static int examine(struct doctor *doctor, const char *source, const struct values *given,
		   struct outbox_error *err)
{
	int r = check_store(doctor, err);

	doctor->area = "broker";
	if (r == OUTBOX_OK && given->brokers)
		r = check_brokers(doctor, source, err);
	for (size_t i = 0; r == OUTBOX_OK && i < given->to.count; i++)
		r = check_pair(doctor, given->to.items[i], err);
	return r;
}

/* A file that cannot be read ends the examination, and a doctor does not leave it at that. */
static int with_advice(int r, struct outbox_error *err)
{
	struct outbox_error found = *err;

	if (r != OUTBOX_EPROTO)
		return r;
	return outbox_fail_native(err, r, found.native,
				  "%.300s; stop whatever writes to it, keep a copy, then restore a "
				  "backup, or save what can be read: sqlite3 FILE .recover | sqlite3 "
				  "NEW, and name NEW from then on",
				  found.message);
}

static int examine_source(struct cli *cli, const char *source, void *values, json_t **ret_json,
			  struct outbox_error *err)
{
	struct doctor doctor = { .cli = cli };
	int r = cli_open(cli, OPEN_ANY, err);

	if (r)
		return with_advice(r, err);
	if (cli->json)
		doctor.findings = json_array();
	r = examine(&doctor, source, values, err);
	if (r) {
		json_decref(doctor.findings);
		return with_advice(r, err);
	}
	if (doctor.worst >= WARNING && !cli->exit)
		cli->exit = EXIT_REPORTED;
	if (cli->json)
		*ret_json = json_pack("{s:b, s:o}", "healthy", doctor.worst < WARNING, "findings",
				      doctor.findings);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;

	if (given->brokers && !cli->config)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--brokers needs a file that names them: give --config FILE, or "
				   "--to NAME=URL");
	return sources_each(cli, examine_source, values, true, err);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "examine the store, its targets and brokers; say what to repair",
	TAKES_OPTIONS(options, struct values),
	.about = "With --config and without --source every source is examined.",
	.example = "outbox doctor --store sqlite:app.db --to events=file:out.jsonl\n"
		   "outbox doctor --config outbox.yaml --source shop --brokers",
	.exits = "0  healthy: nothing but ok and notes\n1  there are warnings or errors\n14 the database is damaged",
	.run = run,
};
