/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/services.h"

#include "daemon/journal.h"
#include "http/server.h"
#include "telemetry/otlp.h"
#include "telemetry/sampler.h"

#include <stdlib.h>

struct services {
	struct daemon *daemon;
	struct watch *watch;
	struct admin *admin; /* NULL: nobody wants one */
	struct otlp *otlp;   /* the same */
};

static void reloaded(void *context)
{
	struct services *services = context;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (services->admin && admin_reload(services->admin, &err))
		journal(EVENT_CONFIG_REFUSED, NULL, "%s; the tokens stay as they were", err.message);
}

static int start_export(struct services *services, const struct config *config,
			struct outbox_error *err)
{
	const struct log log = { journal_sink, NULL };
	int r = otlp_new(&config->otlp, config->relay.instance, &log, &services->otlp, err);

	if (r == OUTBOX_OK)
		r = otlp_start(services->otlp, services->watch, err);
	if (r == OUTBOX_OK)
		daemon_observe(services->daemon, otlp_observe, services->otlp);
	return r;
}

static int start(struct services *services, const struct config *config, struct outbox_error *err)
{
	struct admin_options options = { .config = &config->admin,
					 .daemon = services->daemon,
					 .log = { journal_sink, NULL },
					 .clock = outbox_clock_system() };
	int r = watch_start(services->daemon, &services->watch, err);

	options.watch = services->watch;
	if (r == OUTBOX_OK && config->admin.listen)
		r = admin_start(&options, &services->admin, err);
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
	admin_stop(services->admin);
	watch_stop(services->watch);
	free(services);
	return NULL;
}
