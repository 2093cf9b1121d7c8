/* SPDX-License-Identifier: Apache-2.0 */
/* Every path there is. What is not here does not exist: nothing is served from a disk. */
#include "admin/probes.h"
#include "base/cleanup.h"

#define PLAIN "text/plain; charset=utf-8"

static const struct admin_route routes[] = {
	{ "GET", "/healthz", ROLE_NONE, ROUTE_QUICK, probe_health,
	  "ok, or fail when a rule says unhealthy", NULL, NULL, NULL, PLAIN },
	{ "GET", "/livez", ROLE_NONE, ROUTE_QUICK, probe_live, "ok: the process answers", NULL,
	  NULL, NULL, PLAIN },
	{ "GET", "/readyz", ROLE_NONE, ROUTE_QUICK, probe_ready,
	  "ok, or fail while draining or without any store", NULL, NULL, NULL, PLAIN },
	{ "GET", "/metrics", ROLE_READ, ROUTE_QUICK | ROUTE_METRICS, probe_metrics,
	  "Prometheus metrics", NULL, NULL, NULL, PLAIN },
};

const struct admin_route *admin_route_at(size_t i)
{
	return i < ARRAY_SIZE(routes) ? &routes[i] : NULL;
}
