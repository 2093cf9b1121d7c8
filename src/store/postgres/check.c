/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/check.h"

#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#include <stdarg.h>
#include <stdio.h>

void check_say(const struct checking *c, enum check_level level, const char *subject,
	       const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->say(c->context, (int)level, subject, text);
}

int check_ask(const struct checking *c, const char *sql, PGresult **ret_rows,
	      struct outbox_error *err)
{
	return pg_call(c->s, PG_READ, sql, ARGS(ARG_TEXT(c->s->schema)), ret_rows, err);
}

int pg_check(struct outbox_store *store,
	     void (*say)(void *context, int level, const char *subject, const char *text),
	     void *context, struct outbox_error *err)
{
	static int (*const checks[])(const struct checking *c, struct outbox_error *err) = {
		check_server, check_rights,     check_log,       check_columns, check_indexes,
		check_plan,   check_partitions, check_positions, check_vacuum,  check_held,
	};
	struct checking c = { pg_of(store), say, context };
	struct outbox_error found = OUTBOX_ERROR_INIT;
	int r = pg_schema_ready(c.s, err);

	for (size_t i = 0; i < ARRAY_SIZE(checks) && r == OUTBOX_OK; i++) {
		r = checks[i](&c, &found);
		if (r == OUTBOX_EAUTH) {
			/* what a role may not look at does not end the examination */
			check_say(&c, NOTE, "not checked", "%s", found.message);
			r = OUTBOX_OK;
		} else if (r != OUTBOX_OK) {
			return outbox_fail_native(err, r, found.native, "%s", found.message);
		}
	}
	return r;
}
