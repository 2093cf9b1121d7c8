/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_STATEMENTS_LOOK_H
#define STORE_SQLITE_STATEMENTS_LOOK_H

/* The statements of people's ops: list, tail, act, stats, purge. */

/* clang-format off */
#define STATEMENTS_LOOK(X)                                                                  \
	X(SQL_QUICK_CHECK, "PRAGMA quick_check(1)")
/* clang-format on */

#endif
