/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_probe URL: the transport alone, driven by lines on standard input, for tests in other languages.
 *
 *	connect MS | disconnect | check
 *	message ID KEY TOPIC BYTES      ("-": none)
 *	publish MS                      the messages since the last one; answers "ID VERDICT NATIVE REASON" each
 *
 * Every command but message ends with a line "= STATUS MESSAGE".
 */
#include "base/cleanup.h"
#include "transport/transport.h"

#include <outbox/arena.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 4096

extern const struct outbox_transport_ops kafka_transport_ops;

struct probe {
	struct outbox_transport *transport;
	struct outbox_arena *arena;
	struct outbox_message messages[BATCH_MAX];
	struct outbox_item items[BATCH_MAX];
	struct outbox_item *pointers[BATCH_MAX];
	struct outbox_batch batch;
};

static const char *const verdicts[] = { "UNSET", "ACKED", "REJECTED", "RETRY", "UNKNOWN" };

static void answer(int status, const char *message)
{
	printf("= %s %s\n", outbox_status_name(status), status ? message : "");
	fflush(stdout);
}

static outbox_time deadline(const char *ms)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + strtoll(ms ? ms : "10000", NULL, 10) * OUTBOX_MILLISECONDS;
}

static const char *copy(struct probe *p, const char *text)
{
	return !text || strcmp(text, "-") == 0 ? NULL : outbox_arena_text(p->arena, text);
}

static void add(struct probe *p, char *rest)
{
	struct outbox_message *m = &p->messages[p->batch.count];
	struct outbox_item *item = &p->items[p->batch.count];
	const char *bytes;
	char *data;

	*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	m->id = copy(p, strsep(&rest, " "));
	m->key = copy(p, strsep(&rest, " "));
	m->topic = copy(p, strsep(&rest, " "));
	bytes = strsep(&rest, " ");
	m->size = bytes ? strtoull(bytes, NULL, 10) : 0;
	data = outbox_arena_alloc(p->arena, m->size + 1);
	if (!m->id || !data)
		abort();
	memset(data, 'x', m->size);
	m->data = data;
	m->type = "order.placed";
	m->source = "/probe";
	m->content_type = "text/plain";
	m->event_time = 1763197200 * OUTBOX_SECONDS;
	*item = (struct outbox_item){ .message = m, .created_at = m->event_time };
	p->pointers[p->batch.count++] = item;
}

static void publish(struct probe *p, const char *ms)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	p->batch.items = p->pointers;
	p->batch.memory = p->arena;
	r = p->transport->ops->publish(p->transport, &p->batch, deadline(ms), &err);
	for (size_t i = 0; i < p->batch.count; i++)
		printf("%s %s %d %s\n", p->items[i].message->id, verdicts[p->items[i].verdict],
		       p->items[i].native, p->items[i].reason ? p->items[i].reason : "");
	answer(r, err.message);
	p->batch.count = 0;
	outbox_arena_reset(p->arena);
}

static void command(struct probe *p, char *line)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char *word = strsep(&line, " "), text[1000] = "";

	if (strcmp(word, "message") == 0 && p->batch.count < BATCH_MAX) {
		add(p, line);
	} else if (strcmp(word, "publish") == 0) {
		publish(p, line);
	} else if (strcmp(word, "connect") == 0) {
		answer(p->transport->ops->connect(p->transport, deadline(line), &err), err.message);
	} else if (strcmp(word, "disconnect") == 0) {
		p->transport->ops->disconnect(p->transport);
		answer(0, "");
	} else if (strcmp(word, "check") == 0) {
		printf("%d %s\n", transport_check(p->transport, deadline(NULL), text, sizeof(text)),
		       text);
		answer(0, "");
	} else {
		abort();
	}
}

int main(int argc, char **argv)
{
	static struct probe probe;
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .url = argc > 1 ? argv[1] : "",
						  .target = "probe",
						  .clock = outbox_clock_system() };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char *line = NULL;
	size_t size = 0;
	int r = kafka_transport_ops.open(&config, &probe.transport, &err);

	answer(r, err.message);
	if (r)
		return 1;
	probe.arena = outbox_arena_new((size_t)256 << 20);
	for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;) {
		line[strcspn(line, "\n")] = '\0';
		command(&probe, line);
	}
	free(line);
	transport_close(probe.transport);
	outbox_arena_free(probe.arena);
	return 0;
}
