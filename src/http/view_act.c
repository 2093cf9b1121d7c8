/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' acts did. */
#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "fields/json_value.h"
#include "http/views.h"

static json_t *make_why(const void *row)
{
	const struct acted_view *view = row;

	return json_text(view->acted.refused ? view->acted.why : NULL);
}

static json_t *make_cursor(const void *row)
{
	const struct acted_view *view = row;

	return json_text(view->acted.more && *view->acted.cursor ? view->acted.cursor : NULL);
}

static const struct field acted_fields[] = {
	{ .name = "action",
	  .type = FIELD_TEXT,
	  .offset = offsetof(struct acted_view, action),
	  .words = action_names },
	FIELD(struct acted_view, dry_run, FIELD_BOOL, 0, "true: nothing was changed"),
	FIELD_NAMED("done", struct acted_view, acted.done, FIELD_COUNT, 0,
		    "deliveries changed, or would be"),
	FIELD_NAMED("refused", struct acted_view, acted.refused, FIELD_COUNT, 0,
		    "named by id and refused"),
	FIELD_MADE("why", FIELD_TEXT, FIELD_NULL, make_why, "why the first one was refused"),
	FIELD_NAMED("oldest", struct acted_view, acted.oldest, FIELD_TIME, FIELD_NULL,
		    "when the oldest message was created"),
	FIELD_NAMED("more", struct acted_view, acted.more, FIELD_BOOL, 0,
		    "call again, with before and cursor as they are here"),
	FIELD_MADE("cursor", FIELD_TEXT, FIELD_NULL, make_cursor, NULL),
	FIELD(struct acted_view, before, FIELD_TIME, FIELD_NULL,
	      "only what was created (and, for requeue, changed) before this is affected"),
};

const struct record view_acted = RECORD("Acted", acted_fields);

struct paused_row {
	const char *target;
	bool paused, changed;
};

static const struct field paused_fields[] = {
	FIELD(struct paused_row, target, FIELD_TEXT, 0, NULL),
	FIELD(struct paused_row, paused, FIELD_BOOL, 0, "whether it is paused now"),
	FIELD(struct paused_row, changed, FIELD_BOOL, 0, "false: it was so before"),
};

const struct record view_paused = RECORD("Paused", paused_fields);

json_t *json_paused(const char *target, bool paused, bool changed)
{
	return fields_json(&view_paused, &(struct paused_row){ target, paused, changed });
}

static const struct field purged_fields[] = {
	FIELD(struct purged_view, dry_run, FIELD_BOOL, 0, "true: nothing was changed"),
	FIELD_NAMED("messages", struct purged_view, purged.messages, FIELD_NUMBER, 0,
		    "removed, or would be"),
	FIELD_NAMED("failed", struct purged_view, purged.failed, FIELD_NUMBER, 0,
		    "of them with a failed delivery"),
	FIELD_NAMED("receipts", struct purged_view, purged.receipts, FIELD_NUMBER, 0, NULL),
	FIELD_NAMED("deliveries", struct purged_view, purged.detours, FIELD_NUMBER, 0,
		    "rows of deliveries that had not gone straight through"),
	FIELD(struct purged_view, archive, FIELD_TEXT, FIELD_NULL, "the file they were written to"),
	FIELD(struct purged_view, archived, FIELD_NUMBER, 0, NULL),
	FIELD_NAMED("more", struct purged_view, purged.more, FIELD_BOOL, 0, "call again"),
};

const struct record view_purged = RECORD("Purged", purged_fields);

struct redacted_row {
	const char *id;
	bool changed;
};

static const struct field redacted_fields[] = {
	FIELD(struct redacted_row, id, FIELD_TEXT, 0, NULL),
	FIELD(struct redacted_row, changed, FIELD_BOOL, 0, "false: it was so before"),
};

const struct record view_redacted = RECORD("Redacted", redacted_fields);

const struct record view_cancelled = RECORD("Cancelled", redacted_fields);

json_t *json_cancelled(const char *id, bool changed)
{
	return fields_json(&view_cancelled, &(struct redacted_row){ id, changed });
}

json_t *json_redacted(const char *id, bool changed)
{
	return fields_json(&view_redacted, &(struct redacted_row){ id, changed });
}
