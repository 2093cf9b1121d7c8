/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/sources.h"
#include "cli/table.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INDENT 4
#define SHOWN_MAX ((size_t)64 << 20)
#define HEX_ROW 16
#define DEPTH_MAX 64

static void newline(struct buf *out, int depth)
{
	buf_char(out, '\n');
	for (int i = 0; i < depth && i < DEPTH_MAX; i++)
		buf_text(out, "  ");
}

/* The length of the string that begins at text with its quote. */
static size_t string_length(const char *text, size_t size)
{
	size_t i = 1;

	while (i < size && text[i] != '"')
		i += text[i] == '\\' ? 2 : 1;
	return i + 1 < size ? i + 1 : size;
}

/* Is the bracket at text[i] followed by nothing but its end? */
static bool is_empty(const char *text, size_t size, size_t i)
{
	for (i++; i < size && isspace((unsigned char)text[i]); i++)
		;
	return i < size && (text[i] == '}' || text[i] == ']');
}

/* Valid JSON with line breaks and indents. Works on the text, not on values: 1.50 stays 1.50. */
static void indent_json(struct buf *out, const char *text, size_t size)
{
	int depth = 0;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '"') {
			size_t n = string_length(text + i, size - i);

			buf_append(out, text + i, n);
			i += n - 1;
		} else if (c == '{' || c == '[') {
			buf_char(out, c);
			depth++;
			if (!is_empty(text, size, i))
				newline(out, depth);
		} else if (c == '}' || c == ']') {
			depth--;
			if (out->size && out->data[out->size - 1] != '{' &&
			    out->data[out->size - 1] != '[')
				newline(out, depth);
			buf_char(out, c);
		} else if (c == ',') {
			buf_char(out, c);
			newline(out, depth);
		} else if (c == ':') {
			buf_text(out, ": ");
		} else if (!isspace((unsigned char)c)) {
			buf_char(out, c);
		}
	}
}

static void hex_lines(struct buf *out, const unsigned char *data, size_t size)
{
	for (size_t at = 0; at < size; at += HEX_ROW) {
		size_t n = size - at < HEX_ROW ? size - at : HEX_ROW;

		buf_printf(out, "%s%06zx ", at ? "\n" : "", at);
		for (size_t i = 0; i < HEX_ROW; i++)
			if (i < n)
				buf_printf(out, " %02x", data[at + i]);
			else
				buf_text(out, "   ");
		buf_text(out, "  ");
		for (size_t i = 0; i < n; i++)
			buf_char(out, data[at + i] >= ' ' && data[at + i] < 127 ? (char)data[at + i]
										: '.');
	}
}

static void print_lines(const struct cli *cli, const struct buf *text, size_t max_lines)
{
	const char *line = buf_str(text), *end = line + text->size;
	size_t lines = 0;

	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = stop ? (size_t)(stop - line) : (size_t)(end - line);
		struct buf shown = BUF_INIT(SHOWN_MAX);

		if (max_lines && lines++ == max_lines) {
			printf("%*s... (--full shows all, --raw-payload writes the bytes)\n",
			       INDENT, "");
			return;
		}
		printable_append(&shown, line, n,
				 max_lines && cli->width != UNCUT ? cli->width - INDENT : UNCUT);
		printf("%*s%s\n", INDENT, "", buf_str(&shown));
		buf_deinit(&shown);
		line += n + (stop != NULL);
	}
}

static void payload_print(const struct cli *cli, const struct outbox_message *message,
			  size_t max_lines)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SHOWN_MAX);
	const char *data = message->data ? message->data : "";

	if (!utf8_valid(data, message->size) || memchr(data, '\0', message->size))
		hex_lines(&text, (const unsigned char *)data, message->size);
	else if (json_text_check(data, message->size, NULL) == OUTBOX_OK)
		indent_json(&text, data, message->size);
	else
		buf_append(&text, data, message->size);
	if (text.failed) { /* indenting would make too much of it: as it is, then */
		buf_clear(&text);
		buf_append(&text, data, message->size);
	}
	print_lines(cli, &text, max_lines);
}

#define PAYLOAD_LINES 40
#define LABEL 16

struct values {
	bool payload, raw, full, amended;
};

static const struct field options[] = {
	OPTION("payload", FIELD_BOOL, payload, NULL,
	       "show the payload and the headers' values, which may be personal or secret"),
	OPTION("raw-payload", FIELD_BOOL, raw, NULL,
	       "write the payload's bytes to stdout and nothing else"),
	OPTION("full", FIELD_BOOL, full, NULL,
	       "like --payload, but all of it, however long (--payload cuts after 40 lines)"),
	OPTION("amended", FIELD_BOOL, amended, NULL,
	       "show each former version of an amended message; masked unless --payload is given"),
};

static void print_no_deliveries(const struct cli *cli)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(1000);

	buf_printf(&line, "no deliveries: no target matches it (outbox target list%s)",
		   cli->store_option);
	printf("\n");
	printable_wrap(stdout, &(struct wrap){ 0, 0, cli->width == UNCUT ? UNCUT : 80 },
		       buf_str(&line));
}

/* "  key             42", wrapped; nothing when there is no text. */
static void field(const struct cli *cli, const char *name, const char *text)
{
	if (!text)
		return;
	printf("  %-14s", name);
	printable_wrap(stdout, &(struct wrap){ LABEL, LABEL, cli->width == UNCUT ? UNCUT : 80 },
		       text);
}

static void time_field(const struct cli *cli, const char *name, outbox_time time)
{
	char text[TIME_TEXT_MAX], age[DURATION_TEXT_MAX], line[100];
	outbox_time now = cli->clock->wall(cli->clock);

	if (!time)
		return;
	age_text(now, time, age);
	snprintf(line, sizeof(line), "%s (%s%s)", time_format(time, text), age,
		 time <= now ? " ago" : "");
	field(cli, name, line);
}

/* Names say how a message is handled; values may be anything, as in a payload. */
static void print_headers(const struct cli *cli, const struct outbox_message *message, bool masked)
{
	for (size_t i = 0; i < message->n_headers; i++) {
		char line[600];

		snprintf(line, sizeof(line), "%.200s: %.380s", message->headers[i].name,
			 masked ? HEADER_MASK : message->headers[i].value);
		field(cli, i ? "" : "headers", line);
	}
}

static void print_payload(const struct cli *cli, const struct outbox_message *message,
			  const struct values *given)
{
	char count[COUNT_TEXT_MAX];

	printf("  payload       %s byte%s, ", count_human((int64_t)message->size, count),
	       message->size == 1 ? "" : "s");
	printable_line(stdout, "", message->content_type ? message->content_type : "?");
	if (given->payload || given->full)
		payload_print(cli, message, given->full ? 0 : PAYLOAD_LINES);
	else
		puts("                masked, it may be personal or secret: --payload shows it");
}

static void print_message(const struct cli *cli, const struct outbox_claimed *m,
			  const struct values *given)
{
	const struct outbox_message *message = &m->message;
	char text[64];

	snprintf(text, sizeof(text), "%" PRId64, m->seq);
	printable_line(stdout, "message ", message->id);
	field(cli, "seq", text);
	field(cli, "type", message->type);
	field(cli, "kind", kind_name(message->kind));
	field(cli, "key", message->key);
	field(cli, "source", message->source);
	field(cli, "subject", message->subject);
	field(cli, "topic", message->topic);
	field(cli, "correlation", message->correlation_id);
	field(cli, "causation", message->causation_id);
	field(cli, "traceparent", message->traceparent);
	field(cli, "published", message->published ? "yes: goes to external targets too" : NULL);
	time_field(cli, "event time", message->event_time);
	time_field(cli, "created", m->created_at);
	time_field(cli, "due", message->due_at);
	time_field(cli, "expires", message->expires_at);
	print_headers(cli, message, !given->payload && !given->full);
	field(cli, "malformed", m->malformed);
	print_payload(cli, message, given);
}

/* A command to copy: its id may be anything, so it is quoted, and escaped for the terminal. */
static void print_command(const struct cli *cli, const char *label, const char *verb,
			  const char *id, const char *target, const char *more)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(8192);

	buf_printf(&line, "outbox %s ", verb);
	buf_shell_word(&line, id);
	buf_printf(&line, "%s%s%s%s", target ? " --target " : "", target ? target : "", more,
		   cli->store_option);
	printf("  %s:\n    ", label);
	printable_wrap(stdout, &(struct wrap){ 4, 4, cli->width == UNCUT ? UNCUT : 80 },
		       buf_str(&line));
}

static bool has_expired(const struct cli *cli, const struct outbox_claimed *m)
{
	return m->message.expires_at && m->message.expires_at <= cli->clock->wall(cli->clock);
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = text ? strlen(text) : 0, length = strlen(end);

	return text && size >= length && memcmp(text + size - length, end, length) == 0;
}

/* Why this delivery would fail however often it is tried; NULL: it may succeed. */
static const char *hopeless(const struct cli *cli, const struct outbox_claimed *m,
			    const struct outbox_delivery *row)
{
	const struct outbox_message *message = &m->message;
	struct outbox_error wrong = OUTBOX_ERROR_INIT;

	if (m->malformed)
		return "its row is malformed";
	if (has_expired(cli, m))
		return "it has expired";
	/* not every envelope minds: it must have failed by what is wrong with it */
	if (content_type_is_json(message->content_type ? message->content_type : "") &&
	    json_text_check(message->data ? message->data : "", message->size, &wrong) &&
	    ends_with(row->error, wrong.message))
		return "its payload is not JSON";
	return NULL;
}

/* It is the message that is corrected, for all its targets; refused when one has it already. */
static void print_amend(const struct cli *cli, const struct outbox_claimed *m, const char *label)
{
	print_command(cli, label, "amend", m->message.id, NULL, " --data @FILE --reason WHY");
}

/* Does a target have it, or is it just getting it? */
static bool has_left(const struct message_detail *view)
{
	for (size_t i = 0; i < view->page.count; i++)
		if (view->page.rows[i].state == OUTBOX_DELIVERED ||
		    view->page.rows[i].state == OUTBOX_SENDING)
			return true;
	return false;
}

static void print_failed_advice(const struct cli *cli, const struct message_detail *view,
				const struct outbox_delivery *row)
{
	const struct outbox_claimed *m = &view->message;
	const char *why = hopeless(cli, m, row);

	if (why) {
		printf("  a requeue will not help: %s\n", why);
		/* corrected, it would still be too late */
		if (has_expired(cli, m)) {
			print_command(cli,
				      "if it is still needed, publish it again; then discard this one",
				      "discard", row->id, row->target, " --reason WHY");
			return;
		}
		print_amend(cli, m, "correct it in place, if no target has received it yet");
		print_command(cli, "or publish a corrected message, then discard this one",
			      "discard", row->id, row->target, " --reason WHY");
		return;
	}
	print_command(cli, "to try again", "requeue", row->id, row->target, "");
	if (!has_left(view))
		print_amend(cli, m, "to correct it in place");
	print_command(cli, "to give up", "discard", row->id, row->target, " --reason WHY");
}

static void print_parked_advice(const struct cli *cli, const char *key)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4096);

	buf_text(&line, "outbox list --key ");
	buf_shell_word(&line, key ? key : "");
	buf_text(&line, cli->store_option);
	puts("  it waits for an earlier message of its key:");
	printable_line(stdout, "    ", buf_str(&line));
}

/* What a person can do about a delivery in this state. */
static void print_advice(const struct cli *cli, const struct message_detail *view,
			 const struct outbox_delivery *row)
{
	if (row->state == OUTBOX_FAILED) {
		print_failed_advice(cli, view, row);
		return;
	}
	if (row->state != OUTBOX_PENDING)
		return;
	if (row->why == OUTBOX_PAUSED) {
		printf("  to resume:    outbox resume %s", row->target);
		printable_line(stdout, "", cli->store_option);
	} else if (row->why == OUTBOX_PARKED) {
		print_parked_advice(cli, view->message.message.key);
	} else if (row->why == OUTBOX_WAITING || row->why == OUTBOX_DEFERRED) {
		puts("  nothing to do: it is tried again at its next attempt");
	} else {
		printf("  nothing to do: a relay sends it next (outbox status%s)\n",
		       cli->store_option);
	}
}

/* The last lines of a delivery: how it came to this. */
static void print_attempts(const struct cli *cli, const struct message_detail *view,
			   const char *target, const struct values *given)
{
	const char *label = "attempts";

	for (size_t i = 0; i < view->n_attempts; i++) {
		const struct outbox_attempt *a = &view->attempts[i];
		_cleanup_(buf_deinit) struct buf line = BUF_INIT(SHOWN_MAX);
		char text[TIME_TEXT_MAX];

		if (strcmp(a->target, target) != 0)
			continue;
		buf_printf(&line, "%s attempt %d, %s", time_format(a->at, text), a->attempt,
			   verdict_name(a->verdict));
		if (a->native)
			buf_printf(&line, " %d", a->native);
		buf_printf(&line, ": %s", a->reason ? a->reason : "(redacted)");
		field(cli, label, buf_str(&line));
		label = "";
		if (!a->answer)
			continue;
		buf_clear(&line);
		buf_text(&line, a->answer);
		if (given->payload || given->full)
			print_lines(cli, &line, given->full ? 0 : PAYLOAD_LINES);
		else
			printf("%*sit answered %zu bytes: --payload shows them\n", LABEL, "",
			       strlen(a->answer));
	}
}

static void print_delivery(const struct cli *cli, const struct message_detail *view,
			   const struct outbox_delivery *row, const struct values *given)
{
	char attempts[32];

	printf("\nto %s: %s%s%s\n", row->target, colour_on(cli, delivery_colour(row)),
	       delivery_word(row), colour_off(cli));
	snprintf(attempts, sizeof(attempts), "%d", row->attempts);
	field(cli, "failed tries", row->attempts ? attempts : NULL);
	field(cli, "error", row->error);
	field(cli, "reason", row->reason);
	field(cli, "owner", row->owner);
	time_field(cli, "since", row->last_status_at);
	time_field(cli, "next attempt", row->next_attempt_at);
	print_attempts(cli, view, row->target, given);
	print_advice(cli, view, row);
}

static void print_history(const struct message_detail *view)
{
	if (view->n_history)
		puts("\nhistory");
	for (size_t i = view->n_history; i-- > 0;) {
		_cleanup_(buf_deinit) struct buf line = BUF_INIT(10000);
		const struct outbox_audit *row = &view->history[i];
		char text[TIME_TEXT_MAX];

		buf_printf(&line, "%s%s%s by %s", row->action, row->target ? " " : "",
			   row->target ? row->target : "", row->actor ? row->actor : "?");
		if (row->reason)
			buf_printf(&line, ": %s", row->reason);
		if (row->detail) {
			buf_text(&line, "; ");
			detail_text(&line, row->detail);
		}
		printf("  %-28s", time_format(row->at, text));
		printable_wrap(stdout, &(struct wrap){ 30, 30, 80 }, buf_str(&line));
	}
}

static void print_before(const struct cli *cli, const struct outbox_amendment *was,
			 const struct values *given)
{
	const struct outbox_message message = { .data = was->data, .size = was->size };
	bool masked = !given->payload && !given->full;
	char count[COUNT_TEXT_MAX], line[1000];
	const char *headers = was->headers ? was->headers : "";

	snprintf(line, sizeof(line), "it was %s byte%s, %.200s%s%.500s",
		 count_human((int64_t)was->size, count), was->size == 1 ? "" : "s",
		 was->content_type ? was->content_type : "content type not given",
		 *headers ? ", headers " : "", *headers && masked ? HEADER_MASK : headers);
	field(cli, "", line);
	if (was->data && !masked)
		payload_print(cli, &message, given->full ? 0 : PAYLOAD_LINES);
}

/* That it is not what was published, who says so, and on request what that was. */
static void print_amended(const struct cli *cli, const struct message_detail *view,
			  const struct values *given)
{
	for (size_t i = 0; i < view->n_amended; i++) {
		const struct outbox_amendment *was = &view->amended[i];
		char text[TIME_TEXT_MAX], line[1000];

		snprintf(line, sizeof(line), "%s by %.200s: %.500s", time_format(was->at, text),
			 was->actor ? was->actor : "?", was->reason ? was->reason : "?");
		field(cli, i ? "" : "amended", line);
		if (given->amended)
			print_before(cli, was, given);
	}
	if (view->n_amended && !given->amended)
		puts("                --amended --payload shows the former version");
}

struct showing {
	const struct values *given;
	size_t shown;
};

/* An id of one's own may be in more than one of several sources. */
static void print_source(const struct cli *cli, const char *name, size_t before)
{
	printf("%s%s%s%s\n", before ? "\n" : "", colour_on(cli, BOLD), name, colour_off(cli));
}

static int show(struct cli *cli, const char *source, void *context, json_t **ret_json,
		struct outbox_error *err)
{
	struct showing *showing = context;
	const struct values *given = showing->given;
	struct message_detail view;
	int r = message_detail_read(cli->store, cli->words[0], cli->arena, &view, err);

	if (r)
		return r;
	if (given->raw) {
		if (view.message.message.size)
			fwrite(view.message.message.data, 1, view.message.message.size, stdout);
		return OUTBOX_OK;
	}
	if (cli->json) {
		*ret_json =
			json_message_detail(&view, given->payload || given->full ? PAYLOAD_SHOWN
										 : PAYLOAD_MASKED);
		return OUTBOX_OK;
	}
	if (cli->n_sources > 1)
		print_source(cli, source, showing->shown++);
	print_message(cli, &view.message, given);
	print_amended(cli, &view, given);
	for (size_t i = 0; i < view.page.count; i++)
		print_delivery(cli, &view, &view.page.rows[i], given);
	if (view.page.count == 0)
		print_no_deliveries(cli);
	print_history(&view);
	return OUTBOX_OK;
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	struct showing showing = { values, 0 };

	if (showing.given->raw && cli->json)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--raw-payload and --json both write to stdout; use only one of them");
	if (showing.given->raw && cli->n_sources > 1)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--raw-payload needs --source: several sources may have a message of this id");
	return sources_find(cli, show, &showing, err);
}

const struct command cmd_show = {
	.name = "show",
	.group = GROUP_SEE,
	.flags = COMMAND_STORE | COMMAND_MANY,
	.summary = "show a message, its deliveries and history, and what to do next",
	TAKES_WORDS("ID", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "The payload and header values are masked unless you ask for them: what applications publish may be personal or secret, and a screen is often shared. Keys, subjects and errors are shown, because you need them to find the problem. With --config and without --source all sources are searched.",
	.example = "outbox show 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4\n"
		   "outbox show 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --payload\n"
		   "outbox show 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --raw-payload > payload.json",
	.exits = "0  printed\n3  no such message\n5  a source of the file is unreachable; what the others have was printed",
	.run = run,
};
