/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void acknowledgements(void **state)
{
	static const struct {
		const char *json, *stream;
		bool duplicate;
	} rows[] = {
		{ "{\"stream\":\"S\", \"seq\":1}", "S", false },
		{ "{\"stream\":\"A-b_9\", \"seq\":18446744073709551615}", "A-b_9", false },
		{ "{\"stream\":\"S\",\"seq\":7}", "S", false },
		{ " { \"seq\" : 7 , \"domain\" : \"d\" , \"stream\" : \"S\" } ", "S", false },
		{ "{\"stream\":\"S\",\"seq\":7,\"duplicate\":true}", "S", true },
		{ "{\"stream\":\"S\",\"seq\":7,\"duplicate\": true}", "S", true },
		{ "{\"stream\":\"\\u00e4\",\"seq\":7,\"duplicate\":false,\"error\":null}",
		  "\xc3\xa4", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct answer answer;

		assert_int_equal(answer_parse(rows[i].json, strlen(rows[i].json), &answer, NULL),
				 OUTBOX_OK);
		assert_int_equal(answer.code, 0);
		assert_string_equal(answer.stream, rows[i].stream);
		assert_int_equal(answer.duplicate, rows[i].duplicate);
		if (answer.duplicate)
			assert_int_equal(answer.seq, 7);
	}
}

static void what_a_stream_has(void **state)
{
	static const struct {
		const char *json;
		int status;
		const char *says;
	} rows[] = {
		{ "{\"type\":\"t\",\"message\":{\"subject\":\"a.b\",\"seq\":7,\"data\":\"eA==\"}}",
		  OUTBOX_OK, "a.b" },
		{ "{\"message\":{\"subject\":\"a.\\u003c\"}}", OUTBOX_OK, "a.<" },
		{ "{\"message\":{\"subject\":\"a.much.longer.subject\"}}", OUTBOX_EPROTO,
		  "no subject" },
		{ "{\"message\":{\"subject\":\"\"}}", OUTBOX_EPROTO, "no subject" },
		{ "{\"message\":{\"subject\":7}}", OUTBOX_EPROTO, "no subject" },
		{ "{\"message\":[\"subject\"]}", OUTBOX_EPROTO, "no subject" },
		{ "{\"subject\":\"a.b\"}", OUTBOX_EPROTO, "no subject" },
		{ "{\"message\":{\"subject\":\"a.b\"}", OUTBOX_EPROTO, "no JSON" },
		{ "", OUTBOX_EPROTO, "no JSON" },
		{ "{\"error\":{\"err_code\":10037,\"description\":\"no message found\"}}",
		  OUTBOX_ENOTFOUND, "no message found (10037)" },
		{ "{\"message\":{\"subject\":\"a.b\"},\"error\":{}}", OUTBOX_ENOTFOUND, "an error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		char subject[16];
		int r = stored_parse(rows[i].json, strlen(rows[i].json), subject, sizeof(subject),
				     &err);

		if (r != rows[i].status)
			fail_msg("%s: %d %s", rows[i].json, r, err.message);
		assert_non_null(strstr(r == OUTBOX_OK ? subject : err.message, rows[i].says));
	}
}

static void what_is_none(void **state)
{
	static const char *const rows[] = {
		"",
		"x",
		"{",
		"[]",
		"null",
		"{}",
		"{\"stream\":\"S\"}",
		"{\"seq\":1}",
		"{\"stream\":\"S\", \"seq\":0}",
		"{\"stream\":\"S\", \"seq\":01}",
		"{\"stream\":\"S\", \"seq\":}",
		"{\"stream\":\"S\", \"seq\":1",
		"{\"stream\":\"S\", \"seq\":1}}",
		"{\"stream\":\"S\", \"seq\":1.5}",
		"{\"stream\":\"S\", \"seq\":\"1\"}",
		"{\"stream\":\"\", \"seq\":1}",
		"{\"stream\":null, \"seq\":1}",
		"{\"Stream\":\"S\", \"seq\":1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct answer answer;

		if (answer_parse(rows[i], strlen(rows[i]), &answer, &err) != OUTBOX_EPROTO)
			fail_msg("%s was taken as an answer", rows[i]);
		assert_non_null(strstr(err.message, "not JetStream's"));
	}
	/* No byte behind the end is looked at. */
	assert_int_equal(answer_parse("{\"stream\":\"S\", \"seq\":1}", 22, &(struct answer){ 0 },
				      NULL),
			 OUTBOX_EPROTO);
	assert_int_equal(answer_parse(NULL, 0, &(struct answer){ 0 }, NULL), OUTBOX_EPROTO);
}

static void errors(void **state)
{
	static const struct {
		const char *json;
		int code;
		enum verdict_class class;
		const char *description;
	} rows[] = {
		{ "{\"error\":{\"code\":400,\"err_code\":10054,\"description\":\"too large\"},\"stream\":\"S\",\"seq\":0}",
		  10054, CLASS_REJECT, "too large" },
		{ "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"}}",
		  10077, CLASS_FULL, "maximum messages exceeded" },
		{ "{\"error\":{\"err_code\":10023}}", 10023, CLASS_FULL,
		  "an error without a description" },
		{ "{\"error\":{\"err_code\":10008}}", 10008, CLASS_AWAY,
		  "an error without a description" },
		{ "{\"error\":{\"err_code\":10060}}", 10060, CLASS_PLACE,
		  "an error without a description" },
		{ "{\"error\":{\"err_code\":12345}}", 12345, CLASS_RETRY,
		  "an error without a description" },
		{ "{\"error\":{\"err_code\":-1}}", -1, CLASS_RETRY, "an error without a description" },
		{ "{\"error\":7,\"stream\":\"S\",\"seq\":9}", -1, CLASS_RETRY,
		  "an error without a description" },
		{ "{\"stream\":\"S\",\"seq\":9,\"error\":{\"description\":[]}}", -1, CLASS_RETRY,
		  "an error without a description" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct answer answer;

		assert_int_equal(answer_parse(rows[i].json, strlen(rows[i].json), &answer, NULL),
				 OUTBOX_OK);
		assert_int_equal(answer.code, rows[i].code);
		assert_int_equal(verdict_of(answer.code), rows[i].class);
		assert_string_equal(answer.description, rows[i].description);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledgements),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(what_a_stream_has),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
