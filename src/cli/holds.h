/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HOLDS_H
#define CLI_HOLDS_H

/* What holds retention back, told alike wherever it matters. */

#include "cli/cli.h"
#include "operate/holds.h"

#include <jansson.h>

#define HOLD_TEXT_MAX 400

/* The retention of the configuration, or the default one, as a purge at this moment; delivered_before 0: for ever. */
struct outbox_purge holds_retention(const struct cli *cli, outbox_time now);

/* "holds back 3 messages that it still has to get; the oldest was published 12 d ago" */
const char *hold_text(const struct hold *hold, outbox_time now, char out[HOLD_TEXT_MAX]);

/* A line for each. */
void holds_print(const struct holds *holds, outbox_time now);
json_t *holds_json(const struct holds *holds);

#endif
