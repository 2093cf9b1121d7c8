/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_SQLITE_EXTENSION_H
#define CLIENT_SQLITE_EXTENSION_H

/*
 * Included before everything else in every source of outbox.so: whatever they call of SQLite goes through the table that
 * the program hands over which loads it. It may have a SQLite of its own linked in, and two of them in one process break
 * each other's locks.
 */
#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

#endif
