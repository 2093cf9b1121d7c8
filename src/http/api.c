/* SPDX-License-Identifier: Apache-2.0 */
#include "http/api.h"

#include "base/text.h"
#include "fields/json_value.h"
#include "http/parse.h"
#include "operate/act.h"
#include "store/store.h"

#include <string.h>

int api_query(const struct http_request *request, const struct record *record, void *values,
	      struct outbox_error *err)
{
	for (size_t i = 0; i < record->count; i++) {
		const char *text = query_find(request->query, record->fields[i].name);
		int r = OUTBOX_OK;

		if (text)
			r = fields_read_text(&record->fields[i], text, request->arena, values, err);
		if (r)
			return r;
	}
	return OUTBOX_OK;
}

int api_body(const struct http_request *request, const struct record *record, void *values,
	     struct outbox_error *err)
{
	json_auto_t *nothing = request->body ? NULL : json_object();

	return fields_read(record, request->body ? request->body : nothing, request->arena, values,
			   err);
}

int api_answer(struct http_response *response, json_t *json, struct outbox_error *err)
{
	if (!json)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	response->json = json;
	return OUTBOX_OK;
}

int api_refuse(struct http_response *response, int status, const char *code, const char *message,
	       struct outbox_error *err)
{
	response->status = status;
	return api_answer(response,
			  json_pack("{s:{s:i, s:s, s:o}}", "error", "status", status, "code", code,
				    "message", json_text(message)),
			  err);
}

int api_sample(const struct http_request *request, const struct sample **ret_sample,
	       struct outbox_error *err)
{
	const struct sample *sample = sampler_hold(request->sampler);

	if (!sample)
		return outbox_fail(err, OUTBOX_EBUSY,
				   "no store has been sampled yet; try again in a few seconds");
	*ret_sample = sample;
	return OUTBOX_OK;
}

/* ---- a store ------------------------------------------------------------------------------- */

static bool has_target(const struct outbox_stats *stats, const char *name)
{
	for (size_t i = 0; i < stats->n_targets; i++)
		if (strcmp(stats->targets[i].name, name) == 0)
			return true;
	return false;
}

/* What the last sample knows costs the database nothing. */
static bool seen_target(const struct http_request *request, const char *source, const char *target)
{
	_cleanup_(sampler_releasep) const struct sample *sample = sampler_hold(request->sampler);

	for (size_t i = 0; sample && i < sample->n_sources; i++) {
		const struct sample_source *one = &sample->sources[i];

		if ((!source || strcmp(one->source->name, source) == 0) && one->stats &&
		    has_target(one->stats, target))
			return true;
	}
	return false;
}

static int check_target(const struct http_request *request, struct outbox_store *store,
			const char *target, struct outbox_error *err)
{
	struct outbox_stats stats;
	int r = store_stats(store, request->arena, &stats, err);

	return r ? r : act_check_target(&stats, target, err);
}

int api_open(const struct http_request *request, const char *source, const char *target,
	     struct outbox_store **ret_store, struct outbox_error *err)
{
	int r = daemon_open_store(request->daemon, source, request->opened, err);
	struct outbox_store *store = r ? NULL : daemon_store_of(*request->opened);

	if (r == OUTBOX_OK && target && !seen_target(request, source, target))
		r = check_target(request, store, target, err);
	if (r == OUTBOX_OK)
		*ret_store = store;
	return r;
}
