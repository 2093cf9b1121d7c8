/* SPDX-License-Identifier: Apache-2.0 */
#include "client/events_cases_test.h"

#include <stdio.h>
#include <string.h>

#define CAUSE "0199aaaa-0000-7000-8000-000000000001"
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define OTHER_TRACE "00-11111111111111111111111111111111-b7ad6b7169203331-01"

static struct outbox_message event(const char *id)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "order.placed";
	m.id = id;
	m.data = "{}";
	m.size = 2;
	return m;
}

static int add(struct events_fixture *f, const char *id)
{
	struct outbox_message m = event(id);

	return outbox_events_add(f->events, &m, &f->err);
}

static void must(struct events_fixture *f, int r, const char *what)
{
	if (r != OUTBOX_OK)
		fail_msg("%s: %s", what, f->err.message);
}

void events_run(struct events_fixture *f, const char *sql)
{
	if (!f->try_sql(f, sql))
		fail_msg("%s", sql);
}

void events_add(struct events_fixture *f, const char *id)
{
	must(f, add(f, id), id);
}

void events_begin(struct events_fixture *f)
{
	must(f, outbox_events_begin(f->events, NULL, &f->err), "begin");
}

void events_flush(struct events_fixture *f)
{
	must(f, outbox_events_flush(f->events, &f->err), "flush");
}

const char *events_ids(struct events_fixture *f)
{
	return f->rows(f, "SELECT id FROM outbox_message ORDER BY seq");
}

/* ---- cases --------------------------------------------------------------------------------------- */

static void begin_work(struct events_fixture *f)
{
	events_run(f, "BEGIN");
	events_begin(f);
}

static void they_are_written_at_once_in_order(void **state)
{
	struct events_fixture *f = *state;

	begin_work(f);
	events_add(f, "z");
	events_add(f, "a");
	events_add(f, "m");
	assert_int_equal(outbox_events_unwritten(f->events), 3);
	events_flush(f);
	assert_int_equal(outbox_events_unwritten(f->events), 0);
	assert_string_equal(events_ids(f), "");
	events_add(f, "b");
	events_flush(f);
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "z a m b");
	begin_work(f);
	events_add(f, "next");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "z a m b next");
}

static void a_rollback_drops_them(void **state)
{
	struct events_fixture *f = *state;

	begin_work(f);
	events_add(f, "one");
	events_run(f, "ROLLBACK");
	assert_int_equal(outbox_events_unwritten(f->events), 0);
	begin_work(f);
	events_add(f, "two");
	events_flush(f);
	events_add(f, "three");
	events_run(f, "ROLLBACK");
	/* Nobody asked in between. */
	begin_work(f);
	events_add(f, "four");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "four");
}

static void outside_a_transaction_it_refuses(void **state)
{
	struct events_fixture *f = *state;

	assert_int_equal(outbox_events_begin(f->events, NULL, &f->err), OUTBOX_EINVAL);
	assert_non_null(strstr(f->err.message, "not in a transaction"));
	assert_int_equal(add(f, "one"), OUTBOX_EINVAL);
	events_run(f, "BEGIN");
	assert_int_equal(add(f, "one"), OUTBOX_EINVAL);
	assert_non_null(strstr(f->err.message, "outbox_events_begin()"));
	assert_int_equal(outbox_events_flush(f->events, &f->err), OUTBOX_EINVAL);
	events_begin(f);
	events_run(f, "ROLLBACK; BEGIN");
	assert_int_equal(add(f, "one"), OUTBOX_EINVAL);
	events_run(f, "ROLLBACK");
}

static void what_makes_no_sense_is_told(void **state)
{
	struct events_fixture *f = *state;
	struct outbox_message wrong = event("x"), context = { .traceparent = "no trace" };
	struct outbox_events_mark mark = { 0 };

	assert_int_equal(outbox_events_begin(NULL, NULL, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_add(NULL, &wrong, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_unwritten(NULL), 0);
	assert_int_equal(outbox_events_free(NULL, &f->err), OUTBOX_OK);
	outbox_events_drop(NULL);
	events_run(f, "BEGIN");
	assert_int_equal(outbox_events_begin(f->events, &context, &f->err), OUTBOX_EINVAL);
	assert_non_null(strstr(f->err.message, "context"));
	events_begin(f);
	wrong.type = "";
	assert_int_equal(outbox_events_add(f->events, &wrong, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_add(f->events, NULL, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_mark(f->events, NULL, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_rewind(f->events, &mark, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_harvest(f->events, NULL, NULL, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_unwritten(f->events), 0);
	events_run(f, "COMMIT");
}

/* The caller's memory is its own again after the call. */
static void they_are_copied(void **state)
{
	struct events_fixture *f = *state;
	char text[] = "kept", data[] = "{\"kept\":1}", name[] = "X-Kept";
	struct outbox_header header = { name, text };
	struct outbox_message m = event(text);

	m.key = m.subject = m.topic = m.source = text;
	m.data = data;
	m.size = strlen(data);
	m.headers = &header;
	m.n_headers = 1;
	begin_work(f);
	must(f, outbox_events_add(f->events, &m, &f->err), "add");
	memset(text, 'x', sizeof(text) - 1);
	memset(data, 'x', sizeof(data) - 1);
	memset(name, 'x', sizeof(name) - 1);
	header = (struct outbox_header){ 0 };
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(f->rows(f, "SELECT id || key || subject || topic || source || payload || headers"
				       " FROM outbox_message"),
			    "keptkeptkeptkeptkept{\"kept\":1}{\"X-Kept\":\"kept\"}");
}

/* It happened when it was collected, not when it was written. */
static void their_time_is_that_of_the_call(void **state)
{
	struct events_fixture *f = *state;
	struct outbox_message m = event("given");

	m.event_time = 1700000000 * OUTBOX_SECONDS;
	begin_work(f);
	events_add(f, "collected");
	must(f, outbox_events_add(f->events, &m, &f->err), "add");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(f->rows(f, "SELECT id FROM outbox_message WHERE event_time < created_at"
				       " ORDER BY seq"),
			    "collected given");
}

static void the_context_is_inherited(void **state)
{
	struct events_fixture *f = *state;
	struct outbox_message cause = event(CAUSE), context = OUTBOX_MESSAGE_INIT;
	struct outbox_message own = event("own"), header = event("header");
	struct outbox_header trace = { "Traceparent", OTHER_TRACE };
	char correlation[] = "the-order";

	cause.correlation_id = correlation;
	cause.traceparent = TRACE;
	must(f, outbox_message_caused_by(&context, &cause, &f->err), "caused by");
	events_run(f, "BEGIN");
	must(f, outbox_events_begin(f->events, &context, &f->err), "begin");
	memset(correlation, 'x', sizeof(correlation) - 1);
	events_add(f, "inherits");
	events_flush(f);
	own.correlation_id = "mine";
	own.causation_id = "my-cause";
	own.traceparent = OTHER_TRACE;
	must(f, outbox_events_add(f->events, &own, &f->err), "own");
	header.headers = &trace;
	header.n_headers = 1;
	must(f, outbox_events_add(f->events, &header, &f->err), "header");
	events_flush(f);
	events_run(f, "COMMIT");
	begin_work(f);
	events_add(f, "none");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(f->rows(f, "SELECT coalesce(correlation_id, '-') || '/' || coalesce(causation_id,"
				       " '-') FROM outbox_message ORDER BY seq"),
			    "the-order/" CAUSE " mine/my-cause the-order/" CAUSE " -/-");
	assert_string_equal(
		f->rows(f, "SELECT coalesce(traceparent, '-') FROM outbox_message ORDER BY seq"),
		TRACE " " OTHER_TRACE " - -");
}

struct order {
	const char *ids[3];
	int flush;
};

static int hand_over(struct outbox_events *events, void *aggregate, struct outbox_error *err)
{
	const struct order *order = aggregate;
	int r = OUTBOX_OK;

	for (int i = 0; i < 3 && order->ids[i] && r == OUTBOX_OK; i++) {
		struct outbox_message m = event(order->ids[i]);

		m.key = order->ids[0];
		r = outbox_events_add(events, &m, err);
	}
	return r == OUTBOX_OK && order->flush ? outbox_events_flush(events, err) : r;
}

static void aggregates_hand_over_theirs(void **state)
{
	struct events_fixture *f = *state;
	struct order first = { .ids = { "a1", "a2" } }, second = { .ids = { "b1", "b2" } };
	struct order wrong = { .ids = { "c1", "", "c3" } },
		     flushes = { .ids = { "d1" }, .flush = 1 };

	begin_work(f);
	must(f, outbox_events_harvest(f->events, &second, hand_over, &f->err), "harvest");
	assert_int_equal(outbox_events_harvest(f->events, &wrong, hand_over, &f->err), OUTBOX_EINVAL);
	assert_int_equal(outbox_events_unwritten(f->events), 2);
	assert_int_equal(outbox_events_harvest(f->events, &flushes, hand_over, &f->err),
			 OUTBOX_EINVAL);
	must(f, outbox_events_harvest(f->events, &first, hand_over, &f->err), "harvest");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "b1 b2 a1 a2");
}

static struct outbox_events_mark savepoint(struct events_fixture *f, const char *name)
{
	struct outbox_events_mark mark;
	char sql[40];

	snprintf(sql, sizeof(sql), "SAVEPOINT %s", name);
	events_run(f, sql);
	must(f, outbox_events_mark(f->events, &mark, &f->err), "mark");
	return mark;
}

static void roll_back_to(struct events_fixture *f, const char *name,
			 const struct outbox_events_mark *mark)
{
	char sql[40];

	snprintf(sql, sizeof(sql), "ROLLBACK TO %s", name);
	events_run(f, sql);
	must(f, outbox_events_rewind(f->events, mark, &f->err), "rewind");
}

static void a_savepoint_takes_its_events_along(void **state)
{
	struct events_fixture *f = *state;
	struct outbox_events_mark a, b;

	begin_work(f);
	events_add(f, "before");
	a = savepoint(f, "a");
	events_add(f, "a1");
	b = savepoint(f, "b");
	events_add(f, "b1");
	roll_back_to(f, "b", &b);
	assert_int_equal(outbox_events_unwritten(f->events), 2);
	events_add(f, "b2");
	events_run(f, "RELEASE b");
	roll_back_to(f, "a", &a);
	events_add(f, "a2");
	roll_back_to(f, "a", &a);
	events_add(f, "a3");
	events_run(f, "RELEASE a");
	events_add(f, "after");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "before a3 after");
}

/* What a rollback to a savepoint has removed from the log is written once more. */
static void a_flush_may_be_undone(void **state)
{
	struct events_fixture *f = *state;
	struct outbox_events_mark mark;

	begin_work(f);
	events_add(f, "before");
	events_flush(f);
	events_add(f, "one");
	mark = savepoint(f, "a");
	events_add(f, "inside");
	events_flush(f);
	/* another unit would forget what may have to be written again */
	assert_int_equal(outbox_events_begin(f->events, NULL, &f->err), OUTBOX_ECONFLICT);
	roll_back_to(f, "a", &mark);
	assert_int_equal(outbox_events_unwritten(f->events), 1);
	events_add(f, "two");
	events_flush(f);
	events_run(f, "RELEASE a; COMMIT");
	assert_string_equal(events_ids(f), "before one two");
}

static void memory_is_bounded(void **state)
{
	struct outbox_events_config config = OUTBOX_EVENTS_CONFIG_INIT;
	struct events_fixture *f = *state;
	char large[3000];
	struct outbox_message m = event("large");

	config.max_messages = 2;
	config.max_bytes = 4000;
	f->reopen(f, &config);
	begin_work(f);
	events_add(f, "1");
	events_add(f, "2");
	assert_int_equal(add(f, "3"), OUTBOX_EFULL);
	assert_non_null(strstr(f->err.message, "max_messages"));
	events_flush(f);
	m.data = large;
	m.size = sizeof(large);
	m.content_type = "application/octet-stream";
	memset(large, 'x', sizeof(large));
	must(f, outbox_events_add(f->events, &m, &f->err), "large");
	m.id = "larger";
	assert_int_equal(outbox_events_add(f->events, &m, &f->err), OUTBOX_EFULL);
	assert_non_null(strstr(f->err.message, "max_bytes"));
	events_flush(f);
	must(f, outbox_events_add(f->events, &m, &f->err), "larger");
	events_flush(f);
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "1 2 large larger");
}

static void freed_too_early_it_says_so(void **state)
{
	struct events_fixture *f = *state;

	begin_work(f);
	events_add(f, "one");
	assert_int_equal(outbox_events_free(f->events, &f->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(f->err.message, "1 collected events are not written"));
	assert_int_equal(outbox_events_begin(f->events, NULL, &f->err), OUTBOX_ECONFLICT);
	assert_int_equal(outbox_events_unwritten(f->events), 1);
	events_flush(f);
	must(f, outbox_events_free(f->events, &f->err), "free");
	f->events = NULL;
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "one");
	f->reopen(f, NULL);
	begin_work(f);
	events_add(f, "two");
	outbox_events_drop(f->events);
	must(f, outbox_events_free(f->events, &f->err), "free");
	f->events = NULL;
	events_run(f, "COMMIT");
	assert_string_equal(events_ids(f), "one");
}

/* What is refused when it is written stays collected: the application decides. */
static void a_refused_flush_writes_nothing(void **state)
{
	struct events_fixture *f = *state;

	begin_work(f);
	events_add(f, "good");
	events_add(f, "bad");
	assert_int_equal(outbox_events_flush(f->events, &f->err), OUTBOX_EINVAL);
	assert_non_null(strstr(f->err.message, "message 1"));
	assert_int_equal(outbox_events_unwritten(f->events), 2);
	events_run(f, "ROLLBACK");
	assert_int_equal(outbox_events_unwritten(f->events), 0);
	assert_string_equal(events_ids(f), "");
}

const struct CMUnitTest *events_cases(CMFixtureFunction setup, CMFixtureFunction teardown)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest all[EVENTS_CASES] = {
		CASE(they_are_written_at_once_in_order),
		CASE(a_rollback_drops_them),
		CASE(outside_a_transaction_it_refuses),
		CASE(what_makes_no_sense_is_told),
		CASE(they_are_copied),
		CASE(their_time_is_that_of_the_call),
		CASE(the_context_is_inherited),
		CASE(aggregates_hand_over_theirs),
		CASE(a_savepoint_takes_its_events_along),
		CASE(a_flush_may_be_undone),
		CASE(memory_is_bounded),
		CASE(freed_too_early_it_says_so),
		CASE(a_refused_flush_writes_nothing),
	};
	static struct CMUnitTest cases[EVENTS_CASES];

	memcpy(cases, all, sizeof(cases));
	return cases;
}
