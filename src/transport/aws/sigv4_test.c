/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of AWS' own suite for signature version 4; botocore is asked about more in tests/system/brokers/aws. */

#include "transport/aws/sigv4.h"

#include "base/buf.h"
#include "base/unit_test.h"

#include <string.h>

static void assert_signature(const struct sigv4_header *headers, size_t n, const char *body,
			     const char *expected)
{
	struct sigv4_request request = { .id = "AKIDEXAMPLE",
					 .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
					 .region = "us-east-1",
					 .service = "service",
					 .time = "20150830T123600Z",
					 .headers = headers,
					 .n_headers = n,
					 .body = body,
					 .size = strlen(body) };
	struct buf out = BUF_INIT(2000);

	assert_ok(sigv4_sign(&request, &out, err));
	assert_string_equal(buf_str(&out), expected);
	buf_deinit(&out);
}

#define BEGINNING \
	"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders="

static void post_vanilla(void **state)
{
	static const struct sigv4_header headers[] = { { "host", "example.amazonaws.com" },
						       { "x-amz-date", "20150830T123600Z" } };

	(void)state;
	assert_signature(headers, 2, "",
			 BEGINNING
			 "host;x-amz-date, "
			 "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

static void post_with_a_body(void **state)
{
	static const struct sigv4_header headers[] = {
		{ "content-type", "application/x-www-form-urlencoded" },
		{ "host", "example.amazonaws.com" },
		{ "x-amz-date", "20150830T123600Z" },
	};

	(void)state;
	assert_signature(headers, 3, "Param1=value1",
			 BEGINNING
			 "content-type;host;x-amz-date, "
			 "Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

static void the_time_is_utc(void **state)
{
	char text[SIGV4_TIME_MAX];

	(void)state;
	assert_string_equal(sigv4_time(1440938160 * OUTBOX_SECONDS, text), "20150830T123600Z");
}

static void a_secret_too_long_is_refused(void **state)
{
	struct sigv4_request request = {
		.id = "id", .region = "r", .service = "s", .time = "20150830T123600Z", .body = ""
	};
	struct buf out = BUF_INIT(2000);
	char secret[400];

	(void)state;
	memset(secret, 'x', sizeof(secret) - 1);
	secret[sizeof(secret) - 1] = '\0';
	request.secret = secret;
	assert_fails(sigv4_sign(&request, &out, err), OUTBOX_ECONFIG, "too long");
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(post_vanilla),
		cmocka_unit_test(post_with_a_body),
		cmocka_unit_test(the_time_is_utc),
		cmocka_unit_test(a_secret_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
