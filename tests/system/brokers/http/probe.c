/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_probe URL [COUNT [SECONDS [BYTES]]]: connect, publish COUNT messages of keys of their own, and print a JSON
 * object of what the driver said. PROBE_ENVELOPE is an envelope's number, PROBE_ID an id for the first message, PROBE_HEADER
 * a header "name=value"; with PROBE_LINGER it waits for a line before it closes. For the tests that play with servers.
 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops http_transport_ops;

#define COUNT_MAX 2000

static struct outbox_message messages[COUNT_MAX];
static struct outbox_item items[COUNT_MAX];
static struct outbox_item *list[COUNT_MAX];
static struct outbox_header header;

static int number(int argc, char **argv, int i, int normal)
{
	return argc > i ? (int)strtol(argv[i], NULL, 10) : normal;
}

static outbox_time in_seconds(int seconds)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + seconds * OUTBOX_SECONDS;
}

static void make_messages(struct outbox_batch *batch, size_t count, size_t bytes)
{
	const char *own = getenv("PROBE_ID"), *pair = getenv("PROBE_HEADER");
	char text[64], *data = calloc(1, bytes + 16);

	memset(data, 'x', bytes);
	if (pair) {
		size_t length = strcspn(pair, "=");

		header.name = strndup(pair, length);
		header.value = pair + length + 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct outbox_message *m = &messages[i];

		*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		snprintf(text, sizeof(text), "m-%zu", i);
		m->id = own && !i ? own : outbox_arena_text(batch->memory, text);
		m->type = getenv("PROBE_TYPE") ? getenv("PROBE_TYPE") : "order.placed";
		m->source = "/probe";
		m->key = outbox_arena_text(batch->memory, text);
		m->content_type = bytes ? "text/plain" : "application/json";
		snprintf(text, sizeof(text), "{\"n\":%zu}", i);
		m->data = bytes ? data : outbox_arena_text(batch->memory, text);
		m->size = bytes ? bytes : strlen(text);
		m->headers = pair ? &header : NULL;
		m->n_headers = pair ? 1 : 0;
		items[i] = (struct outbox_item){ .message = m, .seq = (int64_t)i + 1 };
		list[i] = &items[i];
	}
	batch->items = list;
	batch->count = count;
}

static json_t *show_item(const struct outbox_item *item)
{
	static const char *const verdicts[] = { "UNSET", "ACKED", "REJECTED", "RETRY", "UNKNOWN" };

	return json_pack("{s:s, s:i, s:s?, s:s?, s:I}", "verdict", verdicts[item->verdict],
			 "native", item->native, "reason", item->reason, "answer", item->answer,
			 "retry_after", (json_int_t)(item->retry_after / OUTBOX_SECONDS));
}

static void publish(struct outbox_transport *transport, struct outbox_batch *batch, int seconds,
		    json_t *out)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_t *shown = json_array();
	int r = transport->ops->publish(transport, batch, in_seconds(seconds), &err);

	for (size_t i = 0; i < batch->count; i++)
		json_array_append_new(shown, show_item(batch->items[i]));
	json_object_set_new(out, "publish", json_string(outbox_status_name(r)));
	json_object_set_new(out, "error", json_string(err.message));
	json_object_set_new(out, "back_off",
			    json_integer((json_int_t)(batch->back_off / OUTBOX_SECONDS)));
	json_object_set_new(out, "items", shown);
}

int main(int argc, char **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *transport = NULL;
	struct outbox_batch batch = { .memory = outbox_arena_new((size_t)64 << 20) };
	const char *envelope = getenv("PROBE_ENVELOPE");
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .clock = outbox_clock_system(),
						  .target = "probe",
						  .envelope = envelope ? atoi(envelope) : 0,
						  .url = argc > 1 ? argv[1] : "" };
	json_t *out = json_object();
	int r = http_transport_ops.open(&config, &transport, &err),
	    seconds = number(argc, argv, 3, 10);
	char text[600];

	json_object_set_new(out, "open", json_string(outbox_status_name(r)));
	if (!r) {
		r = transport->ops->connect(transport, in_seconds(seconds), &err);
		json_object_set_new(out, "connect", json_string(outbox_status_name(r)));
	}
	json_object_set_new(out, "error", json_string(err.message));
	if (!r && getenv("PROBE_CHECK")) {
		json_object_set_new(out, "level",
				    json_integer(transport->ops->check(transport, in_seconds(seconds),
								       text, sizeof(text))));
		json_object_set_new(out, "check", json_string(text));
	} else if (!r) {
		make_messages(&batch, (size_t)number(argc, argv, 2, 1),
			      (size_t)number(argc, argv, 4, 0));
		publish(transport, &batch, seconds, out);
	}
	json_dumpf(out, stdout, JSON_COMPACT);
	printf("\n");
	fflush(stdout);
	if (getenv("PROBE_LINGER"))
		getchar(); /* what is still open now is the driver's */
	http_transport_ops.close(transport);
	_Exit(0); /* what the messages hold is not the driver's: no leak is looked for */
}
