/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_nothing(const struct outbox_transport_config *config,
			struct outbox_transport **ret_transport, struct outbox_error *err)
{
	(void)config;
	(void)ret_transport;
	return outbox_fail(err, OUTBOX_ENOTSUP, "not here");
}

static int connect_nothing(struct outbox_transport *transport, outbox_time deadline,
			   struct outbox_error *err)
{
	(void)transport;
	(void)deadline;
	(void)err;
	return OUTBOX_OK;
}

static int publish_nothing(struct outbox_transport *transport, struct outbox_batch *batch,
			   outbox_time deadline, struct outbox_error *err)
{
	(void)transport;
	(void)batch;
	(void)deadline;
	(void)err;
	return OUTBOX_OK;
}

static int closed;

static void disconnect_nothing(struct outbox_transport *transport)
{
	(void)transport;
}

static void close_nothing(struct outbox_transport *transport)
{
	(void)transport;
	closed++;
}

static int check_nothing(struct outbox_transport *transport, outbox_time deadline, char *text,
			 size_t size)
{
	(void)transport;
	(void)deadline;
	if (size > 1)
		memcpy(text, "x", 2);
	return 2;
}

static const char *const good_schemes[] = { "good", "good+tls", NULL };

static struct outbox_transport_ops good_ops(void)
{
	return (struct outbox_transport_ops){
		.struct_size = sizeof(struct outbox_transport_ops),
		.name = "good",
		.schemes = good_schemes,
		.open = open_nothing,
		.connect = connect_nothing,
		.publish = publish_nothing,
		.disconnect = disconnect_nothing,
		.close = close_nothing,
		.check = check_nothing,
	};
}

static void assert_refused(const struct outbox_transport_ops *ops, const char *names)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	assert_int_equal(transport_ops_check(ops, &err), OUTBOX_EINVAL);
	assert_int_equal(err.status, OUTBOX_EINVAL);
	assert_non_null(strstr(err.message, names));
	assert_int_equal(transport_ops_check(ops, NULL), OUTBOX_EINVAL);
}

static void complete_ops_are_accepted(void **state)
{
	struct outbox_transport_ops ops = good_ops();

	(void)state;
	assert_int_equal(transport_ops_check(&ops, NULL), OUTBOX_OK);
	ops.check = NULL;
	ops.help = NULL;
	assert_int_equal(transport_ops_check(&ops, NULL), OUTBOX_OK);
	/* A driver built before check() was invented. */
	ops.struct_size = offsetof(struct outbox_transport_ops, check);
	assert_int_equal(transport_ops_check(&ops, NULL), OUTBOX_OK);
}

static void what_is_missing_is_named(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const bad[] = { "good", "Bad_One", NULL };
	struct outbox_transport_ops ops;

	(void)state;
	assert_refused(NULL, "no transport");
	ops = good_ops(), ops.struct_size = 0;
	assert_refused(&ops, "struct_size");
	ops = good_ops(), ops.name = NULL;
	assert_refused(&ops, "name");
	ops = good_ops(), ops.name = "";
	assert_refused(&ops, "name");
	ops = good_ops(), ops.open = NULL;
	assert_refused(&ops, "open()");
	ops = good_ops(), ops.connect = NULL;
	assert_refused(&ops, "connect()");
	ops = good_ops(), ops.publish = NULL;
	assert_refused(&ops, "publish()");
	ops = good_ops(), ops.disconnect = NULL;
	assert_refused(&ops, "disconnect()");
	ops = good_ops(), ops.close = NULL;
	assert_refused(&ops, "close()");
	ops = good_ops(), ops.schemes = NULL;
	assert_refused(&ops, "scheme");
	ops = good_ops(), ops.schemes = none;
	assert_refused(&ops, "scheme");
	ops = good_ops(), ops.schemes = bad;
	assert_refused(&ops, "Bad_One");
}

static void built_in_drivers_are_complete_and_distinct(void **state)
{
	size_t n = 0;

	(void)state;
	for (; transport_drivers[n]; n++) {
		assert_int_equal(transport_ops_check(transport_drivers[n], NULL), OUTBOX_OK);
		for (size_t k = 0; k < n; k++)
			assert_string_not_equal(transport_drivers[n]->schemes[0],
						transport_drivers[k]->schemes[0]);
	}
	assert_true(n >= 4);
}

static void close_and_check_dispatch(void **state)
{
	struct outbox_transport_ops ops = good_ops();
	struct outbox_transport transport = { .ops = &ops };
	char text[8] = "unset";

	(void)state;
	closed = 0;
	assert_null(transport_close(NULL));
	assert_int_equal(closed, 0);
	assert_null(transport_close(&transport));
	assert_int_equal(closed, 1);
	assert_int_equal(transport_check(&transport, 0, text, sizeof(text)), 2);
	assert_string_equal(text, "x");
	ops.check = NULL;
	assert_int_equal(transport_check(&transport, 0, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	/* Behind its struct_size there may be anything. */
	ops = good_ops();
	ops.struct_size = offsetof(struct outbox_transport_ops, check);
	assert_int_equal(transport_check(&transport, 0, text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_ops_are_accepted),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(built_in_drivers_are_complete_and_distinct),
		cmocka_unit_test(close_and_check_dispatch),
	};

	return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
