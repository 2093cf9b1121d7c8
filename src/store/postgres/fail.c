/* SPDX-License-Identifier: Apache-2.0 */

/* What the server says, as a status: a decision, not a diagnosis. */

#include "base/cleanup.h"
#include "base/text.h"
#include "store/postgres/db.h"

#include <string.h>

/* The longest prefix that fits decides. Class OB is ours, raised in sql/postgres. */
static const struct {
	const char *sqlstate;
	int status;
} statuses[] = {
	{ "OB001", OUTBOX_ENOTFOUND },
	{ "OB002", OUTBOX_ECONFLICT },
	{ "OB003", OUTBOX_EINVAL },
	{ "OB004", OUTBOX_EPROTO },
	{ "OB005", OUTBOX_EFENCED },
	{ "OB006", OUTBOX_ECONFIG },
	{ "08", OUTBOX_ECONN },
	{ "0A000", OUTBOX_ENOTSUP },
	{ "22", OUTBOX_EINVAL },
	{ "23", OUTBOX_EINVAL },
	{ "25006", OUTBOX_ECONN }, /* read only: this server is a standby now */
	{ "28", OUTBOX_EAUTH },
	{ "3D000", OUTBOX_ENOTFOUND }, /* no such database */
	{ "3F000", OUTBOX_ESCHEMA },   /* no such schema */
	{ "40", OUTBOX_EBUSY },        /* serialization failure, deadlock */
	{ "42501", OUTBOX_EAUTH },
	{ "42P01", OUTBOX_ESCHEMA }, /* no such table, function, column, type */
	{ "42883", OUTBOX_ESCHEMA },
	{ "42703", OUTBOX_ESCHEMA },
	{ "42704", OUTBOX_ESCHEMA },
	{ "53100", OUTBOX_EFULL },
	{ "53200", OUTBOX_EBUSY },
	{ "53300", OUTBOX_ECONN }, /* too many connections */
	{ "53", OUTBOX_EBUSY },
	{ "55006", OUTBOX_EBUSY },
	{ "55P03", OUTBOX_EBUSY }, /* a lock was not to be had in time */
	{ "57014", OUTBOX_EBUSY },
	{ "57", OUTBOX_ECONN }, /* shutdown, crash, not ready */
	{ "58", OUTBOX_EFULL },
};

static int status_of(const char *sqlstate, const char *constraint)
{
	size_t best = 0;
	int status = OUTBOX_EPROTO;

	/* The receipt that we wanted to append is there: somebody else's. */
	if (strcmp(sqlstate, "23505") == 0 && constraint &&
	    strcmp(constraint, "outbox_receipt_pkey") == 0)
		return OUTBOX_EFENCED;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		size_t length = strlen(statuses[i].sqlstate);

		if (length > best && strncmp(sqlstate, statuses[i].sqlstate, length) == 0) {
			best = length;
			status = statuses[i].status;
		}
	}
	return status;
}

int pg_status(const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (!sqlstate)
		return OUTBOX_ECONN;
	return status_of(sqlstate, PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME));
}

/* A SQLSTATE as a number in base 36, so that it survives in err->native. */
static int native_of(const char *sqlstate)
{
	int native = 0;

	for (; *sqlstate; sqlstate++)
		native = native * 36 +
			 (*sqlstate <= '9' ? *sqlstate - '0' : (*sqlstate & ~0x20) - 'A' + 10);
	return native;
}

void pg_first_line(const char *text, char *out, size_t size)
{
	size_t length = strcspn(text, "\n");

	length = utf8_cut(text, length, size - 1);
	memcpy(out, text, length);
	out[length] = '\0';
}

static int connection_failed(struct pg_store *s, struct outbox_error *err)
{
	char line[400];

	s->broken = true;
	pg_first_line(PQerrorMessage(s->conn), line, sizeof(line));
	return outbox_fail(err, OUTBOX_ECONN, "%s: %s", s->where,
			   line[0] ? line : "the connection is gone");
}

int pg_fail_result(const char *where, const PGresult *result, struct outbox_error *err)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	int status = pg_status(result);
	char line[400];

	pg_first_line(text ? text : "", line, sizeof(line));
	/* Our own errors are whole sentences for people already. */
	if (strncmp(sqlstate, "OB", 2) == 0)
		return outbox_fail_native(err, status, native_of(sqlstate), "%s", line);
	return outbox_fail_native(err, status, native_of(sqlstate), "%s: %s (SQLSTATE %s)", where,
				  line, sqlstate);
}

/* Who lacks what, and what to do about it. The server names the object, not the role. */
static int rights_missing(const struct pg_store *s, const PGresult *result, struct outbox_error *err)
{
	static const struct {
		const char *words, *remedy;
	} remedies[] = {
		{ "for schema", "GRANT USAGE ON SCHEMA to it, and CREATE for outbox init" },
		{ "for database", "GRANT CREATE ON DATABASE to it, or make the schema for it" },
		{ "must be owner", "let the role that owns the outbox's tables do it" },
		{ "row-level security", "ALTER ROLE it BYPASSRLS, or put no policy on that table" },
		{ "", "the owner grants them with sql/postgres/roles.sql, or does it itself" },
	};
	char line[300];
	size_t i = 0;

	pg_first_line(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY), line, sizeof(line));
	while (!strstr(line, remedies[i].words))
		i++;
	return outbox_fail_native(
		err, OUTBOX_EAUTH, native_of(PQresultErrorField(result, PG_DIAG_SQLSTATE)),
		"%s: %s: role \"%.63s\" lacks rights; %s (docs/stores/postgres-roles.md)", s->where,
		line, PQuser(s->conn) ? PQuser(s->conn) : "?", remedies[i].remedy);
}

int pg_fail(struct pg_store *s, const PGresult *result, struct outbox_error *err)
{
	int r;

	if (!result || !PQresultErrorField(result, PG_DIAG_SQLSTATE))
		return connection_failed(s, err);
	if (strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "42501") == 0)
		return rights_missing(s, result, err);
	r = pg_fail_result(s->where, result, err);
	if (r == OUTBOX_ECONN)
		s->broken = true;
	return r;
}
