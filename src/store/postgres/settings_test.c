/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/unit_test.h"
#include "store/postgres/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *value(const struct pg_settings *s, const char *key)
{
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->keys[i], key) == 0)
			return s->values[i];
	}
	return NULL;
}

#define PARSED(name, url)                                              \
	_cleanup_(pg_settings_deinit) struct pg_settings name = { 0 }; \
	assert_ok(pg_settings_parse((url), &name, err))

static int parse_error(const char *url, struct outbox_error *err)
{
	_cleanup_(pg_settings_deinit) struct pg_settings s = { 0 };

	return pg_settings_parse(url, &s, err);
}

static void a_url_becomes_settings(void **state)
{
	PARSED(s,
	       "postgres://ann:s%40cret@db1:5433,db2,[::2]:7/shop?schema=app&name=Shop&timeout=5s");

	(void)state;
	assert_string_equal(value(&s, "host"), "db1,db2,::2");
	assert_string_equal(value(&s, "port"), "5433,,7");
	assert_string_equal(value(&s, "user"), "ann");
	assert_string_equal(value(&s, "password"), "s@cret");
	assert_string_equal(value(&s, "dbname"), "shop");
	assert_string_equal(s.schema, "app");
	assert_string_equal(s.name, "Shop");
	assert_int_equal(s.timeout, 5 * OUTBOX_SECONDS);
	assert_null(strstr(s.where, "cret"));
	assert_null(value(&s, "schema"));
}

static void assert_where(const char *url, const char *where)
{
	PARSED(s, url);

	assert_string_equal(s.where, where);
}

static void a_place_is_told_as_libpq_finds_it(void **state)
{
	static const char *const variables[] = { "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE",
						 "PGSERVICE" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	assert_where("postgres:///shop", "postgres local/shop");
	assert_where("postgres://db1:5433,db2/shop", "postgres db1:5433,db2/shop");
	assert_where("postgres:///shop?host=/run/pg&port=7", "postgres /run/pg:7/shop");
	assert_where("postgres:///?service=shop", "postgres service shop");
	setenv("PGHOST", "db3", 1);
	setenv("PGPORT", "5444", 1);
	setenv("PGDATABASE", "orders", 1);
	assert_where("postgres:///shop", "postgres db3:5444/shop");
	assert_where("postgres://", "postgres db3:5444/orders");
	assert_where("postgres://db1/shop", "postgres db1:5444/shop");
	assert_where("postgres://db1:5433/shop", "postgres db1:5433/shop");
	unsetenv("PGHOST");
	unsetenv("PGPORT");
	unsetenv("PGDATABASE");
}

static void a_writable_server_is_wanted(void **state)
{
	PARSED(s, "postgres://h/db");
	PARSED(other, "postgres://h/db?target_session_attrs=any&keepalives_idle=5");

	(void)state;
	assert_string_equal(value(&s, "target_session_attrs"), "read-write");
	assert_string_equal(value(&s, "keepalives"), "1");
	assert_string_equal(value(&other, "target_session_attrs"), "any");
	assert_string_equal(value(&other, "keepalives_idle"), "5");
	assert_string_equal(s.name, "db");
}

static void other_machines_are_verified(void **state)
{
	static const char *const remote[] = {
		"postgres://db.example/x",     "postgres://localhost,10.0.0.1/x",
		"postgres://localhost.evil/x", "postgres://10.127.0.1/x",
		"postgres:///x?host=10.1.1.1", "postgres://localhost/x?hostaddr=10.1.1.1"
	};
	static const char *const local[] = { "postgres://localhost/x",
					     "postgres://127.0.0.1:1,[::1]/x", "postgres:///x",
					     "postgres:///x?host=/run/postgresql" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(remote); i++) {
		PARSED(s, remote[i]);
		assert_string_equal(value(&s, "sslmode"), "verify-full");
	}
	for (size_t i = 0; i < ARRAY_SIZE(local); i++) {
		PARSED(s, local[i]);
		assert_null(value(&s, "sslmode"));
	}
}

static void what_is_said_goes_first(void **state)
{
	PARSED(s, "postgres://db.example/x?sslmode=require");

	(void)state;
	assert_string_equal(value(&s, "sslmode"), "require");
	assert_null(value(&s, "sslrootcert")); /* with it, "require" would mean verify-ca */
	setenv("PGSSLMODE", "disable", 1);
	{
		PARSED(e, "postgres://db.example/x");
		assert_null(value(&e, "sslmode"));
	}
	unsetenv("PGSSLMODE");
}

static void a_password_may_be_in_a_file(void **state)
{
	char path[] = "/tmp/outbox-password-XXXXXX", url[128];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && write(fd, "hush hush\n", 10) == 10);
	snprintf(url, sizeof(url), "postgres://h/x?password_file=%s", path);
	{
		PARSED(s, url);
		assert_string_equal(value(&s, "password"), "hush hush");
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_fails(parse_error(url, err), OUTBOX_ECONFIG, "is empty");
	close(fd);
	unlink(path);
	assert_fails(parse_error(url, err), OUTBOX_ECONFIG, "password_file");
	assert_fails(parse_error("postgres://u:p@h/x?password_file=/x", err), OUTBOX_ECONFIG,
		     "the URL has a password, too");
}

static void mistakes_are_told(void **state)
{
	(void)state;
	assert_fails(parse_error("postgres:db", err), OUTBOX_ECONFIG, "two slashes");
	assert_fails(parse_error("postgres://h/x?shcema=a", err), OUTBOX_ECONFIG, "shcema");
	assert_fails(parse_error("postgres://h/x?timeout=1ms", err), OUTBOX_ECONFIG, "timeout");
	assert_fails(parse_error("postgres://h/x?timeout=soon", err), OUTBOX_ECONFIG, "timeout");
	assert_fails(parse_error("postgres://h/x?clock=mine", err), OUTBOX_ECONFIG, "clock");
	assert_fails(parse_error("postgres://h/x?name=", err), OUTBOX_ECONFIG, "name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_becomes_settings),
		cmocka_unit_test(a_place_is_told_as_libpq_finds_it),
		cmocka_unit_test(a_writable_server_is_wanted),
		cmocka_unit_test(other_machines_are_verified),
		cmocka_unit_test(what_is_said_goes_first),
		cmocka_unit_test(a_password_may_be_in_a_file),
		cmocka_unit_test(mistakes_are_told),
	};

	unsetenv("PGSSLMODE");
	unsetenv("PGHOST");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
