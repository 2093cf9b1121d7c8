/* SPDX-License-Identifier: Apache-2.0 */

/* What an application sees through the public headers alone, linked against the shared library. */

#include <outbox/outbox.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void version_is_the_headers_version(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d.%d.%d", OUTBOX_VERSION_MAJOR, OUTBOX_VERSION_MINOR,
		 OUTBOX_VERSION_PATCH);
	assert_string_equal(outbox_version(), text);
}

static void init_macros_stamp_the_size(void **state)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config relay = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	assert_int_equal(message.struct_size, sizeof(message));
	assert_int_equal(target.struct_size, sizeof(target));
	assert_int_equal(relay.struct_size, sizeof(relay));
	assert_int_equal(counts.struct_size, sizeof(counts));
	assert_int_equal(err.status, OUTBOX_OK);
	assert_string_equal(err.message, "");
}

static void every_free_takes_null(void **state)
{
	(void)state;
	assert_null(outbox_arena_free(NULL));
	assert_null(outbox_encoder_free(NULL));
	assert_null(outbox_registry_free(NULL));
	assert_null(outbox_relay_free(NULL));
}

static void every_status_has_its_own_name(void **state)
{
	(void)state;
	for (int a = OUTBOX_OK; a <= OUTBOX_EINTERNAL; a++) {
		assert_non_null(outbox_status_name(a));
		for (int b = OUTBOX_OK; b < a; b++)
			assert_string_not_equal(outbox_status_name(a), outbox_status_name(b));
	}
}

static void wrong_arguments_are_told(void **state)
{
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay *relay = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	assert_int_not_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_null(relay);
	assert_string_not_equal(err.message, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_is_the_headers_version),
		cmocka_unit_test(init_macros_stamp_the_size),
		cmocka_unit_test(every_free_takes_null),
		cmocka_unit_test(every_status_has_its_own_name),
		cmocka_unit_test(wrong_arguments_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
