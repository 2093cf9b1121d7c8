-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: routes by headers.
--
-- outbox_route.headers are LIKE patterns of name=value, the names in lower case. For every name a header of the message
-- must fit one of its patterns. NULL means a target that does not ask for headers, which is read without any of this.

-- Whatever a row has for headers, the answer is no error, which would stop the lane: json takes texts that nobody can
-- read, such as half a surrogate pair.
CREATE OR REPLACE FUNCTION outbox_headers_take(p_wanted text[], p_headers text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE COST 1000 AS $$
BEGIN
	RETURN (SELECT count(DISTINCT split_part(w, '=', 1)) FILTER (WHERE lower(h.key COLLATE "C") || '=' || h.value LIKE w)
			= count(DISTINCT split_part(w, '=', 1))
		FROM unnest(p_wanted) w LEFT JOIN json_each_text(p_headers::json) h ON true);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
	RETURN false;
END $$;
