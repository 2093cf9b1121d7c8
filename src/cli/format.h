/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

#include "base/text.h"

/* How long ago, "2 min"; "-" for time 0. Times ahead are "in 5 min". */
const char *age_text(outbox_time now, outbox_time then, char out[DURATION_TEXT_MAX]);

/* A count that stops at OUTBOX_COUNT_CAP: "> 100,000". */
const char *capped_text(int64_t count, char out[COUNT_TEXT_MAX]);

#endif
