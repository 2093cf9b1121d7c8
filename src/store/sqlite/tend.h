/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_TEND_H
#define STORE_SQLITE_TEND_H

#include "store/sqlite/db.h"

/* Bytes of the write-ahead log's file. */
int64_t sqlite_wal_size(struct sqlite_store *s);

#endif
