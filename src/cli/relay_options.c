/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relay_options.h"

#include "base/rate.h"
#include "base/text.h"
#include "cli/config_file.h"
#include "cli/policies.h"
#include "cli/store_url.h"
#include "config/schema.h"
#include "core/routing.h"
#include "daemon/journal.h"

#include <string.h>

#define SHUTDOWN_DEFAULT (30 * OUTBOX_SECONDS)

/* A file says external: true instead. */
static const char *const envelopes[] = { NULL, "structured", "binary", "native", "external", NULL };

static int choose(const char *option, const char *const *choices, const char *text, int *ret_value,
		  struct outbox_error *err)
{
	struct field field = { .name = option, .type = FIELD_WORD, .words = choices };
	struct field_context nothing = { 0 };

	if (field_parse(&field, text, &nothing, ret_value, err) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_wrap(err, "--%s", option);
}

static int find_target(struct relay_setup *setup, const char *option, const char *name,
		       size_t *ret_index, struct outbox_error *err)
{
	char shown[80];

	for (size_t i = 0; i < setup->count; i++)
		if (strcmp(setup->names[i], name) == 0) {
			*ret_index = i;
			return OUTBOX_OK;
		}
	return outbox_fail(err, OUTBOX_EINVAL, "--%s: no target \"%s\"; name it with --to %s=URL",
			   option, text_shown(shown, sizeof(shown), name), shown);
}

/* NAME=VALUE of one of the --to targets. */
static int target_pair(struct relay_setup *setup, const char *option, const char *text,
		       size_t *ret_index, const char **ret_value, struct outbox_error *err)
{
	char name[OUTBOX_TARGET_NAME_MAX + 1];
	int r = pair_split(option, text, name, sizeof(name), ret_value, err);

	return r ? r : find_target(setup, option, name, ret_index, err);
}

static int add_targets(const struct list *to, struct relay_setup *setup, struct outbox_error *err)
{
	struct outbox_target_config unset = OUTBOX_TARGET_CONFIG_INIT;

	for (size_t i = 0; i < to->count; i++) {
		const char *url;
		int r = pair_split("to", to->items[i], setup->names[i], sizeof(setup->names[i]),
				   &url, err);

		if (r == OUTBOX_OK)
			r = target_name_check(setup->names[i], err);
		if (r)
			return r;
		url_warn("to", url);
		setup->targets[i] = unset;
		setup->targets[i].name = setup->names[i];
		setup->targets[i].to = url;
		setup->targets[i].route.types = setup->types[i];
		setup->count++;
	}
	return OUTBOX_OK;
}

static int set_choices(struct relay_setup *setup, const char *option, const struct list *given,
		       const char *const *choices, size_t offset, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *value;
		size_t at = 0;
		int r = target_pair(setup, option, given->items[i], &at, &value, err);

		if (r == OUTBOX_OK)
			r = choose(option, choices, value,
				   (int *)((char *)&setup->targets[at] + offset), err);
		if (r)
			return r;
	}
	return OUTBOX_OK;
}

static int set_matches(struct relay_setup *setup, const struct list *given, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		struct outbox_route *route;
		const char *glob;
		size_t at = 0;
		int r = target_pair(setup, "match", given->items[i], &at, &glob, err);

		if (r)
			return r;
		route = &setup->targets[at].route;
		if (strcmp(glob, "-") == 0) {
			route->nothing = true;
			continue;
		}
		setup->types[at][route->n_types++] = glob;
		r = route_check(route, err);
		if (r)
			return outbox_wrap(err, "--match %s", setup->names[at]);
	}
	return OUTBOX_OK;
}

/* NAME=POLICY for one target, POLICY alone for all. */
static int set_policies(struct relay_setup *setup, const struct list *given, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		const struct outbox_policy *policy;
		const char *name = given->items[i];
		size_t first = 0, end = setup->count;
		int r = OUTBOX_OK;

		if (strchr(name, '=')) {
			r = target_pair(setup, "policy", name, &first, &name, err);
			end = first + 1;
		}
		if (r == OUTBOX_OK)
			r = policy_find(name, &policy, err);
		if (r)
			return outbox_wrap(err, "--policy");
		for (size_t at = first; at < end; at++)
			setup->targets[at].policy = policy;
	}
	return OUTBOX_OK;
}

static int set_flags(struct relay_setup *setup, const char *option, const struct list *given,
		     size_t offset, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		size_t at = 0;
		int r = find_target(setup, option, given->items[i], &at, err);

		if (r)
			return r;
		*(bool *)((char *)&setup->targets[at] + offset) = true;
	}
	return OUTBOX_OK;
}

static int set_rates(struct relay_setup *setup, const struct list *given, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		struct rate rate;
		const char *text;
		size_t at = 0;
		int r = target_pair(setup, "rate", given->items[i], &at, &text, err);

		if (r == OUTBOX_OK && rate_parse(text, &rate, err))
			r = outbox_wrap(err, "--rate %s", setup->names[at]);
		if (r)
			return r;
		setup->targets[at].rate_count = rate.count;
		setup->targets[at].rate_period = rate.period;
	}
	return OUTBOX_OK;
}

static int set_starts(struct relay_setup *setup, const struct list *given, struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *value;
		char shown[80];
		size_t at = 0;
		int r = target_pair(setup, "start", given->items[i], &at, &value, err);

		if (r)
			return r;
		if (strcmp(value, "oldest") == 0)
			setup->targets[at].start = OUTBOX_START_OLDEST;
		else if (strcmp(value, "now") == 0)
			setup->targets[at].start = OUTBOX_START_NOW;
		else if (value[0] != '+' &&
			 time_parse(value, 0, &setup->targets[at].start_time, NULL) == OUTBOX_OK)
			setup->targets[at].start = OUTBOX_START_TIME;
		else
			return outbox_fail(err, OUTBOX_EINVAL,
					   "--start: \"%s\" is neither oldest, now nor a time like "
					   "2026-11-15T18:00:00Z",
					   text_shown(shown, sizeof(shown), value));
	}
	return OUTBOX_OK;
}

/* A dead letter may be registered by another relay: it need not be one of --to. */
static int set_dead_letters(struct relay_setup *setup, const struct list *given,
			    struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *name;
		size_t at = 0;
		int r = target_pair(setup, "dead-letter", given->items[i], &at, &name, err);

		if (r == OUTBOX_OK)
			r = target_name_check(name, err);
		if (r)
			return r;
		setup->targets[at].dead_letter = name;
	}
	return OUTBOX_OK;
}

static int set_all(const struct relay_values *given, struct relay_setup *setup,
		   struct outbox_error *err)
{
	int r = add_targets(&given->to, setup, err);

	if (r == OUTBOX_OK)
		r = set_choices(setup, "envelope", &given->envelope, envelopes,
				offsetof(struct outbox_target_config, envelope), err);
	if (r == OUTBOX_OK)
		r = set_choices(setup, "order", &given->order, schema_orders,
				offsetof(struct outbox_target_config, order), err);
	if (r == OUTBOX_OK)
		r = set_starts(setup, &given->start, err);
	if (r == OUTBOX_OK)
		r = set_dead_letters(setup, &given->dead_letter, err);
	if (r == OUTBOX_OK)
		r = set_choices(setup, "kind", &given->kind, schema_kinds,
				offsetof(struct outbox_target_config, route.kind), err);
	if (r == OUTBOX_OK)
		r = set_matches(setup, &given->match, err);
	if (r == OUTBOX_OK)
		r = set_policies(setup, &given->policy, err);
	if (r == OUTBOX_OK)
		r = set_flags(setup, "hold", &given->hold,
			      offsetof(struct outbox_target_config, hold), err);
	if (r == OUTBOX_OK)
		r = set_flags(setup, "bands", &given->bands,
			      offsetof(struct outbox_target_config, bands), err);
	if (r == OUTBOX_OK)
		r = set_rates(setup, &given->rate, err);
	return r;
}

static int from_options(const struct relay_values *given, struct relay_setup *ret_setup,
			struct outbox_error *err)
{
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	int r = set_all(given, ret_setup, err);

	if (r)
		return r;
	/* what leaves the house is only what says that it may */
	for (size_t i = 0; i < ret_setup->count; i++)
		ret_setup->targets[i].route.published_only =
			ret_setup->targets[i].envelope == OUTBOX_ENVELOPE_EXTERNAL;
	config.targets = ret_setup->targets;
	config.n_targets = ret_setup->count;
	config.workers = (int)given->workers;
	config.instance = given->instance;
	config.batch_messages = (size_t)given->batch;
	config.batch_bytes = (size_t)given->batch_bytes;
	config.lease = given->lease;
	config.poll_max = given->poll;
	config.retain_delivered = given->retain_delivered;
	config.retain_failed = given->retain_failed;
	ret_setup->config = config;
	ret_setup->shutdown_timeout =
		given->shutdown_timeout ? given->shutdown_timeout : SHUTDOWN_DEFAULT;
	return OUTBOX_OK;
}

/* One source of the file, or all of them; with several each has its name in front of what it says. */
static int add_sources(const char *only, struct relay_setup *setup, struct outbox_error *err)
{
	const struct config_source *sources = setup->file->sources.items;
	size_t count = setup->file->sources.count;
	int r = OUTBOX_OK;

	if (only) {
		r = config_source_find(setup->file, only, &sources, err);
		count = 1;
	}
	for (size_t i = 0; r == OUTBOX_OK && i < count; i++) {
		struct relay_source *source = &setup->sources[setup->n_sources++];

		r = config_relay(setup->file, &sources[i], &setup->config, err);
		source->name = count > 1 ? sources[i].name : NULL;
		source->store = setup->config.store;
		source->targets = setup->config.targets;
		source->n_targets = setup->config.n_targets;
	}
	return r;
}

static int from_file(const struct relay_values *given, struct relay_setup *setup,
		     struct outbox_error *err)
{
	int r = relay_values_refuse(given, err);

	sets_warn(&given->set);
	if (r == OUTBOX_OK)
		r = config_open_told(given->config, &given->set, true, &setup->file, err);
	setup->file_name = given->config;
	if (r == OUTBOX_OK)
		r = add_sources(given->source, setup, err);
	if (r)
		return r;
	setup->shutdown_timeout = setup->file->relay.shutdown_timeout;
	journal_choose(setup->file->log.format == CONFIG_LOG_JSON, setup->file->log.level - 1);
	return OUTBOX_OK;
}

int relay_setup_make(const struct relay_values *given, struct relay_setup *ret_setup,
		     struct outbox_error *err)
{
	const char *file = getenv("OUTBOX_CONFIG");

	if (given->config)
		return from_file(given, ret_setup, err);
	if (!given->to.count && file && *file) {
		struct relay_values named = *given;

		named.config = file;
		return from_file(&named, ret_setup, err);
	}
	if (given->set.count || given->source)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s goes with --config FILE only",
				   given->source ? "source" : "set");
	if (!given->to.count)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--to is missing: --to NAME=URL, or --config FILE");
	return from_options(given, ret_setup, err);
}

struct relay_setup *relay_setup_free(struct relay_setup *setup)
{
	if (setup)
		config_free(setup->file);
	free(setup);
	return NULL;
}
