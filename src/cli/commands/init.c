/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/format.h"
#include "cli/store_url.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

/* What is left of 80 columns behind the suggested command. */
#define ROOM 50

struct values {
	struct outbox_init_options how;
	const char *schema;
	int partition;
	bool doorbell, no_doorbell, inbox;
};

static const struct field options[] = {
	OPTION_RANGE(
		"lanes", FIELD_INT, how.lanes, 1, OUTBOX_LANES_MAX,
		"readers of the log per target; keys are distributed among them, and each key stays in order with any number (default: 4 on PostgreSQL, 1 on SQLite)"),
	OPTION("schema", FIELD_TEXT, schema, "NAME",
	       "PostgreSQL: the schema for the tables, created if it is missing; the same as ?schema=NAME in the URL (default: the first of search_path)"),
	OPTION_WORD(
		"partition", partition, "auto|none", partition_names,
		"PostgreSQL: auto partitions the log, so that retention drops whole partitions (default: none)"),
	OPTION("doorbell", FIELD_BOOL, doorbell, NULL,
	       "PostgreSQL: publishers wake a sleeping relay; do not use it with PREPARE TRANSACTION"),
	OPTION("no-doorbell", FIELD_BOOL, no_doorbell, NULL, "remove the doorbell"),
	OPTION("inbox", FIELD_BOOL, inbox, NULL,
	       "make the inbox and nothing else: the table with which a consumer processes each message once"),
};

/* With its schema, if the URL names one: search_path need not have it. */
static void print_publish(const struct cli *cli)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	const char *schema = NULL, *quote;
	char shown[80];

	if (store_is_postgres(cli->store_url) && url_parse(cli->store_url, &url, NULL) == OUTBOX_OK)
		schema = url_option(&url, "schema");
	quote = schema && schema[strspn(schema, "abcdefghijklmnopqrstuvwxyz_0123456789")] ? "\""
											  : "";
	printf("Publish: INSERT INTO %s%s%s%soutbox_message (type, key, payload) VALUES (...)\n"
	       "in your own transaction, or outbox publish; then\n",
	       quote, schema ? text_shown(shown, sizeof(shown), schema) : "", quote,
	       schema ? "." : "");
}

static void print_outcome(const struct cli *cli, bool fresh, const struct outbox_init_options *how)
{
	const struct outbox_store_info *info = &cli->info;
	const char *s = info->lanes == 1 ? "" : "s";

	if (!fresh && how->doorbell) {
		printable_printf(stdout, "%s: the outbox is already here; its doorbell %s",
				 info->name,
				 how->doorbell > 0 ? "is on: publishers wake a relay that sleeps"
						   : "is off: relays poll");
		return;
	}
	if (!fresh) {
		printable_printf(
			stdout,
			"%s: the outbox is already here (schema %d, %d lane%s); nothing changed",
			info->name, info->schema_version, info->lanes, s);
		return;
	}
	printable_printf(stdout, "%s: created an outbox (%s, schema %d, %d lane%s)", info->name,
			 info->driver, info->schema_version, info->lanes, s);
	if (strncmp(info->driver, "sqlite", 6) == 0)
		puts("The file is now permanently in WAL mode: readers and the writer no longer\n"
		     "wait for each other. Its -wal and -shm files belong to it: copy them with it.");
	if (how->partition)
		puts("The log is partitioned. The relay creates and drops partitions, so its role must\n"
		     "own them; outbox doctor checks this.");
	if (how->doorbell > 0)
		puts("Its doorbell is on: publishers wake a relay that sleeps.");
	print_publish(cli);
	/* a long store on a line of its own: whole, to copy */
	if (cli->config)
		printf("  outbox relay%s\n", cli->relay_option);
	else
		printf("  outbox relay --to NAME=URL%s%s\n",
		       strlen(cli->store_option) > ROOM ? " \\\n     " : "", cli->store_option);
}

static void print_inbox(const struct cli *cli, bool made)
{
	bool postgres = store_is_postgres(cli->store_url);

	printable_printf(stdout, made ? "%s: created an inbox" : "%s: the inbox is already here",
			 cli->info.name);
	if (!made)
		return;
	puts("Accept each message in the transaction that processes it:");
	puts(postgres ? "  SELECT outbox_inbox_accept('CONSUMER', 'ID')   -- true: the first time"
		      : "  INSERT INTO outbox_inbox (consumer, id) VALUES ('CONSUMER', 'ID')\n"
			"  ON CONFLICT DO NOTHING   -- one row changed: the first time");
	if (!cli->info.schema_version)
		puts("There is no outbox in this database, and the inbox needs none.");
}

static int init_inbox(struct cli *cli, const struct values *given, struct outbox_error *err)
{
	bool made = false;
	int r;

	if (given->how.lanes || given->how.partition || given->how.doorbell)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--inbox makes the inbox alone: --schema is the only option that goes "
				   "with it; run outbox init without --inbox for the outbox");
	r = cli_open(cli, OPEN_CREATE, err);
	if (r == OUTBOX_OK)
		r = store_inbox_init(cli->store, &made, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:o, s:o, s:b}", "store", json_text(cli->info.name),
					    "driver", json_text(cli->info.driver), "created", made),
				  err);
	print_inbox(cli, made);
	return OUTBOX_OK;
}

/* What only one kind of store has is refused by name elsewhere, not left out in silence. */
static int check(struct cli *cli, struct values *given, struct outbox_error *err)
{
	struct outbox_init_options *how = &given->how;
	bool postgres = store_is_postgres(cli->store_url);

	how->partition = given->partition == PARTITION_AUTO;
	if (given->doorbell && given->no_doorbell)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--doorbell and --no-doorbell cannot be combined; give one of them");
	how->doorbell = given->doorbell ? 1 : given->no_doorbell ? -1 : 0;
	if (!postgres && cli->store_url && how->partition)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--partition auto: only a PostgreSQL table has partitions; leave it out");
	if (!postgres && cli->store_url && how->doorbell)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--%sdoorbell: only PostgreSQL has one; leave it out",
				   given->doorbell ? "" : "no-");
	return given->schema ? store_add_schema(cli, given->schema, err) : OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct values *given = values;
	bool fresh;
	int r;

	given->how.struct_size = sizeof(given->how);
	r = check(cli, given, err);
	if (r == OUTBOX_OK && given->inbox)
		return init_inbox(cli, given, err);
	if (r == OUTBOX_OK)
		r = cli_open(cli, OPEN_CREATE, err);
	fresh = cli->info.schema_version == 0;
	if (r == OUTBOX_OK)
		r = store_init(cli->store, &given->how, err);
	if (r == OUTBOX_OK)
		r = store_info(cli->store, &cli->info, err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:o, s:o, s:i, s:i, s:b}", "store",
					    json_text(cli->info.name), "driver",
					    json_text(cli->info.driver), "schema",
					    cli->info.schema_version, "lanes", cli->info.lanes,
					    "created", fresh),
				  err);
	print_outcome(cli, fresh, &given->how);
	return OUTBOX_OK;
}

const struct command cmd_init = {
	.name = "init",
	.group = GROUP_SETUP,
	.flags = COMMAND_STORE,
	.summary = "create an outbox in a database; repeating it changes nothing",
	TAKES_OPTIONS(options, struct values),
	.about = "Creates the tables, triggers and views of the outbox beside your own tables. A SQLite file is created if there is none, and switched to WAL mode; no other command creates one. A PostgreSQL database must exist; the role needs only the right to create objects in the schema. With --inbox it makes the inbox alone, in a consumer's database, which need not have an outbox.",
	.example = "outbox init --store sqlite:app.db\n"
		   "outbox init --store postgres://app@db/shop --schema app\n"
		   "outbox init --store postgres://app@db/billing --inbox",
	.exits = "0  the outbox exists\n2  it exists with another number of lanes\n"
		 "7  its schema is newer than this program",
	.run = run,
};
