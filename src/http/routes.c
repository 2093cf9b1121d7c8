/* SPDX-License-Identifier: Apache-2.0 */
/* Every path there is. What is not here does not exist: nothing is served from a disk. */
#include "base/cleanup.h"
#include "http/api.h"
#include "http/views.h"

#define PLAIN "text/plain; charset=utf-8"

#define LOOK(path_, handler_, summary_, query_, answer_)                                \
	{                                                                               \
		"GET", path_, ROLE_READ, ROUTE_QUICK, handler_, summary_, query_, NULL, \
			&(answer_), NULL                                                \
	}
#define READ(path_, handler_, summary_, query_, answer_)                                       \
	{                                                                                      \
		"GET", path_, ROLE_READ, 0, handler_, summary_, query_, NULL, &(answer_), NULL \
	}
#define ACT(path_, handler_, summary_, body_, answer_)                                               \
	{                                                                                            \
		"POST", path_, ROLE_OPERATE, 0, handler_, summary_, NULL, &(body_), &(answer_), NULL \
	}

static const struct http_route routes[] = {
	{ "GET", "/", ROLE_NONE, ROUTE_QUICK, probe_index, "this list of paths", NULL, NULL, NULL,
	  PLAIN },
	{ "GET", "/healthz", ROLE_NONE, ROUTE_QUICK, probe_health,
	  "ok, starting, or fail when a rule says unhealthy", NULL, NULL, NULL, PLAIN },
	{ "GET", "/livez", ROLE_NONE, ROUTE_QUICK, probe_live, "ok: the process answers", NULL,
	  NULL, NULL, PLAIN },
	{ "GET", "/readyz", ROLE_NONE, ROUTE_QUICK, probe_ready,
	  "ok, starting, or fail while draining or without any store", NULL, NULL, NULL, PLAIN },
	{ "GET", "/metrics", ROLE_READ, ROUTE_QUICK | ROUTE_METRICS, probe_metrics,
	  "Prometheus metrics", NULL, NULL, NULL, PLAIN },
	LOOK("/api/outbox", api_outbox, "health, sources and counts per target", NULL, view_outbox),
	LOOK("/api/targets", api_targets, "every target of every source", &api_targets_query,
	     view_targets),
	LOOK("/api/lanes", api_lanes, "who works on which lane", &api_targets_query, view_lanes),
	LOOK("/api/alerts", api_alerts, "what is wrong, the worst first", NULL, view_alerts),
	LOOK("/api/config", api_config, "the configuration in effect, secrets masked", NULL,
	     view_config),
	READ("/api/messages", api_messages, "deliveries by filter, page by page",
	     &api_messages_query, view_deliveries),
	READ("/api/messages/{id}", api_message, "a message, its deliveries, its history",
	     &api_message_query, view_message_detail),
	{ "GET", "/api/messages/{id}/payload", ROLE_OPERATE, 0, api_payload, "the payload's bytes",
	  &api_source_query, NULL, NULL, "application/octet-stream" },
	READ("/api/audit", api_audit, "who did what, newest first", &api_audit_query, view_audits),
	READ("/api/keys", api_keys, "keys that wait for their first unfinished delivery",
	     &api_keys_query, view_blocked_keys),
	ACT("/api/messages/requeue", api_requeue, "try failed deliveries again", api_requeue_body,
	    view_acted),
	ACT("/api/messages/discard", api_discard, "give up pending or failed deliveries for good",
	    api_discard_body, view_acted),
	ACT("/api/messages/defer", api_defer, "put pending deliveries off until a later time",
	    api_defer_body, view_acted),
	ACT("/api/messages/{id}/amend", api_amend,
	    "correct a message that no target has received; it keeps its place", api_amend_body,
	    view_amended),
	ACT("/api/messages/{id}/cancel", api_cancel, "cancel a scheduled message before it is due",
	    api_cancel_body, view_cancelled),
	ACT("/api/messages/{id}/redact", api_redact,
	    "remove the personal data from a finished message, for good", api_redact_body,
	    view_redacted),
	ACT("/api/purge", api_purge, "remove finished messages", api_purge_body, view_purged),
	ACT("/api/targets/{name}/pause", api_pause, "send nothing to a target until it is resumed",
	    api_pause_body, view_paused),
	ACT("/api/targets/{name}/resume", api_resume, "send to a paused target again",
	    api_resume_body, view_paused),
	ACT("/api/drain", api_drain, "finish what is in flight, release the lanes, end the process",
	    api_drain_body, view_drained),
	ACT("/api/reload", api_reload, "read the configuration again; a wrong one changes nothing",
	    api_reload_body, view_reloaded),
	{ "GET", "/api/events", ROLE_READ, ROUTE_QUICK, api_events,
	  "server-sent events: a sample every few seconds, alerts", NULL, NULL, NULL,
	  "text/event-stream" },
	{ "GET", "/api/openapi.json", ROLE_READ, 0, api_description, "this description", NULL, NULL,
	  NULL, "application/json" },
};

const struct http_route *http_route_at(size_t i)
{
	return i < ARRAY_SIZE(routes) ? &routes[i] : NULL;
}
