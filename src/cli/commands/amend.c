/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/message_options.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	const char *data, *content_type, *reason;
	struct list headers;
};

static const struct field options[] = {
	OPTION("data", FIELD_TEXT, data, "JSON|@FILE|-",
	       "the new payload; @FILE reads a file, - reads stdin"),
	OPTION("content-type", FIELD_TEXT, content_type, "TYPE",
	       "content type of the payload (default: unchanged)"),
	OPTION("header", FIELD_REPEATED, headers, "NAME=VALUE",
	       "a header; those given replace all headers (default: unchanged)"),
	OPTION_REASON_REQUIRED,
};

static void print_amended(const struct outbox_amended *amended)
{
	char count[COUNT_TEXT_MAX];

	if (amended->parked)
		printf("amended; its key goes on with it: %s parked %s\n",
		       count_human(amended->parked, count),
		       amended->parked == 1 ? "delivery follows" : "deliveries follow");
	else if (amended->requeued)
		printf("amended; %s %s sent again\n", count_human(amended->requeued, count),
		       amended->requeued == 1 ? "delivery is" : "deliveries are");
	else
		puts("amended; the corrected message is sent when its turn comes");
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf data = BUF_INIT(PAYLOAD_BUFFER_MAX);
	const struct values *given = values;
	struct outbox_header headers[LIST_MAX];
	struct outbox_amended amended = { 0 };
	struct store_correction correction;
	int r = cli_open(cli, OPEN_READY, err);

	if (r == OUTBOX_OK && !given->data && !given->content_type && !given->headers.count)
		r = outbox_fail(err, OUTBOX_EINVAL,
				"nothing to change: give --data, --content-type or --header");
	if (r == OUTBOX_OK && given->data)
		r = input_read("data", given->data, &data, err);
	if (r == OUTBOX_OK)
		r = headers_of_options(cli, &given->headers, headers, err);
	if (r)
		return r;
	correction = (struct store_correction){
		.id = cli->words[0],
		.actor = cli->actor,
		.reason = given->reason,
		.data = !given->data ? NULL
			: data.data  ? data.data
				     : "",
		.size = data.size,
		.content_type = given->content_type,
		.headers = headers,
		.n_headers = given->headers.count,
		.set_headers = given->headers.count > 0,
	};
	r = store_correct(cli->store, &correction, cli->arena, &amended, err);
	if (r == OUTBOX_EINVAL)
		error_names_option(options, ARRAY_SIZE(options), err);
	if (r)
		return r;
	if (cli->json)
		return json_print(json_amended(correction.id, &amended), err);
	print_amended(&amended);
	return OUTBOX_OK;
}

const struct command cmd_amend = {
	.name = "amend",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR,
	.summary = "correct a message that no target has received; it keeps its place",
	TAKES_WORDS("ID", 1, 1),
	TAKES_OPTIONS(options, struct values),
	.about = "The message keeps its id, type, key and place in the log, so that with hold the corrected message goes first and what is parked behind it follows in order. Deliveries that failed or wait for a retry are sent at once, with their attempts at 0; discarded ones stay discarded. The former version is kept until retention removes the message (outbox show ID --amended). Refused if a target has already received the message, or while it is being sent.",
	.example = "outbox amend 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 \\\n"
		   "    --data @fixed.json --reason \"negative total, ticket 812\"",
	.exits = "0  amended\n2  the correction is wrong or missing\n3  no such message\n4  it was delivered, is being sent, or nothing of it is left to deliver",
	.run = run,
};
