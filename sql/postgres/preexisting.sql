-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: what was there before this script. The script recreates every function and view with CREATE OR
-- REPLACE, which keeps their rights; rights.sql asks which of them, and of the tables, are new.

DO $do$
BEGIN
	PERFORM set_config('outbox.known', (SELECT coalesce(array_agg(o.oid), '{}')::text FROM (
			SELECT oid FROM pg_proc WHERE pronamespace = to_regnamespace(quote_ident(current_schema()))
			UNION ALL
			SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'v')) o), true),
		set_config('outbox.first', (to_regclass(quote_ident(current_schema()) || '.outbox_meta') IS NULL)::text, true);
END $do$;
