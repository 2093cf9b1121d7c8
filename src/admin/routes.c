/* SPDX-License-Identifier: Apache-2.0 */
/* Every path there is. What is not here does not exist: nothing is served from a disk. */
#include "admin/probes.h"
#include "base/cleanup.h"

static const struct admin_route routes[] = {
	{ "GET", "/healthz", ROLE_NONE, ROUTE_QUICK, probe_health, NULL,
	  "ok, or fail when a rule says unhealthy" },
	{ "GET", "/livez", ROLE_NONE, ROUTE_QUICK, probe_live, NULL, "ok: the process answers" },
	{ "GET", "/readyz", ROLE_NONE, ROUTE_QUICK, probe_ready, NULL,
	  "ok, or fail while draining or without any store" },
	{ "GET", "/metrics", ROLE_READ, ROUTE_QUICK | ROUTE_METRICS, probe_metrics, NULL,
	  "Prometheus metrics" },
};

const struct admin_route *admin_route_at(size_t i)
{
	return i < ARRAY_SIZE(routes) ? &routes[i] : NULL;
}
