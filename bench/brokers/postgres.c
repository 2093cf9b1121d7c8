/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include <string.h>

struct rows_sender {
	struct each base;
	struct sender *sender;
};

void sender_send_rows(struct sender *sender, const PGresult *rows)
{
	int n = PQntuples(rows), id = PQfnumber(rows, "id_text"), type = PQfnumber(rows, "type"),
	    key = PQfnumber(rows, "key"), body = PQfnumber(rows, "payload");

	if (id < 0)
		id = PQfnumber(rows, "id");
	for (int i = 0; i < n; i++)
		sender->window[i] =
			(struct plain_message){ .id = PQgetvalue(rows, i, id),
						.type = PQgetvalue(rows, i, type),
						.key = PQgetvalue(rows, i, key),
						.time = PLAIN_TIME,
						.body = PQgetvalue(rows, i, body),
						.size = (size_t)PQgetlength(rows, i, body) };
	sender_send(sender, (size_t)n);
}

static void send_rows(struct each *each, const PGresult *rows)
{
	sender_send_rows(((struct rows_sender *)each)->sender, rows);
}

static double read_postgres(const struct origin *origin, struct sender *sender, int messages)
{
	struct rows_sender each = { .base.run = send_rows, .sender = sender };

	return raw_pass(origin->place, false, BATCH, messages, sender ? &each.base : NULL).rate;
}

void classic_pass(const struct origin *origin, struct sender *sender, int messages)
{
	struct rows_sender each = { .base.run = send_rows, .sender = sender };

	skip_locked_pass(origin->place, messages, &each.base);
}

static void tidy_postgres(const struct origin *origin)
{
	(void)origin; /* the server does by itself what is to be done */
}

struct origin origin_at(struct place *place)
{
	return (struct origin){ .name = "PostgreSQL",
				.url = place->url,
				.place = place,
				.read = read_postgres,
				.tidy = tidy_postgres };
}

struct origin origin_postgres(struct place *place, const struct bench *bench, const char *name,
			      int messages)
{
	place_make(place, bench, name, 1);
	place_fill(place, messages);
	return origin_at(place);
}
