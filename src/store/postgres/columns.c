/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "store/postgres/db.h"

#include <string.h>

static int64_t get_int(const char *data, int size)
{
	uint64_t value = 0;

	for (int i = 0; i < size; i++)
		value = value << 8 | (unsigned char)data[i];
	/* the sign of the shorter ones */
	if (size == 2)
		return (int16_t)value;
	return size == 4 ? (int32_t)value : (int64_t)value;
}

int64_t pg_int(const PGresult *result, int row, int column)
{
	if (PQgetisnull(result, row, column))
		return 0;
	return get_int(PQgetvalue(result, row, column), PQgetlength(result, row, column));
}

bool pg_bool(const PGresult *result, int row, int column)
{
	return pg_int(result, row, column) != 0;
}

outbox_time pg_time(const PGresult *result, int row, int column)
{
	int64_t time = pg_int(result, row, column);

	if (PQgetisnull(result, row, column) || time == INT64_MIN)
		return 0;
	return time > OUTBOX_NEVER - PG_EPOCH ? OUTBOX_NEVER : time + PG_EPOCH;
}

const char *pg_peek(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column);
}

int pg_text(const PGresult *result, int row, int column, struct outbox_arena *arena,
	    const char **ret_text, struct outbox_error *err)
{
	char *copy;

	if (PQgetisnull(result, row, column)) {
		*ret_text = NULL;
		return OUTBOX_OK;
	}
	copy = outbox_arena_copy(arena, PQgetvalue(result, row, column),
				 (size_t)PQgetlength(result, row, column));
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_text = copy;
	return OUTBOX_OK;
}

/* Behind the head (see args.c) each element is its length and its bytes. */
size_t pg_ints(const PGresult *result, int row, int column, int64_t *ret_values, size_t max)
{
	const char *data = PQgetvalue(result, row, column);
	int left = PQgetlength(result, row, column) - 20;
	size_t n = 0;

	for (data += 20; left >= 4; n++) {
		int size = (int)get_int(data, 4);

		if (size < 0 || size > 8 || left < 4 + size)
			break;
		if (n < max)
			ret_values[n] = get_int(data + 4, size);
		data += 4 + size;
		left -= 4 + size;
	}
	return n;
}
