/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_POOL_H
#define TORTURE_POOL_H

/*
 * Memory and mutexes for SQLite that cost little: a fifth of a run's time goes into those of the system.
 * The allocations are the same ones. Sanitizer builds keep the system's, which they watch.
 */

#include <sqlite3.h>

/* Blocks from lists of free ones, by size. */
extern const sqlite3_mem_methods pool_methods;

/* Made as the system's are made, but nobody waits for them: there is one thread. */
extern const sqlite3_mutex_methods pool_mutexes;

#endif
