/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

/* What --json prints. The objects that the admin server shows, too, are made in http/views.h. */

#include "cli/cli.h"
#include "fields/json_value.h"
#include "http/views.h"

/* Print on stdout, one line, and free it. ENOMEM when value is NULL. */
int json_print(json_t *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
