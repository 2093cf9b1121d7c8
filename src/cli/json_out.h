/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

/*
 * JSON for programs: ids and seqs as strings (they do not fit a double), times in RFC 3339, durations
 * in seconds to a millisecond, never with an exponent, what is not there as null. Text that is not UTF-8 gets U+FFFD for its bad bytes. All
 * functions return a new reference, or NULL when out of memory; json_print() takes one and says so.
 */

#include "cli/cli.h"

#include <jansson.h>

json_t *json_text(const char *text); /* NULL gives null */
json_t *json_bytes(const char *data, size_t size);
json_t *json_seq(int64_t seq);
json_t *json_time(outbox_time time); /* 0 gives null */
json_t *json_thousandths(int64_t n); /* 1500 is 1.5 */
json_t *json_seconds(outbox_time duration);
json_t *json_delivery(const struct outbox_delivery *row);
json_t *json_audit(const struct outbox_audit *row);

/* Print on stdout, one line, and free it. ENOMEM when value is NULL. */
int json_print(json_t *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
