/* SPDX-License-Identifier: Apache-2.0 */

/*
 * drop: every object that our own script creates goes, by its kind and name, so that an application's own
 * outbox_something stays, and so does whatever hangs on ours: then the drop is refused and names it. Tables
 * need functions (their defaults) and functions need tables (their parameters): so it is tried round by
 * round, until nothing is left or a round gets nowhere.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#include <string.h>

static const char drop_sql[] =
	"\there oid := (SELECT oid FROM pg_namespace WHERE nspname = current_schema());\n"
	"\tlost integer;\n"
	"\tleft_over integer := 0;\n"
	"\twhy text;\n"
	"BEGIN\n"
	"\tLOOP\n"
	"\t\tlost := 0;\n"
	"\t\tleft_over := 0;\n"
	"\t\tFOR kind, name IN\n"
	"\t\t\tSELECT o.kind, coalesce(c.oid::regclass::text, p.oid::regprocedure::text, t.oid::regtype::text)\n"
	"\t\t\tFROM (SELECT DISTINCT * FROM unnest(kinds, names)) o(kind, name)\n"
	"\t\t\tLEFT JOIN pg_class c ON c.relname = o.name AND c.relnamespace = here\n"
	"\t\t\t\tAND (o.kind = 'TABLE' AND c.relkind IN ('r', 'p') OR o.kind = 'VIEW' AND c.relkind = 'v')\n"
	"\t\t\tLEFT JOIN pg_proc p ON p.proname = o.name AND p.pronamespace = here\n"
	"\t\t\t\tAND o.kind = 'FUNCTION'\n"
	"\t\t\tLEFT JOIN pg_type t ON t.typname = o.name AND t.typnamespace = here\n"
	"\t\t\t\tAND o.kind = 'TYPE'\n"
	"\t\t\tWHERE c.oid IS NOT NULL OR p.oid IS NOT NULL OR t.oid IS NOT NULL\n"
	"\t\tLOOP\n"
	"\t\t\tBEGIN\n"
	"\t\t\t\tEXECUTE 'DROP ' || kind || ' ' || name;\n"
	"\t\t\t\tlost := lost + 1;\n"
	"\t\t\tEXCEPTION WHEN dependent_objects_still_exist THEN\n"
	"\t\t\t\tleft_over := left_over + 1;\n"
	"\t\t\t\tGET STACKED DIAGNOSTICS why = PG_EXCEPTION_DETAIL;\n"
	"\t\t\tEND;\n"
	"\t\tEND LOOP;\n"
	"\t\tEXIT WHEN left_over = 0;\n"
	"\t\tIF lost = 0 THEN\n"
	"\t\t\tRAISE EXCEPTION 'something of yours depends on the outbox: %; drop that first',\n"
	"\t\t\t\tsplit_part(why, E'\\n', 1) USING ERRCODE = 'OB002';\n"
	"\t\tEND IF;\n"
	"\tEND LOOP;\n"
	"END $outbox$;\n";

/* The kind (0) or the name (1) of everything that the script creates, as an array. */
static void list_created(struct buf *out, const char *script, int which)
{
	static const char *const kinds[] = { "TABLE", "VIEW", "FUNCTION", "TYPE" };
	const char *comma = "";

	for (const char *at = script; (at = strstr(at, "CREATE ")) != NULL;) {
		at += strlen("CREATE ");
		if (strncmp(at, "OR REPLACE ", strlen("OR REPLACE ")) == 0)
			at += strlen("OR REPLACE ");
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			size_t length = strlen(kinds[i]);
			const char *name = at + length + 1;

			if (strncmp(at, kinds[i], length) != 0 || strncmp(name, "outbox_", 7) != 0)
				continue;
			buf_printf(out, "%s'%.*s'", comma,
				   (int)(which ? strcspn(name, " (\n;") : length),
				   which ? name : kinds[i]);
			comma = ", ";
		}
	}
}

void pg_drop_script(struct buf *out, const char *quoted)
{
	_cleanup_(buf_deinit) struct buf made = BUF_INIT(PG_SCRIPT_MAX);

	pg_schema_script(&made, quoted, 0, NULL);
	buf_text(out, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
		      "SET LOCAL client_min_messages = warning;\n");
	if (quoted)
		buf_printf(out, "SET LOCAL search_path = %s, pg_temp;\n", quoted);
	buf_text(out, "DO $outbox$\n"
		      "DECLARE\n"
		      "\tkind text;\n"
		      "\tname text;\n"
		      "\tkinds text[] := ARRAY[");
	list_created(out, buf_str(&made), 0);
	buf_text(out, "];\n\tnames text[] := ARRAY[");
	list_created(out, buf_str(&made), 1);
	buf_text(out, "];\n");
	buf_text(out, drop_sql);
	buf_text(out, "COMMIT;\n");
	out->failed |= made.failed;
}

int pg_drop(struct outbox_store *store, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf drop = BUF_INIT(PG_SCRIPT_MAX);
	struct pg_store *s = pg_of(store);
	struct outbox_store_info info;
	int r;

	/* where it is */
	r = pg_info(store, &info, err);
	if (r != OUTBOX_OK || !info.schema_version)
		return r;
	pg_drop_script(&drop, s->quoted);
	if (drop.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	s->ready = false;
	return pg_script(s, buf_str(&drop), err);
}

int pg_truncate(struct outbox_store *store, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE, "SELECT @outbox_truncate($1, $2)",
		     ARGS(pg_new_token(s), pg_now(s)), NULL, err);
}
