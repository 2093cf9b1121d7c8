/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_UNIT_TEST_H
#define BASE_UNIT_TEST_H

/* cmocka wants these before it, in this order. For *_test.c only. */

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <outbox/error.h>

#include <string.h>

/* The call fails with this status, and its message holds this text. */
#define assert_fails(call, want_status, want_text)                                   \
	do {                                                                         \
		struct outbox_error err_ = OUTBOX_ERROR_INIT;                        \
		struct outbox_error *err = &err_;                                    \
		assert_int_equal((call), (want_status));                             \
		assert_int_equal(err_.status, (want_status));                        \
		if (!strstr(err_.message, (want_text)))                              \
			fail_msg("\"%s\" is not in: %s", (want_text), err_.message); \
		(void)err;                                                           \
	} while (0)

#define assert_ok(call)                                                              \
	do {                                                                         \
		struct outbox_error err_ = OUTBOX_ERROR_INIT;                        \
		struct outbox_error *err = &err_;                                    \
		if ((call) != OUTBOX_OK)                                             \
			fail_msg("%s: %s", #call, err_.message);                     \
		assert_string_equal(err_.message, ""); /* written on failure only */ \
		(void)err;                                                           \
	} while (0)

#endif
