/* SPDX-License-Identifier: Apache-2.0 */
/* The schema for people who run their own migrations: stdout is a script and nothing else. */
#include "base/buf.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/message_options.h"
#include "cli/store_url.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct values {
	struct outbox_init_options how;
	const char *schema;
	int partition;
	bool doorbell, inbox;
};

static const struct field options[] = {
	OPTION_RANGE("lanes", FIELD_INT, how.lanes, 1, OUTBOX_LANES_MAX,
		     "readers of the log per target (default: 4 on PostgreSQL, 1 on SQLite)"),
	OPTION("schema", FIELD_TEXT, schema, "NAME",
	       "PostgreSQL: the schema for the tables, created if it is missing (default: the first of the session's search_path)"),
	OPTION_WORD("partition", partition, "auto|none", partition_names,
		    "PostgreSQL: auto partitions the log (default: none)"),
	OPTION("doorbell", FIELD_BOOL, doorbell, NULL,
	       "PostgreSQL: publishers wake a sleeping relay"),
	OPTION_RANGE("from", FIELD_INT, how.from, 1, 1000000,
		     "print the upgrade from this schema version, as outbox upgrade runs it"),
	OPTION("drop", FIELD_BOOL, how.drop, NULL,
	       "print what removes the outbox with every message, as outbox drop runs it"),
	OPTION("inbox", FIELD_BOOL, inbox, NULL,
	       "print the inbox and nothing else, as outbox init --inbox makes it; with --drop what removes it"),
};

/* The driver of this name or URL scheme that has a script; ret_known lists those for the remedy. */
static const struct outbox_store_ops *find(const char *name, struct buf *known)
{
	const struct outbox_store_ops *found = NULL;

	for (size_t i = 0; store_drivers[i]; i++) {
		const struct outbox_store_ops *ops = store_drivers[i];

		if (!store_has_script(ops))
			continue;
		buf_printf(known, "%s%s", known->size ? ", " : "", ops->name);
		for (const char *const *scheme = ops->schemes; *scheme; scheme++)
			if (strcmp(*scheme, name) == 0)
				found = ops;
	}
	return found;
}

static int check_inbox(const struct values *given, struct outbox_error *err)
{
	const struct outbox_init_options *how = &given->how;

	if (how->lanes || how->from || given->partition || given->doorbell)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--inbox can be combined with --schema and --drop only; leave the "
				   "others out");
	return OUTBOX_OK;
}

/* What goes with what, and with which driver. */
static int check(const struct values *given, const struct outbox_store_ops *ops,
		 struct outbox_error *err)
{
	const struct outbox_init_options *how = &given->how;
	bool of_a_new_one = how->lanes || given->partition || given->doorbell;

	if ((how->doorbell || how->partition) && strcmp(ops->name, "postgres") != 0)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s: %s does not have it; leave it out",
				   given->doorbell ? "doorbell" : "partition", ops->name);
	if (how->from && how->drop)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--from and --drop cannot be combined; give one of them");
	if (of_a_new_one && (how->from || how->drop))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--%s can be combined with --schema only; leave the others out",
				   how->drop ? "drop" : "from");
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct values *given = values;
	struct outbox_init_options *how = &given->how;
	_cleanup_(buf_deinit) struct buf known = BUF_INIT(200);
	_cleanup_(cleanup_free) char *sql = NULL;
	const struct outbox_store_ops *ops = find(cli->words[0], &known);
	char shown[80];
	int r;

	if (!ops)
		return outbox_fail(err, OUTBOX_EINVAL, "no SQL for \"%s\"; use one of: %s",
				   text_shown(shown, sizeof(shown), cli->words[0]), buf_str(&known));
	how->struct_size = sizeof(*how);
	how->partition = given->partition == PARTITION_AUTO;
	how->doorbell = given->doorbell;
	r = given->inbox ? check_inbox(given, err) : check(given, ops, err);
	if (r)
		return r;
	r = given->inbox ? store_inbox_script(ops, given->schema, how->drop, &sql, err)
			 : store_script(ops, how, given->schema, &sql, err);
	if (r == OUTBOX_EINVAL)
		error_names_option(options, ARRAY_SIZE(options), err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_pack("{s:s, s:o}", "store", ops->name, "sql", json_text(sql)),
				  err);
	fputs(sql, stdout);
	return OUTBOX_OK;
}

const struct command cmd_sql = {
	.name = "sql",
	.group = GROUP_SETUP,
	.summary = "print the schema as SQL, for people who run their own migrations",
	TAKES_WORDS("postgres|sqlite", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "Prints what outbox init runs, as one commented script; connects to nothing. The script creates exactly what init creates, so that a relay, doctor and upgrade work with it. With --from N it prints what outbox upgrade runs on an outbox of schema N (outbox upgrade --check shows N); that script refuses to run on another schema. With --drop it prints what outbox drop runs. With --inbox it is about the inbox of a consumer's database alone, which has no versions: run again, its script changes no table.",
	.example = "outbox sql sqlite | sqlite3 -bail app.db\n"
		   "outbox sql sqlite --from 2 > migrations/0042_outbox.sql\n"
		   "outbox sql postgres --schema app | psql -v ON_ERROR_STOP=1 -d shop",
	.exits = "0  printed",
	.run = run,
};
