/* SPDX-License-Identifier: Apache-2.0 */

#include "base/unit_test.h"

#include "base/cleanup.h"
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
	struct decision decision;
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
	f->decision = (struct decision){ .settlement.seq = -1, .behind = -1 };
	return decide_send(&f->context, &f->delivery, died_alone, &f->decision);
}

static void settles(struct fixture *f, struct decide_verdict verdict)
{
	f->decision = (struct decision){ .settlement.seq = -1, .behind = -1 };
	decide_settle(&f->context, &f->delivery, &verdict, &f->decision);
	assert_int_equal(f->decision.settlement.seq, 77);
}

static void what_is_due_is_sent(void **state)
{
	struct fixture *f = *state;

	assert_true(sends(f, false));
	assert_int_equal(f->decision.settlement.seq, -1); /* not written */
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
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->decision.settlement.error, "headers: not JSON");
	assert_int_equal(f->decision.settlement.seq, 77);
	assert_int_equal(f->decision.settlement.attempts, 0);
}

static void not_due_is_deferred_and_leaves_its_keys_order(void **state)
{
	struct fixture *f = *state;

	f->delivery.message.due_at = NOW + 1;
	f->delivery.blocked = true;
	assert_false(sends(f, false));
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_DEFERRED);
	assert_int_equal(f->decision.settlement.due_at, NOW + 1);
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
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_PARKED);
	assert_int_equal(f->decision.settlement.attempts, 2);
}

static void expired_fails_with_the_time(void **state)
{
	struct fixture *f = *state;

	f->delivery.message.expires_at = NOW;
	f->delivery.attempts = 1;
	assert_false(sends(f, true));
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->decision.settlement.error, "expired at 1970-01-01T00:16:40Z");
	assert_int_equal(f->decision.settlement.attempts, 1);
	f->context.memory = outbox_arena_free(f->context.memory);
	assert_false(sends(f, false));
	assert_string_equal(f->decision.settlement.error, "expired");
}

static void what_kills_the_relay_is_charged_and_fails_in_the_end(void **state)
{
	struct fixture *f = *state;

	assert_false(sends(f, true));
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.attempts, 1);
	assert_int_equal(f->decision.settlement.delay, 10 * S);
	assert_true(f->decision.settlement.suspect);
	assert_non_null(strstr(f->decision.settlement.error, "the relay died"));
	f->delivery.attempts = 2;
	assert_false(sends(f, true));
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->decision.settlement.attempts, 3);
	assert_non_null(strstr(f->decision.settlement.error, " (attempt 3 of 3)"));
}

static void acknowledged_is_delivered(void **state)
{
	struct fixture *f = *state;

	f->delivery.attempts = 2;
	f->delivery.suspect = true;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_ACKED, .status = OUTBOX_ECONN });
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_DELIVERED);
	assert_false(f->decision.settlement.suspect);
	assert_null(f->decision.settlement.error);
}

static void rejected_fails_at_once(void **state)
{
	struct fixture *f = *state;

	settles(f, (struct decide_verdict){ .verdict = OUTBOX_REJECTED,
					    .reason = "unknown event type" });
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->decision.settlement.attempts, 1);
	assert_string_equal(f->decision.settlement.error, "unknown event type");
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_REJECTED });
	assert_string_equal(f->decision.settlement.error, "rejected by the broker");
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
		assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
		assert_int_equal(f->decision.settlement.attempts, attempts + 1);
		assert_int_equal(f->decision.settlement.delay, (10 * S) << attempts);
		assert_string_equal(f->decision.settlement.error, "422: no");
		assert_false(f->decision.settlement.suspect); /* it got an answer */
	}
	f->delivery.attempts = 2;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->decision.settlement.attempts, 3);
	assert_string_equal(f->decision.settlement.error, "422: no (attempt 3 of 3)");
	verdict.reason = NULL;
	settles(f, verdict);
	assert_string_equal(f->decision.settlement.error, "refused by the broker (attempt 3 of 3)");
	f->context.memory = outbox_arena_free(f->context.memory);
	settles(f, verdict);
	assert_string_equal(f->decision.settlement.error, "refused by the broker");
}

static void a_used_up_budget_is_told(void **state)
{
	struct fixture *f = *state;

	f->policy.budget = 60 * S;
	f->delivery.failing_since = NOW - 55 * S;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_RETRY, .reason = "503" });
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_string_equal(f->decision.settlement.error,
			    "503 (attempt 1, retry budget of 1 min used up)");
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
	assert_int_equal(utf8_length(f->decision.settlement.error), ERROR_TEXT_MAX);
	assert_true(utf8_valid(f->decision.settlement.error, strlen(f->decision.settlement.error)));
	assert_non_null(strstr(f->decision.settlement.error, "\xac (attempt 3 of 3)"));
}

/* What the history gets of a try: the number that the message bore, and all that was said. */
static void a_failed_try_is_noted(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = {
		.verdict = OUTBOX_RETRY, .native = 503, .reason = "busy", .answer = "come back later"
	};
	const struct outbox_settlement *s = &f->decision.settlement;

	f->delivery.attempts = 1;
	settles(f, verdict);
	assert_int_equal(s->attempt, 2);
	assert_int_equal(s->verdict, OUTBOX_RETRY);
	assert_int_equal(s->native, 503);
	assert_string_equal(s->answer, "come back later");
	verdict.verdict = OUTBOX_REJECTED;
	settles(f, verdict);
	assert_int_equal(s->attempt, 2);
	assert_int_equal(s->verdict, OUTBOX_REJECTED);
	verdict = (struct decide_verdict){ .status = OUTBOX_ECONN, .alone = true };
	settles(f, verdict); /* not charged, but tried */
	assert_int_equal(s->attempts, 1);
	assert_int_equal(s->attempt, 2);
	assert_int_equal(s->verdict, OUTBOX_UNKNOWN);
	verdict.alone = false;
	settles(f, verdict);
	assert_int_equal(s->attempt, 0);
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_ACKED });
	assert_int_equal(s->attempt, 0);
	assert_false(decide_send(&f->context, &f->delivery, true, &f->decision));
	assert_int_equal(s->attempt, 2);
	assert_int_equal(s->verdict, OUTBOX_UNKNOWN);
	f->delivery.message.expires_at = NOW - 1;
	assert_false(decide_send(&f->context, &f->delivery, false, &f->decision));
	assert_int_equal(s->outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(s->attempt, 0);
}

/* It can never be accepted: it fails like a rejected one, and its key goes on. */
static void what_is_too_large_is_not_sent(void **state)
{
	struct fixture *f = *state;
	const struct outbox_settlement *s = &f->decision.settlement;

	f->context.max_size = 1000;
	f->delivery.message.size = 1000;
	assert_true(decide_send(&f->context, &f->delivery, false, &f->decision));
	f->delivery.message.size = 1001;
	assert_false(decide_send(&f->context, &f->delivery, false, &f->decision));
	assert_int_equal(s->outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(s->attempts, 1);
	assert_int_equal(s->attempt, 1);
	assert_int_equal(s->verdict, OUTBOX_REJECTED);
	assert_string_equal(s->error,
			    "the payload has 1,001 bytes, and max_size is 1,000: it was not sent");
	assert_int_equal(f->decision.behind, 0);
}

static void an_outage_charges_nobody(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .status = OUTBOX_ECONN };

	f->delivery.attempts = 2; /* one more would be the last */
	f->delivery.suspect = true;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_RETURNED);
	assert_true(f->decision.settlement.suspect); /* as if never claimed */
	verdict.verdict = OUTBOX_UNKNOWN;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_RETURNED);
	verdict = (struct decide_verdict){ .alone = true }; /* never touched, connection fine */
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_RETURNED);
	verdict.verdict = 99; /* no verdict of ours */
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_RETURNED);
}

static void alone_and_unknown_is_suspect_and_charged_once_proven(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .verdict = OUTBOX_UNKNOWN,
					  .alone = true,
					  .others_acked = true };

	f->delivery.attempts = 2;
	settles(f, verdict); /* not a suspect yet */
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.attempts, 2);
	assert_int_equal(f->decision.settlement.delay, 10 * S);
	assert_true(f->decision.settlement.suspect);
	assert_non_null(f->decision.settlement.error);
	f->delivery.suspect = true;
	verdict.others_acked = false; /* nobody got through: an outage */
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.attempts, 2);
	f->context.breaker_delay = 33 * S; /* behind the breaker's next probe */
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.delay, 66 * S);
	verdict.others_acked = true;
	f->delivery.attempts = 1;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.attempts, 2);
	assert_true(f->decision.settlement.suspect);
	f->delivery.attempts = 2;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->decision.settlement.attempts, 3);
	/* publish() failed and left no verdict: the same as UNKNOWN. */
	f->delivery.suspect = false;
	verdict = (struct decide_verdict){ .status = OUTBOX_ECONN, .alone = true };
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.attempts, 2);
	assert_true(f->decision.settlement.suspect);
}

static void a_delay_that_the_broker_asked_for_is_kept(void **state)
{
	struct fixture *f = *state;
	struct decide_verdict verdict = { .verdict = OUTBOX_RETRY, .retry_after = 120 * S };

	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_WAITING);
	assert_int_equal(f->decision.settlement.delay, 120 * S);
	assert_int_equal(f->decision.settlement.attempts, 1); /* charged as usual */
	/* never earlier than the policy says */
	verdict.retry_after = S;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.delay, 10 * S);
	/* no more attempts than usual */
	f->delivery.attempts = 2;
	verdict.retry_after = 120 * S;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	/* it is said of refusals only */
	f->delivery.attempts = 0;
	verdict.verdict = OUTBOX_REJECTED;
	settles(f, verdict);
	assert_int_equal(f->decision.settlement.outcome, OUTBOX_OUT_FAILED);
	assert_int_equal(f->decision.settlement.delay, 0);
}

/* ---- tables: one row a case */

#define P OUTBOX_OUT_PARKED
#define R OUTBOX_OUT_RETURNED

static const struct {
	const char *what;
	struct decide_verdict verdict;
	int attempts; /* of 3 */
	int outcome, behind, behind_with_hold;
} settle_cases[] = {
	{ "accepted", { .verdict = OUTBOX_ACKED }, 0, OUTBOX_OUT_DELIVERED, 0, 0 },
	{ "rejected: it would be again", { .verdict = OUTBOX_REJECTED }, 0, OUTBOX_OUT_FAILED, 0, P },
	{ "waits", { .verdict = OUTBOX_RETRY }, 0, OUTBOX_OUT_WAITING, P, P },
	{ "used up: only when written down", { .verdict = OUTBOX_RETRY }, 2, OUTBOX_OUT_FAILED, R, P },
	{ "unknown among others", { .verdict = OUTBOX_UNKNOWN }, 0, R, R, R },
	{ "unknown and alone", { .verdict = OUTBOX_UNKNOWN, .alone = true }, 0, OUTBOX_OUT_WAITING, P, P },
	{ "not sent", { .verdict = OUTBOX_VERDICT_UNSET }, 0, R, R, R },
	{ "held, accepted", { .verdict = OUTBOX_ACKED, .held = P }, 0, OUTBOX_OUT_DELIVERED, 0, 0 },
	{ "held, rejected", { .verdict = OUTBOX_REJECTED, .held = P }, 0, OUTBOX_OUT_FAILED, 0, P },
	{ "held, refused: not its fault", { .verdict = OUTBOX_RETRY, .held = P }, 0, P, P, P },
	{ "held, unknown and alone", { .verdict = OUTBOX_UNKNOWN, .held = R, .alone = true }, 0, R, R, R },
	{ "held, not sent", { .verdict = OUTBOX_VERDICT_UNSET, .held = P }, 0, P, P, P },
};

static void the_rest_of_the_key_follows_from_the_outcome(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(settle_cases); i++) {
		f->delivery.attempts = settle_cases[i].attempts;
		for (int hold = 0; hold < 2; hold++) {
			int behind =
				hold ? settle_cases[i].behind_with_hold : settle_cases[i].behind;

			f->context.hold = hold;
			settles(f, settle_cases[i].verdict);
			if (f->decision.settlement.outcome != settle_cases[i].outcome ||
			    f->decision.behind != behind)
				fail_msg("%s, hold %d: outcome %d, behind %d", settle_cases[i].what,
					 hold, f->decision.settlement.outcome, f->decision.behind);
		}
	}
	/* whose fault it was not is not charged */
	f->delivery.attempts = 2;
	settles(f, (struct decide_verdict){ .verdict = OUTBOX_RETRY, .held = P });
	assert_int_equal(f->decision.settlement.attempts, 2);
}

static void what_is_not_sent_says_what_its_key_does(void **state)
{
	static const struct {
		const char *what;
		struct outbox_claimed delivery;
		bool died_alone;
		int outcome, behind, behind_with_hold;
	} cases[] = {
		{ "deferred", { .message.due_at = NOW + S }, false, OUTBOX_OUT_DEFERRED, 0, 0 },
		{ "malformed", { .malformed = "no" }, false, OUTBOX_OUT_FAILED, 0, P },
		{ "expired", { .message.expires_at = NOW }, false, OUTBOX_OUT_FAILED, 0, P },
		{ "blocked", { .blocked = true }, false, P, P, P },
		{ "killed a relay", { .attempts = 0 }, true, OUTBOX_OUT_WAITING, P, P },
		{ "killed its last relay", { .attempts = 2 }, true, OUTBOX_OUT_FAILED, R, P },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		f->delivery = cases[i].delivery;
		for (int hold = 0; hold < 2; hold++) {
			int behind = hold ? cases[i].behind_with_hold : cases[i].behind;

			f->context.hold = hold;
			assert_false(sends(f, cases[i].died_alone));
			if (f->decision.settlement.outcome != cases[i].outcome ||
			    f->decision.behind != behind)
				fail_msg("%s, hold %d: outcome %d, behind %d", cases[i].what, hold,
					 f->decision.settlement.outcome, f->decision.behind);
		}
	}
}

static void set_back_keeps_what_is_known(void **state)
{
	struct fixture *f = *state;
	struct decision d;

	f->delivery.attempts = 2;
	f->delivery.suspect = true;
	d = decide_set_back(&f->delivery, R);
	assert_int_equal(d.settlement.seq, 77);
	assert_int_equal(d.settlement.outcome, R);
	assert_int_equal(d.settlement.attempts, 2);
	assert_true(d.settlement.suspect);
	assert_int_equal(d.behind, R);
	assert_int_equal(decide_set_back(&f->delivery, P).behind, P);
}

static void no_verdict_is_unknown_unless_the_transport_promises(void **state)
{
	static const struct {
		int verdict, status, final;
	} cases[] = {
		{ OUTBOX_VERDICT_UNSET, OUTBOX_OK, OUTBOX_VERDICT_UNSET },
		{ OUTBOX_VERDICT_UNSET, OUTBOX_ECONN, OUTBOX_UNKNOWN },
		{ OUTBOX_VERDICT_UNSET, OUTBOX_EFULL, OUTBOX_VERDICT_UNSET },
		{ OUTBOX_VERDICT_UNSET, OUTBOX_EAUTH, OUTBOX_VERDICT_UNSET },
		{ OUTBOX_VERDICT_UNSET, OUTBOX_EGONE, OUTBOX_VERDICT_UNSET },
		{ OUTBOX_ACKED, OUTBOX_ECONN, OUTBOX_ACKED },
		{ OUTBOX_RETRY, OUTBOX_ECONN, OUTBOX_RETRY },
		{ OUTBOX_UNKNOWN, OUTBOX_EFULL, OUTBOX_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decide_final_verdict(cases[i].verdict, cases[i].status),
				 cases[i].final);
}

static void order_says_what_goes_together(void **state)
{
	static const struct {
		bool ordered, hold, keeps_order;
		enum wire_order order;
	} cases[] = {
		{ false, false, false, WIRE_UNORDERED }, { false, true, true, WIRE_UNORDERED },
		{ true, false, false, WIRE_ROUNDS },     { true, true, false, WIRE_ROUNDS },
		{ true, false, true, WIRE_TOGETHER },    { true, true, true, WIRE_ROUNDS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decide_order(cases[i].ordered, cases[i].hold, cases[i].keeps_order),
				 cases[i].order);
}

static void claims_shrink_at_once_and_grow_when_full(void **state)
{
	static const struct {
		size_t limit, claimed, returned, next; /* of at most 100 */
	} cases[] = {
		{ 100, 100, 0, 100 },
		{ 50, 50, 0, 100 },
		{ 25, 25, 0, 50 },
		{ 60, 60, 0, 100 },
		{ 25, 24, 0, 25 } /* not full: says nothing */,
		{ 25, 25, 1, 25 } /* something came back */,
		{ 1, 1, 0, 2 },
		{ 2, 1, 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decide_next_claim(cases[i].limit, 100, cases[i].claimed,
						   cases[i].returned),
				 cases[i].next);
	assert_int_equal(decide_smaller_claim(100), 50);
	assert_int_equal(decide_smaller_claim(3), 1);
	assert_int_equal(decide_smaller_claim(1), 1);
}

static void a_suspicion_is_proven_by_others(void **state)
{
	struct suspicions s = { 0 };

	(void)state;
	assert_false(decide_others_acked(&s, 7, 100)); /* not suspected yet */
	assert_false(decide_others_acked(&s, 0, 100));
	decide_suspect(&s, 7, 100);
	assert_false(decide_others_acked(&s, 7, 100));
	assert_true(decide_others_acked(&s, 7, 101));
	decide_suspect(&s, 7, 101); /* from then on */
	assert_false(decide_others_acked(&s, 7, 101));
	assert_int_equal(s.count, 1);
	for (int64_t seq = 10; seq < 10 + SUSPICIONS; seq++)
		decide_suspect(&s, seq, 200);
	assert_false(decide_others_acked(&s, 7, 300)); /* the oldest is forgotten */
	assert_true(decide_others_acked(&s, 10, 300));
}

static void who_looks_for_a_culprit_sends_alone(void **state)
{
	static const struct decide_lane fine = { .limit = 100, .most = 100 };
	struct decide_lane lanes[] = { fine, fine, fine, fine, fine };

	(void)state;
	assert_true(decide_may_share(&fine));
	lanes[0].limit = 50;
	lanes[1].cautious = true;
	lanes[2].died_alone = true;
	lanes[3].suspect = true;
	lanes[4].probing = true;
	for (size_t i = 0; i < ARRAY_SIZE(lanes); i++)
		assert_false(decide_may_share(&lanes[i]));
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
		TEST(a_failed_try_is_noted),
		TEST(what_is_too_large_is_not_sent),
		TEST(an_outage_charges_nobody),
		TEST(alone_and_unknown_is_suspect_and_charged_once_proven),
		TEST(a_delay_that_the_broker_asked_for_is_kept),
		TEST(the_rest_of_the_key_follows_from_the_outcome),
		TEST(what_is_not_sent_says_what_its_key_does),
		TEST(set_back_keeps_what_is_known),
		TEST(no_verdict_is_unknown_unless_the_transport_promises),
		TEST(order_says_what_goes_together),
		TEST(claims_shrink_at_once_and_grow_when_full),
		TEST(a_suspicion_is_proven_by_others),
		TEST(who_looks_for_a_culprit_sends_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
