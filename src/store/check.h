/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

/* What the op check() of a driver says: one finding after the other. For drivers. */

#include "store/store.h"

/* As include/outbox/store.h says. */
enum check_level { FINE = 0, NOTE = 1, WARNING = 2, WRONG = 3 };

/* Whom it is told. */
struct check_report {
	store_say say;
	void *context;
};

/* One finding: a sentence, with the remedy where there is something to repair. Cut to 511 bytes. */
void OUTBOX_PRINTF(4, 5) check_say(const struct check_report *to, enum check_level level,
				   const char *subject, const char *format, ...);

#endif
