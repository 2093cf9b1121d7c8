/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe URL [ENVELOPE]: the transport on a string, for tests in another language. Commands on standard input, one
 * a line; every answer ends with a line "= STATUS NATIVE MILLISECONDS TEXT".
 *
 *	connect MS         disconnect          check MS
 *	publish MS N       and N lines "id TAB type TAB topic TAB key TAB kind TAB size TAB correlation id TAB
 *	                   milliseconds to live TAB header=value;header=value"; an empty field is unset.
 *	                   The answer has a line "VERDICT NATIVE REASON" for each, behind them "after INDEX SECONDS"
 *	                   for a message and "back-off SECONDS" for all, where the driver says so.
 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include "base/url.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct outbox_arena *arena;

static void end(int status, const struct outbox_error *err, outbox_time since)
{
	struct outbox_clock *clock = outbox_clock_system();

	printf("= %s %d %lld %s\n", status ? outbox_status_name(status) : "ok",
	       status && err ? err->native : 0,
	       (long long)((clock->mono(clock) - since) / OUTBOX_MILLISECONDS),
	       status && err ? err->message : "");
	fflush(stdout);
}

static const char *field(char **rest)
{
	char *text = strsep(rest, "\t\n");

	return text && text[0] ? outbox_arena_text(arena, text) : NULL;
}

static void read_headers(struct outbox_message *m, const char *text)
{
	struct outbox_header *headers = outbox_arena_alloc(arena, 20 * sizeof(*headers));
	char *rest = (char *)(uintptr_t)text;

	if (!headers)
		exit(2);
	m->headers = headers;
	for (char *one; m->n_headers < 20 && (one = strsep(&rest, ";"));) {
		char *value = strchr(one, '=');

		if (!value)
			exit(2);
		*value = '\0';
		headers[m->n_headers++] = (struct outbox_header){ one, value + 1 };
	}
}

static void read_message(struct outbox_message *m)
{
	struct outbox_clock *clock = outbox_clock_system();
	char line[8192], *rest = line;
	const char *kind, *size, *ttl, *headers;

	if (!fgets(line, sizeof(line), stdin))
		exit(2);
	*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	m->id = field(&rest);
	m->type = field(&rest);
	m->topic = field(&rest);
	m->key = field(&rest);
	kind = field(&rest);
	size = field(&rest);
	m->correlation_id = field(&rest);
	ttl = field(&rest);
	if (ttl)
		m->expires_at = clock->wall(clock) + strtol(ttl, NULL, 10) * OUTBOX_MILLISECONDS;
	headers = field(&rest);
	if (headers)
		read_headers(m, headers);
	m->kind = kind && strcmp(kind, "command") == 0 ? OUTBOX_KIND_COMMAND : OUTBOX_KIND_EVENT;
	m->size = size ? strtoul(size, NULL, 10) : 2;
	m->data = outbox_arena_alloc(arena, m->size + 1);
	if (!m->data)
		exit(2);
	memset((void *)(uintptr_t)m->data, 'x', m->size);
	m->content_type = "text/plain";
	m->source = "/probe";
	m->event_time = 1763197200 * OUTBOX_SECONDS;
}

static void publish(struct outbox_transport *t, long ms, size_t n)
{
	static const char *const names[] = { "UNSET", "ACKED", "REJECTED", "RETRY", "UNKNOWN" };
	struct outbox_clock *clock = outbox_clock_system();
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_message *messages = calloc(n, sizeof(*messages));
	struct outbox_item *items = calloc(n, sizeof(*items));
	struct outbox_batch batch = { .items = calloc(n, sizeof(void *)),
				      .count = n,
				      .memory = arena };
	outbox_time since;
	int r;

	for (size_t i = 0; i < n; i++) {
		read_message(&messages[i]);
		items[i] = (struct outbox_item){ .message = &messages[i], .seq = (int64_t)i + 1 };
		batch.items[i] = &items[i];
	}
	since = clock->mono(clock);
	r = t->ops->publish(t, &batch, since + ms * OUTBOX_MILLISECONDS, &err);
	for (size_t i = 0; i < n; i++)
		printf("%s %d %s\n", names[items[i].verdict], items[i].native,
		       items[i].reason ? items[i].reason : "");
	for (size_t i = 0; i < n; i++)
		if (items[i].retry_after)
			printf("after %zu %lld\n", i,
			       (long long)(items[i].retry_after / OUTBOX_SECONDS));
	if (batch.back_off)
		printf("back-off %lld\n", (long long)(batch.back_off / OUTBOX_SECONDS));
	end(r, &err, since);
	free(messages);
	free(items);
	free(batch.items);
	outbox_arena_reset(arena);
}

static void run(struct outbox_transport *t, const char *command, long ms, size_t n)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct outbox_error err = OUTBOX_ERROR_INIT;
	outbox_time now = clock->mono(clock);
	char text[512];
	int r;

	if (strcmp(command, "connect") == 0) {
		end(t->ops->connect(t, now + ms * OUTBOX_MILLISECONDS, &err), &err, now);
	} else if (strcmp(command, "disconnect") == 0) {
		t->ops->disconnect(t);
		end(0, NULL, now);
	} else if (strcmp(command, "check") == 0) {
		r = t->ops->check(t, now + ms * OUTBOX_MILLISECONDS, text, sizeof(text));
		printf("%d %s\n", r, text);
		end(0, NULL, now);
	} else if (strcmp(command, "publish") == 0) {
		publish(t, ms, n);
	} else {
		exit(2);
	}
}

static const struct outbox_transport_ops *ops_of(const char *url)
{
	char scheme[32] = "";

	if (!url_scheme(url, scheme, sizeof(scheme)))
		return NULL;
	for (const struct outbox_transport_ops *const *ops = transport_drivers; *ops; ops++)
		for (const char *const *s = (*ops)->schemes; *s; s++)
			if (strcmp(*s, scheme) == 0)
				return *ops;
	return NULL;
}

int main(int argc, char **argv)
{
	struct outbox_transport_config config = {
		.struct_size = sizeof(config),
		.url = argc > 1 ? argv[1] : "",
		.target = "probe",
		.envelope = argc > 2 ? atoi(argv[2]) : 0,
		.clock = outbox_clock_system(),
	};
	const struct outbox_transport_ops *ops = ops_of(config.url);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *t = NULL;
	char line[200], command[20];
	int r;

	arena = outbox_arena_new((size_t)1 << 30);
	if (!ops || !arena)
		return 2;
	r = ops->open(&config, &t, &err);
	end(r, &err, config.clock->mono(config.clock));
	while (!r && fgets(line, sizeof(line), stdin)) {
		long ms = 0;
		size_t n = 0;

		if (sscanf(line, "%19s %ld %zu", command, &ms, &n) < 1)
			return 2;
		run(t, command, ms, n);
	}
	transport_close(t);
	outbox_arena_free(arena);
	return 0;
}
