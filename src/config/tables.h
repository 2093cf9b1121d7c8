/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_TABLES_H
#define CONFIG_TABLES_H

/* How a table's lines are written, and the tables that have a file of their own. */

#include "base/cleanup.h"
#include "config/config.h"
#include "config/schema.h"

#include <stddef.h>

#define KEY(type_, struct_, field_) \
	.name = #field_, .type = FIELD_##type_, .offset = offsetof(struct struct_, field_)
#define SCHEMA(keys_, struct_) \
	.fields = keys_, .count = ARRAY_SIZE(keys_), .size = sizeof(struct struct_)

extern const struct record schema_health, schema_alert, schema_otlp;

#endif
