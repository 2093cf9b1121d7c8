/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What failed at another target says so in headers: where, why, after how many failed tries, when. They
 * are left out, last first, where the message has as many headers as it may.
 *
 * And it must not fail here for the very same reasons: a dead letter does not expire, is due at once, and
 * a payload that claims to be JSON and is not goes as the text or the bytes that it is.
 */
#include "relay/dead_letter.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/message.h"

#include <stdio.h>
#include <string.h>

#define REASON_MAX 1000

static void lift_bars(struct outbox_message *m)
{
	m->expires_at = 0;
	m->due_at = 0;
	if (m->size && content_type_is_json(m->content_type) &&
	    json_text_check(m->data, m->size, NULL) != OUTBOX_OK)
		m->content_type = utf8_valid(m->data, m->size) ? "text/plain" : DEFAULT_BYTES_TYPE;
}

/* As it is, cut: the envelope that needs escapes makes them. */
static const char *shorten_reason(const char *reason, char out[REASON_MAX])
{
	size_t size = strlen(reason ? reason : ""), kept = utf8_cut(reason, size, REASON_MAX - 4);

	if (!reason)
		return "unknown";
	snprintf(out, REASON_MAX, "%.*s%s", (int)kept, reason, kept < size ? "..." : "");
	text_clean(out);
	return out;
}

int dead_letter_headers(struct outbox_claimed *c, struct outbox_arena *arena,
			struct outbox_error *err)
{
	char attempts[16], at[TIME_TEXT_MAX], reason[REASON_MAX];
	const struct outbox_header ours[] = {
		{ DEAD_LETTER_HEADER "target", c->dead_target },
		{ DEAD_LETTER_HEADER "reason", shorten_reason(c->dead_reason, reason) },
		{ DEAD_LETTER_HEADER "attempts", attempts },
		{ DEAD_LETTER_HEADER "at", time_format(c->dead_at, at) },
	};
	struct outbox_message *m = &c->message;
	struct outbox_header *all;
	size_t n;

	if (!c->dead_target || c->malformed)
		return OUTBOX_OK;
	snprintf(attempts, sizeof(attempts), "%d", c->dead_attempts);
	all = outbox_arena_alloc(arena, (m->n_headers + ARRAY_SIZE(ours)) * sizeof(*all));
	if (!all)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	n = m->n_headers;
	if (n)
		memcpy(all, m->headers, n * sizeof(*all));
	for (size_t i = 0; i < ARRAY_SIZE(ours) && n < OUTBOX_HEADERS_MAX; i++) {
		const char *value = outbox_arena_text(arena, ours[i].value);

		if (!value)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		all[n++] = (struct outbox_header){ ours[i].name, value };
	}
	m->headers = all;
	m->n_headers = n;
	lift_bars(m);
	return OUTBOX_OK;
}
