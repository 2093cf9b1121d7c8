/* SPDX-License-Identifier: Apache-2.0 */

#include "store/postgres/values.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	unsigned oid,
		element; /* of the system catalogue, where they never change; element: of an array */
	size_t number;   /* how many bytes a number of it has; 0: it is none */
} types[] = {
	[PG_TEXT] = { .oid = 25 },
	[PG_INT8] = { .oid = 20, .number = 8 },
	[PG_INT4] = { .oid = 23, .number = 4 },
	[PG_BOOL] = { .oid = 16, .number = 1 },
	[PG_TIME] = { .oid = 1184, .number = 8 },
	[PG_BYTES] = { .oid = 17 },
	[PG_TEXTS] = { .oid = 1009, .element = 25 },
	[PG_INT8S] = { .oid = 1016, .element = 20, .number = 8 },
	[PG_INT4S] = { .oid = 1007, .element = 23, .number = 4 },
	[PG_BOOLS] = { .oid = 1000, .element = 16, .number = 1 },
	[PG_TIMES] = { .oid = 1185, .element = 1184, .number = 8 },
	[PG_BYTESS] = { .oid = 1001, .element = 17 },
	[PG_SPANS] = { .oid = 1009, .element = 25 },
};

static char *put_int(char *out, uint64_t value, size_t bytes)
{
	for (size_t i = bytes; i > 0; i--) {
		out[i - 1] = (char)(value & 0xff);
		value >>= 8;
	}
	return out + bytes;
}

static uint64_t to_wire_time(int64_t time)
{
	return (uint64_t)(time - PG_EPOCH);
}

/* Element i of an array: its bytes, or NULL. Numbers are written to out. */
static const void *element(const struct pg_arg *arg, size_t i, char out[8], size_t *ret_size)
{
	const int64_t *numbers = arg->pointer;
	const char *const *texts = arg->pointer;
	const struct pg_bytes *bytes = arg->pointer;

	*ret_size = types[arg->type].number;
	switch (arg->type) {
	case PG_TEXTS:
		*ret_size = texts[i] ? strlen(texts[i]) : 0;
		return texts[i];
	case PG_BYTESS:
	case PG_SPANS:
		*ret_size = bytes[i].size;
		return bytes[i].data;
	case PG_TIMES:
		put_int(out, to_wire_time(numbers[i]), 8);
		return numbers[i] ? out : NULL;
	case PG_INT4S:
		put_int(out, (uint64_t)((const int32_t *)arg->pointer)[i], 4);
		return out;
	case PG_BOOLS:
		put_int(out, ((const bool *)arg->pointer)[i], 1);
		return out;
	default:
		put_int(out, (uint64_t)numbers[i], 8);
		return out;
	}
}

/* An array on the wire: dimensions, has-NULLs, element type, length and lower bound, then the elements. */
#define ARRAY_HEAD 20

static size_t wire_size(const struct pg_arg *arg)
{
	size_t size, total = ARRAY_HEAD;
	char scratch[8];

	if (!types[arg->type].element)
		return types[arg->type].number;
	for (size_t i = 0; i < arg->count; i++) {
		const void *data = element(arg, i, scratch, &size);

		total += 4 + (data ? size : 0);
	}
	return total;
}

static char *put_array(char *out, const struct pg_arg *arg)
{
	char scratch[8];
	size_t size;

	out = put_int(out, arg->count ? 1 : 0, 4);
	out = put_int(out, 1, 4);
	out = put_int(out, types[arg->type].element, 4);
	if (!arg->count)
		return out;
	out = put_int(out, arg->count, 4);
	out = put_int(out, 1, 4);
	for (size_t i = 0; i < arg->count; i++) {
		const void *data = element(arg, i, scratch, &size);

		if (!data) {
			out = put_int(out, UINT32_MAX, 4);
			continue;
		}
		out = put_int(out, size, 4);
		memcpy(out, data, size);
		out += size;
	}
	return out;
}

static bool is_null(const struct pg_arg *arg)
{
	switch (arg->type) {
	case PG_TIME:
		return !arg->number;
	case PG_TEXT:
	case PG_BYTES:
		return !arg->pointer;
	default:
		return types[arg->type].element && arg->count && !arg->pointer;
	}
}

static char *put(struct pg_params *params, int i, const struct pg_arg *arg, char *out)
{
	char *start = out;

	params->types[i] = types[arg->type].oid;
	params->formats[i] = 1;
	if (is_null(arg))
		return out;
	if (arg->type == PG_TEXT || arg->type == PG_BYTES) {
		params->values[i] = arg->pointer;
		params->lengths[i] = (int)(arg->type == PG_TEXT ? strlen(arg->pointer) : arg->count);
		return out;
	}
	if (types[arg->type].element)
		out = put_array(out, arg);
	else if (arg->type == PG_TIME)
		out = put_int(out, to_wire_time(arg->number), 8);
	else
		out = put_int(out, (uint64_t)arg->number, types[arg->type].number);
	params->values[i] = start;
	params->lengths[i] = (int)(out - start);
	return out;
}

bool pg_params_init(struct pg_params *params, const struct pg_args *args)
{
	size_t size = 1;
	char *out;

	memset(params, 0, sizeof(*params));
	if (!args)
		return true;
	for (size_t i = 0; i < args->count; i++)
		size += is_null(&args->values[i]) ? 0 : wire_size(&args->values[i]);
	params->buffer = malloc(size);
	if (!params->buffer)
		return false;
	out = params->buffer;
	for (size_t i = 0; i < args->count; i++)
		out = put(params, (int)i, &args->values[i], out);
	params->count = (int)args->count;
	return true;
}

void pg_params_deinit(struct pg_params *params)
{
	free(params->buffer);
}

/* ---- columns of a result ----------------------------------------------------------------------- */

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

/* Behind the head each element is its length and its bytes. */
size_t pg_ints(const PGresult *result, int row, int column, int64_t *ret_values, size_t max)
{
	const char *data = PQgetvalue(result, row, column);
	int left = PQgetlength(result, row, column) - ARRAY_HEAD;
	size_t n = 0;

	for (data += ARRAY_HEAD; left >= 4; n++) {
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
