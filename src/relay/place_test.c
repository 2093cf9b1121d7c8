/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unit_test.h"
#include "relay/place.h"

#include <string.h>
#include <unistd.h>

static void assert_place(const char *url, const char *expected)
{
	char place[OUTBOX_PLACE_MAX];

	assert_true(place_of(url, place));
	assert_string_equal(place, expected);
}

static void who_logs_in_is_no_part_of_a_place(void **state)
{
	(void)state;
	assert_place("amqp://relay:secret@mq/shop?exchange=x&routing_key={type}&heartbeat=5s",
		     "amqp://mq/shop?exchange=x&routing_key={type}");
	assert_place("amqp://other@MQ/shop?routing_key={type}&password_file=/run/p&exchange=x",
		     "amqp://mq/shop?exchange=x&routing_key={type}");
	assert_place("kafka://k2:9093,K1:9093/{topic}?sasl=PLAIN", "kafka://k1:9093,k2:9093/{topic}");
	assert_place("tls://n1,n2/shop.{type}?stream=SHOP&ca=/etc/ca&creds=/x",
		     "tls://n1,n2/shop.{type}?stream=SHOP");
}

/* As the drivers have it: a broker's is told by its own check of the URL, see endpoint_test.c. */
static void the_usual_port_need_not_be_said(void **state)
{
	(void)state;
	assert_place("amqp://mq:5672/?exchange=x", "amqp://mq/?exchange=x");
	assert_place("amqps://mq:5671/?exchange=x", "amqps://mq/?exchange=x");
	assert_place("amqps://mq:5672/?exchange=x", "amqps://mq:5672/?exchange=x");
	assert_place("kafka://k2:9092,K1/{topic}", "kafka://k1,k2/{topic}");
	assert_place("redis://[::1]:6379/?stream=s", "redis://[::1]/?stream=s");
	assert_place("redis://[::6379]/?stream=s", "redis://[::6379]/?stream=s");
	assert_place("https://h:443/in?port=443", "https://h/in");
	assert_place("ours://h:5672/x", "ours://h:5672/x");
}

static void what_differs_is_another_place(void **state)
{
	static const char *const urls[] = {
		"amqp://a/?exchange=x", "amqp://b/?exchange=x",  "amqp://a:5673/?exchange=x",
		"amqp://a/?exchange=y", "amqp://a/v?exchange=x", "amqps://a/?exchange=x",
		"file:///tmp/a"
	};
	char one[OUTBOX_PLACE_MAX], other[OUTBOX_PLACE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
		assert_true(place_of(urls[i], one));
		for (size_t j = 0; j < i; j++) {
			assert_true(place_of(urls[j], other));
			assert_string_not_equal(one, other);
		}
	}
}

static void a_file_has_a_folder(void **state)
{
	char place[OUTBOX_PLACE_MAX], again[OUTBOX_PLACE_MAX];

	(void)state;
	assert_int_equal(chdir("/tmp"), 0);
	assert_true(place_of("file:out.jsonl", place));
	assert_string_equal(place, "file:/tmp/out.jsonl");
	assert_true(place_of("file:/tmp/out.jsonl?fsync=no", again));
	assert_string_equal(place, again);
	assert_place("file:./out.jsonl", "file:/tmp/out.jsonl");
	assert_place("file:/tmp/.//./out.jsonl", "file:/tmp/out.jsonl");
	assert_place("file:a/./b", "file:/tmp/a/b");
	assert_place("file:.hidden/../.x", "file:/tmp/.hidden/../.x");
}

static void what_is_too_long_still_differs(void **state)
{
	char url[700] = "redis://r/?stream=", one[OUTBOX_PLACE_MAX], other[OUTBOX_PLACE_MAX];
	size_t at = strlen(url);

	(void)state;
	memset(url + at, 'a', 600);
	assert_true(place_of(url, one));
	url[at + 599] = 'b';
	assert_true(place_of(url, other));
	assert_string_not_equal(one, other);
	assert_memory_equal(one, other, 200);
	assert_false(place_of("nothing", one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_logs_in_is_no_part_of_a_place),
		cmocka_unit_test(the_usual_port_need_not_be_said),
		cmocka_unit_test(what_differs_is_another_place),
		cmocka_unit_test(a_file_has_a_folder),
		cmocka_unit_test(what_is_too_long_still_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
