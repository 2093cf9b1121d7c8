/* SPDX-License-Identifier: Apache-2.0 */

#include "base/unit_test.h"

#include "base/text.h"
#include "core/decide.h"
#include "core/message.h"

#include <string.h>

#define S OUTBOX_SECONDS
#define NOW (1000 * S)

struct fixture {
	struct outbox_policy policy;
	struct decide_context context;
	struct outbox_claimed delivery;
	struct outbox_settlement settlement;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){
		.policy = { .base = 10 * S, .cap = 80 * S, .factor = 2, .max_attempts = 3 }
	};
	f.context = (struct decide_context){ .policy = &f.policy, .now = NOW };
	f.context.memory = outbox_arena_new(1 << 20);
	f.delivery.message.type = "t";
	f.delivery.seq = 77;
	*state = &f;
	return f.context.memory ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	outbox_arena_free(f->context.memory);
	return 0;
}

static bool sends(struct fixture *f, bool died_alone)
{
	f->settlement = (struct outbox_settlement){ .seq = -1 };
	return decide_send(&f->context, &f->delivery, died_alone, &f->settlement);
}

static void settles(struct fixture *f, struct decide_verdict verdict)
{
	f->settlement = (struct outbox_settlement){ .seq = -1 };
	decide_settle(&f->context, &f->delivery, &verdict, &f->settlement);
	assert_int_equal(f->settlement.seq, 77);
}

static void what_is_due_is_sent(void **state)
{
	struct fixture *f = *state;

	assert_true(sends(f, false));
	assert_int_equal(f->settlement.seq, -1); /* not written */
	f->delivery.message.due_at = NOW;
	f->delivery.message.expires_at = NOW + 1;
	assert_true(sends(f, false));
	f->delivery.suspect = true;
	assert_true(sends(f, false));
}

static void malformed_fails_at_once(void **state)
{
	struct fixture *f = *state;

	f->delivery.malformed = "headers: not JSON";
	f->delivery.message.due_at = NOW + S;
	f->delivery.blocked = true;
	assert_false(sends(f, true));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->settlement.error, "headers: not JSON");
	assert_int_equal(f->settlement.seq, 77);
	assert_int_equal(f->settlement.attempts, 0);
}

static void not_due_is_deferred_and_leaves_its_keys_order(void **state)
{
	struct fixture *f = *state;

	f->delivery.message.due_at = NOW + 1;
	f->delivery.blocked = true;
	assert_false(sends(f, false));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_DEFERRED);
	assert_int_equal(f->settlement.due_at, NOW + 1);
	/* A detour comes because its time has come, for example after an operator's defer. */
	f->delivery.blocked = false;
	f->delivery.detour = true;
	assert_true(sends(f, false));
}

static void blocked_is_parked(void **state)
{
	struct fixture *f = *state;

	f->delivery.blocked = true;
	f->delivery.message.expires_at = 1;
	f->delivery.attempts = 2;
	assert_false(sends(f, true));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_PARKED);
	assert_int_equal(f->settlement.attempts, 2);
}

static void expired_fails_with_the_time(void **state)
{
	struct fixture *f = *state;

	f->delivery.message.expires_at = NOW;
	f->delivery.attempts = 1;
	assert_false(sends(f, true));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->settlement.error, "expired at 1970-01-01T00:16:40Z");
	assert_int_equal(f->settlement.attempts, 1);
	f->context.memory = outbox_arena_free(f->context.memory);
	assert_false(sends(f, false));
	assert_string_equal(f->settlement.error, "expired");
}

static void what_kills_the_relay_is_charged_and_fails_in_the_end(void **state)
{
	struct fixture *f = *state;

	assert_false(sends(f, true));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.attempts, 1);
	assert_int_equal(f->settlement.delay, 10 * S);
	assert_true(f->settlement.suspect);
	assert_non_null(strstr(f->settlement.error, "the relay died"));
	f->delivery.attempts = 2;
	assert_false(sends(f, true));
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->settlement.attempts, 3);
	assert_non_null(strstr(f->settlement.error, " (attempt 3 of 3)"));
}

static void acknowledged_is_delivered(void **state)
{
	struct fixture *f = *state;

	f->delivery.attempts = 2;
	f->delivery.suspect = true;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_ACKED, .connection_lost = true });
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_DELIVERED);
	assert_false(f->settlement.suspect);
	assert_null(f->settlement.error);
}

static void rejected_fails_at_once(void **state)
{
	struct fixture *f = *state;

	settles(f, (struct decide_verdict){ .verdict = OUTBOX_REJECTED,
					    .reason = "unknown event type" });
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->settlement.attempts, 1);
	assert_string_equal(f->settlement.error, "unknown event type");
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_REJECTED });
	assert_string_equal(f->settlement.error, "rejected by the broker");
}

static void a_refusal_is_charged_until_used_up(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .verdict = OUTBOX_RETRY,
					  .reason = "422: no",
					  .alone = true };
	int attempts;

	f->delivery.suspect = true;
	for (attempts = 0; attempts < 2; attempts++) {
		f->delivery.attempts = attempts;
		settles(f, verdict);
		assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
		assert_int_equal(f->settlement.attempts, attempts + 1);
		assert_int_equal(f->settlement.delay, (10 * S) << attempts);
		assert_string_equal(f->settlement.error, "422: no");
		assert_false(f->settlement.suspect); /* it got an answer */
	}
	f->delivery.attempts = 2;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->settlement.attempts, 3);
	assert_string_equal(f->settlement.error, "422: no (attempt 3 of 3)");
	verdict.reason = NULL;
	settles(f, verdict);
	assert_string_equal(f->settlement.error, "refused by the broker (attempt 3 of 3)");
	f->context.memory = outbox_arena_free(f->context.memory);
	settles(f, verdict);
	assert_string_equal(f->settlement.error, "refused by the broker");
}

static void a_used_up_budget_is_told(void **state)
{
	struct fixture *f = *state;

	f->policy.budget = 60 * S;
	f->delivery.failing_since = NOW - 55 * S;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_RETRY, .reason = "503" });
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->settlement.error, "503 (attempt 1, retry budget of 1 min used up)");
}

static void the_last_error_is_cut_with_its_count_kept(void **state)
{
	struct fixture *f = *state;
	static char reason[3 * ERROR_TEXT_MAX + 1];
	size_t i;

	for (i = 0; i < ERROR_TEXT_MAX; i++)
		memcpy(reason + 3 * i, "\xe2\x82\xac", 4);
	f->delivery.attempts = 2;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_RETRY, .reason = reason });
	assert_int_equal(utf8_length(f->settlement.error), ERROR_TEXT_MAX);
	assert_true(utf8_valid(f->settlement.error, strlen(f->settlement.error)));
	assert_non_null(strstr(f->settlement.error, "\xac (attempt 3 of 3)"));
}

static void an_outage_charges_nobody(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .connection_lost = true };

	f->delivery.attempts = 2; /* one more would be the last */
	f->delivery.suspect = true;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_RETURNED);
	assert_true(f->settlement.suspect); /* as if never claimed */
	verdict.verdict = OUTBOX_UNKNOWN;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_RETURNED);
	verdict = (struct decide_verdict){ .alone = true }; /* never touched, connection fine */
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_RETURNED);
	verdict.verdict = 99; /* no verdict of ours */
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_RETURNED);
}

static void alone_and_unknown_is_suspect_and_charged_once_proven(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .verdict = OUTBOX_UNKNOWN,
					  .alone = true,
					  .others_acked = true };

	f->delivery.attempts = 2;
	settles(f, verdict); /* not a suspect yet */
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.attempts, 2);
	assert_int_equal(f->settlement.delay, 10 * S);
	assert_true(f->settlement.suspect);
	assert_non_null(f->settlement.error);
	f->delivery.suspect = true;
	verdict.others_acked = false; /* nobody got through: an outage */
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.attempts, 2);
	f->context.suspect_delay = 33 * S; /* behind the breaker's next probe */
	settles(f, verdict);
	assert_int_equal(f->settlement.delay, 33 * S);
	verdict.others_acked = true;
	f->delivery.attempts = 1;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.attempts, 2);
	assert_true(f->settlement.suspect);
	f->delivery.attempts = 2;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->settlement.attempts, 3);
	/* publish() failed and left no verdict: the same as UNKNOWN. */
	f->delivery.suspect = false;
	verdict = (struct decide_verdict){ .connection_lost = true, .alone = true };
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.attempts, 2);
	assert_true(f->settlement.suspect);
}

static void a_delay_that_the_broker_asked_for_is_kept(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .verdict = OUTBOX_RETRY, .retry_after = 120 * S };

	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->settlement.delay, 120 * S);
	assert_int_equal(f->settlement.attempts, 1); /* charged as usual */
	/* never earlier than the policy says */
	verdict.retry_after = S;
	settles(f, verdict);
	assert_int_equal(f->settlement.delay, 10 * S);
	/* no more attempts than usual */
	f->delivery.attempts = 2;
	verdict.retry_after = 120 * S;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	/* it is said of refusals only */
	f->delivery.attempts = 0;
	verdict.verdict = OUTBOX_REJECTED;
	settles(f, verdict);
	assert_int_equal(f->settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->settlement.delay, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_due_is_sent),
		TEST(malformed_fails_at_once),
		TEST(not_due_is_deferred_and_leaves_its_keys_order),
		TEST(blocked_is_parked),
		TEST(expired_fails_with_the_time),
		TEST(what_kills_the_relay_is_charged_and_fails_in_the_end),
		TEST(acknowledged_is_delivered),
		TEST(rejected_fails_at_once),
		TEST(a_refusal_is_charged_until_used_up),
		TEST(a_used_up_budget_is_told),
		TEST(the_last_error_is_cut_with_its_count_kept),
		TEST(an_outage_charges_nobody),
		TEST(alone_and_unknown_is_suspect_and_charged_once_proven),
		TEST(a_delay_that_the_broker_asked_for_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
