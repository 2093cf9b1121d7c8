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

/* A key that differs. */
typedef void (*difference_fn)(void *context, unsigned reload, const char *path);

struct walk {
	difference_fn tell;
	void *context;
};

static void compare(const struct walk *walk, const struct record *schema, const void *a,
		    const void *b, const char *path, unsigned reload)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct field *key = &schema->fields[i];
		const void *left = (const char *)a + key->offset;
		const void *right = (const char *)b + key->offset;
		/* a key without a word of its own follows its group */
		unsigned own = key->flags & (FIELD_LIVE | FIELD_RESTART), here = own ? own : reload;
		char name[200];

		snprintf(name, sizeof(name), "%s%s%s", path, *path ? "." : "", key->name);
		if (key->type == FIELD_OBJECT)
			compare(walk, key->of, left, right, name, here);
		else if (key->type != FIELD_LIST && !same_value(key, left, right))
			walk->tell(walk->context, here, name);
	}
}

static void count_one(void *context, unsigned reload, const char *path)
{
	(void)reload;
	(void)path;
	++*(size_t *)context;
}

static bool same_group(const char *list, const void *a, const void *b)
{
	size_t differences = 0;

	compare(&(struct walk){ count_one, &differences }, fields_find(&schema_root, list)->of, a,
		b, "", 0);
	return differences == 0;
}

static void sort_out(void *context, unsigned reload, const char *path)
{
	struct config_changes *changes = context;
	size_t used = strlen(changes->restart);

	if (reload == FIELD_LIVE)
		changes->live++;
	else if (!reload)
		changes->relay = true;
	else
		snprintf(changes->restart + used, sizeof(changes->restart) - used, "%s%s",
			 used ? ", " : "", path);
}

void config_compare(const struct config *before, const struct config *after,
		    struct config_changes *ret_changes)
{
	*ret_changes = (struct config_changes){ 0 };
	compare(&(struct walk){ sort_out, ret_changes }, &schema_root, before, after, "", 0);
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

	if (!same_group("sources", a, b))
		return false;
	do {
		one = next_target(before, a, &i);
		other = next_target(after, b, &j);
		if (one && other && !same_group("targets", one, other))
			return false;
	} while (one && other);
	return one == other;
}
