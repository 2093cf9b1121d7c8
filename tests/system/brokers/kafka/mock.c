/* SPDX-License-Identifier: Apache-2.0 */
#include "mock.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct outbox_transport_ops kafka_transport_ops;

static const char *mock_url(void *state)
{
	return ((struct mock *)state)->url;
}

static void mock_read(void *state, struct arrivals *arrivals)
{
	place_read(((struct mock *)state)->servers, "orders", arrivals);
}

static const struct transport_fixture fixture = {
	.name = "kafka_mock",
	.ops = &kafka_transport_ops,
	.url = mock_url,
	.read_back = mock_read,
};

int mock_setup(void **state)
{
	struct mock *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->owner = place_admin("127.0.0.1:1");
	m->cluster = rd_kafka_mock_cluster_new(m->owner, 1);
	assert_non_null(m->cluster);
	m->servers = rd_kafka_mock_cluster_bootstraps(m->cluster);
	rd_kafka_mock_topic_create(m->cluster, "orders", 1, 1);
	rd_kafka_mock_topic_create(m->cluster, "other", 1, 1);
	snprintf(m->url, sizeof(m->url), "kafka://%s/orders", m->servers);
	m->c = (struct transport_case){ .fixture = &fixture, .place = m };
	m->c.arena = outbox_arena_new((size_t)64 << 20);
	case_new_batch(&m->c);
	*state = m;
	return 0;
}

int mock_teardown(void **state)
{
	struct mock *m = *state;

	rd_kafka_mock_cluster_destroy(m->cluster);
	rd_kafka_destroy(m->owner);
	outbox_arena_free(m->c.arena);
	free(m);
	return 0;
}

struct outbox_transport *mock_connect(struct mock *m, const char *path)
{
	snprintf(m->url, sizeof(m->url), "kafka://%s/%s", m->servers, path);
	return case_connect(&m->c);
}

int verdict(const struct mock *m, size_t i)
{
	return m->c.batch.items[i]->verdict;
}

void assert_verdicts(const struct mock *m, size_t from, size_t to, int expected)
{
	for (size_t i = from; i < to; i++) {
		if (verdict(m, i) != expected)
			print_error("message %zu: %s\n", i,
				    m->c.batch.items[i]->reason ? m->c.batch.items[i]->reason : "");
		assert_int_equal(verdict(m, i), expected);
	}
}

int mock_publish(struct mock *m, struct outbox_transport *transport, outbox_time within,
		 struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();

	return transport->ops->publish(transport, &m->c.batch, clock->mono(clock) + within, err);
}
