/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server's refusal means, in one table: the word with which the error begins, something that its text
 * contains, and what it is about. The first row that fits holds; what fits none is this message's own trouble.
 * A refused command had no effect. docs/transports/redis.md shows the same table.
 */

#include "transport/redis/driver.h"

#include "base/text.h"

#include <string.h>

const struct redis_row redis_rows[] = {
	{ "OOM", NULL, REDIS_FULL, "; raise maxmemory or remove data" },
	{ "MISCONF", NULL, REDIS_FULL, "; see the server's log and its disk" },
	{ "ERR", "max number of clients", REDIS_FULL, "; raise maxclients" },
	{ "READONLY", NULL, REDIS_AWAY, "; name the primary in the URL" },
	{ "LOADING", NULL, REDIS_AWAY, "" },
	{ "MASTERDOWN", NULL, REDIS_AWAY, "; name the primary in the URL" },
	{ "CLUSTERDOWN", NULL, REDIS_AWAY, "" },
	{ "NOREPLICAS", NULL, REDIS_AWAY, "; see min-replicas-to-write" },
	{ "TRYAGAIN", NULL, REDIS_AWAY, "" },
	{ "ASK", NULL, REDIS_AWAY, "" },
	{ "BUSY", NULL, REDIS_AWAY, "" },
	{ "NOAUTH", NULL, REDIS_LOGIN, "; give the password in the URL or in password_file" },
	{ "WRONGPASS", NULL, REDIS_LOGIN, "; correct user and password" },
	{ "DENIED", NULL, REDIS_LOGIN, "" },
	{ "ERR", "invalid password", REDIS_LOGIN, "; correct the password" },
	{ "ERR", "AUTH", REDIS_LOGIN, "; leave the password out, or set one on the server" },
	{ "NOPERM", "command", REDIS_LOGIN, "; let the user run XADD (and WAIT)" },
	{ "NOPERM", NULL, REDIS_ROUTE, "; let the user write to this stream" },
	{ "MOVED", NULL, REDIS_ROUTE, "; name the node that holds the stream, or use one stream" },
	{ "WRONGTYPE", NULL, REDIS_ROUTE, "; choose another stream, or remove this key" },
	{ "ERR", "Protocol error", REDIS_MESSAGE, "; see proto-max-bulk-len" },
	{ "ERR", "unknown command", REDIS_WRONG, "; streams need Redis 5, create=no Redis 6.2" },
	{ "ERR", "syntax error", REDIS_WRONG, "; streams need Redis 5, create=no Redis 6.2" },
	{ "ERR", "DB index", REDIS_WRONG, "; choose another database in the URL's path" },
	{ "ERR", "SELECT is not allowed", REDIS_WRONG, "; leave the database out of the URL" },
	{ NULL, NULL, REDIS_AGAIN, "" },
};

static bool fits(const struct redis_row *row, const char *text)
{
	size_t length = strlen(row->word);

	return strncmp(text, row->word, length) == 0 && (!text[length] || text[length] == ' ') &&
	       (!row->contains || strstr(text, row->contains));
}

enum redis_refusal redis_refusal_of(const char *text, const char **ret_remedy)
{
	const struct redis_row *row = redis_rows;

	while (row->word && !fits(row, text))
		row++;
	*ret_remedy = row->remedy;
	return row->refusal;
}

int redis_refused(const struct redis_wire *wire, const char *text, struct outbox_error *err)
{
	static const int statuses[] = {
		[REDIS_AGAIN] = OUTBOX_ECONN,   [REDIS_MESSAGE] = OUTBOX_ECONN,
		[REDIS_ROUTE] = OUTBOX_EAUTH,   [REDIS_FULL] = OUTBOX_EFULL,
		[REDIS_AWAY] = OUTBOX_ECONN,    [REDIS_LOGIN] = OUTBOX_EAUTH,
		[REDIS_WRONG] = OUTBOX_ECONFIG,
	};
	const char *remedy;
	enum redis_refusal refusal = redis_refusal_of(text, &remedy);
	char shown[200];

	return outbox_fail(err, statuses[refusal], "%s: %s%s", wire->shown,
			   text_shown(shown, sizeof(shown), text), remedy);
}
