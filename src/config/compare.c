/* SPDX-License-Identifier: Apache-2.0 */
/* Two configurations against each other, by the tables: a key that is added there is compared here. */
#include "config/compare.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)128 << 10)

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_value(const struct field *key, const void *a, const void *b)
{
	_cleanup_(buf_deinit) struct buf one = BUF_INIT(TEXT_MAX_BYTES);
	_cleanup_(buf_deinit) struct buf other = BUF_INIT(TEXT_MAX_BYTES);

	switch (key->type) {
	case FIELD_NAME:
	case FIELD_TEXT:
	case FIELD_URL:
	case FIELD_SECRET:
		/* not as it is shown: that hides what is secret */
		return same_text(*(const char *const *)a, *(const char *const *)b);
	default:
		field_format(key, a, &one);
		field_format(key, b, &other);
		return !one.failed && !other.failed && strcmp(buf_str(&one), buf_str(&other)) == 0;
	}
}

struct comparison {
	const char *before,
		*after; /* the structs; what is in them is as far from the beginning in both */
	struct config_changes *changes;
};

static void compare_leaf(void *context, const struct leaf *leaf)
{
	const struct comparison *comparison = context;
	struct config_changes *changes = comparison->changes;
	size_t offset = (size_t)((const char *)leaf->value - comparison->before);
	size_t used = strlen(changes->restart);

	if (same_value(leaf->key, leaf->value, comparison->after + offset))
		return;
	if (leaf->reload == FIELD_LIVE)
		changes->live++;
	else if (leaf->reload == FIELD_RESTART)
		snprintf(changes->restart + used, sizeof(changes->restart) - used, "%s%s",
			 used ? ", " : "", leaf->path);
	else
		changes->relay = true;
}

static struct config_changes compare(const struct record *schema, const void *before,
				     const void *after)
{
	struct config_changes changes = { 0 };

	schema_walk(schema, NULL, before, compare_leaf,
		    &(struct comparison){ before, after, &changes });
	return changes;
}

static bool same_entry(const char *list, const void *a, const void *b)
{
	struct config_changes changes = compare(fields_find(&schema_root, list)->of, a, b);

	return !changes.relay && !changes.live && !*changes.restart;
}

void config_compare(const struct config *before, const struct config *after,
		    struct config_changes *ret_changes)
{
	*ret_changes = compare(&schema_root, before, after);
}

bool config_alert_same(const struct config_alert *a, const struct config_alert *b)
{
	return same_entry("alerts", a, b);
}

bool config_source_has(const struct config_source *source, const char *target)
{
	for (size_t i = 0; i < source->targets.count; i++)
		if (glob_match(source->targets.items[i], target))
			return true;
	return source->targets.count == 0;
}

/* The next target of a source from *at on; NULL behind the last. */
static const struct config_target *next_target(const struct config *config,
					       const struct config_source *source, size_t *at)
{
	const struct config_target *targets = config->targets.items;

	while (*at < config->targets.count) {
		const struct config_target *target = &targets[(*at)++];

		if (config_source_has(source, target->name))
			return target;
	}
	return NULL;
}

bool config_source_same(const struct config *before, const struct config_source *a,
			const struct config *after, const struct config_source *b)
{
	const struct config_target *one, *other;
	size_t i = 0, j = 0;

	if (!same_entry("sources", a, b))
		return false;
	do {
		one = next_target(before, a, &i);
		other = next_target(after, b, &j);
		if (one && other && !same_entry("targets", one, other))
			return false;
	} while (one && other);
	return one == other;
}
