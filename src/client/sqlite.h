/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_SQLITE_H
#define CLIENT_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>

/* By sqlite3_close_v2(), while a statement of ours keeps its memory: nothing else can be asked. */
bool sqlite_is_closed(sqlite3 *db);

#endif
