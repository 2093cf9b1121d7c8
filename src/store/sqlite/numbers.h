/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_NUMBERS_H
#define STORE_SQLITE_NUMBERS_H

/*
 * Is the log still numbered as it was when lanes passed it?
 *
 * SQLite gives a new row the number behind the highest that is there or that sqlite_sequence knows. If
 * that is reset when the end of the log is purged, numbers are given again, and what gets them lies
 * before positions that have passed them: nobody would read it. So every purge notes which numbers are
 * gone for good, those in (gone_after, gone_to]: from the last message that is left to the end of the log. A
 * message with such a number is a new one under an old number, and lanes are refused until outbox rebase.
 */

#include "store/sqlite/delivery.h"

/* EPROTO, with the remedy: this lane must not be worked on. Its view was read. */
int numbers_check(const struct lane_op *op, int64_t pos, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A lane was refused: note that, so that it stays refused when publishers have come past its position.
 * status is what its op returns, and returned. */
int numbers_note_refusal(struct sqlite_store *s, const char *target, int lane, int status);

/* What is not there now up to the end of the log, or to `to`, is gone for good. In the transaction that removes. */
int numbers_mark(struct sqlite_store *s, int64_t to, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* EPROTO: the first lane that is refused. */
int numbers_check_all(const struct targets *targets, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
