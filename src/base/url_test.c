/* SPDX-License-Identifier: Apache-2.0 */

#include "base/unit_test.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "base/url.h"

#include <stdio.h>
#include <string.h>

static void a_path_only(void **state)
{
	_cleanup_(url_deinit) struct url url = { 0 };

	(void)state;
	assert_ok(url_parse("SQLite:my%20app.db?mode=rw&cache=a%26b", &url, err));
	assert_string_equal(url.scheme, "sqlite");
	assert_false(url.has_authority);
	assert_null(url.host);
	assert_null(url.user);
	assert_string_equal(url.path, "my app.db");
	assert_int_equal(url.n_options, 2);
	assert_string_equal(url_option(&url, "mode"), "rw");
	assert_null(url_option(&url, "mod"));
	assert_fails(url_finish(&url, "mode, fsync", err), OUTBOX_ECONFIG,
		     "unknown option \"cache\": sqlite: URLs take mode, fsync");
	assert_fails(url_finish(&url, NULL, err), OUTBOX_ECONFIG, "take none");
	assert_string_equal(url_option(&url, "cache"), "a&b");
	assert_ok(url_finish(&url, "mode", err));
}

static void an_authority(void **state)
{
	_cleanup_(url_deinit) struct url url = { 0 };

	(void)state;
	assert_ok(url_parse("amqp://re%3Alay:p%40ss:w/@mq1:5672,mq2:5672/v?x=", &url, err));
	/* The first slash ends the authority: this password was not escaped. */
	assert_string_equal(url.path, "/@mq1:5672,mq2:5672/v");
	url_deinit(&url);
	assert_ok(url_parse("amqp://re%3Alay:p%40s%2Fs@mq1:5672,mq2:5672/v%2fh?x=", &url, err));
	assert_string_equal(url.user, "re:lay");
	assert_string_equal(url.password, "p@s/s");
	assert_string_equal(url.host, "mq1:5672,mq2:5672");
	assert_string_equal(url.path, "/v/h");
	assert_string_equal(url_option(&url, "x"), "");
	url_deinit(&url);
	assert_ok(url_parse("http://h?a=1", &url, err));
	assert_string_equal(url.host, "h");
	assert_string_equal(url.path, "");
	assert_null(url.user);
	url_deinit(&url);
	assert_ok(url_parse("sqlite:///var/lib/a.db", &url, err));
	assert_string_equal(url.host, "");
	assert_string_equal(url.path, "/var/lib/a.db");
	url_deinit(&url);
	assert_ok(url_parse("http://user@h/", &url, err));
	assert_string_equal(url.user, "user");
	assert_null(url.password);
}

/* The query is the receiver's, and ours is behind the #. */
static void a_web_url(void **state)
{
	_cleanup_(url_deinit) struct url url = { 0 };

	(void)state;
	assert_ok(url_parse("HTTPS://u:p@h:1/a%20b?x=%31&y#secret=a%23b&in_flight=3", &url, err));
	assert_string_equal(url.host, "h:1");
	assert_string_equal(url.password, "p");
	assert_string_equal(url.path, "/a b");
	assert_string_equal(url.request, "/a%20b?x=%31&y");
	assert_int_equal(url.n_options, 2);
	assert_string_equal(url_option(&url, "secret"), "a#b");
	url_deinit(&url);
	assert_ok(url_parse("http://h#x=1?y", &url, err));
	assert_string_equal(url.host, "h");
	assert_string_equal(url.request, "");
	assert_string_equal(url_option(&url, "x"), "1?y");
	url_deinit(&url);
	/* elsewhere it is a character like others */
	assert_ok(url_parse("file:a#b?fsync=no", &url, err));
	assert_string_equal(url.path, "a#b");
	assert_null(url.request);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "app.db", "URL \"app.db\": no scheme; write one" },
		{ "", "no scheme" },
		{ ":x", "no scheme" },
		{ "1a:x", "no scheme" },
		{ "file:a%2", "write %25" },
		{ "file:a%", "write %25" },
		{ "file:a%zz", "write %25" },
		{ "file:a%00b", "write %25" },
		{ "file:a?x", "without a name or a value" },
		{ "file:a?=x", "without a name or a value" },
		{ "file:a?x=1&", "ends with" },
		{ "file:a?x=1&&y=2", "without a name or a value" },
		{ "file:a?x=1&x=2", "\"x\" is given twice" },
		{ "amqp://u:hush@h/%", "amqp://u:***@h/%" },
	};
	struct url url = { .n_options = 7 };
	char many[400] = "file:a?o0=1";
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_fails(url_parse(bad[i].text, &url, err), OUTBOX_ECONFIG, bad[i].want);
		assert_int_equal(url.n_options, 7);
	}
	assert_fails(url_parse(NULL, &url, err), OUTBOX_ECONFIG, "no scheme");
	for (i = 1, n = strlen(many); i <= URL_OPTIONS_MAX; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "&o%zu=1", i);
	assert_fails(url_parse(many, &url, err), OUTBOX_ECONFIG, "more than 32 options");
}

static void schemes_are_found_alone(void **state)
{
	char scheme[8];

	(void)state;
	assert_true(url_scheme("FILE:x", scheme, sizeof(scheme)));
	assert_string_equal(scheme, "file");
	assert_false(url_scheme("no colon", scheme, sizeof(scheme)));
	assert_false(url_scheme(NULL, scheme, sizeof(scheme)));
	assert_false(url_scheme("longscheme:x", scheme, sizeof(scheme)));
}

static void passwords_are_masked(void **state)
{
	static const char *const cases[][2] = {
		{ "amqp://u:hush@h/v", "amqp://u:***@h/v" },
		{ "amqp://u@h:5672/v", "amqp://u@h:5672/v" },
		{ "amqp://h:5672/v?x=a@b", "amqp://h:5672/v?x=a@b" },
		{ "amqp://h:1,i:2/v?x=ab", "amqp://h:1,i:2/v?x=ab" },
		{ "amqp://u:hu@sh@h", "amqp://u:***@h" },
		{ "amqp://u:hu/sh@h", "amqp://u:***@h" },
		{ "amqp://u:hu?sh@h", "amqp://u:***@h" },
		{ "amqp://u:hu%zzsh@h", "amqp://u:***@h" },
		{ "//u:hush@h", "//u:***@h" },
		{ "file:a?password=hush", "file:a?password=***" },
		{ "file:a?b=c&SSL_Password=hush&d=e", "file:a?b=c&SSL_Password=***&d=e" },
		{ "http://u:hush@h/?auth_token=hush", "http://u:***@h/?auth_token=***" },
		{ "file:a?p%61ss%57ord=hush&%74oken=hush", "file:a?p%61ss%57ord=***&%74oken=***" },
		{ "kafka://h/t?ssl.key.pem=hush&a=b", "kafka://h/t?ssl.key.pem=***&a=b" },
		{ "kafka://h?Sasl.OAuthBearer.config=hush", "kafka://h?Sasl.OAuthBearer.config=***" },
		{ "amqp://h?password=hush&x=a:b@c", "amqp://h?password=***&x=a:***@c" },
		{ "amqp://u:x?a=b@c&token=hush", "amqp://u:***@c&token=***" },
		{ "amqp://h?x=a:b&pwd=hu@sh&y=z", "amqp://h?x=a:***&y=z" },
		{ "amqp://u:@h?token=", "amqp://u:***@h?token=***" },
		{ "file:plain", "file:plain" },
		{ "file:a\nb", "file:a?b" },
		{ "https://h/p?q=1#secret=hush&in_flight=3",
		  "https://h/p?q=1#secret=***&in_flight=3" },
		{ "https://h/p#in_flight=3&token=hush", "https://h/p#in_flight=3&token=***" },
		{ "https://h/p?token=hush#x=1", "https://h/p?token=***" },
		{ "https://u:hush@h/p#x=1", "https://u:***@h/p#x=1" },
	};
	char out[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		url_mask(cases[i][0], out, sizeof(out));
		assert_string_equal(out, cases[i][1]);
	}
	url_mask("amqp://user:hush@h", out, 10);
	assert_string_equal(out, "amqp://us");
}

/* No text crashes it, and what it shows of a failing URL never holds the password. */
static void random_urls_are_harmless(void **state)
{
	static const char alphabet[] = "ab:/?@&=%2.,\x80\n";
	struct random_state random;
	int round;

	(void)state;
	random_init(&random, 11);
	for (round = 0; round < 50000; round++) {
		char text[64] = "x://u:HUSH", out[32];
		struct outbox_error err;
		struct url url;
		size_t n = strlen(text), i, more = (size_t)random_between(&random.base, 0, 20);
		bool secret;

		for (i = 0; i < more; i++)
			text[n + i] =
				alphabet[random_between(&random.base, 0, sizeof(alphabet) - 2)];
		secret = strchr(text + n, '@') != NULL;
		if (url_parse(text, &url, &err) == OUTBOX_OK)
			url_deinit(&url);
		else if (secret)
			assert_null(strstr(err.message, "HUSH"));
		url_mask(text, out, sizeof(out));
		if (secret)
			assert_null(strstr(out, "HUSH"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_only),
		cmocka_unit_test(an_authority),
		cmocka_unit_test(a_web_url),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(schemes_are_found_alone),
		cmocka_unit_test(passwords_are_masked),
		cmocka_unit_test(random_urls_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
