/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/services.h"

#include "daemon/journal.h"
#include "http/server.h"
#include "telemetry/otlp.h"
#include "telemetry/sampler.h"

#include <stdlib.h>

struct services {
	struct daemon *daemon;
	struct sampler *sampler;
	struct http_server *server; /* NULL: not configured */
	struct otlp *otlp;          /* the same */
};

static void reloaded(void *context)
{
	struct services *services = context;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (services->server && http_server_reload(services->server, &err))
		journal(EVENT_CONFIG_REFUSED, NULL, "%s; the tokens stay as they were", err.message);
}

static int start_export(struct services *services, const struct config *config,
			struct outbox_error *err)
{
	int r = otlp_new(&config->otlp, config->relay.instance, &services->otlp, err);

	if (r == OUTBOX_OK)
		r = otlp_start(services->otlp, services->sampler, err);
	if (r == OUTBOX_OK)
		daemon_observe(services->daemon, otlp_observe, services->otlp);
	return r;
}

static int start(struct services *services, const struct config *config, struct outbox_error *err)
{
	int r = sampler_start(services->daemon, &services->sampler, err);

	if (r == OUTBOX_OK && config->admin.listen)
		r = http_server_start(&config->admin, services->daemon, services->sampler,
				      &services->server, err);
	if (r == OUTBOX_OK && config->otlp.endpoint)
		r = start_export(services, config, err);
	return r;
}

/* Health goes to the journal and to the alerts also without a server; options know neither. */
static bool wanted(struct daemon *daemon, const struct config *config)
{
	return daemon_file(daemon) || config->admin.listen;
}

int services_start(struct daemon *daemon, struct services **ret_services, struct outbox_error *err)
{
	struct services *services = calloc(1, sizeof(*services));
	const struct config *config;
	int r = OUTBOX_OK;

	if (!services)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	services->daemon = daemon;
	config = daemon_config(daemon);
	if (wanted(daemon, config))
		r = start(services, config, err);
	daemon_config_done(daemon, config);
	if (r) {
		services_stop(services);
		return r;
	}
	daemon_follow(daemon, reloaded, services);
	*ret_services = services;
	return OUTBOX_OK;
}

struct services *services_stop(struct services *services)
{
	if (!services)
		return NULL;
	daemon_follow(services->daemon, NULL, NULL);
	otlp_free(services->otlp);
	http_server_stop(services->server);
	sampler_stop(services->sampler);
	free(services);
	return NULL;
}
