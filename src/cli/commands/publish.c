/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/message_options.h"
#include "cli/publish_lines.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct values {
	struct outbox_message message;
	const char *data;
	struct list headers;
	bool published;
	/* or many */
	struct publish_from lines;
};

#define FROM "from"

static const struct field options[] = {
	OPTION("type", FIELD_TEXT, message.type, "TYPE", "what happened: order.placed"),
	OPTION("data", FIELD_TEXT, data, "JSON|@FILE|-",
	       "the payload; @FILE reads a file, - reads stdin"),
	OPTION("key", FIELD_TEXT, message.key, "KEY", "messages of one key are delivered in order"),
	OPTION("id", FIELD_TEXT, message.id, "ID",
	       "an id of your own: publishing it again changes nothing (default: a new UUID)"),
	OPTION("content-type", FIELD_TEXT, message.content_type, "TYPE",
	       "content type of the payload (default: application/json)"),
	OPTION("header", FIELD_REPEATED, headers, "NAME=VALUE", "a header"),
	OPTION("due", FIELD_TIME, message.due_at, "TIME",
	       "do not send before: +5m or 2026-11-15T18:00:00Z"),
	OPTION("expires", FIELD_TIME, message.expires_at, "TIME",
	       "do not send after: +1h or a time; then it fails as expired"),
	OPTION("event-time", FIELD_TIME, message.event_time, "TIME",
	       "when it happened: 2026-11-15T18:00:00Z (default: now)"),
	OPTION_WORD("kind", message.kind, "KIND", kind_names, "event (default) or command"),
	OPTION("subject", FIELD_TEXT, message.subject, "TEXT", "CloudEvents subject"),
	OPTION("ce-source", FIELD_TEXT, message.source, "URI",
	       "CloudEvents source (default: /outbox/<store's name>)"),
	OPTION("topic", FIELD_TEXT, message.topic, "TEXT", "for routes with {topic}"),
	OPTION("correlation-id", FIELD_TEXT, message.correlation_id, "ID",
	       "the conversation it belongs to"),
	OPTION("causation-id", FIELD_TEXT, message.causation_id, "ID", "the message that caused it"),
	OPTION("traceparent", FIELD_TEXT, message.traceparent, "TEXT", "W3C trace context"),
	OPTION("published", FIELD_BOOL, published, NULL, "may be sent to external targets, too"),
	OPTION_RANGE("priority", FIELD_INT, message.priority, -100, 100,
		     "-100 to 100: above 0 high, below 0 low (default: 0)"),
	OPTION(FROM, FIELD_TEXT, lines.path, "FILE|-",
	       "instead of all of these: publish each line of a file, or of stdin"),
	OPTION_WORD("format", lines.format, "FORMAT", line_format_names,
		    "of the lines: json, cloudevents or archive (default: each line says it)"),
	OPTION_RANGE("batch", FIELD_COUNT, lines.batch, 1, 10000,
		     "lines in one transaction (default: 1000)"),
	OPTION("skip-invalid", FIELD_BOOL, lines.skip_invalid, NULL,
	       "leave out lines that are wrong (default: publish nothing if one is)"),
	OPTION("run", FIELD_TEXT, lines.run, "NAME",
	       "another NAME publishes the same lines once more, those that have no id"),
	OPTION("dry-run", FIELD_BOOL, lines.dry_run, NULL, "check the lines, publish none"),
};

/* What the relay would refuse later is told now: the person is still here. */
static int check(const struct outbox_message *message, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (message->size <= OUTBOX_PAYLOAD_MAX &&
	    (!message->content_type || content_type_is_json(message->content_type)))
		r = json_text_check(message->data, message->size, err);
	if (r)
		return outbox_wrap(err, "--data is not JSON (for other data give --content-type)");
	r = outbox_message_validate(message, 0, err);
	if (r)
		error_names_option(options, ARRAY_SIZE(options), err);
	return r;
}

static int print_published(struct cli *cli, const struct outbox_message *message, int64_t seq,
			   bool repeated, struct outbox_error *err)
{
	if (cli->json)
		return json_print(json_pack("{s:o, s:o, s:b}", "id", json_text(message->id), "seq",
					    json_seq(seq), "repeated", repeated),
				  err);
	printable_line(stdout, "", message->id);
	if (repeated)
		fputs("this id was published before; nothing was written\n", stderr);
	return OUTBOX_OK;
}

static bool is_given(const struct field *option, const struct values *given)
{
	const void *value = (const char *)given + option->offset;

	switch (option->type) {
	case FIELD_BOOL:
		return *(const bool *)value;
	case FIELD_TEXT:
		return *(const char *const *)value != NULL;
	case FIELD_TIME:
		return *(const outbox_time *)value != 0;
	case FIELD_COUNT:
		return *(const size_t *)value != 0;
	case FIELD_REPEATED:
		return ((const struct list *)value)->count != 0;
	default:
		return *(const int *)value != 0;
	}
}

/* The options before --from are for one message, those behind it for many. */
static int check_options(const struct values *given, struct outbox_error *err)
{
	bool many = given->lines.path, behind = false;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *name = options[i].name;

		behind |= strcmp(name, FROM) == 0;
		if (behind == many || !is_given(&options[i], given))
			continue;
		if (many)
			return outbox_fail(
				err, OUTBOX_EINVAL,
				"--%s is for one message; with --from each line says it itself",
				name);
		return outbox_fail(err, OUTBOX_EINVAL, "--%s is for many messages: --from FILE|-",
				   name);
	}
	if (many)
		return OUTBOX_OK;
	if (!given->message.type)
		return outbox_fail(err, OUTBOX_EINVAL, "--type is missing: --type TYPE");
	if (!given->data)
		return outbox_fail(err, OUTBOX_EINVAL, "--data is missing: --data JSON|@FILE|-");
	return OUTBOX_OK;
}

static int publish_one(struct cli *cli, struct values *given, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf data = BUF_INIT(PAYLOAD_BUFFER_MAX);
	struct outbox_message *message = &given->message;
	struct outbox_header headers[LIST_MAX];
	bool repeated = false;
	int64_t seq = 0;
	char id[37];
	int r = input_read("data", given->data, &data, err);

	if (r == OUTBOX_OK)
		r = headers_of_options(cli, &given->headers, headers, err);
	if (r)
		return r;
	outbox_uuid(cli->clock, &cli->random.base, id);
	message->struct_size = sizeof(*message);
	message->data = data.data ? data.data : "";
	message->size = data.size;
	message->id = message->id ? message->id : id;
	message->published = given->published;
	message->headers = headers;
	message->n_headers = given->headers.count;
	r = check(message, err);
	if (r == OUTBOX_OK)
		r = store_append(cli->store, message, 1, &seq, &repeated, err);
	return r ? r : print_published(cli, message, seq, repeated, err);
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct values *given = values;
	int r = check_options(given, err);

	if (r)
		cli->exit = EXIT_USAGE;
	else
		r = cli_open(cli, OPEN_READY, err);
	if (r)
		return r;
	return given->lines.path ? publish_from(cli, &given->lines, err)
				 : publish_one(cli, given, err);
}

const struct command cmd_publish = {
	.name = "publish",
	.group = GROUP_WORK,
	.flags = COMMAND_STORE,
	.summary = "append one message, or each line of a file",
	TAKES_OPTIONS(options, struct values),
	.about = "For tests, scripts and repairs: an application publishes in its own transaction, with one INSERT INTO outbox_message. Prints the message's id. With --from, each line is a message: an object with the fields that outbox show --json prints, or a CloudEvent as the file target and archives have them; the file may be compressed with zstd. All lines are checked before the first is published. If the command is interrupted or killed, run it again: what is in the log already is left as it is.",
	.example = "outbox publish --store sqlite:app.db --type order.placed --key 42 \\\n"
		   "    --data '{\"id\":42}' --header tenant=acme\n"
		   "outbox publish --store sqlite:app.db --type report.due \\\n"
		   "    --data @report.json --due +5m\n"
		   "outbox publish --store sqlite:app.db --from orders.jsonl",
	.exits = "0  published, or there already\n"
		 "1  --skip-invalid: published, but some lines were left out\n"
		 "2  a field or a line is wrong: nothing was published\n"
		 "14 --from: the file is damaged: nothing was published\n"
		 "130  --from: interrupted: run the same command again",
	.run = run,
};
