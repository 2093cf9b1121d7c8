/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parse.h"

#include "base/cleanup.h"
#include "base/unit_test.h"
#include "http/listen.h"

static struct outbox_arena *arena;

static int set_up(void **state)
{
	(void)state;
	arena = outbox_arena_new(1 << 20);
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	arena = outbox_arena_free(arena);
	return 0;
}

static void queries_are_decoded(void **state)
{
	struct query query;

	(void)state;
	assert_null(query_parse("a=1&b=x%20y+z&c&type=order.%2A&e=%C3%A9", arena, &query));
	assert_int_equal(query.count, 5);
	assert_string_equal(query_find(&query, "a"), "1");
	assert_string_equal(query_find(&query, "b"), "x y z");
	assert_string_equal(query_find(&query, "c"), "");
	assert_string_equal(query_find(&query, "type"), "order.*");
	assert_string_equal(query_find(&query, "e"), "\xc3\xa9");
	assert_null(query_find(&query, "d"));
	assert_null(query_parse(NULL, arena, &query));
	assert_int_equal(query.count, 0);
	assert_null(query_parse("&&a=b=c&", arena, &query));
	assert_string_equal(query_find(&query, "a"), "b=c");
}

static void queries_in_doubt_are_refused(void **state)
{
	static const char *const bad[] = { "a=%",       "a=%4",  "a=%zz",   "a=%00", "a=%0a",
					   "a=%1b",     "a=%ff", "a=%c3",   "=1",    "a=1&a=2",
					   "a=1&%61=2", "%=1",   "a=%c0%af" };
	char many[600] = "";
	struct query query;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!query_parse(bad[i], arena, &query))
			fail_msg("%s was taken", bad[i]);
	for (int i = 0; i <= QUERY_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "p%d=1&", i);
	assert_string_equal(query_parse(many, arena, &query), "the query has too many parameters");
}

static void paths_fit_as_they_were_sent(void **state)
{
	static const struct {
		const char *route, *path, *first, *second;
		bool fits;
	} rows[] = {
		{ "/healthz", "/healthz", NULL, NULL, true },
		{ "/healthz", "/healthz/", NULL, NULL, false },
		{ "/healthz", "//healthz", NULL, NULL, false },
		{ "/healthz", "/Healthz", NULL, NULL, false },
		{ "/healthz", "/%68ealthz", NULL, NULL, false },
		{ "/healthz", "/healthz%00", NULL, NULL, false },
		{ "/api/messages/{id}", "/api/messages/abc", "abc", NULL, true },
		{ "/api/messages/{id}", "/api/messages/a%2Fb", "a/b", NULL, true },
		{ "/api/messages/{id}", "/api/messages/a+b", "a+b", NULL, true },
		{ "/api/messages/{id}", "/api/messages/", NULL, NULL, false },
		{ "/api/messages/{id}", "/api/messages/a/b", NULL, NULL, false },
		{ "/api/messages/{id}", "/api/messages/%00", NULL, NULL, false },
		{ "/api/messages/{id}", "/api/messages/%e0%80", NULL, NULL, false },
		{ "/api/messages/{id}/payload", "/api/messages/x/payload", "x", NULL, true },
		{ "/a/{b}/{c}", "/a/1/2", "1", "2", true },
		{ "/a/{b}/{c}", "/a/1/", NULL, NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *captured[CAPTURED_MAX] = { NULL, NULL };

		if (path_match(rows[i].route, rows[i].path, arena, captured) != rows[i].fits)
			fail_msg("%s and %s", rows[i].route, rows[i].path);
		if (!rows[i].fits)
			continue;
		if (rows[i].first)
			assert_string_equal(captured[0], rows[i].first);
		if (rows[i].second)
			assert_string_equal(captured[1], rows[i].second);
	}
}

static void targets_are_plain_paths(void **state)
{
	(void)state;
	assert_true(target_is_plain("/"));
	assert_true(target_is_plain("/a?b=c"));
	assert_false(target_is_plain(""));
	assert_false(target_is_plain("*"));
	assert_false(target_is_plain("http://127.0.0.1:8040/healthz"));
	assert_false(target_is_plain("/a b"));
	assert_false(target_is_plain("/a\tb"));
	assert_false(target_is_plain("/a\x7f"));
	assert_false(target_is_plain("/\xc3\xa9"));
	assert_false(target_is_plain("/a\\..\\b"));
	assert_false(target_is_plain("/a#b"));
}

static void bearers_and_types(void **state)
{
	size_t length = 99;

	(void)state;
	assert_string_equal(bearer_parse("Bearer abc.-_~+/="), "abc.-_~+/=");
	assert_string_equal(bearer_parse("bearer abc"), "abc");
	assert_null(bearer_parse("Bearer "));
	assert_null(bearer_parse("Bearer  abc"));
	assert_null(bearer_parse("Bearer abc def"));
	assert_null(bearer_parse("Bearer abc, Bearer def"));
	assert_null(bearer_parse("Basic YTpi"));
	assert_null(bearer_parse("abc"));
	assert_true(body_is_json("application/json"));
	assert_true(body_is_json("Application/JSON; charset=UTF-8"));
	assert_true(body_is_json("application/json;charset=\"utf-8\""));
	assert_false(body_is_json("application/jsonx"));
	assert_false(body_is_json("application/json, text/plain"));
	assert_false(body_is_json("text/plain"));
	assert_false(body_is_json("text/plain; application/json"));
	assert_false(body_is_json("application/json; charset=utf-7"));
	assert_true(content_length_parse("0", 0, &length));
	assert_int_equal(length, 0);
	assert_true(content_length_parse("65536", 65536, &length));
	assert_int_equal(length, 65536);
	assert_false(content_length_parse("65537", 65536, &length));
	assert_false(content_length_parse("", 9, &length));
	assert_false(content_length_parse("-1", 9, &length));
	assert_false(content_length_parse("+1", 9, &length));
	assert_false(content_length_parse("1 ", 9, &length));
	assert_false(content_length_parse("0x1", 9, &length));
	assert_false(content_length_parse("18446744073709551617", 9, &length));
}

static void make_hosts(const char *listen, const struct config_admin *config, struct hosts *hosts)
{
	struct endpoint endpoint;

	assert_ok(listen_parse(listen, &endpoint, err));
	assert_ok(hosts_make(&endpoint, config, arena, hosts, err));
}

static void hosts_are_exact(void **state)
{
	const char *names[] = { "outbox.example", "proxy.example:8443" };
	struct config_admin config = { .hosts = { names, 2 } };
	struct hosts hosts;

	(void)state;
	make_hosts("127.0.0.1:8040", &config, &hosts);
	assert_true(host_is_ours(&hosts, "127.0.0.1:8040"));
	assert_true(host_is_ours(&hosts, "LOCALHOST:8040"));
	assert_true(host_is_ours(&hosts, "[::1]:8040"));
	assert_true(host_is_ours(&hosts, "outbox.example:8040"));
	assert_true(host_is_ours(&hosts, "proxy.example:8443"));
	assert_false(host_is_ours(&hosts, "127.0.0.1"));
	assert_false(host_is_ours(&hosts, "127.0.0.1:80"));
	assert_false(host_is_ours(&hosts, "127.0.0.1:8040.evil.example"));
	assert_false(host_is_ours(&hosts, "evil.example:8040"));
	assert_false(host_is_ours(&hosts, "evil.example@127.0.0.1:8040"));
	assert_false(host_is_ours(&hosts, "localhost.:8040"));
	assert_false(host_is_ours(&hosts, "127.0.0.1:8040 "));
	assert_false(host_is_ours(&hosts, "proxy.example:8040"));
	assert_false(host_is_ours(&hosts, "proxy.example"));
	/* a proxy in front of a name that was given: its port is not written, its TLS is not ours */
	assert_true(host_is_ours(&hosts, "outbox.example"));
	assert_true(origin_is_ours(&hosts, false, "https://outbox.example"));
	assert_true(origin_is_ours(&hosts, false, "https://proxy.example:8443"));
	assert_false(host_is_ours(&hosts, ""));
	assert_true(origin_is_ours(&hosts, false, "http://127.0.0.1:8040"));
	assert_false(origin_is_ours(&hosts, false, "https://127.0.0.1:8040"));
	assert_true(origin_is_ours(&hosts, true, "https://127.0.0.1:8040"));
	assert_false(origin_is_ours(&hosts, false, "null"));
	assert_false(origin_is_ours(&hosts, false, "http://127.0.0.1:8040/"));
	assert_false(origin_is_ours(&hosts, false, "http://127.0.0.1:8040.evil.example"));

	/* on the port that nobody writes */
	make_hosts("127.0.0.1:80", &config, &hosts);
	assert_true(host_is_ours(&hosts, "localhost"));
	/* other machines know it by its address, and it is not localhost to them */
	make_hosts("192.0.2.1:8040", &config, &hosts);
	assert_true(host_is_ours(&hosts, "192.0.2.1:8040"));
	assert_false(host_is_ours(&hosts, "localhost:8040"));
	make_hosts("unix:/run/o.sock", &config, &hosts);
	assert_true(host_is_ours(&hosts, "localhost"));
	assert_true(host_is_ours(&hosts, "outbox.example"));
}

static void endpoints(void **state)
{
	static const char *const bad[] = { "",
					   ":",
					   "8040",
					   "127.0.0.1",
					   "127.0.0.1:",
					   ":8040",
					   "127.0.0.1:65536",
					   "127.0.0.1:x",
					   "::1:8040",
					   "[::1]",
					   "example.com:80",
					   "1.2.3:80",
					   "[::1:80",
					   "unix:",
					   "[]:80",
					   "[127.0.0.1]:80" };
	struct endpoint endpoint;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_fails(listen_parse(bad[i], &endpoint, err), OUTBOX_EINVAL, "\"");
	assert_ok(listen_parse("127.0.0.9:1", &endpoint, err));
	assert_true(endpoint.local);
	assert_ok(listen_parse("localhost:8040", &endpoint, err));
	assert_true(endpoint.local);
	assert_ok(listen_parse("[::1]:8040", &endpoint, err));
	assert_true(endpoint.local);
	assert_ok(listen_parse("unix:/tmp/x", &endpoint, err));
	assert_true(endpoint.local && endpoint.is_unix);
	assert_ok(listen_parse("0.0.0.0:8040", &endpoint, err));
	assert_false(endpoint.local);
	assert_ok(listen_parse("[::]:8040", &endpoint, err));
	assert_false(endpoint.local);
}

static void off_the_machine_only_with_tls(void **state)
{
	struct config_admin none = { .listen = "" }, tls = { .cert = "c", .key = "k" };
	struct config_admin half = { .cert = "c" };
	struct endpoint endpoint;
	const char *key;

	(void)state;
	assert_ok(listen_parse("0.0.0.0:8040", &endpoint, err));
	assert_fails(listen_check(&endpoint, &none, &key, err), OUTBOX_ECONFIG,
		     "set admin.cert and admin.key");
	assert_ok(listen_check(&endpoint, &tls, &key, err));
	assert_fails(listen_check(&endpoint, &half, &key, err), OUTBOX_ECONFIG, "TLS needs both");
	assert_ok(listen_parse("127.0.0.1:8040", &endpoint, err));
	assert_ok(listen_check(&endpoint, &none, &key, err));
	assert_ok(listen_parse("unix:/x", &endpoint, err));
	assert_fails(listen_check(&endpoint, &tls, &key, err), OUTBOX_ECONFIG, "no TLS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_are_decoded),
		cmocka_unit_test(queries_in_doubt_are_refused),
		cmocka_unit_test(paths_fit_as_they_were_sent),
		cmocka_unit_test(targets_are_plain_paths),
		cmocka_unit_test(bearers_and_types),
		cmocka_unit_test(hosts_are_exact),
		cmocka_unit_test(endpoints),
		cmocka_unit_test(off_the_machine_only_with_tls),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
