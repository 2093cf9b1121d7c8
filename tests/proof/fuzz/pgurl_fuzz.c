/* SPDX-License-Identifier: Apache-2.0 */

/* URLs of PostgreSQL stores: every list ends, nothing is set twice, and what people are shown has no password. */

#include "base/cleanup.h"
#include "fuzz.h"
#include "store/postgres/connect.h"

#include <string.h>

static void check_settings(const struct pg_settings *s)
{
	CHECK(s->count <= PG_SETTINGS_MAX && !s->keys[s->count]);
	CHECK(s->name[0] && s->timeout >= OUTBOX_SECONDS / 10);
	for (size_t i = 0; i < s->count; i++) {
		CHECK(s->keys[i] && s->values[i]);
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(s->keys[i], s->keys[j]) != 0);
	}
	if (s->url.password && strlen(s->url.password) > 3 && !strstr(s->url.path, s->url.password) &&
	    !(s->url.host && strstr(s->url.host, s->url.password)))
		CHECK(!strstr(s->where, s->url.password));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	_cleanup_(pg_settings_deinit) struct pg_settings s = { 0 };
	const char *text = input_text(&in);
	int r = pg_settings_parse(text, &s, &err);

	check_error(r, &err);
	if (r == OUTBOX_OK)
		check_settings(&s);
	else
		CHECK(r == OUTBOX_ECONFIG);
	input_end(&in);
	return 0;
}
