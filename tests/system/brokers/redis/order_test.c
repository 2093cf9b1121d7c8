/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis:// keeps a key's order whatever a real server refuses in the middle: by a script, and one message at a time for
 * a user who may not run any. Run by with-redis.
 */

#include "transport_case.h"

#include "transport/transport.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops redis_transport_ops;

static const struct transport_fixture fixture = { .ops = &redis_transport_ops };

/* Who may run scripts, and who may not. */
static const char *const logins[] = { "", "plain:pw@" };

struct world {
	struct transport_case c;
	redisContext *redis;
};

static redisReply *ask(struct world *w, const char *command)
{
	redisReply *reply = redisCommand(w->redis, command);

	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", command, reply->str);
	return reply;
}

static void run_command(struct world *w, const char *command)
{
	freeReplyObject(ask(w, command));
}

static void begin(struct world *w)
{
	*w = (struct world){ .c.fixture = &fixture };
	w->redis = redisConnect("127.0.0.1", atoi(getenv("REDIS_PORT")));
	assert_true(w->redis && !w->redis->err);
	w->c.arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(w->c.arena);
	case_new_batch(&w->c);
	run_command(w, "FLUSHALL");
	run_command(w, "CONFIG RESETSTAT");
	run_command(w, "ACL SETUSER plain on >pw ~* +xadd +ping");
}

static void end(struct world *w)
{
	redisFree(w->redis);
	outbox_arena_free(w->c.arena);
}

static struct outbox_transport *open_as(struct world *w, const char *login, const char *options)
{
	struct outbox_transport *t;
	char url[200];

	snprintf(url, sizeof(url), "redis://%s127.0.0.1:%s/?%s", login, getenv("REDIS_PORT"),
		 options);
	t = case_open(&w->c, url, 0);
	assert_int_equal(connect_to(t, NULL), OUTBOX_OK);
	return t;
}

static struct outbox_message *add(struct world *w, const char *key, const char *type)
{
	struct outbox_message *m = case_message(&w->c, "m", w->c.batch.count);

	m->key = key;
	m->type = type;
	return m;
}

static int verdict(const struct world *w, size_t i)
{
	return w->c.batch.items[i]->verdict;
}

/* The ids in a stream, one after the other: "m-0 m-2 ". */
static const char *ids_in(struct world *w, const char *stream)
{
	redisReply *entries = redisCommand(w->redis, "XRANGE %s - +", stream);
	static char text[65536];

	text[0] = '\0';
	assert_int_equal(entries->type, REDIS_REPLY_ARRAY);
	for (size_t i = 0; i < entries->elements; i++) {
		const redisReply *fields = entries->element[i]->element[1];

		for (size_t k = 0; k + 1 < fields->elements; k += 2)
			if (strcmp(fields->element[k]->str, "id") == 0)
				snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
					 fields->element[k + 1]->str);
	}
	freeReplyObject(entries);
	return text;
}

/* The first n of the batch, and nothing else. */
static void assert_first_arrived(struct world *w, const char *stream, size_t n)
{
	static char expected[65536];

	expected[0] = '\0';
	for (size_t i = 0; i < n; i++)
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "m-%zu ",
			 i);
	assert_string_equal(ids_in(w, stream), expected);
}

static bool ran_scripts(struct world *w)
{
	redisReply *reply = ask(w, "INFO commandstats");
	const char *line = strstr(reply->str, "cmdstat_eval:calls=");
	/* refused ones are counted as calls of 0 */
	bool ran = line && strtol(line + strlen("cmdstat_eval:calls="), NULL, 10) > 0;

	freeReplyObject(reply);
	return ran;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void few_keys_arrive_in_order(void **state)
{
	(void)state;
	for (size_t l = 0; l < 2; l++) {
		struct outbox_transport *t;
		struct world w;

		begin(&w);
		t = open_as(&w, logins[l], "stream=s");
		for (size_t i = 0; i < 1000; i++)
			add(&w, "a", "x");
		case_publish_acked(&w.c, t);
		assert_first_arrived(&w, "s", 1000);
		assert_int_equal(ran_scripts(&w), l == 0);
		transport_close(t);
		end(&w);
	}
}

/* Of two keys in turn, a was stopped at its second message, and b was not. */
static void assert_only_a_stopped(struct world *w)
{
	char expected[4096] = "m-0 ";

	assert_int_equal(verdict(w, 2), OUTBOX_RETRY);
	assert_non_null(strstr(w->c.batch.items[2]->reason, "stream bad:"));
	for (size_t i = 0; i < w->c.batch.count; i++) {
		if (i % 2)
			snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
				 "m-%zu ", i);
		if (i != 2)
			assert_int_equal(verdict(w, i),
					 i % 2 || i == 0 ? OUTBOX_ACKED : OUTBOX_VERDICT_UNSET);
	}
	assert_string_equal(ids_in(w, "good"), expected);
}

/* Also where the rest does not fit into the same script. */
static void a_refusal_stops_its_key(void **state)
{
	static const char *const options[] = { "stream={type}", "stream={type}&create=no" };

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct outbox_transport *t;
		struct world w;

		begin(&w);
		run_command(&w, "XADD good 1-1 first 1");
		if (k % 2 == 0)
			run_command(&w, "SET bad text");
		t = open_as(&w, logins[k / 2], options[k % 2]);
		for (size_t i = 0; i < 600; i++)
			add(&w, i % 2 ? "b" : "a", i == 2 ? "bad" : "good");
		assert_int_equal(t->ops->publish(t, &w.c.batch, soon(), NULL), OUTBOX_OK);
		assert_only_a_stopped(&w);
		transport_close(t);
		end(&w);
	}
}

/* What cannot be encoded never will be, and its key goes on. */
static void a_message_that_has_no_stream_stops_nobody(void **state)
{
	(void)state;
	for (size_t l = 0; l < 2; l++) {
		struct outbox_transport *t;
		struct world w;

		begin(&w);
		t = open_as(&w, logins[l], "stream=s{topic}");
		for (size_t i = 0; i < 4; i++)
			add(&w, "a", "x")->topic = i == 1 ? NULL : "1";
		case_publish(&w.c, t);
		assert_int_equal(verdict(&w, 1), OUTBOX_REJECTED);
		assert_string_equal(ids_in(&w, "s1"), "m-0 m-2 m-3 ");
		transport_close(t);
		end(&w);
	}
}

/* ACKED is what is there, and that is the beginning. */
static size_t count_acked_prefix(const struct world *w)
{
	size_t n = 0;

	while (n < w->c.batch.count && verdict(w, n) == OUTBOX_ACKED)
		n++;
	for (size_t i = n; i < w->c.batch.count; i++)
		assert_int_equal(verdict(w, i), OUTBOX_VERDICT_UNSET);
	return n;
}

static void out_of_memory_in_the_middle(void **state)
{
	static char data[2000];

	(void)state;
	memset(data, '1', sizeof(data));
	for (size_t l = 0; l < 2; l++) {
		struct outbox_batch whole;
		struct outbox_transport *t;
		redisReply *reply;
		struct world w;
		char command[80];
		size_t n;

		begin(&w);
		t = open_as(&w, logins[l], "stream=s");
		for (size_t i = 0; i < 2000; i++) {
			struct outbox_message *m = add(&w, "a", "x");

			m->data = data;
			m->size = sizeof(data);
		}
		reply = ask(&w, "INFO memory");
		snprintf(command, sizeof(command), "CONFIG SET maxmemory %lld",
			 atoll(strstr(reply->str, "used_memory:") + strlen("used_memory:")) +
				 2000000);
		freeReplyObject(reply);
		run_command(&w, command);
		assert_int_equal(t->ops->publish(t, &w.c.batch, soon(), NULL), OUTBOX_EFULL);
		run_command(&w, "CONFIG SET maxmemory 0");
		n = count_acked_prefix(&w);
		assert_in_range(n, 1, 1999);
		assert_first_arrived(&w, "s", n);
		/* The rest, as the engine would. */
		assert_int_equal(connect_to(t, NULL), OUTBOX_OK);
		whole = w.c.batch;
		w.c.batch.items += n;
		w.c.batch.count -= n;
		case_publish_acked(&w.c, t);
		w.c.batch = whole;
		assert_first_arrived(&w, "s", 2000);
		transport_close(t);
		end(&w);
	}
}

static void a_replica_takes_nothing(void **state)
{
	(void)state;
	for (size_t l = 0; l < 2; l++) {
		struct outbox_transport *t;
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct world w;

		begin(&w);
		t = open_as(&w, logins[l], "stream=s");
		for (size_t i = 0; i < 10; i++)
			add(&w, "a", "x");
		run_command(&w, "REPLICAOF 127.0.0.1 1");
		assert_int_equal(t->ops->publish(t, &w.c.batch, soon(), &err), OUTBOX_EFULL);
		assert_non_null(strstr(err.message, "READONLY"));
		run_command(&w, "REPLICAOF NO ONE");
		assert_int_equal(count_acked_prefix(&w), 0);
		assert_first_arrived(&w, "s", 0);
		transport_close(t);
		end(&w);
	}
}

static void scripts_that_the_server_forgot_run(void **state)
{
	struct outbox_transport *t;
	struct world w;

	(void)state;
	begin(&w);
	t = open_as(&w, "", "stream=s");
	for (size_t i = 0; i < 10; i++)
		add(&w, "a", "x");
	case_publish_acked(&w.c, t);
	run_command(&w, "SCRIPT FLUSH");
	run_command(&w, "DEL s");
	case_reset_verdicts(&w.c);
	case_publish_acked(&w.c, t);
	assert_first_arrived(&w, "s", 10);
	transport_close(t);
	end(&w);
}

/* A user who may write to one stream only: the script is refused as a whole, the messages are not. */
static void a_forbidden_stream_does_not_forbid_the_others(void **state)
{
	struct outbox_transport *t;
	struct world w;

	(void)state;
	begin(&w);
	run_command(&w, "ACL SETUSER half on >pw ~good +xadd +eval +ping");
	t = open_as(&w, "half:pw@", "stream={type}");
	for (size_t i = 0; i < 6; i++)
		add(&w, i % 2 ? "b" : "a", i == 2 ? "bad" : "good");
	assert_int_equal(t->ops->publish(t, &w.c.batch, soon(), NULL), OUTBOX_OK);
	assert_non_null(strstr(w.c.batch.items[2]->reason, "NOPERM"));
	assert_only_a_stopped(&w);
	transport_close(t);
	end(&w);
}

/* Too large for a script: by themselves, in their place. */
static void large_messages_keep_their_place(void **state)
{
	static char data[2 << 20];
	struct outbox_transport *t;
	struct world w;

	(void)state;
	memset(data, '1', sizeof(data));
	begin(&w);
	t = open_as(&w, "", "stream=s");
	for (size_t i = 0; i < 40; i++) {
		struct outbox_message *m = add(&w, "a", "x");

		m->data = data;
		m->size = i % 5 == 4 ? sizeof(data) : i % 5 == 3 ? 100000 : 10;
	}
	case_publish_acked(&w.c, t);
	assert_first_arrived(&w, "s", 40);
	transport_close(t);
	end(&w);
}

/* No order: one pipeline. */
static void where_keys_mean_nothing_nothing_waits(void **state)
{
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .target = "events",
						  .clock = outbox_clock_system(),
						  .unordered = true };
	struct outbox_transport *t = NULL;
	struct world w;
	char url[100];

	(void)state;
	begin(&w);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%s/?stream={type}", getenv("REDIS_PORT"));
	config.url = url;
	run_command(&w, "SET bad text");
	assert_int_equal(redis_transport_ops.open(&config, &t, NULL), OUTBOX_OK);
	assert_int_equal(connect_to(t, NULL), OUTBOX_OK);
	for (size_t i = 0; i < 3; i++)
		add(&w, "a", i == 1 ? "bad" : "good");
	case_publish(&w.c, t);
	assert_int_equal(verdict(&w, 1), OUTBOX_RETRY);
	assert_int_equal(verdict(&w, 2), OUTBOX_ACKED);
	assert_false(ran_scripts(&w));
	transport_close(t);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_keys_arrive_in_order),
		cmocka_unit_test(a_refusal_stops_its_key),
		cmocka_unit_test(a_message_that_has_no_stream_stops_nobody),
		cmocka_unit_test(out_of_memory_in_the_middle),
		cmocka_unit_test(a_replica_takes_nothing),
		cmocka_unit_test(scripts_that_the_server_forgot_run),
		cmocka_unit_test(a_forbidden_stream_does_not_forbid_the_others),
		cmocka_unit_test(large_messages_keep_their_place),
		cmocka_unit_test(where_keys_mean_nothing_nothing_waits),
	};

	if (!getenv("REDIS_PORT")) {
		printf("redis_order: skipped: no server; run it with tests/support/with-redis\n");
		return 77;
	}
	return cmocka_run_group_tests_name("redis_order", tests, NULL, NULL);
}
