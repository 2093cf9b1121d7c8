/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_API_H
#define HTTP_API_H

/* The handlers, and what they share. routes.c has the table. */

#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "fields/fields.h"
#include "http/http.h"
#include "http/views.h"
#include "telemetry/sampler.h"

#define API_HANDLER(name)                                                            \
	int name(const struct http_request *request, struct http_response *response, \
		 struct outbox_error *err)

/* probes.c */
API_HANDLER(probe_index);
API_HANDLER(probe_health);
API_HANDLER(probe_live);
API_HANDLER(probe_ready);
API_HANDLER(probe_metrics);
/* api_read.c: from the last sample, so that looking costs the databases nothing */
API_HANDLER(api_outbox);
API_HANDLER(api_targets);
API_HANDLER(api_lanes);
API_HANDLER(api_alerts);
API_HANDLER(api_config);
/* api_messages.c: from a store */
API_HANDLER(api_messages);
API_HANDLER(api_message);
API_HANDLER(api_payload);
API_HANDLER(api_audit);
API_HANDLER(api_keys);
/* api_act.c */
API_HANDLER(api_requeue);
API_HANDLER(api_discard);
API_HANDLER(api_defer);
/* api_amend.c */
API_HANDLER(api_amend);
/* api_control.c */
API_HANDLER(api_purge);
API_HANDLER(api_redact);
API_HANDLER(api_cancel);
API_HANDLER(api_pause);
API_HANDLER(api_resume);
API_HANDLER(api_drain);
API_HANDLER(api_reload);
/* api_events.c */
API_HANDLER(api_events);
/* openapi.c */
API_HANDLER(api_description);

/* The field of a query or body that says which store is meant. */
#define API_SOURCE(type_) \
	FIELD(type_, source, FIELD_TEXT, 0, "required when there are several sources")

extern const struct record api_source_query, api_targets_query, api_messages_query,
	api_message_query, api_audit_query, api_keys_query, api_redact_body, api_cancel_body,
	api_amend_body, api_requeue_body, api_discard_body, api_defer_body, api_purge_body,
	api_pause_body, api_resume_body, api_drain_body, api_reload_body;
extern const struct record view_outbox, view_source, view_targets, view_lanes, view_config,
	view_drained, view_reloaded, view_error;

/* ---- api.c --------------------------------------------------------------------------------- */

/* Into values, which is zeroed where nothing was given. */
int api_query(const struct http_request *request, const struct record *record, void *values,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;
int api_body(const struct http_request *request, const struct record *record, void *values,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Take json as the answer; NULL: ENOMEM. */
int api_answer(struct http_response *response, json_t *json,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* An error with a status of HTTP's own, where none of ours says it. */
int api_refuse(struct http_response *response, int status, const char *code, const char *message,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The last sample; EBUSY: there is none yet. Give it back with sampler_release(). */
int api_sample(const struct http_request *request, const struct sample **ret_sample,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A store of the request's own, closed behind its handler. source NULL: the only one; EINVAL names them where there are several.
 * target (may be NULL) must be registered there: ENOTFOUND names those that are.
 */
int api_open(const struct http_request *request, const char *source, const char *target,
	     struct outbox_store **ret_store, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
