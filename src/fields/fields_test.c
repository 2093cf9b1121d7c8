/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/fields.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/rate.h"
#include "base/unit_test.h"

#include <outbox/arena.h>
#include <outbox/clock.h>

#include <string.h>

static const char *const words[] = { NULL, "red", "blue", NULL };

struct values {
	const char *name, *word;
	outbox_time time, ago;
	int number;
	int64_t count;
	size_t size;
	bool flag;
	struct field_texts ids;
	int64_t tail;
};

static json_t *make_absent(const void *row)
{
	(void)row;
	return NULL;
}

static const struct field fields[] = {
	FIELD(struct values, name, FIELD_TEXT, FIELD_REQUIRED, "what it is called"),
	{ .name = "word", .type = FIELD_TEXT, .offset = offsetof(struct values, word), .words = words },
	FIELD(struct values, time, FIELD_TIME, 0, NULL),
	FIELD(struct values, ago, FIELD_AGO, 0, NULL),
	{ .name = "number",
	  .type = FIELD_INT,
	  .offset = offsetof(struct values, number),
	  .min = 1,
	  .max = 10 },
	FIELD(struct values, count, FIELD_NUMBER, 0, NULL),
	FIELD(struct values, size, FIELD_COUNT, 0, NULL),
	FIELD(struct values, flag, FIELD_BOOL, 0, NULL),
	{ .name = "ids",
	  .type = FIELD_TEXTS,
	  .offset = offsetof(struct values, ids),
	  .min = 1,
	  .max = 2 },
};
static const struct record in = RECORD("In", fields);

/* Read text; the error's message, or "" when it was taken. */
static const char *read_values(const char *text, struct values *values)
{
	static struct outbox_error err;
	static struct outbox_arena *arena;
	json_auto_t *object = json_loads(text, 0, NULL);

	arena = outbox_arena_free(arena);
	arena = outbox_arena_new(100000);
	assert_non_null(arena);
	assert_non_null(object);
	*values = (struct values){ .tail = 7 };
	err.message[0] = '\0';
	if (fields_read(&in, object, arena, values, &err) == OUTBOX_OK)
		assert_string_equal(err.message, "");
	else
		assert_int_equal(err.status, OUTBOX_EINVAL);
	assert_int_equal(values->tail, 7);
	return err.message;
}

static void test_reads(void **state)
{
	struct values v;

	(void)state;
	assert_string_equal(read_values("{\"name\": \"a\", \"word\": \"blue\", \"number\": 10, "
					"\"count\": 5000000000, \"size\": 3, \"flag\": true, "
					"\"ids\": [\"x\", \"y\"], \"time\": \"2026-11-15T18:00:00Z\"}",
					&v),
			    "");
	assert_string_equal(v.name, "a");
	assert_string_equal(v.word, "blue");
	assert_int_equal(v.number, 10);
	assert_int_equal(v.count, 5000000000);
	assert_int_equal(v.size, 3);
	assert_true(v.flag);
	assert_int_equal(v.ids.count, 2);
	assert_string_equal(v.ids.items[1], "y");
	assert_int_equal(v.time, 1794765600 * OUTBOX_SECONDS);
}

static void test_an_age_lies_behind(void **state)
{
	outbox_time now = outbox_clock_system()->wall(outbox_clock_system());
	struct values v;

	(void)state;
	assert_string_equal(read_values("{\"name\": \"a\", \"ago\": \"7d\"}", &v), "");
	assert_true(v.ago <= now - 7 * OUTBOX_DAYS + OUTBOX_HOURS);
	assert_true(v.ago >= now - 7 * OUTBOX_DAYS - OUTBOX_HOURS);
}

static void test_mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{}", "name is missing: what it is called" },
		{ "{\"name\": null}", "name: \"null\" is not a text" },
		{ "{\"name\": \"\"}", "name: is empty; write a value, or leave it out" },
		{ "{\"name\": 5}", "name: \"5\" is not a text" },
		{ "{\"name\": \"a\", \"nmae\": 1}", "there is no field \"nmae\"; did you mean name?" },
		{ "{\"name\": \"a\", \"zzzzzzzz\": 1}",
		  "there is no field \"zzzzzzzz\"; there are: name, word, time, ago, number, count, size, flag, ids" },
		{ "{\"name\": \"a\", \"word\": \"green\"}",
		  "word: \"green\" is not one of red or blue" },
		{ "{\"name\": \"a\", \"number\": 0}",
		  "number: \"0\" is not a whole number from 1 to 10" },
		{ "{\"name\": \"a\", \"number\": 11}",
		  "number: \"11\" is not a whole number from 1 to 10" },
		{ "{\"name\": \"a\", \"number\": 4294967297}",
		  "number: \"4294967297\" is not a whole number from 1 to 10" },
		{ "{\"name\": \"a\", \"number\": 1.5}",
		  "number: \"1.5\" is not a whole number from 1 to 10" },
		{ "{\"name\": \"a\", \"number\": \"5\"}",
		  "number: \"5\" is not a whole number from 1 to 10" },
		{ "{\"name\": \"a\", \"size\": -1}", "size: \"-1\" is not a whole number" },
		{ "{\"name\": \"a\", \"flag\": 1}", "flag: \"1\" is neither true nor false" },
		{ "{\"name\": \"a\", \"ids\": []}",
		  "ids: \"a list of 0\" is not a list of 1 to 2 texts" },
		{ "{\"name\": \"a\", \"ids\": [\"1\", \"2\", \"3\"]}",
		  "ids: \"a list of 3\" is not a list of 1 to 2 texts" },
		{ "{\"name\": \"a\", \"ids\": [1]}", "ids: \"1\" is not a list of 1 to 2 texts" },
		{ "{\"name\": \"a\", \"ids\": \"x\"}", "ids: \"x\" is not a list of 1 to 2 texts" },
		{ "{\"name\": \"a\", \"time\": \"tomorrow\"}",
		  "time: \"tomorrow\" is not a time; write +5m or 2026-11-15T18:00:00Z" },
		{ "{\"name\": \"a\", \"ago\": \"2999-01-01T00:00:00Z\"}",
		  "ago: is in the future; write an age like 7d" },
		{ "{\"name\": \"a\", \"word\": \"\\u001b[2J\"}",
		  "word: \"\\x1b[2J\" is not one of red or blue" },
	};
	struct values v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(read_values(cases[i].text, &v), cases[i].message);
}

static void test_query_texts(void **state)
{
	struct outbox_arena *arena = outbox_arena_new(1000);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct values v = { 0 };

	(void)state;
	assert_non_null(arena);
	assert_int_equal(fields_read_text(&fields[4], "10", arena, &v, &err), OUTBOX_OK);
	assert_int_equal(v.number, 10);
	assert_int_equal(fields_read_text(&fields[4], "1x", arena, &v, &err), OUTBOX_EINVAL);
	assert_string_equal(err.message, "number: \"1x\" is not a whole number from 1 to 10");
	assert_int_equal(fields_read_text(&fields[4], "-1", arena, &v, &err), OUTBOX_EINVAL);
	assert_int_equal(fields_read_text(&fields[7], "true", arena, &v, &err), OUTBOX_OK);
	assert_true(v.flag);
	assert_int_equal(fields_read_text(&fields[7], "1", arena, &v, &err), OUTBOX_EINVAL);
	assert_string_equal(err.message, "flag: \"1\" is neither true nor false");
	outbox_arena_free(arena);
}

/* Whatever is not a number, a bool or a list comes as the text that the file and the options take, too. */
struct typed {
	int colour, level;
	outbox_time wait, keep;
	int64_t bytes;
	struct rate rate;
	double per_second, factor;
	struct field_start start;
	const struct outbox_policy *policy;
	struct field_durations delays;
	const char *url, *secret;
};

static const char *const levels[] = { "low", "high", NULL }; /* 0 is a value, too */

static const struct field typed_fields[] = {
	FIELD_ONE_OF(struct typed, colour, words, FIELD_NULL, NULL),
	FIELD_ONE_OF(struct typed, level, levels, 0, NULL),
	{ .name = "wait",
	  .type = FIELD_DURATION,
	  .offset = offsetof(struct typed, wait),
	  .min = OUTBOX_SECONDS,
	  .max = OUTBOX_HOURS },
	FIELD(struct typed, keep, FIELD_KEEP, 0, NULL),
	FIELD(struct typed, bytes, FIELD_BYTES, 0, NULL),
	FIELD(struct typed, rate, FIELD_RATE, 0, NULL),
	FIELD(struct typed, per_second, FIELD_PER_SECOND, 0, NULL),
	{ .name = "factor",
	  .type = FIELD_FACTOR,
	  .offset = offsetof(struct typed, factor),
	  .min = 1,
	  .max = 100 },
	FIELD(struct typed, start, FIELD_START, 0, NULL),
	FIELD(struct typed, policy, FIELD_POLICY, 0, NULL),
	FIELD(struct typed, delays, FIELD_DURATIONS, 0, NULL),
	FIELD(struct typed, url, FIELD_URL, 0, NULL),
	FIELD(struct typed, secret, FIELD_SECRET, 0, NULL),
};

static void test_texts_go_there_and_back(void **state)
{
	static const char *const texts[ARRAY_SIZE(typed_fields)][4] = {
		{ "blue", "blue", "green", "\"green\" is not one of red or blue" },
		{ "low", "low", "lwo", "\"lwo\" is not one of low or high; did you mean low?" },
		{ "90s", "1m30s", "61m", "must be between 1s and 1h" },
		{ "forever", "forever", "never",
		  "\"never\" is not a duration; write 500ms, 5s, 1m30s, 7d or forever" },
		{ "8192K", "8MiB", "8MB", "\"8MB\" is not a size; write 65536, 64KiB or 8MiB" },
		{ "100/h", "100/h", "5", "\"5\" is not a rate; write 50/s, 3000/min or \"none\"" },
		{ "30/min", "", "none", "\"none\" is not a rate; write 50/s or 3000/min" },
		{ "1.5", "1.5", "inf", "\"inf\" is not a number from 1 to 100" },
		{ "now", "now", "+5m",
		  "\"+5m\" is neither oldest, now nor a time; write a time like 2026-11-15T18:00:00Z" },
		{ "protean", "protean", "protaen",
		  "\"protaen\" is not one of default, hermodr, blueprint, protean, opinionated or webhooks; did "
		  "you mean protean?" },
		{ "5s", "5s", "0s", "must be above 0; write a duration like 5s" },
		{ "amqp://u:secret@mq/", "amqp://u:***@mq/", "//u:secret@mq",
		  "\"//u:***@mq\" is not a URL; write a scheme and a colon first, like sqlite:app.db or "
		  "amqp://mq/" },
		{ "word", "***", "", "is empty; write a value, or leave it out" },
	};
	struct field_context context = { 0 };
	struct typed v = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(typed_fields); i++) {
		void *value = (char *)&v + typed_fields[i].offset;
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct buf text = BUF_INIT(200);

		assert_int_equal(field_parse(&typed_fields[i], texts[i][0], &context, value, &err),
				 OUTBOX_OK);
		field_format(&typed_fields[i], value, &text);
		assert_string_equal(buf_str(&text), texts[i][1]);
		assert_int_equal(field_parse(&typed_fields[i], texts[i][2], &context, value, &err),
				 OUTBOX_EINVAL);
		assert_string_equal(err.message, texts[i][3]);
		buf_deinit(&text);
	}
	assert_int_equal(v.colour, 2);
	assert_int_equal(v.level, 0);
	assert_true(v.per_second == 0.5);
}

/* ---- out ----------------------------------------------------------------------------------- */

struct row {
	const char *text;
	char chars[8];
	int64_t seq, count, thousandths;
	outbox_time time, seconds;
	bool flag;
};

static const struct field base_fields[] = {
	FIELD(struct row, text, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct row, chars, FIELD_CHARS, 0, NULL),
	FIELD(struct row, seq, FIELD_SEQ, 0, NULL),
};
static const struct record base = RECORD("Base", base_fields);

static const struct field row_fields[] = {
	FIELD(struct row, count, FIELD_NUMBER, 0, NULL),
	FIELD(struct row, thousandths, FIELD_THOUSANDTHS, 0, NULL),
	FIELD(struct row, time, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct row, seconds, FIELD_SECONDS, FIELD_NULL, NULL),
	FIELD(struct row, flag, FIELD_BOOL, 0, NULL),
	{ .name = "gone", .type = FIELD_TEXT, .flags = FIELD_ABSENT, .make = make_absent },
};
static const struct record out = {
	.name = "Out", .fields = row_fields, .count = ARRAY_SIZE(row_fields), .base = &base
};

static void assert_json(json_t *value, const char *text)
{
	char *got = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15));

	assert_non_null(got);
	assert_string_equal(got, text);
	free(got);
	json_decref(value);
}

static void test_writes(void **state)
{
	struct row row = { .text = "a\xff",
			   .chars = "bc",
			   .seq = 9007199254740993,
			   .count = 5,
			   .thousandths = 1500,
			   .seconds = 2500 * OUTBOX_MILLISECONDS };

	(void)state;
	assert_json(fields_json(&out, &row),
		    "{\"text\":\"a\xef\xbf\xbd\",\"chars\":\"bc\",\"seq\":\"9007199254740993\","
		    "\"count\":5,\"thousandths\":1.5,\"time\":null,\"seconds\":2.5,\"flag\":false}");
	row = (struct row){ .chars = "" };
	assert_json(fields_json(&out, &row),
		    "{\"text\":null,\"chars\":\"\",\"seq\":\"0\",\"count\":0,"
		    "\"thousandths\":0.0,\"time\":null,\"seconds\":null,"
		    "\"flag\":false}");
}

static void test_words_by_their_numbers(void **state)
{
	static const struct record two = { .name = "Two", .fields = typed_fields, .count = 2 };

	(void)state;
	assert_json(fields_json(&two, &(struct typed){ 0 }), "{\"colour\":null,\"level\":\"low\"}");
	assert_json(fields_json(&two, &(struct typed){ .colour = 1, .level = 1 }),
		    "{\"colour\":\"red\",\"level\":\"high\"}");
	assert_json(fields_json(&two, &(struct typed){ .colour = 3, .level = 7 }),
		    "{\"colour\":null,\"level\":null}");
}

static void test_schema_of_what_goes_out(void **state)
{
	json_auto_t *schema = fields_schema(&out, FIELDS_OUT);
	const json_t *properties = json_object_get(schema, "properties");
	json_t *required = json_object_get(schema, "required");

	(void)state;
	assert_int_equal(json_object_size(properties), 9);
	assert_json(json_incref(required), "[\"text\",\"chars\",\"seq\",\"count\",\"thousandths\","
					   "\"time\",\"seconds\",\"flag\"]");
	assert_json(json_incref(json_object_get(properties, "time")),
		    "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}");
	assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
}

static void test_schema_of_what_comes_in(void **state)
{
	json_auto_t *schema = fields_schema(&in, FIELDS_IN);
	const json_t *properties = json_object_get(schema, "properties");

	(void)state;
	assert_json(json_incref(json_object_get(schema, "required")), "[\"name\"]");
	assert_json(json_incref(json_object_get(properties, "number")),
		    "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10}");
	assert_json(json_incref(json_object_get(properties, "word")),
		    "{\"type\":\"string\",\"enum\":[\"red\",\"blue\"]}");
	assert_json(json_incref(json_object_get(properties, "ids")),
		    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},"
		    "\"minItems\":1,\"maxItems\":2}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_an_age_lies_behind),
		cmocka_unit_test(test_mistakes_are_named),
		cmocka_unit_test(test_query_texts),
		cmocka_unit_test(test_texts_go_there_and_back),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_words_by_their_numbers),
		cmocka_unit_test(test_schema_of_what_goes_out),
		cmocka_unit_test(test_schema_of_what_comes_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
