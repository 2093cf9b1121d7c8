/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the admin server reads of a request by itself: the query, paths, hosts and origins, tokens, types and lengths, the
 * file with the tokens, the address to listen on. What is taken must have been meant: plain text, read in one way.
 */

#include "fuzz.h"
#include "http/access_tokens.h"
#include "http/listen.h"
#include "http/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_clean(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return reference_utf8_valid(text, strlen(text));
}

static void check_query(const char *text, struct outbox_arena *arena)
{
	struct query query = { .count = 99 };
	const char *wrong = query_parse(text, arena, &query);

	if (wrong) {
		CHECK(*wrong && query.count == 99);
		return;
	}
	CHECK(query.count <= QUERY_MAX);
	for (size_t i = 0; i < query.count; i++) {
		CHECK(*query.names[i] && is_clean(query.names[i]) && is_clean(query.values[i]));
		CHECK(query_find(&query, query.names[i]) == query.values[i]);
	}
}

static void check_path(const char *text, struct outbox_arena *arena)
{
	const char *captured[CAPTURED_MAX] = { NULL, NULL };

	if (path_match("/api/messages/{id}/payload", text, arena, captured)) {
		CHECK(captured[0] && *captured[0] && is_clean(captured[0]) && !captured[1]);
		CHECK(strncmp(text, "/api/messages/", 14) == 0 && strstr(text, "/payload"));
	}
	if (path_match("/healthz", text, arena, captured))
		CHECK(strcmp(text, "/healthz") == 0);
	if (target_is_plain(text))
		CHECK(*text == '/' && !strpbrk(text, " \t\r\n\\#") && is_clean(text));
}

static void check_hosts(const char *text)
{
	const char *items[] = { "127.0.0.1:8040", "localhost:8040" };
	struct hosts hosts = { items, 2 };

	if (host_is_ours(&hosts, text))
		CHECK(strcasecmp(text, items[0]) == 0 || strcasecmp(text, items[1]) == 0);
	if (origin_is_ours(&hosts, false, text))
		CHECK(strncmp(text, "http://", 7) == 0 && host_is_ours(&hosts, text + 7));
}

static void check_headers(const char *text)
{
	const char *token = bearer_parse(text);
	size_t length = 0;

	if (token)
		CHECK(*token && token == text + 7 && !strpbrk(token, " \t,;\""));
	if (body_is_json(text))
		CHECK(strncasecmp(text, "application/json", 16) == 0 && !strchr(text, ','));
	if (content_length_parse(text, 65536, &length))
		CHECK(length <= 65536 && strspn(text, "0123456789") == strlen(text) &&
		      strtoull(text, NULL, 10) == length);
}

static void check_tokens(const char *text)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct access_tokens *tokens = NULL;
	int r = access_tokens_parse(text, "f", &tokens, &err);

	check_error(r, &err);
	CHECK((r == OUTBOX_OK) == (tokens != NULL));
	if (tokens)
		CHECK(!access_tokens_check(tokens, "", 0));
	access_tokens_free(tokens);
}

static void check_endpoint(const char *text)
{
	struct config_admin config = { .listen = text };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct endpoint endpoint;
	const char *key;
	int r = listen_parse(text, &endpoint, &err);

	check_error(r, &err);
	if (r)
		return;
	r = listen_check(&endpoint, &config, &key, &err);
	check_error(r, &err);
	/* nothing that other machines reach gets by without TLS */
	CHECK((r == OUTBOX_OK) == endpoint.local);
	if (endpoint.local && !endpoint.is_unix)
		CHECK(strncmp(text, "127.", 4) == 0 || strncmp(text, "localhost:", 10) == 0 ||
		      text[0] == '[');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	struct outbox_arena *arena = outbox_arena_new((size_t)1 << 20);
	const char *text = input_rest(&in);

	CHECK(arena);
	check_query(text, arena);
	check_path(text, arena);
	check_hosts(text);
	check_headers(text);
	check_tokens(text);
	check_endpoint(text);
	outbox_arena_free(arena);
	input_end(&in);
	return 0;
}
