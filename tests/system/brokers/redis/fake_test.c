/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that are broken, hostile or just in trouble: every row of the verdict table, and no ACK that was not one. */

#include "fake_case.h"

#include "base/cleanup.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------- */

struct refusal {
	const char *text;
	int status, verdict;             /* with a stream for each message */
	int fixed_status, fixed_verdict; /* with one for all; 0, 0: the same */
};

static const struct refusal refusals[] = {
	{ "OOM command not allowed when used memory > 'maxmemory'.", OUTBOX_EFULL, 0, 0, 0 },
	{ "MISCONF Errors writing to the AOF file: No space left on device", OUTBOX_EFULL, 0, 0, 0 },
	{ "ERR max number of clients reached", OUTBOX_EFULL, 0, 0, 0 },
	{ "READONLY You can't write against a read only replica.", OUTBOX_EFULL, 0, 0, 0 },
	{ "LOADING Redis is loading the dataset in memory", OUTBOX_EFULL, 0, 0, 0 },
	{ "MASTERDOWN Link with MASTER is down", OUTBOX_EFULL, 0, 0, 0 },
	{ "CLUSTERDOWN The cluster is down", OUTBOX_EFULL, 0, 0, 0 },
	{ "NOREPLICAS Not enough good replicas to write.", OUTBOX_EFULL, 0, 0, 0 },
	{ "TRYAGAIN Multiple keys request during rehashing of slot", OUTBOX_EFULL, 0, 0, 0 },
	{ "ASK 3999 127.0.0.1:6381", OUTBOX_EFULL, 0, 0, 0 },
	{ "BUSY Redis is busy running a script.", OUTBOX_EFULL, 0, 0, 0 },
	{ "NOAUTH Authentication required.", OUTBOX_EAUTH, 0, 0, 0 },
	{ "WRONGPASS invalid username-password pair", OUTBOX_EAUTH, 0, 0, 0 },
	{ "DENIED Redis is running in protected mode", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR invalid password", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR Client sent AUTH, but no password is set", OUTBOX_EAUTH, 0, 0, 0 },
	{ "NOPERM this user has no permissions to run the 'xadd' command", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR unknown command `XADD`", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR syntax error", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR DB index is out of range", OUTBOX_EAUTH, 0, 0, 0 },
	{ "ERR SELECT is not allowed in cluster mode", OUTBOX_EAUTH, 0, 0, 0 },
	{ "NOPERM this user has no permissions to access one of the keys used as arguments", 0,
	  OUTBOX_RETRY, OUTBOX_EAUTH, 0 },
	{ "MOVED 3999 127.0.0.1:6381", 0, OUTBOX_RETRY, OUTBOX_EAUTH, 0 },
	{ "WRONGTYPE Operation against a key holding the wrong kind of value", 0, OUTBOX_RETRY,
	  OUTBOX_EAUTH, 0 },
	{ "ERR Protocol error: invalid bulk length", OUTBOX_ECONN, OUTBOX_REJECTED, 0, 0 },
	{ "ERR something that nobody has seen before", 0, OUTBOX_RETRY, 0, 0 },
	{ "OOMPH is not OOM", 0, OUTBOX_RETRY, 0, 0 },
	{ "", 0, OUTBOX_RETRY, 0, 0 },
};

/* The second of three is refused; the others keep their own verdict. */
static void try_refusal(const struct refusal *row, bool fixed)
{
	bool same = !fixed || (!row->fixed_status && !row->fixed_verdict);
	int status = same ? row->status : row->fixed_status;
	int verdict = same ? row->verdict : row->fixed_verdict;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct transport_case c;
	char text[200];
	struct fake_script script = { .adds = { ID, text, ID } };

	snprintf(text, sizeof(text), "-%s\r\n", row->text);
	begin(&c, 3);
	if (talk(&c, &script, fixed ? "stream=s" : "stream={type}", CONTRACT_DEADLINE, &err) !=
	    status)
		fail_msg("%s: status %s", row->text, outbox_status_name(err.status));
	if (c.batch.items[1]->verdict != verdict)
		fail_msg("%s: verdict %d", row->text, c.batch.items[1]->verdict);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_ACKED);
	/* After ECONN nobody knows; else its own answer counts. */
	assert_int_equal(c.batch.items[2]->verdict,
			 status == OUTBOX_ECONN ? OUTBOX_VERDICT_UNSET : OUTBOX_ACKED);
	if (verdict)
		assert_non_null(strstr(c.batch.items[1]->reason, row->text));
	else
		assert_non_null(strstr(err.message, row->text));
	outbox_arena_free(c.arena);
}

static void every_refusal_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		try_refusal(&refusals[i], false);
		try_refusal(&refusals[i], true);
	}
}

/* More than any socket holds: the server's refusal is read before all is written. */
static void make_large(struct transport_case *c)
{
	static char data[8000];

	memset(data, '1', sizeof(data));
	for (size_t i = 0; i < c->batch.count; i++) {
		c->messages[i].data = data;
		c->messages[i].size = sizeof(data);
	}
}

static void an_outage_stops_the_writing(void **state)
{
	struct fake_script script = { .adds = { ID, "-OOM full\r\n", ID } };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct transport_case c;

	(void)state;
	begin(&c, 4000);
	make_large(&c);
	assert_int_equal(talk(&c, &script, "stream=s", CONTRACT_DEADLINE, &err), OUTBOX_EFULL);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_ACKED);
	assert_int_equal(c.batch.items[1]->verdict, OUTBOX_VERDICT_UNSET);
	assert_int_equal(c.batch.items[2]->verdict, OUTBOX_ACKED);
	assert_int_equal(c.batch.items[3999]->verdict, OUTBOX_VERDICT_UNSET);
	outbox_arena_free(c.arena);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const char *const nonsense[] = {
	"garbage\r\n",
	"HTTP/1.1 200 OK\r\n\r\n",
	"*1000000000\r\n",
	"*0\r\n",
	"*-1\r\n",
	"*1\r\n$3\r\n1-0\r\n",
	"$-2\r\n",
	"$-1\r\n",
	"$0\r\n\r\n",
	"$99999999999999999999\r\n",
	":1\r\n",
	"+OK\r\n",
	"+1-0\r\n",
	"$3\r\nabc\r\n",
	"$2\r\n1-\r\n",
	"$2\r\n-1\r\n",
	"$4\r\n1-0x\r\n",
	"$16\r\n1700000000000-0\r\n",
	"$3\r\n1-0\r\n$3\r\n1-0\r\n",
	"$3\r\n1-0\r\n$",
	"%1\r\n",
	"_\r\n",
	",1.5\r\n",
	"\x80\xff\r\n",
};

static void nonsense_is_never_an_ack(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		struct fake_script script = { .adds = { ID, ID, nonsense[i] } };
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct transport_case c;

		/* The third is the guilty one: what was said before it cannot be trusted either. */
		begin(&c, 3);
		if (talk(&c, &script, "stream=s", SHORT, &err) != OUTBOX_ECONN &&
		    err.status != OUTBOX_ETIMEDOUT)
			fail_msg("%s: %s", nonsense[i], err.message);
		if (c.batch.items[2]->verdict == OUTBOX_ACKED)
			fail_msg("%s was taken as an acknowledgement", nonsense[i]);
		outbox_arena_free(c.arena);
	}
}

static void one_answer_too_many_takes_all_back(void **state)
{
	static const struct fake_script scripts[] = {
		/* at once: whoever has had enough answers does not wait for more */
		{ .adds = { "", "", ID ID ID ID } },
		{ .adds = { ID, ID, ID ":7\r\n" } },
		{ .greeting = "+hello\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct transport_case c;

		begin(&c, 3);
		assert_int_equal(talk(&c, &scripts[i], "stream=s", CONTRACT_DEADLINE, NULL),
				 OUTBOX_ECONN);
		assert_int_equal(count(&c, OUTBOX_ACKED), 0);
		outbox_arena_free(c.arena);
	}
}

static void what_is_said_between_batches_is_no_ack(void **state)
{
	struct fake_script script = { .adds = { ID, "" } }; /* the second is never answered */
	struct fake *fake = fake_start(&script);
	struct transport_case c;
	struct outbox_transport *t;

	(void)state;
	begin(&c, 1);
	t = open_to(&c, fake, "stream=s");
	assert_int_equal(connect_to(t, NULL), OUTBOX_OK);
	case_publish_acked(&c, t);
	fake_say(fake, ID);
	case_reset_verdicts(&c);
	assert_int_equal(t->ops->publish(t, &c.batch, soon(), NULL), OUTBOX_ECONN);
	assert_int_equal(count(&c, OUTBOX_ACKED), 0);
	transport_close(t);
	fake_stop(fake);
	outbox_arena_free(c.arena);
}

static void a_trickle_does_not_stretch_the_deadline(void **state)
{
	struct fake_script script = { .trickle = true };
	struct transport_case c;

	(void)state;
	begin(&c, 3);
	assert_int_equal(talk(&c, &script, "stream=s", SHORT, NULL), OUTBOX_ETIMEDOUT);
	assert_int_equal(count(&c, OUTBOX_ACKED), 0);
	outbox_arena_free(c.arena);
}

/* A server that writes before it reads on: whoever does not read meanwhile waits for ever. */
static void answers_are_read_while_writing(void **state)
{
	struct fake_script script = { .padding = 16000 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct transport_case c;

	(void)state;
	begin(&c, 2000);
	make_large(&c);
	if (talk(&c, &script, "stream=s", CONTRACT_DEADLINE, &err))
		fail_msg("%s", err.message);
	assert_int_equal(count(&c, OUTBOX_RETRY), 2000);
	outbox_arena_free(c.arena);
}

/* ---- scripts --------------------------------------------------------------------------------- */

static int talk_of_one_key(struct transport_case *c, const struct fake_script *script, size_t n)
{
	begin(c, n);
	use_one_key(c);
	return talk(c, script, "stream={type}", SHORT, NULL);
}

static void a_script_says_how_many(void **state)
{
	struct fake_script script = { .eval = ":3\r\n", .adds = { "-ERR nobody asked\r\n" } };
	struct transport_case c;

	(void)state;
	assert_int_equal(talk_of_one_key(&c, &script, 3), OUTBOX_OK);
	assert_int_equal(count(&c, OUTBOX_ACKED), 3);
	outbox_arena_free(c.arena);
}

/* It is asked again by itself, which may well succeed now. */
static void where_a_script_stops_a_message_goes_alone(void **state)
{
	struct fake_script script = { .eval = ":1\r\n", .adds = { ID } };
	struct transport_case c;

	(void)state;
	assert_int_equal(talk_of_one_key(&c, &script, 2), OUTBOX_OK);
	assert_int_equal(count(&c, OUTBOX_ACKED), 2);
	outbox_arena_free(c.arena);
}

static void behind_a_refused_one_nothing_of_its_key_goes(void **state)
{
	struct fake_script script = { .eval = ":1\r\n", .adds = { "-ERR not now\r\n", ID } };
	struct transport_case c;

	(void)state;
	assert_int_equal(talk_of_one_key(&c, &script, 3), OUTBOX_OK);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_ACKED);
	assert_int_equal(c.batch.items[1]->verdict, OUTBOX_RETRY);
	assert_int_equal(c.batch.items[2]->verdict, OUTBOX_VERDICT_UNSET);
	outbox_arena_free(c.arena);
}

static void a_script_that_may_not_run_is_done_without(void **state)
{
	static const char *const refusals_of_eval[] = {
		NULL,
		"-ERR unknown command 'EVAL'\r\n",
		"-CROSSSLOT Keys in request don't hash to the same slot\r\n",
		"-NOPERM No permissions to access a key\r\n",
		"-OOM command not allowed\r\n",
		"-ERR Error running script\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals_of_eval); i++) {
		struct fake_script script = { .eval = refusals_of_eval[i] };
		struct transport_case c;

		assert_int_equal(talk_of_one_key(&c, &script, 5), OUTBOX_OK);
		assert_int_equal(count(&c, OUTBOX_ACKED), 5);
		outbox_arena_free(c.arena);
	}
}

static void no_script_acks_more_than_it_was_given(void **state)
{
	static const char *const answers[] = {
		":4\r\n",       ":-1\r\n",     ":9223372036854775807\r\n",
		"+3\r\n",       "$1\r\n3\r\n", "$-1\r\n",
		"*1\r\n:3\r\n", "*0\r\n",      ":3\r\n:3\r\n",
		":3\r\n:",      ":x\r\n",      ID,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct fake_script script = { .eval = answers[i] };
		struct transport_case c;

		assert_int_equal(talk_of_one_key(&c, &script, 3), OUTBOX_ECONN);
		if (count(&c, OUTBOX_ACKED))
			fail_msg("%s was taken as an acknowledgement", answers[i]);
		outbox_arena_free(c.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_refusal_has_its_verdict),
		cmocka_unit_test(an_outage_stops_the_writing),
		cmocka_unit_test(nonsense_is_never_an_ack),
		cmocka_unit_test(one_answer_too_many_takes_all_back),
		cmocka_unit_test(what_is_said_between_batches_is_no_ack),
		cmocka_unit_test(a_trickle_does_not_stretch_the_deadline),
		cmocka_unit_test(answers_are_read_while_writing),
		cmocka_unit_test(a_script_says_how_many),
		cmocka_unit_test(where_a_script_stops_a_message_goes_alone),
		cmocka_unit_test(behind_a_refused_one_nothing_of_its_key_goes),
		cmocka_unit_test(a_script_that_may_not_run_is_done_without),
		cmocka_unit_test(no_script_acks_more_than_it_was_given),
	};

	return cmocka_run_group_tests_name("redis_fake", tests, NULL, NULL);
}
