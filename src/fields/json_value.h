/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FIELDS_JSON_VALUE_H
#define FIELDS_JSON_VALUE_H

/*
 * JSON for programs, the same on the command line and over HTTP: ids and seqs as strings (they do not fit a double), times in
 * RFC 3339, durations in seconds to a millisecond, never with an exponent, what is not there as null. Text that
 * is not UTF-8 gets U+FFFD for its bad bytes. All functions return a new reference, or NULL when out of memory.
 */

#include <outbox/clock.h>

#include <jansson.h>

json_t *json_text(const char *text); /* NULL gives null */
json_t *json_seq(int64_t seq);
json_t *json_time(outbox_time time); /* 0 gives null */
json_t *json_thousandths(int64_t n); /* 1500 is 1.5 */
json_t *json_seconds(outbox_time duration);

/* How all of it is written: 15 digits, so that 0.1 is 0.1, and with three decimals at most there is no exponent. */
#define JSON_STYLE (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

#endif
