/* SPDX-License-Identifier: Apache-2.0 */
/* Purge, redact, cancel, pause and resume; drain and reload of this process. */
#include "base/cleanup.h"
#include "daemon/journal.h"
#include "fields/json_value.h"
#include "http/api.h"
#include "http/views.h"
#include "operate/act.h"
#include "operate/purge.h"
#include "store/store.h"

#define PURGE_MAX 5000

/* ---- purge --------------------------------------------------------------------------------- */

struct purge_body {
	const char *source;
	outbox_time delivered_before, failed_before;
	size_t limit;
	bool dry_run;
};

static const struct field purge_fields[] = {
	API_SOURCE(struct purge_body),
	FIELD(struct purge_body, delivered_before, FIELD_AGO, 0,
	      "messages that every target got before: an age like 7d, or a time"),
	FIELD(struct purge_body, failed_before, FIELD_AGO, 0,
	      "also messages with a delivery that failed before"),
	FIELD_LIMIT(struct purge_body, PURGE_MAX, "messages in this call; 5000 unless given"),
	FIELD(struct purge_body, dry_run, FIELD_BOOL, 0, "count up to limit, change nothing"),
};

const struct record api_purge_body = RECORD("Purge", purge_fields);

API_HANDLER(api_purge)
{
	struct purge_body body = { 0 };
	struct purged_view view = { 0 };
	struct outbox_purge purge = { .actor = request->actor };
	struct outbox_store *store;
	int r = api_body(request, &api_purge_body, &body, err);

	purge.delivered_before = body.delivered_before;
	purge.failed_before = body.failed_before;
	purge.limit = body.limit ? body.limit : PURGE_MAX;
	if (r == OUTBOX_OK)
		r = purge_check(&purge, NAMED_AS_FIELD, err);
	if (r == OUTBOX_OK)
		r = api_open(request, body.source, NULL, &store, err);
	if (r)
		return r;
	if (body.dry_run)
		r = purge_count(store, &purge, NULL, &view.purged, err);
	else
		r = store_purge(store, &purge, &view.purged, err);
	view.dry_run = body.dry_run;
	return r ? r : api_answer(response, fields_json(&view_purged, &view), err);
}

/* ---- redact -------------------------------------------------------------------------------- */

struct redact_body {
	const char *source, *reason;
};

static const struct field redact_fields[] = {
	API_SOURCE(struct redact_body),
	FIELD(struct redact_body, reason, FIELD_TEXT, FIELD_REQUIRED, "why, for the audit"),
};

const struct record api_redact_body = RECORD("Redact", redact_fields);

API_HANDLER(api_redact)
{
	struct redact_body body = { 0 };
	struct outbox_redact redact;
	struct outbox_store *store;
	bool changed = false;
	int r = api_body(request, &api_redact_body, &body, err);

	if (r == OUTBOX_OK)
		r = api_open(request, body.source, NULL, &store, err);
	if (r)
		return r;
	redact = (struct outbox_redact){ .struct_size = sizeof(redact),
					 .id = request->captured[0],
					 .actor = request->actor,
					 .reason = body.reason };
	r = store_redact(store, &redact, &changed, err);
	return r ? r : api_answer(response, json_redacted(request->captured[0], changed), err);
}

/* ---- cancel -------------------------------------------------------------------------------- */

const struct record api_cancel_body = RECORD("Cancel", redact_fields);

API_HANDLER(api_cancel)
{
	struct redact_body body = { 0 };
	struct outbox_cancel cancel;
	struct outbox_store *store;
	bool changed = false;
	int r = api_body(request, &api_cancel_body, &body, err);

	if (r == OUTBOX_OK)
		r = api_open(request, body.source, NULL, &store, err);
	if (r)
		return r;
	cancel = (struct outbox_cancel){ .struct_size = sizeof(cancel),
					 .id = request->captured[0],
					 .actor = request->actor,
					 .reason = body.reason };
	r = store_cancel(store, &cancel, &changed, err);
	return r ? r : api_answer(response, json_cancelled(request->captured[0], changed), err);
}

/* ---- pause, resume ------------------------------------------------------------------------- */

struct pause_body {
	const char *source, *reason;
	bool dry_run;
};

#define PAUSE_FIELDS(flags_, help_)                                                                 \
	API_SOURCE(struct pause_body), FIELD(struct pause_body, reason, FIELD_TEXT, flags_, help_), \
		FIELD(struct pause_body, dry_run, FIELD_BOOL, 0,                                    \
		      "say what would be done, change nothing")

static const struct field pause_fields[] = { PAUSE_FIELDS(FIELD_REQUIRED,
							  "the reason, for the audit trail") };
static const struct field resume_fields[] = { PAUSE_FIELDS(0, "why, for the audit") };

const struct record api_pause_body = RECORD("Pause", pause_fields);
const struct record api_resume_body = RECORD("Resume", resume_fields);

static int set_paused(const struct http_request *request, bool pause, const struct record *record,
		      struct http_response *response, struct outbox_error *err)
{
	struct act_pause how = { .target = request->captured[0],
				 .pause = pause,
				 .actor = request->actor };
	struct pause_body body = { 0 };
	struct outbox_stats stats;
	struct outbox_store *store;
	bool changed = false;
	int r = api_body(request, record, &body, err);

	if (r == OUTBOX_OK)
		r = api_open(request, body.source, NULL, &store, err);
	if (r)
		return r;
	how.reason = body.reason;
	how.dry_run = body.dry_run;
	r = store_stats(store, request->arena, &stats, err);
	if (r == OUTBOX_OK)
		r = act_pause(store, &stats, &how, &changed, err);
	return r ? r : api_answer(response, json_paused(how.target, pause, changed), err);
}

API_HANDLER(api_pause)
{
	return set_paused(request, true, &api_pause_body, response, err);
}

API_HANDLER(api_resume)
{
	return set_paused(request, false, &api_resume_body, response, err);
}

/* ---- this process -------------------------------------------------------------------------- */

struct process_body {
	bool dry_run;
};

static const struct field process_fields[] = {
	FIELD(struct process_body, dry_run, FIELD_BOOL, 0, "say what would be done, change nothing"),
};

const struct record api_drain_body = RECORD("Drain", process_fields);
const struct record api_reload_body = RECORD("Reload", process_fields);

struct drained {
	bool dry_run, draining;
};

static const struct field drained_fields[] = {
	FIELD(struct drained, dry_run, FIELD_BOOL, 0, "true: nothing was changed"),
	FIELD(struct drained, draining, FIELD_BOOL, 0,
	      "it finishes what is in flight, releases its lanes and ends"),
};

const struct record view_drained = RECORD("Drained", drained_fields);

API_HANDLER(api_drain)
{
	struct daemon *daemon = request->daemon;
	struct process_body body = { 0 };
	int r = api_body(request, &api_drain_body, &body, err);

	if (r)
		return r;
	if (!body.dry_run) {
		journal(EVENT_ADMIN_ACT, NULL, "drain, asked for by %s", request->actor);
		daemon_drain(daemon);
	}
	return api_answer(response,
			  fields_json(&view_drained,
				      &(struct drained){ body.dry_run, daemon_draining(daemon) }),
			  err);
}

struct reloaded {
	struct daemon_reloaded what;
	bool dry_run;
};

static const struct field reloaded_fields[] = {
	FIELD(struct reloaded, dry_run, FIELD_BOOL, 0, "true: nothing was changed"),
	FIELD_NAMED("kept", struct reloaded, what.kept, FIELD_COUNT, 0,
		    "sources that are as they were"),
	FIELD_NAMED("changed", struct reloaded, what.changed, FIELD_COUNT, 0, "sources that restart"),
	FIELD_NAMED("added", struct reloaded, what.added, FIELD_COUNT, 0, NULL),
	FIELD_NAMED("removed", struct reloaded, what.removed, FIELD_COUNT, 0, NULL),
	FIELD_NAMED("restart", struct reloaded, what.restart, FIELD_CHARS, 0,
		    "keys that changed and take effect only when the process restarts; empty: none"),
};

const struct record view_reloaded = RECORD("Reloaded", reloaded_fields);

/* The file is wrong: everything that is wrong with it, and nothing has changed. */
static int answer_problems(const struct problems *problems, const struct outbox_error *why,
			   struct http_response *response, struct outbox_error *err)
{
	response->status = 400;
	return api_answer(response,
			  json_pack("{s:{s:i, s:s, s:o}, s:o}", "error", "status", 400, "code",
				    "config", "message", json_text(why->message), "problems",
				    json_problems(problems)),
			  err);
}

API_HANDLER(api_reload)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct reloaded reloaded = { 0 };
	struct process_body body = { 0 };
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = api_body(request, &api_reload_body, &body, err);

	if (r)
		return r;
	if (!problems)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!body.dry_run)
		journal(EVENT_ADMIN_ACT, NULL, "reload, asked for by %s", request->actor);
	r = daemon_reload(request->daemon, body.dry_run, problems, &reloaded.what, &why);
	if (r == OUTBOX_EINVAL || r == OUTBOX_ECONFIG)
		return answer_problems(problems, &why, response, err);
	if (r)
		return outbox_fail(err, r, "%s", why.message);
	reloaded.dry_run = body.dry_run;
	return api_answer(response, fields_json(&view_reloaded, &reloaded), err);
}
