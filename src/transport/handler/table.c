/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "core/routing.h"
#include "transport/handler/handler.h"

#include <outbox/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sorted by type: an application may have hundreds of types, and every message asks. */
struct handler_table {
	char name[OUTBOX_TARGET_NAME_MAX + 1]; /* "": the first */
	struct handler_table *next;
	struct handler_entry *entries;
	size_t count, capacity;
};

int handler_table_new(struct handler_table **ret_table, struct outbox_error *err)
{
	struct handler_table *table = calloc(1, sizeof(*table));

	if (!table)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_table = table;
	return OUTBOX_OK;
}

struct handler_table *handler_table_free(struct handler_table *table)
{
	while (table) {
		struct handler_table *next = table->next;

		for (size_t i = 0; i < table->count; i++)
			free(table->entries[i].type);
		free(table->entries);
		free(table);
		table = next;
	}
	return NULL;
}

const struct handler_table *handler_table_lookup(const struct handler_table *first, const char *name)
{
	while (first && strcmp(first->name, name) != 0)
		first = first->next;
	return first;
}

int handler_table_named(struct handler_table *first, const char *name,
			struct handler_table **ret_table, struct outbox_error *err)
{
	struct handler_table **at = &first->next;
	char shown[80];
	int r;

	if (!name) {
		*ret_table = first;
		return OUTBOX_OK;
	}
	if (target_name_check(name, NULL))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "handler: \"%s\" is not a name; use a lower-case letter and then up "
				   "to %d of a-z, 0-9, _ and -, or NULL for none",
				   text_shown(shown, sizeof(shown), name),
				   OUTBOX_TARGET_NAME_MAX - 1);
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	if (!*at) {
		r = handler_table_new(at, err);
		if (r)
			return r;
		snprintf((*at)->name, sizeof((*at)->name), "%s", name);
	}
	*ret_table = *at;
	return OUTBOX_OK;
}

/* Where type is, or where it belongs. */
static size_t place_of(const struct handler_table *table, const char *type, bool *ret_found)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(table->entries[middle].type, type);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

static int reserve(struct handler_table *table, struct outbox_error *err)
{
	size_t capacity = table->capacity ? 2 * table->capacity : 16;
	struct handler_entry *grown;

	if (table->count < table->capacity)
		return OUTBOX_OK;
	grown = reallocarray(table->entries, capacity, sizeof(*grown));
	if (!grown)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	table->entries = grown;
	table->capacity = capacity;
	return OUTBOX_OK;
}

static int check_arguments(const char *type, outbox_handler handler, struct outbox_error *err)
{
	char shown[80];

	if (!type || !type[0])
		return outbox_fail(err, OUTBOX_EINVAL,
				   "handler: type is empty; give an event type or \"*\"");
	if (!utf8_valid(type, strlen(type)) || utf8_length(type) > OUTBOX_TYPE_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "handler: type \"%s\" is not a type; at most %d characters of "
				   "UTF-8",
				   text_shown(shown, sizeof(shown), type), OUTBOX_TYPE_MAX);
	if (strchr(type, '*') && strcmp(type, "*") != 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "handler: type \"%s\": globs are not supported; give the exact "
				   "type or \"*\" alone",
				   text_shown(shown, sizeof(shown), type));
	if (!handler)
		return outbox_fail(err, OUTBOX_EINVAL, "handler: no function for type \"%s\"",
				   text_shown(shown, sizeof(shown), type));
	return OUTBOX_OK;
}

int handler_table_add(struct handler_table *table, const char *type, outbox_handler handler,
		      void *context, struct outbox_error *err)
{
	struct handler_entry entry = { .handler = handler, .context = context };
	char shown[80];
	bool found;
	size_t place;
	int r = check_arguments(type, handler, err);

	if (r)
		return r;
	place = place_of(table, type, &found);
	if (found)
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "handler: type \"%s\" already has a handler",
				   text_shown(shown, sizeof(shown), type));
	r = reserve(table, err);
	if (r)
		return r;
	entry.type = strdup(type);
	if (!entry.type)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	memmove(&table->entries[place + 1], &table->entries[place],
		(table->count - place) * sizeof(entry));
	table->entries[place] = entry;
	table->count++;
	return OUTBOX_OK;
}

const struct handler_entry *handler_table_find(const struct handler_table *table, const char *type)
{
	bool found;
	size_t place = place_of(table, type, &found);

	if (!found)
		place = place_of(table, "*", &found);
	return found ? &table->entries[place] : NULL;
}

size_t handler_table_count(const struct handler_table *table)
{
	return table->count;
}
