/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http/sign.h"

#include "base/buf.h"
#include "base/unit_test.h"

#include <string.h>

#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define BODY "{\"test\": 2432232314}"
#define HMAC_KEY "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define HMAC_SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define SEED "VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
#define ED25519_SIGNATURE \
	"v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="

static const struct sign_input input = {
	.id = ID, .timestamp = 1614265330, .body = BODY, .size = sizeof(BODY) - 1
};

static void check(enum sign_preset preset, const char *keys, const char *want)
{
	struct signer signer = { .preset = preset };
	struct buf out = BUF_INIT(4096);

	assert_ok(signer_add(&signer, "secret", keys, err));
	assert_ok(signer_sign(&signer, &input, &out, err));
	assert_string_equal(buf_str(&out), want);
	buf_deinit(&out);
	signer_deinit(&signer);
}

static void vectors_of_standard_webhooks(void **state)
{
	(void)state;
	check(SIGN_STANDARD, HMAC_KEY, HMAC_SIGNATURE);
	check(SIGN_STANDARD, "whsk_" SEED, ED25519_SIGNATURE);
	/* rotation: one for each key, in their order */
	check(SIGN_STANDARD, HMAC_KEY "\n\nwhsk_" SEED "\n", HMAC_SIGNATURE " " ED25519_SIGNATURE);
	check(SIGN_STANDARD, "whsk_" SEED "," HMAC_KEY, ED25519_SIGNATURE " " HMAC_SIGNATURE);
}

/* printf '1614265330.{"test": 2432232314}' | openssl dgst -sha256 -hmac 'any text' */
static void hermodr_signs_the_time_and_the_body(void **state)
{
	(void)state;
	check(SIGN_HERMODR, "any text\n",
	      "sha256=8dba8393806da3aa40908cd8ca67983ef262640c9378b62f2a3b90854a22384f");
}

static void keys_that_are_none(void **state)
{
	static const char *const bad[] = {
		"",
		" \n",
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_",
		"whsec_c2hvcnQ=",
		"whsec_not base64",
		"whsk_c2hvcnQ=",
		"whpk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=",
		HMAC_KEY " plain",
		HMAC_KEY " " HMAC_KEY " " HMAC_KEY " " HMAC_KEY " " HMAC_KEY " " HMAC_KEY
			 " " HMAC_KEY " " HMAC_KEY " " HMAC_KEY,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct signer signer = { .preset = SIGN_STANDARD };
		struct outbox_error why = OUTBOX_ERROR_INIT;

		assert_int_equal(signer_add(&signer, "secret", bad[i], &why), OUTBOX_ECONFIG);
		assert_non_null(strstr(why.message, "option secret: "));
		assert_null(strstr(why.message, "MfKQ9r8"));
		signer_deinit(&signer);
	}
}

static void only_one_key_for_hermodr(void **state)
{
	struct signer signer = { .preset = SIGN_HERMODR };

	(void)state;
	assert_ok(signer_add(&signer, "secret", "one, and the same", err));
	assert_fails(signer_add(&signer, "secret", "two", err), OUTBOX_ECONFIG, "one key");
	signer_deinit(&signer);
}

/* No two ids become one, and none has a dot: "a.1" at time 2 and "a" at 1.2 would sign the same text. */
static void ids_have_no_dot(void **state)
{
	static const char *const rows[][2] = {
		{ "01a1ee01-2537-7716-8a99-21d3296ed086", "01a1ee01-2537-7716-8a99-21d3296ed086" },
		{ "order.42", "order%2E42" },
		{ "order%2E42", "order%252E42" },
		{ "a b\r\nEvil: 1", "a%20b%0D%0AEvil%3A%201" },
		{ "\xc3\xbc", "%C3%BC" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = BUF_INIT(200);

		sign_id(&out, rows[i][0]);
		assert_string_equal(buf_str(&out), rows[i][1]);
		buf_deinit(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_standard_webhooks),
		cmocka_unit_test(hermodr_signs_the_time_and_the_body),
		cmocka_unit_test(keys_that_are_none),
		cmocka_unit_test(only_one_key_for_hermodr),
		cmocka_unit_test(ids_have_no_dot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
