/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_case.h"

#include "transport/transport.h"

#include <stdio.h>

extern const struct outbox_transport_ops redis_transport_ops;

static const struct transport_fixture fixture = { .ops = &redis_transport_ops };

/* A batch of n, each with a key of its own: one pipeline. */
void begin(struct transport_case *c, size_t n)
{
	static const char *const types[] = { "a", "b", "c" };

	*c = (struct transport_case){ .fixture = &fixture };
	c->arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(c->arena);
	case_new_batch(c);
	for (size_t i = 0; i < n; i++) {
		struct outbox_message *m = case_message(c, "m", i);

		m->type = types[i % 3];
		m->key = m->id;
	}
}

void use_one_key(struct transport_case *c)
{
	for (size_t i = 0; i < c->batch.count; i++)
		c->messages[i].key = "42";
}

static outbox_time in(outbox_time time)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + time;
}

struct outbox_transport *open_to(struct transport_case *c, struct fake *fake, const char *options)
{
	char url[200];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d/?%s", fake_port(fake), options);
	return case_open(c, url, 0);
}

size_t count(const struct transport_case *c, int verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < c->batch.count; i++)
		n += c->batch.items[i]->verdict == verdict;
	return n;
}

/* Connect and publish; returns the status of the first that fails. */
int talk(struct transport_case *c, const struct fake_script *script, const char *options,
	 outbox_time limit, struct outbox_error *err)
{
	struct fake *fake = fake_start(script);
	struct outbox_transport *t = open_to(c, fake, options);
	int r = t->ops->connect(t, in(limit), err);

	if (!r)
		r = t->ops->publish(t, &c->batch, in(limit), err);
	transport_close(t);
	fake_stop(fake);
	return r;
}
