/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why there is no connection, and what to do about it. libpq tells these things only in words, so the
 * words decide. What it says is kept, without the address, which we tell ourselves; never a password.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/connect.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *words;
	int status;
	const char *remedy; /* NULL: the server's own words are enough */
} known_errors[] = {
	{ "does not match host name", OUTBOX_EAUTH, "write the host as the certificate names it" },
	{ "root certificate file", OUTBOX_EAUTH,
	  "sslrootcert=FILE in the URL names the CA's certificate" },
	{ "certificate", OUTBOX_EAUTH,
	  "the server's certificate is not signed by a CA that is known here; sslrootcert=FILE in the URL names "
	  "the CA's" },
	{ "Connection refused", OUTBOX_ECONN,
	  "nothing listens there: is the server running, are host and port right?" },
	{ "No such file or directory", OUTBOX_ECONN,
	  "no server has its socket there: is it running, is the folder right? To connect by TCP, put a host after //" },
	{ "could not translate host name", OUTBOX_ECONN, "is the host's name right?" },
	{ "password authentication failed", OUTBOX_EAUTH,
	  "user or password is wrong; the password comes from the URL, its option password_file=PATH, PGPASSWORD "
	  "or ~/.pgpass" },
	{ "no password supplied", OUTBOX_EAUTH,
	  "a password is required: in the URL, its option password_file=PATH, PGPASSWORD or ~/.pgpass" },
	{ "pg_hba.conf", OUTBOX_EAUTH,
	  "the server's pg_hba.conf does not allow this user from this machine; add a line for it there" },
	{ "authentication failed", OUTBOX_EAUTH,
	  "the server's pg_hba.conf requires another login method for this user" },
	{ "role \"", OUTBOX_EAUTH,
	  "name the user in the URL, postgres://USER@..., or CREATE ROLE it" },
	{ "permission denied for database", OUTBOX_EAUTH, "GRANT CONNECT ON DATABASE to this role" },
	{ "database \"", OUTBOX_ENOTFOUND,
	  "create it first (createdb): outbox init creates tables, not databases" },
	{ "does not support SSL", OUTBOX_EAUTH,
	  "hosts other than this machine must use TLS: switch ssl on at the server, or add sslmode=disable "
	  "to the URL if the network is trusted" },
	{ "read-only", OUTBOX_ECONN,
	  "this is a standby, or the role's default_transaction_read_only is on: name the primary, or all of them: "
	  "postgres://HOST1,HOST2/DATABASE" },
	{ "hot standby", OUTBOX_ECONN,
	  "this is a standby, and messages are settled on the primary: name that one, or all of them: "
	  "postgres://HOST1,HOST2/DATABASE" },
	{ "too many clients", OUTBOX_ECONN, "raise max_connections, or use a pooler" },
	{ "connection slots", OUTBOX_ECONN, "raise max_connections, or use a pooler" },
	{ "invalid ", OUTBOX_ECONFIG, "repair the store's URL" },
};

/* libpq's text may have several lines, one a host: one is enough, without what we say ourselves. */
static void reason_of(const char *text, char *out, size_t size)
{
	const char *failed = strstr(text, " failed: ");

	if (failed && strncmp(text, "connection to server ", 21) == 0)
		text = failed + strlen(" failed: ");
	if (strncmp(text, "FATAL:  ", 8) == 0)
		text += 8;
	pg_first_line(text, out, size);
}

int pg_connect_error(struct pg_store *s, struct outbox_error *err)
{
	const char *text = PQerrorMessage(s->conn);
	char reason[200];

	s->broken = true;
	reason_of(text, reason, sizeof(reason));
	for (size_t i = 0; i < ARRAY_SIZE(known_errors); i++) {
		if (strstr(text, known_errors[i].words))
			return outbox_fail(err, known_errors[i].status, "%s: %s; %s", s->where,
					   reason, known_errors[i].remedy);
	}
	return outbox_fail(err, OUTBOX_ECONN, "%s: %s", s->where,
			   reason[0] ? reason : "the connection is gone");
}
