/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler saw last, and the configuration: no store is asked. */
#include "http/api.h"
#include "http/views.h"

#include <string.h>

/* ---- sources ------------------------------------------------------------------------------- */

static const char *const states[] = { NULL, "starting", "running", "draining", "stopped", NULL };

struct source_row {
	const char *name, *store, *trouble;
	int state;
	outbox_time trouble_since;
	const struct outbox_stats *stats;
};

static json_t *make_messages(const void *row)
{
	const struct outbox_stats *stats = ((const struct source_row *)row)->stats;

	return stats ? json_integer(stats->messages) : json_null();
}

static json_t *make_targets(const void *row)
{
	const struct outbox_stats *stats = ((const struct source_row *)row)->stats;

	return stats ? json_targets(stats) : json_array();
}

static const struct field source_fields[] = {
	FIELD(struct source_row, name, FIELD_TEXT, 0, NULL),
	FIELD(struct source_row, store, FIELD_TEXT, 0, "without its secrets"),
	FIELD_ONE_OF(struct source_row, state, states, 0, NULL),
	FIELD(struct source_row, trouble, FIELD_TEXT, FIELD_NULL,
	      "why its relay does not run, or not as the file says, or its store did not answer"),
	FIELD(struct source_row, trouble_since, FIELD_TIME, FIELD_NULL, NULL),
	FIELD_MADE("messages", FIELD_NUMBER, FIELD_NULL, make_messages,
		   "in the log; counting stops at 100,000"),
	FIELD_MADE_OF("targets", FIELD_LIST, view_target, make_targets, NULL),
};

const struct record view_source = RECORD("Source", source_fields);

static json_t *make_sources(const void *row)
{
	const struct sample *sample = row;
	json_t *list = json_array();

	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct sample_source *from = &sample->sources[i];
		const struct daemon_source *source = from->source;
		struct source_row to = { .name = source->name,
					 .store = source->store,
					 .trouble = source->trouble ? source->trouble : from->trouble,
					 .state = (int)source->state,
					 .trouble_since = source->trouble ? source->trouble_since : 0,
					 .stats = from->stats };

		if (json_array_append_new(list, fields_json(&view_source, &to))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static const struct field outbox_fields[] = {
	VIEW_SAMPLE_FIELDS,
	FIELD_MADE_OF("sources", FIELD_LIST, view_source, make_sources, NULL),
};

const struct record view_outbox = RECORD("Outbox", outbox_fields);

/* ---- answers ------------------------------------------------------------------------------- */

static int from_sample(const struct http_request *request, const struct record *record,
		       struct http_response *response, struct outbox_error *err)
{
	_cleanup_(sampler_releasep) const struct sample *sample = NULL;
	int r = api_sample(request, &sample, err);

	return r ? r : api_answer(response, fields_json(record, sample), err);
}

API_HANDLER(api_outbox)
{
	return from_sample(request, &view_outbox, response, err);
}

API_HANDLER(api_alerts)
{
	return from_sample(request, &view_alerts, response, err);
}

static void place(const struct sample_source *source, const char *target, struct place_of *place)
{
	const struct daemon_source *here = source->source;

	*place = (struct place_of){ .source = here->name, .target = target };
	for (size_t i = 0; i < here->n_targets; i++) {
		if (strcmp(here->targets[i].target, target) != 0)
			continue;
		place->transport = here->targets[i].transport;
		place->breaker = (int)here->targets[i].breaker + 1;
	}
}

static void add_target(json_t *list, const struct sample_source *source,
		       const struct outbox_target_stats *target, bool lanes)
{
	struct place_of at;

	place(source, target->name, &at);
	if (!lanes) {
		json_array_append_new(list, json_placed_target(&at, source->stats, target));
		return;
	}
	for (size_t i = 0; i < target->n_lanes; i++)
		json_array_append_new(list, json_placed_lane(&at, source->stats, &target->lanes[i]));
}

struct targets_query {
	const char *source, *target;
};

static const struct field targets_query_fields[] = {
	FIELD(struct targets_query, source, FIELD_TEXT, 0, "only of this one"),
	FIELD(struct targets_query, target, FIELD_TEXT, 0, "only this one"),
};

const struct record api_targets_query = RECORD("TargetsQuery", targets_query_fields);

static int answer_targets(const struct http_request *request, bool lanes,
			  struct http_response *response, struct outbox_error *err)
{
	struct targets_query query = { 0 };
	_cleanup_(sampler_releasep) const struct sample *sample = NULL;
	json_t *list;
	int r = api_query(request, &api_targets_query, &query, err);

	if (r == OUTBOX_OK)
		r = api_sample(request, &sample, err);
	if (r)
		return r;
	list = json_array();
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct sample_source *source = &sample->sources[i];

		if (!source->stats ||
		    (query.source && strcmp(query.source, source->source->name) != 0))
			continue;
		for (size_t j = 0; j < source->stats->n_targets; j++) {
			const struct outbox_target_stats *target = &source->stats->targets[j];

			if (!query.target || strcmp(query.target, target->name) == 0)
				add_target(list, source, target, lanes);
		}
	}
	return api_answer(response, json_pack("{s:o}", lanes ? "lanes" : "targets", list), err);
}

static const struct field targets_fields[] = {
	FIELD_MADE_OF("targets", FIELD_LIST, view_placed_target, NULL, NULL),
};

const struct record view_targets = RECORD("Targets", targets_fields);

API_HANDLER(api_targets)
{
	return answer_targets(request, false, response, err);
}

static const struct field lanes_fields[] = {
	FIELD_MADE_OF("lanes", FIELD_LIST, view_placed_lane, NULL, NULL),
};

const struct record view_lanes = RECORD("Lanes", lanes_fields);

API_HANDLER(api_lanes)
{
	return answer_targets(request, true, response, err);
}

/* ---- configuration ------------------------------------------------------------------------- */

static const struct field config_fields[] = {
	FIELD_MADE_OF("values", FIELD_LIST, view_setting, NULL,
		      "every value in effect, secrets masked"),
};

const struct record view_config = RECORD("Config", config_fields);

static void add_setting(void *context, const char *key, const char *value, const char *from)
{
	json_array_append_new(context, json_setting(key, value, from));
}

API_HANDLER(api_config)
{
	const struct config *config = daemon_config(request->daemon);
	json_t *list = json_array();
	int r = config_show(config, add_setting, list, err);

	daemon_config_done(request->daemon, config);
	if (r == OUTBOX_OK)
		return api_answer(response, json_pack("{s:o}", "values", list), err);
	json_decref(list);
	return r;
}
