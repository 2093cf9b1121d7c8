/* SPDX-License-Identifier: Apache-2.0 */
#include "poller.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEER_BATCH 200
#define DONE 10000 /* rows that were sent before */

struct poller {
	struct each base;
	struct sender sender;
	PGconn *db;
	pthread_t thread;
	struct timespec pause;
	atomic_bool stop;
};

static void send_and_note(struct each *each, const PGresult *rows)
{
	struct poller *p = (struct poller *)each;
	int key = PQfnumber(rows, "key");

	sender_send_rows(&p->sender, rows);
	for (int i = 0; i < PQntuples(rows); i++)
		latency_note(PQgetvalue(rows, i, key));
}

static void *poll_table(void *argument)
{
	struct poller *p = argument;

	while (!atomic_load(&p->stop))
		if (peer_cycle(p->db, &p->base) < PEER_BATCH)
			nanosleep(&p->pause, NULL);
	return NULL;
}

/* librdkafka connects and gets its numbers with the first message, which is not to be late for that. */
static void send_first(struct sender *sender)
{
	char id[40];

	snprintf(id, sizeof(id), "%.0f", now_seconds() * 1e6); /* one that no broker has seen */
	sender->window[0] = (struct plain_message){ .id = id,
						    .type = "bench.message",
						    .key = id,
						    .time = PLAIN_TIME,
						    .body = payload(),
						    .size = strlen(payload()) };
	sender_send(sender, 1);
}

struct poller *poller_start(const struct place *place, const struct broker *broker,
			    double milliseconds)
{
	struct poller *p = calloc(1, sizeof(*p));

	if (!p)
		die("poller", "out of memory");
	p->base.run = send_and_note;
	p->sender = (struct sender){ .ops = broker->ops, .broker = broker->ops->open(broker->url) };
	send_first(&p->sender);
	p->pause = (struct timespec){ .tv_sec = (long)milliseconds / 1000,
				      .tv_nsec = (long)(milliseconds * 1e6) % 1000000000 };
	p->db = pg_open(place->url);
	peer_make_done(p->db, DONE);
	peer_prepare(p->db);
	if (pthread_create(&p->thread, NULL, poll_table, p))
		die("poller", "cannot start a thread");
	return p;
}

void poller_stop(struct poller *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	PQfinish(p->db);
	p->sender.ops->close(p->sender.broker);
	free(p);
}
