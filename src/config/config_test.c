/* SPDX-License-Identifier: Apache-2.0 */
/* What people get wrong, and the exact words they are told. */
#include "config/load_test.h"

#include <stdio.h>
#include <stdlib.h>

#define SOURCES "sources:\n  - name: shop\n    store: sqlite:app.db\n"
#define TARGETS "targets:\n  - name: events\n    to: file:out.jsonl\n"
#define GOOD SOURCES TARGETS
#define DEEP(x) "[[[[[[[[" x "]]]]]]]]"

static char *const environment[] = { (char *)"HOME=/root", (char *)"EMPTY=", (char *)"BATCH=7",
				     (char *)"LINE=a\nb", NULL };

struct row {
	const char *text; /* of the file */
	const char *told; /* every problem, a line each */
};

static void load(const char *text, char *const *variables, struct buf *told)
{
	config_free(load_told((struct config_input){ .text = text, .environment = variables }, told));
}

static void expect(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000);

		load(rows[i].text, environment, &told);
		assert_string_equal(buf_str(&told), rows[i].told);
	}
}

static void test_good(void **state)
{
	static const struct row rows[] = {
		{ GOOD, "" },
		{ GOOD "relay:\nlog:\n", "" },
		{ GOOD "relay: { batch: \"${BATCH}\", instance: \"$5 $${HOME} ${NOT_SET:-x}\" }\n",
		  "" },
		{ GOOD "relay: { batch: \"100\" }\n", "" },
		{ SOURCES "targets: [{ name: a, to: 'null:', match: { type: order.* } }]\n", "" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_keys(void **state)
{
	static const struct row rows[] = {
		{ "", "outbox.yaml:1:1: sources is missing: databases with an outbox; each has a relay of its own, all in one "
		      "process\noutbox.yaml:1:1: targets is missing: where messages go; each "
		      "delivery is independent of the others\n" },
		{ "- a\n", "outbox.yaml:1:1: must be keys and values, not a list\n" },
		{ GOOD "rely:\n  batch: 1\n",
		  "outbox.yaml:7:1: rely: there is no such key; did you mean relay?\n" },
		{ GOOD "relay:\n  frobnicate: 1\n",
		  "outbox.yaml:8:3: relay.frobnicate: there is no such key; outbox config reference lists "
		  "them\n" },
		{ GOOD "    mtach: {}\n",
		  "outbox.yaml:7:5: targets[0] \"events\", mtach: there is no such key; "
		  "did you mean match?\n" },
		{ GOOD "    match: { knd: event }\n",
		  "outbox.yaml:7:14: targets[0] \"events\", match.knd: there is no such key; did you mean "
		  "kind?\n" },
		{ SOURCES "targets:\n  - to: 'null:'\n",
		  "outbox.yaml:5:5: targets[0]: name is missing: the target's name; the store "
		  "keeps its state under it, like events\n" },
		{ GOOD "relay: { batch: 1, batch: 2 }\n",
		  "outbox.yaml:7:20: relay.batch: appears twice, first on line 7; keep one\n" },
		{ GOOD "  - name: events\n    to: 'null:'\n",
		  "outbox.yaml:7:11: targets[1] \"events\", name: targets[0] has this name already; names are "
		  "unique\n" },
		{ SOURCES "targets: []\n",
		  "outbox.yaml:4:10: targets: must be a list with at least one entry: - name: ...\n" },
		{ SOURCES "targets:\n",
		  "outbox.yaml:4:9: targets: must be a list with at least one entry: - name: ...\n" },
		{ SOURCES "targets: [5]\n",
		  "outbox.yaml:4:11: targets[0]: must be keys and values, not a value\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_values(void **state)
{
	static const struct row rows[] = {
		{ GOOD "relay: { workers: 65 }\n",
		  "outbox.yaml:7:19: relay.workers: \"65\" is not a whole number from 1 to 64\n" },
		{ GOOD "relay: { workers: }\n",
		  "outbox.yaml:7:19: relay.workers: is empty; write a value, or leave it out\n" },
		{ GOOD "relay: { workers: [1] }\n",
		  "outbox.yaml:7:19: relay.workers: must be one value, not a list\n" },
		{ GOOD "relay: { poll: { a: 1 } }\n",
		  "outbox.yaml:7:16: relay.poll: must be one value, not keys and values\n" },
		{ GOOD "relay: { poll: 5 }\n",
		  "outbox.yaml:7:16: relay.poll: \"5\" is not a duration; write 500ms, "
		  "5s, 1m30s, 2h or 7d\n" },
		{ GOOD "relay: { retain_failed: never }\n",
		  "outbox.yaml:7:25: relay.retain_failed: \"never\" is not a duration; write 500ms, 5s, 1m30s, 7d "
		  "or forever\n" },
		{ GOOD "relay: { batch_bytes: 8MB }\n",
		  "outbox.yaml:7:23: relay.batch_bytes: \"8MB\" is not a size; "
		  "write 65536, 64KiB or 8MiB\n" },
		{ GOOD "    hold: yes\n",
		  "outbox.yaml:7:11: targets[0] \"events\", hold: \"yes\" is neither true nor false\n" },
		{ GOOD "    order: strickt\n",
		  "outbox.yaml:7:12: targets[0] \"events\", order: \"strickt\" is not one of strict, pipelined or none; "
		  "did you mean strict?\n" },
		{ GOOD "    rate: 50/sec\n",
		  "outbox.yaml:7:11: targets[0] \"events\", rate: \"50/sec\" is not a rate; write 50/s, 3000/min or "
		  "\"none\"\n" },
		{ GOOD "    burst: 5\n",
		  "outbox.yaml:7:12: targets[0] \"events\", burst: has no effect without a rate; add rate, or "
		  "remove burst\n" },
		{ GOOD "    bands: true\n    match: { priority: low }\n",
		  "outbox.yaml:8:24: targets[0] \"events\", match.priority: cannot be combined with bands, which "
		  "make a target for each priority; remove one of the two\n" },
		{ GOOD "    match: { priority: [high, urgent] }\n",
		  "outbox.yaml:7:24: targets[0] \"events\", match.priority: \"urgent\" is not one of high, normal or low\n" },
		{ GOOD "    retry: { preset: protaen }\n",
		  "outbox.yaml:7:22: targets[0] \"events\", retry.preset: \"protaen\" is not one of default, hermodr, "
		  "blueprint, protean, opinionated or webhooks; did you mean protean?\n" },
		{ GOOD "    retry: { factor: nan }\n",
		  "outbox.yaml:7:22: targets[0] \"events\", retry.factor: \"nan\" is not a number from 1 to 100\n" },
		{ GOOD "    match: { type: [order.*, 'a[b]'] }\n",
		  "outbox.yaml:7:30: targets[0] \"events\", match.type[1]: type \"a[b]\" has a bracket; globs know "
		  "only * and ?\n" },
		{ SOURCES "targets: [{ name: Events, to: 'null:' }]\n",
		  "outbox.yaml:4:19: targets[0] \"Events\", name: \"Events\" is not a name; write a lower-case "
		  "letter, then up to 62 of a-z, 0-9, _ and -\n" },
		{ SOURCES "targets: [{ name: a, to: out.jsonl }]\n",
		  "outbox.yaml:4:26: targets[0] \"a\", to: \"out.jsonl\" is not a URL; write a scheme and a colon "
		  "first, like sqlite:app.db or amqp://mq/\n" },
		{ GOOD "relay: { batch: x, poll: y }\nlog: { level: loud }\n",
		  "outbox.yaml:7:17: relay.batch: \"x\" is not a whole number from 1 to 100000\n"
		  "outbox.yaml:7:26: relay.poll: \"y\" is not a duration; write 500ms, 5s, 1m30s, 2h or 7d\n"
		  "outbox.yaml:8:15: log.level: \"loud\" is not one of debug, info, warn or error\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_headers_of_a_match(void **state)
{
	static const struct row rows[] = {
		{ GOOD "    match: { headers: [tenant=acme, region] }\n",
		  "outbox.yaml:7:37: targets[0] \"events\", match.headers[1]: header \"region\" is not NAME=GLOB; "
		  "write tenant=acme, or tenant=* for any value\n" },
		{ GOOD "    match: { headers: 'outbox-attempt=1' }\n",
		  "outbox.yaml:7:23: targets[0] \"events\", match.headers: header \"outbox-attempt=1\": name \"outbox-attempt\" is "
		  "reserved (outbox-*, ce-*, ce_*, content-type); choose another or use the message's own field\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_combinations(void **state)
{
	static const struct row rows[] = {
		{ GOOD "    external: true\n    envelope: native\n",
		  "outbox.yaml:8:15: targets[0] \"events\", envelope: an external target has an envelope of its "
		  "own; remove one of the two\n" },
		{ GOOD "    external: true\n    match: { published: false }\n",
		  "outbox.yaml:8:25: targets[0] \"events\", match.published: cannot be false: an external target "
		  "gets only published messages; remove this key\n" },
		{ GOOD "    headers: [tenant]\n",
		  "outbox.yaml:7:14: targets[0] \"events\", headers: an internal target gets all headers; remove "
		  "this key, or write external: true\n" },
		{ GOOD "    external: true\n    headers: [tenant, 'x-*']\n",
		  "outbox.yaml:8:14: targets[0] \"events\", headers: \"x-*\" is a pattern; write each name\n" },
		{ GOOD "    order: none\n    hold: true\n",
		  "outbox.yaml:8:11: targets[0] \"events\", hold: cannot be combined with order: none, where "
		  "nothing waits behind a failed message; remove one of the two\n" },
		{ GOOD "    retry: { schedule: [1s, 2s], cap: 5m }\n",
		  "outbox.yaml:7:39: targets[0] \"events\", retry.cap: cannot be combined with schedule, which lists "
		  "every delay; remove one of the two\n" },
		{ GOOD "    retry: { base: 10m }\n",
		  "outbox.yaml:7:12: targets[0] \"events\", retry: cap: is below the base; write 10m or more\n" },
		{ GOOD "    lease: 2h\n",
		  "outbox.yaml:7:12: targets[0] \"events\", lease: must be between 100ms and 1h\n" },
		{ GOOD "relay: { breaker_min: 1m }\n",
		  "outbox.yaml:7:23: relay.breaker_min: breaker_min is above breaker_max; the first pause cannot "
		  "be longer than the longest\n" },
		{ GOOD "relay: { publish_timeout: 15s }\n",
		  "outbox.yaml:7:27: relay.publish_timeout: must be shorter than every lease, or a slow broker would "
		  "cost the relay its lane; the lease of \"events\" is not longer\n" },
		{ GOOD "    password: secret-word\n",
		  "outbox.yaml:7:15: targets[0] \"events\", password: the URL has no host, so no password is used; "
		  "remove it\n" },
		{ SOURCES "targets: [{ name: a, to: 'amqp://u:p@mq/', password: secret-word }]\n",
		  "outbox.yaml:4:54: targets[0] \"a\", password: the URL already has a password; keep one of the two\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_otlp(void **state)
{
	static const struct row rows[] = {
		{ GOOD "otlp: { endpoint: 'ftp://c' }\n",
		  "outbox.yaml:7:19: otlp.endpoint: must begin with https:// or http://\n" },
		{ GOOD "otlp: { endpoint: 'https://u:secret-word@c' }\n",
		  "outbox.yaml:7:19: otlp.endpoint: must not have a user in it; use headers\n" },
		{ GOOD "otlp: { endpoint: 'https://c/?a=b' }\n",
		  "outbox.yaml:7:19: otlp.endpoint: must end with the host or a path; /v1/metrics is appended "
		  "to it\n" },
		{ GOOD
		  "otlp: { endpoint: 'http://c.example:4318', headers: 'authorization=secret-word' }\n",
		  "outbox.yaml:7:53: otlp.headers: would cross the network in the clear; use https://\n" },
		{ GOOD
		  "otlp: { endpoint: 'http://localhost:4318', headers: 'authorization=secret-word' }\n",
		  "" },
		{ GOOD "otlp: { endpoint: 'https://c', headers: secret-word }\n",
		  "outbox.yaml:7:41: otlp.headers: must be NAME=VALUE,NAME=VALUE in one line\n" },
		{ GOOD "otlp: { endpoint: 'https://c', headers: 'a b=secret-word' }\n",
		  "outbox.yaml:7:41: otlp.headers: must be NAME=VALUE,NAME=VALUE in one line\n" },
		{ GOOD "otlp: { endpoint: 'https://c', headers: 'a=Bearer x,x-org=7' }\n", "" },
		{ GOOD "otlp: { headers: 'a=b' }\n",
		  "outbox.yaml:7:18: otlp.headers: has no effect without endpoint; add endpoint\n" },
		{ GOOD "otlp: { endpoint: 'https://c', interval: 10ms }\n",
		  "outbox.yaml:7:42: otlp.interval: must be between 1s and 1h\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void test_yaml(void **state)
{
	static const char marked[] =
		"anchors (&x), aliases (*x) and tags (!x) are not supported; write the value out\n";
	static const struct row rows[] = {
		{ "relay: [1\n",
		  "outbox.yaml:2:1: not YAML: did not find expected ',' or ']', while parsing a flow "
		  "sequence of line 1\n" },
		{ "a: \xff\n", "outbox.yaml: not YAML: invalid leading UTF-8 octet at byte 3\n" },
		{ GOOD "---\na: 1\n",
		  "outbox.yaml:7:1: a second document begins here; a file may hold only one\n" },
		{ "? [a]\n: 1\n", "outbox.yaml:1:3: a key must be a plain word\n" },
		{ "relay: \"a\\0b\"\n",
		  "outbox.yaml:1:8: a control character or a line break; write the value on one line\n" },
		{ DEEP(DEEP("[1]")) "\n", "outbox.yaml:1:17: nested more than 16 deep\n" },
	};
	char text[200], told[300];

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
	for (size_t i = 0; i < 3; i++) {
		static const char *const laughs[] = { "a: &a [x, x]\nb: *a\n", "a: *b\n",
						      "a: !!int 5\n" };
		struct row row = { text, told };

		snprintf(text, sizeof(text), "%s", laughs[i]);
		snprintf(told, sizeof(told), "outbox.yaml:1:4: %s", marked);
		expect(&row, 1);
	}
}

static void test_limits(void **state)
{
	_cleanup_(buf_deinit) struct buf many = BUF_INIT((size_t)1 << 21);
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000);

	(void)state;
	buf_text(&many, "relay: [");
	for (size_t i = 0; i < 5000; i++)
		buf_text(&many, "1,");
	load(buf_str(&many), NULL, &told);
	assert_non_null(strstr(buf_str(&told), "more than 5000 values"));
	buf_clear(&many);
	buf_clear(&told);
	while (many.size <= YAML_SIZE_MAX)
		buf_text(&many, "# comment\n");
	load(buf_str(&many), NULL, &told);
	assert_string_equal(buf_str(&told), "outbox.yaml: is larger than 1 MiB\n");
	buf_clear(&many);
	buf_clear(&told);
	buf_text(&many, GOOD);
	for (size_t i = 0; i < 25; i++)
		buf_printf(&many, "wrong%zu: 1\n", i);
	load(buf_str(&many), NULL, &told);
	assert_non_null(strstr(buf_str(&told), "outbox.yaml:26:1: wrong19"));
	assert_null(strstr(buf_str(&told), "wrong20"));
	assert_non_null(strstr(buf_str(&told), "and 5 more\n"));
	for (size_t n = 21; n <= 22; n++) {
		buf_clear(&many);
		buf_clear(&told);
		buf_text(&many, GOOD);
		for (size_t i = 0; i < n; i++)
			buf_printf(&many, "wrong%zu: 1\n", i);
		load(buf_str(&many), NULL, &told);
		/* "and 1 more" would take as much room as the one */
		assert_int_equal(strstr(buf_str(&told), "wrong20") != NULL, n == 21);
		assert_int_equal(strstr(buf_str(&told), "and 2 more\n") != NULL, n == 22);
		assert_null(strstr(buf_str(&told), "and 1 more"));
	}
}

static void test_variables_in_texts(void **state)
{
	static const struct row rows[] = {
		{ GOOD "relay: { batch: \"${NOPE}\" }\n",
		  "outbox.yaml:7:17: relay.batch: the variable NOPE is not set; set it, or write "
		  "${NOPE:-default}\n" },
		{ GOOD "relay: { batch: \"${EMPTY}\" }\n",
		  "outbox.yaml:7:17: relay.batch: the variable EMPTY is empty; set it, or write "
		  "${EMPTY:-default}\n" },
		{ GOOD "relay: { instance: \"a${LINE}\" }\n",
		  "outbox.yaml:7:20: relay.instance: the variable LINE holds a control character or a line "
		  "break\n" },
		{ GOOD "relay: { instance: \"${x y}\" }\n",
		  "outbox.yaml:7:20: relay.instance: has a ${ that does not begin a variable; write ${NAME} or "
		  "${NAME:-default}, or $${ for a literal ${\n" },
		{ GOOD "relay: { instance: \"${HOME\" }\n",
		  "outbox.yaml:7:20: relay.instance: has a ${ that does not begin a variable; write ${NAME} or "
		  "${NAME:-default}, or $${ for a literal ${\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_headers_of_a_match),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_otlp),
		cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_variables_in_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
