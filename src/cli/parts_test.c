/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that every command is made of: options, escaping, tables, suggestions. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/options.h"
#include "cli/table.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- options ------------------------------------------------------------------------------- */

#define NOW (1000 * OUTBOX_DAYS)

struct values {
	bool flag;
	const char *text;
	struct list list;
	int64_t number, size;
	double rate;
	outbox_time wait, keep, at, ago;
};

static const struct field options[] = {
	OPTION("flag", FIELD_BOOL, flag, NULL, "a flag"),
	OPTION("text", FIELD_TEXT, text, "TEXT", "a text"),
	OPTION("list", FIELD_REPEATED, list, "ITEM", "a list"),
	OPTION_RANGE("number", FIELD_NUMBER, number, -5, 5, "a number"),
	OPTION("size", FIELD_BYTES, size, "SIZE", "a size"),
	OPTION("rate", FIELD_PER_SECOND, rate, "RATE", "a rate"),
	OPTION("wait", FIELD_DURATION, wait, "DURATION", "a duration"),
	OPTION("keep", FIELD_KEEP, keep, "DURATION", "a retention"),
	OPTION("at", FIELD_TIME, at, "TIME", "a time"),
	OPTION("ago", FIELD_AGO, ago, "AGE", "an age"),
};

static int parse(struct values *values, struct parsed *parsed, struct outbox_error *err,
		 const char *const *words)
{
	struct option_set sets[2] = { { options, ARRAY_SIZE(options), values }, { NULL, 0, NULL } };
	int n = 0;

	*values = (struct values){ 0 };
	*parsed = (struct parsed){ 0 };
	while (words[n])
		n++;
	return options_parse(n, (char **)words, 0, sets, NOW, parsed, err);
}

#define PARSE(...) parse(&values, &parsed, &err, (const char *const[]){ __VA_ARGS__, NULL })

static void test_values_are_typed(void **state)
{
	struct values values;
	struct parsed parsed;
	struct outbox_error err;

	(void)state;
	assert_int_equal(PARSE("--flag", "one", "--text", "a", "--list=1", "--list", "2",
			       "--number", "-5", "two", "--size", "8MiB", "--rate=3000/min"),
			 OUTBOX_OK);
	assert_true(values.flag);
	assert_string_equal(values.text, "a");
	assert_int_equal(values.list.count, 2);
	assert_string_equal(values.list.items[1], "2");
	assert_int_equal(values.number, -5);
	assert_int_equal(values.size, 8 << 20);
	assert_true(values.rate == 50.0);
	assert_int_equal(parsed.n_words, 2);
	assert_string_equal(parsed.words[1], "two");
	assert_int_equal(PARSE("--wait", "1m30s", "--keep", "forever", "--at", "+5m", "--ago", "7d"),
			 OUTBOX_OK);
	assert_int_equal(values.wait, 90 * OUTBOX_SECONDS);
	assert_int_equal(values.keep, OUTBOX_NEVER);
	assert_int_equal(values.at, NOW + 5 * OUTBOX_MINUTES);
	assert_int_equal(values.ago, NOW - 7 * OUTBOX_DAYS);
}

static void test_words_and_the_end_of_options(void **state)
{
	struct values values;
	struct parsed parsed;
	struct outbox_error err;

	(void)state;
	assert_int_equal(PARSE("-", "--", "--flag", "--"), OUTBOX_OK);
	assert_false(values.flag);
	assert_int_equal(parsed.n_words, 3);
	assert_string_equal(parsed.words[0], "-");
	assert_string_equal(parsed.words[1], "--flag");
	assert_int_equal(PARSE("--text=--flag", "--text2"), OUTBOX_EINVAL);
	assert_int_equal(PARSE("--text=--flag"), OUTBOX_OK);
	assert_string_equal(values.text, "--flag");
	assert_int_equal(PARSE("--text=", "-h"), OUTBOX_OK);
	assert_string_equal(values.text, "");
	assert_true(parsed.help);
}

static void test_mistakes(void **state)
{
	static const char *const wrong[][3] = {
		{ "--size", "0" },
		{ "--size", "8MB" },
		{ "--size", "9999999999999G" },
		{ "--rate", "0/s" },
		{ "--rate", "5" },
		{ "--rate", "5/h" },
		{ "--wait", "0" },
		{ "--wait", "forever" },
		{ "--keep", "never" },
		{ "--number", "6" },
		{ "--number", "" },
		{ "--number", "1x" },
		{ "--at", "yesterday" },
		{ "--ago", "+1h" },
		{ "--ago", "1000d" },
		{ "--flag=1" },
		{ "--text" },
		{ "-flag" },
		{ "--flag", "--flag" },
	};
	struct values values;
	struct parsed parsed;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		assert_int_equal(parse(&values, &parsed, &err, wrong[i]), OUTBOX_EINVAL);
		assert_non_null(strstr(err.message, "-"));
	}
}

static void test_pairs(void **state)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char name[8];
	const char *value;

	(void)state;
	assert_int_equal(pair_split("to", "a=b=c", name, sizeof(name), &value, &err), OUTBOX_OK);
	assert_string_equal(name, "a");
	assert_string_equal(value, "b=c");
	assert_int_equal(pair_split("to", "=b", name, sizeof(name), &value, &err), OUTBOX_EINVAL);
	assert_int_equal(pair_split("to", "toolong8=b", name, sizeof(name), &value, &err),
			 OUTBOX_EINVAL);
	assert_int_equal(pair_split("to", "a://u:secret@h/?x=y", name, sizeof(name), &value, &err),
			 OUTBOX_EINVAL);
	assert_null(strstr(err.message, "secret"));
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "list", "show", "status", "publish" };
	static const char *const cases[][2] = { { "publsh", "publish" },
						{ "stauts", "status" },
						{ "shwo", "show" },
						{ "pubilhs", "publish" },
						{ "lst", "list" },
						{ "foo", NULL },
						{ "hot", NULL },
						{ "stuff", NULL },
						{ "x", NULL },
						{ "xyzzy", NULL },
						{ "", NULL } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nearest nearest;

		nearest_init(&nearest, cases[i][0]);
		for (size_t j = 0; j < ARRAY_SIZE(names); j++)
			nearest_offer(&nearest, names[j]);
		if (cases[i][1])
			assert_string_equal(nearest.best, cases[i][1]);
		else
			assert_null(nearest.best);
	}
}

/* ---- escaping ------------------------------------------------------------------------------ */

static void test_safe_text(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *shown;
	} cases[] = {
		{ "plain \"quoted\"", UNCUT, "plain \"quoted\"" },
		{ "\033[31m\a", UNCUT, "\\x1b[31m\\x07" },
		{ "a\nb\tc\rd", UNCUT, "a\\nb\\tc\\rd" },
		{ "\xc2\x9b"
		  "2J",
		  UNCUT, "\\u009b2J" },
		{ "\xff\xfe", UNCUT, "\\xff\\xfe" },
		{ "\xe2\x80\xae"
		  "evil",
		  UNCUT, "\\u202eevil" },
		{ "abcdef", 6, "abcdef" },
		{ "abcdefg", 6, "abc..." },
		{ "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 6, "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2" },
		{ "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2x", 6, "\xe6\xbc\xa2..." },
		{ "ab\033", 5, "ab..." },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_deinit) struct buf out = BUF_INIT(1000);

		printable_append(&out, cases[i].text, strlen(cases[i].text), cases[i].columns);
		assert_string_equal(buf_str(&out), cases[i].shown);
	}
}

static void test_wrap(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	/* the first word is just as long as the indent; the last one is broken, none of it is lost */
	printable_wrap(stream, &(struct wrap){ 0, 2, 12 }, "a: bc def ghi averyverylongwo\a");
	fclose(stream);
	assert_string_equal(text, "a: bc def\n  ghi\n  averyveryl\n  ongwo\\x07\n");
	free(text);
}

static void test_commands_are_wrapped_so_that_they_can_be_pasted(void **state)
{
	static const char *const cases[][2] = {
		/* it fits behind its sentence, on a line of its own, or with backslashes */
		{ "do it: outbox list; ok", "do it: outbox list; ok\n" },
		{ "the relay is old: outbox upgrade --check",
		  "the relay is old:\n  outbox upgrade --check\n" },
		{ "see: outbox list --key 'a b' --target x --why retry",
		  "see:\n  outbox list --key \\\n      'a b' --target x \\\n      --why retry\n" },
		{ "outbox show 'it'\\''s it' --payload",
		  "outbox show \\\n      'it'\\''s it' \\\n      --payload\n" },
		/* broken anywhere, an argument would be another one */
		{ "see: outbox list --store 'sqlite:/a folder/with a name.db'",
		  "see:\n  outbox list --store 'sqlite:/a folder/with a name.db'\n" },
		{ "no connection of outbox writes, they all read",
		  "no connection of outbox\n  writes, they all read\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&text, &size);

		printable_wrap(stream, &(struct wrap){ 0, 2, 25 }, cases[i][0]);
		fclose(stream);
		assert_string_equal(text, cases[i][1]);
		free(text);
	}
}

static void test_shell_words(void **state)
{
	static const char *const cases[][2] = {
		{ "order-1", "order-1" }, { "a b", "'a b'" }, { "it's", "'it'\\''s'" },
		{ "-x", "'-x'" },         { "", "''" },       { "$(x)", "'$(x)'" }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_deinit) struct buf out = BUF_INIT(1000);

		buf_shell_word(&out, cases[i][0]);
		assert_string_equal(buf_str(&out), cases[i][1]);
	}
}

/* ---- tables -------------------------------------------------------------------------------- */

static void assert_printed(struct table *table, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	table_print(table, stream);
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}

static void test_table(void **state)
{
	static const struct column columns[] = {
		{ "ID", false, 4 }, { NULL, false, 0 }, { "N", true, 0 }, { "TEXT", false, 4 }
	};
	struct cli cli = { .width = 20 };
	struct table table;

	(void)state;
	table_init(&table, &cli, columns, ARRAY_SIZE(columns));
	table_cell(&table, PLAIN, "a");
	table_cell(&table, PLAIN, "hidden");
	table_cellf(&table, RED, "%d", 10);
	table_cell(&table, PLAIN, "a long text that is cut");
	table_note(&table, "a note that is too long for it");
	assert_printed(&table, "ID  N TEXT\na  10 a long text...\n    a note that i...\n");
	/* the next page: no titles, the same columns */
	table_cell(&table, PLAIN, "bcdef");
	table_cell(&table, PLAIN, "hidden");
	table_cell(&table, PLAIN, "1");
	table_cell(&table, PLAIN, NULL);
	assert_printed(&table, "..  1 -\n");
	table_deinit(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_typed),
		cmocka_unit_test(test_words_and_the_end_of_options),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_safe_text),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_commands_are_wrapped_so_that_they_can_be_pasted),
		cmocka_unit_test(test_shell_words),
		cmocka_unit_test(test_table),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
