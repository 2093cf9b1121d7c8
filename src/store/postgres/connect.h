/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_CONNECT_H
#define STORE_POSTGRES_CONNECT_H

/* From a URL to a connection. */

#include "base/url.h"
#include "store/postgres/db.h"

#define PG_SETTINGS_MAX 48

struct pg_settings {
	struct url url;
	const char *schema; /* NULL: the first of search_path */
	char name[128];     /* the database's, unless given */
	char where[256];
	char *password; /* from a file */
	char *hosts, *ports;
	outbox_time timeout, connect_timeout;
	bool client_clock;
	bool several; /* hosts, to be tried one after the other */
	/* for PQconnectStartParams, NULL-terminated */
	const char *keys[PG_SETTINGS_MAX + 1], *values[PG_SETTINGS_MAX + 1];
	size_t count;
};

/* ECONFIG with the remedy. */
int pg_settings_parse(const char *url_text, struct pg_settings *settings,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
void pg_settings_deinit(struct pg_settings *settings);

/* Connect within the deadline: s->conn. */
int pg_connect(struct pg_store *s, const struct pg_settings *settings,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Why there is no connection, with the remedy; returns the status. */
int pg_connect_error(struct pg_store *s, struct outbox_error *err);

#endif
