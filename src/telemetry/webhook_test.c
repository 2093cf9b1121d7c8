/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "telemetry/webhook.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW (1700000000 * OUTBOX_SECONDS)

static outbox_time end_of(outbox_time repeat)
{
	struct config_alert config = { .name = "pager",
				       .format = CONFIG_ALERT_ALERTMANAGER,
				       .repeat = repeat };
	struct webhook_alert alert = { .rule = "failed", .since = NOW - OUTBOX_MINUTES };
	char *body = webhook_body(&config, &alert, 1, NOW);
	json_t *list = json_loads(body, 0, NULL);
	const char *text = json_string_value(json_object_get(json_array_get(list, 0), "endsAt"));
	outbox_time end = 0;

	assert_non_null(text);
	assert_int_equal(time_parse(text, 0, &end, NULL), OUTBOX_OK);
	json_decref(list);
	free(body);
	return end;
}

/* What still fires must not be over for Alertmanager before it is said again. */
static void test_it_lasts_until_it_is_said_again(void **state)
{
	(void)state;
	assert_int_equal(end_of(OUTBOX_MINUTES), NOW + 5 * OUTBOX_MINUTES);
	assert_true(end_of(4 * OUTBOX_HOURS) > NOW + 4 * OUTBOX_HOURS);
	assert_true(end_of(OUTBOX_NEVER) >= NOW + 365 * OUTBOX_DAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_it_lasts_until_it_is_said_again) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
