/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/generation.h"

#include "core/secrets.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hide_secrets_of(const struct outbox_relay_config *relay)
{
	secrets_hide_url(relay->store);
	for (size_t i = 0; i < relay->n_targets; i++)
		secrets_hide_url(relay->targets[i].to);
}

static void hide_header(const struct otlp_header *header)
{
	char value[1024], *word;

	snprintf(value, sizeof(value), "%.*s", (int)header->value_size, header->value);
	secrets_hide(value);
	/* "Bearer SECRET", or the same with %20 */
	word = strstr(value, "%20");
	word = word ? word + 3 : strchr(value, ' ');
	if (word)
		secrets_hide(word + (*word == ' '));
	explicit_bzero(value, sizeof(value));
}

/* Of the receivers of alerts and of telemetry. */
static void hide_secrets_of_config(const struct config *config)
{
	const struct config_alert *alerts = config->alerts.items;
	struct otlp_header header;

	for (size_t i = 0; i < config->alerts.count; i++) {
		secrets_hide(alerts[i].token);
		secrets_hide_url(alerts[i].url);
	}
	for (const char *rest = config->otlp.headers; rest && otlp_header_next(&rest, &header);)
		hide_header(&header);
}

int generation_new(struct config *config, struct generation **ret_generation,
		   struct outbox_error *err)
{
	const struct config_source *sources = config->sources.items;
	struct generation *g = calloc(1, sizeof(*g));
	int r = OUTBOX_OK;

	if (g)
		g->relays = calloc(config->sources.count, sizeof(*g->relays));
	if (!g || !g->relays) {
		free(g);
		config_free(config);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	g->config = config;
	config->owner = g;
	atomic_init(&g->holders, 1);
	/* all of them now: config_relay() takes from the configuration's arena, which is nobody's later on */
	for (size_t i = 0; r == OUTBOX_OK && i < config->sources.count; i++) {
		r = config_relay(config, &sources[i], &g->relays[i], err);
		if (r == OUTBOX_OK)
			hide_secrets_of(&g->relays[i]);
	}
	hide_secrets_of_config(config);
	if (r) {
		generation_drop(g);
		return r;
	}
	*ret_generation = g;
	return OUTBOX_OK;
}

struct generation *generation_hold(struct generation *g)
{
	atomic_fetch_add(&g->holders, 1);
	return g;
}

void generation_drop(struct generation *g)
{
	if (!g || atomic_fetch_sub(&g->holders, 1) > 1)
		return;
	config_free(g->config);
	free(g->relays);
	free(g);
}
