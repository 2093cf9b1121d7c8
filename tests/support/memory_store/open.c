/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"
#include "memory_store/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int memory_open(const struct outbox_store_config *config, bool create,
		struct outbox_store **ret_store, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	struct memory_db *db = config->context;
	struct memory_store *s;
	char shown[80];
	int status;

	(void)create;
	status = url_parse(config->url, &url, err);
	if (!status)
		status = url_finish(&url, "none", err);
	if (status)
		return status;
	if (!db)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "memory stores are for tests and need a database object: register the "
				   "driver with memory_db_new()'s as its context");
	if (url.has_authority || strcmp(url.path, db->name) != 0)
		return outbox_fail(err, OUTBOX_ENOTFOUND,
				   "no memory database \"%s\": the one registered is memory:%s",
				   text_shown(shown, sizeof(shown), config->url), db->name);

	s = memory_alloc(sizeof(*s));
	s->base.ops = &memory_store_ops;
	s->db = db;
	s->clock = config->clock;
	s->random = config->random;
	*ret_store = &s->base;
	return OUTBOX_OK;
}

void memory_close(struct outbox_store *store)
{
	free(store);
}

int memory_schema_check(const struct memory_db *db, struct outbox_error *err)
{
	if (!db->schema)
		return outbox_fail(err, OUTBOX_ESCHEMA, "no outbox in memory:%s: run outbox init",
				   db->name);
	if (db->schema > MEMORY_SCHEMA)
		return outbox_fail(err, OUTBOX_ESCHEMA,
				   "the schema of memory:%s has version %d, newer than this program's "
				   "%d: use a newer outbox",
				   db->name, db->schema, MEMORY_SCHEMA);
	return OUTBOX_OK;
}

int memory_init(struct memory_store *s, const struct outbox_init_options *options,
		struct outbox_error *err)
{
	int lanes = options ? options->lanes : 0;
	struct memory_db *db = s->db;

	if (db->schema) {
		int status = memory_schema_check(db, err);

		if (status)
			return status;
		if (lanes && lanes != db->lanes)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "lanes: memory:%s was initialised with %d, not %d; leave it "
					   "out or say %d",
					   db->name, db->lanes, lanes, db->lanes);
		return OUTBOX_OK;
	}
	db->schema = MEMORY_SCHEMA;
	db->lanes = lanes ? lanes : 1;
	return OUTBOX_OK;
}

int memory_upgrade(struct memory_store *s, const struct outbox_init_options *options, int *ret_from,
		   struct outbox_error *err)
{
	int status = memory_schema_check(s->db, err);

	(void)options;
	if (!status)
		*ret_from = s->db->schema;
	return status;
}

static int no_open_tx(const struct memory_db *db, struct outbox_error *err)
{
	if (db->open_tx)
		return outbox_fail(err, OUTBOX_EBUSY,
				   "%zu transactions are open on memory:%s; try again", db->open_tx,
				   db->name);
	return OUTBOX_OK;
}

int memory_drop(struct memory_store *s, struct outbox_error *err)
{
	int status = no_open_tx(s->db, err);

	if (status)
		return status;
	memory_db_clear(s->db);
	s->db->schema = 0;
	s->db->lanes = 0;
	return OUTBOX_OK;
}

int memory_truncate(struct memory_store *s, struct outbox_error *err)
{
	int status = no_open_tx(s->db, err);

	if (!status)
		memory_db_clear(s->db);
	return status;
}

int memory_info(struct memory_store *s, struct outbox_store_info *ret_info, struct outbox_error *err)
{
	(void)err;
	memset(ret_info, 0, sizeof(*ret_info));
	snprintf(ret_info->driver, sizeof(ret_info->driver), "memory");
	snprintf(ret_info->name, sizeof(ret_info->name), "%s", s->db->name);
	ret_info->schema_version = s->db->schema;
	ret_info->program_version = MEMORY_SCHEMA;
	ret_info->lanes = s->db->lanes;
	return OUTBOX_OK;
}
