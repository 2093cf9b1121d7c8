/* SPDX-License-Identifier: Apache-2.0 */
/* Meeting servers that are no servers, not now, or not for us; and those without their replicas. */

#include "fake_case.h"

#include "base/cleanup.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

/* ---- connecting ------------------------------------------------------------------------------ */

struct meeting {
	struct fake_script script;
	int status;
	const char *names;
};

static const struct meeting meetings[] = {
	{ { .ping = "-LOADING Redis is loading\r\n" }, OUTBOX_ECONN, "LOADING" },
	{ { .ping = "-NOAUTH Authentication required.\r\n" }, OUTBOX_EAUTH, "password" },
	{ { .ping = "-DENIED protected mode\r\n" }, OUTBOX_EAUTH, "DENIED" },
	{ { .ping = "-MISCONF disk\r\n" }, OUTBOX_EFULL, "MISCONF" },
	{ { .greeting = "-ERR max number of clients reached\r\n" }, OUTBOX_EFULL, "clients" },
	{ { .info = "$12\r\nrole:slave\r\n\r\n" }, OUTBOX_ECONN, "replica" },
	{ { .ping = "garbage\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "HTTP/1.1 400 Bad Request\r\n\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .greeting = "\x15\x03\x03" }, OUTBOX_ECONN, "Redis" },
	{ { .greeting = "SSH-2.0-OpenSSH_9.2\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "*1000000000\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "*4294967296\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n" },
	  OUTBOX_ECONN,
	  "Redis" },
	{ { .ping = "$-2\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "$99999999999999999999\r\n" }, OUTBOX_ECONN, "Redis" },
	{ { .ping = "$999999999\r\n" }, OUTBOX_ETIMEDOUT, "time" },
	{ { .ping = "+PO" }, OUTBOX_ETIMEDOUT, "time" },
	{ { .ping = "" }, OUTBOX_ETIMEDOUT, "time" },
	{ { .hang_up = true }, OUTBOX_ECONN, "" },
};

static void connect_tells_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(meetings); i++) {
		bool slow = meetings[i].status == OUTBOX_ETIMEDOUT;
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct transport_case c;
		int r;

		begin(&c, 3);
		r = talk(&c, &meetings[i].script, "stream=s", slow ? SHORT : CONTRACT_DEADLINE, &err);
		if (r != meetings[i].status || !strstr(err.message, meetings[i].names))
			fail_msg("meeting %zu: %s: %s", i, outbox_status_name(r), err.message);
		assert_null(strchr(err.message, '\n'));
		assert_int_equal(count(&c, OUTBOX_VERDICT_UNSET), 3);
		outbox_arena_free(c.arena);
	}
}

static void the_password_is_never_shown(void **state)
{
	static const char *const answers[] = {
		"-ERR unknown command `AUTH`, with args beginning with: `secret-word`, \r\n",
		"-WRONGPASS invalid username-password pair secret-word\r\n",
		"-secret-word\r\n",
		"garbage secret-word\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct fake_script script = { .auth = answers[i] };
		struct fake *fake = fake_start(&script);
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_transport *t;
		struct transport_case c;
		char url[200];

		begin(&c, 0);
		snprintf(url, sizeof(url), "redis://:secret-word@127.0.0.1:%d/", fake_port(fake));
		t = case_open(&c, url, 0);
		assert_int_not_equal(connect_to(t, &err), OUTBOX_OK);
		assert_int_equal(err.status, i < 3 ? OUTBOX_EAUTH : OUTBOX_ECONN);
		assert_null(strstr(err.message, "secret-word"));
		transport_close(t);
		fake_stop(fake);
		outbox_arena_free(c.arena);
	}
}

/* The first of two hosts refuses the password, the second is down. */
static void a_wrong_password_is_not_hidden_by_a_host_that_is_down(void **state)
{
	struct fake_script script = { .auth = "-WRONGPASS no\r\n" };
	struct fake *fake = fake_start(&script), *down = fake_start(&script);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *t;
	struct transport_case c;
	char url[200];

	(void)state;
	begin(&c, 0);
	snprintf(url, sizeof(url), "redis://:word@127.0.0.1:%d,127.0.0.1:%d/", fake_port(fake),
		 fake_port(down));
	fake_stop(down);
	t = case_open(&c, url, 0);
	assert_int_equal(connect_to(t, &err), OUTBOX_EAUTH);
	assert_non_null(strstr(err.message, "WRONGPASS"));
	transport_close(t);
	fake_stop(fake);
	outbox_arena_free(c.arena);
}

/* ---- replicas -------------------------------------------------------------------------------- */

#define TWO_REPLICAS \
	"$67\r\nrole:master\r\nslave0:ip=a,state=online,x=1\r\nslave1:i,state=online,\r\n\r\n"

static void without_the_replicas_nothing_is_acked(void **state)
{
	static const struct {
		const char *said;
		int status;
		int verdict;
	} rows[] = {
		{ ":2\r\n", OUTBOX_OK, OUTBOX_ACKED },
		{ ":3\r\n", OUTBOX_OK, OUTBOX_ACKED },
		{ ":1\r\n", OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ ":0\r\n", OUTBOX_ECONN, OUTBOX_UNKNOWN },
		/* a failover */
		{ "-ERR WAIT cannot be used with replica instances.\r\n", OUTBOX_ECONN,
		  OUTBOX_UNKNOWN },
		{ "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n",
		  OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ "-LOADING Redis is loading\r\n", OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ "-OOM command not allowed\r\n", OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ "-NOPERM this user has no permissions to run the 'wait' command\r\n",
		  OUTBOX_EAUTH, OUTBOX_UNKNOWN },
		{ "+OK\r\n", OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ "", OUTBOX_ETIMEDOUT, OUTBOX_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fake_script script = { .info = TWO_REPLICAS, .wait = rows[i].said };
		bool slow = rows[i].status == OUTBOX_ETIMEDOUT;
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct transport_case c;

		begin(&c, 3);
		if (talk(&c, &script, "stream=s&wait=2", slow ? SHORT : CONTRACT_DEADLINE, &err) !=
		    rows[i].status)
			fail_msg("WAIT said %s: %s", rows[i].said, err.message);
		assert_int_equal(count(&c, rows[i].verdict), 3);
		outbox_arena_free(c.arena);
	}
}

static void missing_replicas_are_noticed_before_anything_is_sent(void **state)
{
	struct fake_script script = { .info = TWO_REPLICAS };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct transport_case c;

	(void)state;
	begin(&c, 3);
	assert_int_equal(talk(&c, &script, "stream=s&wait=3", CONTRACT_DEADLINE, &err), OUTBOX_ECONN);
	assert_non_null(strstr(err.message, "2 replicas"));
	assert_int_equal(count(&c, OUTBOX_VERDICT_UNSET), 3);
	outbox_arena_free(c.arena);
}

/* INFO may be forbidden, and so may WAIT: what could never be confirmed would be added again and again. */
static void who_may_not_wait_adds_nothing(void **state)
{
	static const struct {
		const char *said;
		int status;
		const char *text;
	} rows[] = {
		{ "-NOPERM this user has no permissions to run the 'wait' command\r\n",
		  OUTBOX_EAUTH, "'wait'" },
		{ ":1\r\n", OUTBOX_ECONN, "1 replicas answer" },
		{ "+OK\r\n", OUTBOX_ECONN, "wait=2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fake_script script = { .info = "-NOPERM no\r\n", .first_wait = rows[i].said };
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct transport_case c;

		begin(&c, 3);
		assert_int_equal(talk(&c, &script, "stream=s&wait=2", CONTRACT_DEADLINE, &err),
				 rows[i].status);
		assert_non_null(strstr(err.message, rows[i].text));
		assert_int_equal(count(&c, OUTBOX_VERDICT_UNSET), 3);
		outbox_arena_free(c.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_tells_what_is_wrong),
		cmocka_unit_test(the_password_is_never_shown),
		cmocka_unit_test(a_wrong_password_is_not_hidden_by_a_host_that_is_down),
		cmocka_unit_test(without_the_replicas_nothing_is_acked),
		cmocka_unit_test(missing_replicas_are_noticed_before_anything_is_sent),
		cmocka_unit_test(who_may_not_wait_adds_nothing),
	};

	return cmocka_run_group_tests_name("redis_fake_connect", tests, NULL, NULL);
}
