/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"
#include "memory_store/unserved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory_interned {
	struct memory_interned *next;
	char text[];
};

static void out_of_memory(void)
{
	fputs("outbox: memory store: out of memory\n", stderr);
	abort();
}

void *memory_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

char *memory_text(const char *text)
{
	char *copy;

	if (!text)
		return NULL;
	copy = strdup(text);
	if (!copy)
		out_of_memory();
	return copy;
}

void *memory_grow(void *array, size_t count, size_t *capacity, size_t size)
{
	size_t wanted;
	char *grown;

	if (count < *capacity)
		return array;
	wanted = *capacity ? *capacity * 2 : 8;
	while (wanted <= count)
		wanted *= 2;
	grown = reallocarray(array, wanted, size);
	if (!grown)
		out_of_memory();
	memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
	*capacity = wanted;
	return grown;
}

void memory_replace(char **text, const char *with)
{
	char *copy = memory_text(with);

	free(*text);
	*text = copy;
}

uint64_t memory_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash ^ (hash >> 29);
}

const char *memory_intern(struct memory_db *db, const char *text)
{
	struct memory_interned **bucket = &db->interned[memory_hash(text) & (MEMORY_BUCKETS - 1)];
	struct memory_interned *found;
	size_t size = strlen(text) + 1;

	for (found = *bucket; found; found = found->next) {
		if (!strcmp(found->text, text))
			return found->text;
	}
	found = memory_alloc(sizeof(*found) + size);
	memcpy(found->text, text, size);
	found->next = *bucket;
	*bucket = found;
	return found->text;
}

struct memory_db *memory_db_new(const char *name, struct outbox_clock *clock, uint64_t seed)
{
	struct memory_db *db = memory_alloc(sizeof(*db));
	size_t size = strlen(name) + sizeof("/outbox/");

	pthread_mutex_init(&db->lock, NULL);
	db->name = memory_text(name);
	db->source = memory_alloc(size);
	snprintf(db->source, size, "/outbox/%s", name);
	db->clock = clock;
	random_init(&db->random, seed);
	db->base = 1;
	db->first_event = 1;
	db->ids = memory_alloc(MEMORY_BUCKETS * sizeof(*db->ids));
	db->interned = memory_alloc(MEMORY_BUCKETS * sizeof(*db->interned));
	return db;
}

void memory_db_clear(struct memory_db *db)
{
	for (size_t i = 0; i < db->n_targets; i++)
		memory_target_free(db, db->targets[i]);
	db->n_targets = 0;

	for (size_t i = 0; i < db->n_rows; i++)
		memory_log_free(db->rows[i]);
	db->base += (int64_t)db->n_rows; /* numbers are never given twice */
	db->n_rows = 0;
	db->n_gone = 0;
	db->next = 0;
	db->n_again = 0;
	db->count = 0;
	memset(db->ids, 0, MEMORY_BUCKETS * sizeof(*db->ids));

	db->first_event += (int64_t)db->n_events;
	db->n_events = 0;
	for (size_t i = 0; i < db->n_audit; i++) {
		struct memory_audit *row = &db->audit[i];

		free(row->actor);
		free(row->action);
		free(row->target);
		free(row->id);
		free(row->reason);
		free(row->detail);
	}
	db->n_audit = 0;
	memory_unserved_forget(db, NULL, NULL);
	db->ever_settled = false;
}

struct memory_db *memory_db_free(struct memory_db *db)
{
	if (!db)
		return NULL;
	memory_db_clear(db);
	for (size_t i = 0; i < MEMORY_BUCKETS; i++) {
		for (struct memory_interned *p = db->interned[i], *next; p; p = next) {
			next = p->next;
			free(p);
		}
	}
	free(db->interned);
	free(db->ids);
	free(db->rows);
	free(db->targets);
	free(db->events);
	free(db->audit);
	free(db->unserved);
	free(db->source);
	free(db->name);
	pthread_mutex_destroy(&db->lock);
	free(db);
	return NULL;
}

void memory_db_set_fault(struct memory_db *db, memory_fault_fn fault, void *context)
{
	db->fault = fault;
	db->fault_context = context;
}

void memory_db_set_schema(struct memory_db *db, int version)
{
	pthread_mutex_lock(&db->lock);
	db->schema = version;
	pthread_mutex_unlock(&db->lock);
}
