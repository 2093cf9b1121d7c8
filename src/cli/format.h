/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

/* How values, audit rows, what holds retention back, and JSON are written for whoever reads the output. */

#include "base/text.h"
#include "cli/cli.h"
#include "fields/json_value.h"
#include "http/views.h"
#include "operate/holds.h"

#include <jansson.h>

/* How long ago, "2 min"; "-" for time 0. Times ahead are "in 5 min". */
const char *age_text(outbox_time now, outbox_time then, char out[DURATION_TEXT_MAX]);

/* A count that stops at OUTBOX_COUNT_CAP: "> 100,000". */
const char *capped_text(int64_t count, char out[COUNT_TEXT_MAX]);

/* One word for a delivery's state: a pending one is shown by its why. */
const char *delivery_word(const struct outbox_delivery *row);
int delivery_colour(const struct outbox_delivery *row);

struct buf;

/*
 * An audit row's detail for people. Stores keep what was before the act as a JSON object; it is shown
 * as "before: state failed, attempts 5, error ..."; anything else as it is.
 */
void detail_text(struct buf *out, const char *detail);

/* What holds retention back, told alike wherever it matters. */

#define HOLD_TEXT_MAX 400

/* Those of a purge at this moment by the retention of the configuration, or the default one. stats: the store's, just now. */
int holds_retention(struct cli *cli, const struct outbox_stats *stats, struct holds *ret_holds,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "holds back 3 messages that it still has to receive; the oldest was published 12 d ago" */
const char *hold_text(const struct hold *hold, outbox_time now, char out[HOLD_TEXT_MAX]);

/* Those of a purge by this store's state now, *ret_now; cli->arena is reset for it. */
int holds_read(struct cli *cli, const struct outbox_purge *purge, struct holds *ret_holds,
	       outbox_time *ret_now, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A line for each. */
void holds_print(const struct holds *holds, outbox_time now);
json_t *holds_json(const struct holds *holds);

/* What --json prints. The objects that the admin server shows, too, are made in http/views.h. */

/* Print on stdout, one line, and free it. ENOMEM when value is NULL. */
int json_print(json_t *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
