/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For clang-tidy alone, included ahead of every source: outbox_fail() returns the status it is given.
 * The analyzer cannot see into another file and would follow paths on which a failure returns 0.
 */

#include <outbox/error.h>

#define outbox_fail(err, status, ...) (outbox_fail(err, status, __VA_ARGS__), status)
#define outbox_fail_native(err, status, native, ...) \
	(outbox_fail_native(err, status, native, __VA_ARGS__), status)
