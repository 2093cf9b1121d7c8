/* SPDX-License-Identifier: Apache-2.0 */

/* outbox/admin.h as an application sees it: linked against the shared library, on each store. admin_test sqlite|postgres */

#include "admin_world.h"

static size_t count_of(struct world *w, int state)
{
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_page page;

	filter.state = state;
	filter.limit = 1000;
	OK(outbox_admin_list(w->admin, &filter, w->arena, &page, err));
	return page.count;
}

static struct outbox_filter by_state(int state)
{
	struct outbox_filter filter = OUTBOX_FILTER_INIT;

	filter.state = state;
	return filter;
}

/* ---- the schema ---------------------------------------------------------------------------- */

static void init_makes_one_and_then_finds_it(void **state)
{
	struct world *w = *state;
	struct outbox_init_options options = OUTBOX_INIT_OPTIONS_INIT;
	struct outbox_store_info info;
	struct outbox_stats stats;
	int from = 0;

	FAILS(outbox_admin_stats(w->admin, w->arena, &stats, err),
	      on_postgres ? OUTBOX_ESCHEMA : OUTBOX_ENOTFOUND, "outbox init");
	OK(outbox_admin_init(w->admin, NULL, err));
	OK(outbox_admin_init(w->admin, NULL, err));
	OK(outbox_admin_info(w->admin, &info, err));
	assert_int_equal(info.schema_version, info.program_version);
	OK(outbox_admin_upgrade(w->admin, NULL, &from, err));
	assert_int_equal(from, info.program_version);
	options.lanes = info.lanes + 1;
	FAILS(outbox_admin_init(w->admin, &options, err), OUTBOX_ECONFIG, "lanes");
	options.lanes = 0;
	options.doorbell = 1;
	if (on_postgres)
		OK(outbox_admin_init(w->admin, &options, err));
	else
		FAILS(outbox_admin_init(w->admin, &options, err), OUTBOX_ENOTSUP, "doorbell");
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	assert_int_equal(stats.n_targets, 0);
}

static void mistakes_are_told(void **state)
{
	struct world *w = *state;
	struct outbox_admin_config config = OUTBOX_ADMIN_CONFIG_INIT;
	struct outbox_health_limits limits = OUTBOX_HEALTH_LIMITS_INIT;
	const char *off[] = { "no such rule" };
	struct outbox_admin *admin = NULL;

	FAILS(outbox_admin_new(&admin, &config, err), OUTBOX_ECONFIG, "store: missing");
	config.store = "carrier-pigeon:x";
	FAILS(outbox_admin_new(&admin, &config, err), OUTBOX_ECONFIG, "carrier-pigeon");
	config.store = w->url;
	config.limits = &limits;
	limits.backlog = -1;
	FAILS(outbox_admin_new(&admin, &config, err), OUTBOX_ECONFIG, "negative");
	limits.backlog = 0;
	limits.off = off;
	limits.n_off = 1;
	FAILS(outbox_admin_new(&admin, &config, err), OUTBOX_ECONFIG, "limits.off");
	assert_null(admin);
	assert_null(outbox_admin_free(NULL));
	FAILS(outbox_admin_list(NULL, NULL, w->arena, &(struct outbox_page){ 0 }, err),
	      OUTBOX_EINVAL, "NULL");
}

/* ---- deliveries ---------------------------------------------------------------------------- */

static void what_failed_is_seen_and_requeued(void **state)
{
	struct world *w = *state;
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_claimed message;
	struct outbox_acted acted;
	struct outbox_audit *audit;
	const char *id = "m-2";
	size_t n;

	publish(w, 1, 3);
	deliver(w, true);
	assert_int_equal(count_of(w, OUTBOX_FAILED), 3);
	OK(outbox_admin_get(w->admin, id, w->arena, &message, err));
	assert_string_equal(message.message.key, "k-2");
	filter.ids = &id;
	filter.n_ids = 1;
	OK(outbox_admin_count(w->admin, OUTBOX_REQUEUE, &filter, &acted, err));
	assert_int_equal(acted.done, 1);
	assert_int_equal(count_of(w, OUTBOX_FAILED), 3);
	OK(outbox_admin_requeue(w->admin, &filter, "repaired", &acted, err));
	assert_int_equal(acted.done, 1);
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_ECONFLICT, "m-2");
	OK(outbox_admin_audit(w->admin, id, 0, w->arena, &audit, &n, err));
	assert_int_equal(n, 1);
	assert_string_equal(audit[0].actor, "ops@test");
	assert_string_equal(audit[0].reason, "repaired");
	deliver(w, false);
	assert_int_equal(count_of(w, OUTBOX_DELIVERED), 1);
}

static void what_is_meant_must_be_said(void **state)
{
	struct world *w = *state;
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_acted acted;
	const char *nobody = "nobody";

	publish(w, 1, 2);
	deliver(w, true);
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_EINVAL,
	      "nothing is selected");
	FAILS(outbox_admin_discard(w->admin, &filter, NULL, &acted, err), OUTBOX_EINVAL, "reason");
	filter.target = "event";
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_ENOTFOUND, "events");
	FAILS(outbox_admin_discard(w->admin, &filter, "x", &acted, err), OUTBOX_EINVAL, "state");
	filter.target = NULL;
	filter.state = OUTBOX_DELIVERED;
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_EINVAL, "failed");
	filter.ids = &nobody;
	filter.n_ids = 1;
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_EINVAL, "not both");
	filter.state = 0;
	FAILS(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err), OUTBOX_ENOTFOUND, "nobody");
	assert_int_equal(count_of(w, OUTBOX_FAILED), 2);
}

/* Page after page in one call, or a page a call. */
static void many_are_done_in_pages(void **state)
{
	struct world *w = *state;
	struct outbox_filter filter = by_state(OUTBOX_FAILED);
	struct outbox_purge purge = OUTBOX_PURGE_INIT;
	struct outbox_purged purged;
	struct outbox_stats stats;
	struct outbox_acted acted;

	publish(w, 1, 1100);
	deliver(w, true);
	filter.limit = 30;
	OK(outbox_admin_discard(w->admin, &filter, "of no use", &acted, err));
	assert_int_equal(acted.done, 30);
	assert_true(acted.more);
	filter.cursor = acted.cursor;
	OK(outbox_admin_discard(w->admin, &filter, "of no use", &acted, err));
	assert_int_equal(acted.done, 30);
	filter = by_state(OUTBOX_FAILED);
	OK(outbox_admin_requeue(w->admin, &filter, NULL, &acted, err));
	assert_int_equal(acted.done, 1040);
	assert_false(acted.more);
	assert_int_equal(count_of(w, OUTBOX_FAILED), 0);
	assert_int_equal(count_of(w, OUTBOX_DISCARDED), 60);
	deliver(w, false);
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	purge.delivered_before = stats.store_now;
	OK(outbox_admin_purge(w->admin, &purge, &purged, err));
	assert_int_equal(purged.messages, 1100);
	assert_false(purged.more);
}

static void targets_pause_and_deliveries_wait(void **state)
{
	struct world *w = *state;
	struct outbox_filter filter = by_state(OUTBOX_PENDING);
	struct outbox_health health;
	struct outbox_acted acted;
	struct outbox_stats stats;

	publish(w, 1, 1);
	deliver(w, false);
	FAILS(outbox_admin_pause(w->admin, "events", NULL, err), OUTBOX_EINVAL, "reason");
	FAILS(outbox_admin_pause(w->admin, "event", "x", err), OUTBOX_ENOTFOUND,
	      "did you mean events");
	OK(outbox_admin_pause(w->admin, "events", "their maintenance", err));
	publish(w, 2, 3);
	deliver(w, false);
	assert_int_equal(count_of(w, OUTBOX_DELIVERED), 1);
	OK(outbox_admin_health(w->admin, w->arena, &health, err));
	assert_string_equal(health.findings[health.count - 1].rule, "paused");
	assert_int_equal(health.findings[health.count - 1].level, OUTBOX_HEALTHY);
	assert_true(health.findings[health.count - 1].since > 0);
	assert_non_null(strstr(health.findings[health.count - 1].text, "their maintenance"));
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	filter.key = "k-2";
	FAILS(outbox_admin_defer(w->admin, &filter, stats.store_now - OUTBOX_HOURS, NULL, &acted,
				 err),
	      OUTBOX_EINVAL, "until is in the past; give a later time, like +5m");
	OK(outbox_admin_defer(w->admin, &filter, stats.store_now + OUTBOX_HOURS, NULL, &acted, err));
	assert_int_equal(acted.done, 1);
	OK(outbox_admin_resume(w->admin, "events", NULL, err));
	deliver(w, false);
	assert_int_equal(count_of(w, OUTBOX_DELIVERED), 2);
	assert_int_equal(count_of(w, OUTBOX_PENDING), 1);
}

static void keys_are_seen_and_what_blocks_them_is_corrected(void **state)
{
	struct world *w = *state;
	struct outbox_correction correction = OUTBOX_CORRECTION_INIT;
	struct outbox_keys_filter filter = OUTBOX_KEYS_FILTER_INIT;
	static const struct outbox_header header = { "tenant", "acme" };
	struct outbox_claimed message;
	struct outbox_keys_page page;
	struct outbox_amended amended;
	struct outbox_audit *rows;
	size_t n;

	w->hold = true;
	publish(w, 1, 1);
	deliver(w, true);
	run(w,
	    "INSERT INTO outbox_message (id, type, key, payload) VALUES ('behind', 't', 'k-1', '{}')");
	deliver(w, false);
	filter.target = "event";
	FAILS(outbox_admin_keys(w->admin, &filter, w->arena, &page, err), OUTBOX_ENOTFOUND,
	      "did you mean events");
	OK(outbox_admin_keys(w->admin, NULL, w->arena, &page, err));
	assert_int_equal(page.count, 1);
	assert_string_equal(page.rows[0].front.id, "m-1");
	FAILS(outbox_admin_amend(w->admin, "m-1", &correction, "a comma", NULL, err), OUTBOX_EINVAL,
	      "nothing to change");
	correction.data = "{\"total\":1}";
	correction.size = strlen(correction.data);
	FAILS(outbox_admin_amend(w->admin, "m-1", &correction, "", NULL, err), OUTBOX_EINVAL,
	      "audit");
	FAILS(outbox_admin_amend(w->admin, "nobody", &correction, "a comma", NULL, err),
	      OUTBOX_ENOTFOUND, "nobody");
	correction.headers = &header;
	correction.n_headers = 1;
	OK(outbox_admin_amend(w->admin, "m-1", &correction, "a comma", &amended, err));
	assert_int_equal(amended.requeued, 1);
	OK(outbox_admin_get(w->admin, "m-1", w->arena, &message, err));
	assert_memory_equal(message.message.data, correction.data, correction.size);
	assert_string_equal(message.message.headers[0].value, "acme");
	OK(outbox_admin_audit(w->admin, "m-1", 0, w->arena, &rows, &n, err));
	assert_int_equal(n, 2); /* with the requeue */
	deliver(w, false);
	FAILS(outbox_admin_amend(w->admin, "m-1", &correction, "again", NULL, err),
	      OUTBOX_ECONFLICT, "delivered");
}

static void count_reports(void *context, const char *subject, const char *text)
{
	size_t *count = context;

	if (strcmp(subject, OUTBOX_REBASE_REASON) == 0)
		assert_non_null(strstr(text, "target events"));
	(*count)++;
}

static void lanes_that_are_refused_are_realigned(void **state)
{
	struct world *w = *state;
	struct outbox_rebase how = OUTBOX_REBASE_INIT;
	struct outbox_purge purge = OUTBOX_PURGE_INIT;
	struct outbox_purged purged;
	struct outbox_stats stats;
	size_t count = 0;

	publish(w, 1, 20);
	deliver(w, false);
	OK(outbox_admin_realign(w->admin, NULL, count_reports, &count, err));
	assert_int_equal(count, 0);
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	purge.delivered_before = stats.store_now;
	OK(outbox_admin_purge(w->admin, &purge, &purged, err));
	run(w, on_postgres ? "SELECT setval('outbox_message_seq_seq', 1, false)"
			   : "DELETE FROM sqlite_sequence");
	publish(w, 101, 130);
	how.dry_run = true;
	OK(outbox_admin_realign(w->admin, &how, count_reports, &count, err));
	assert_true(count >= 2);
	how.dry_run = false;
	OK(outbox_admin_realign(w->admin, &how, NULL, NULL, err));
	deliver(w, false);
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	assert_int_equal(stats.targets[0].delivered_ever, 50);
}

static void what_is_finished_is_redacted_and_purged(void **state)
{
	struct world *w = *state;
	struct outbox_purge purge = OUTBOX_PURGE_INIT;
	struct outbox_claimed message;
	struct outbox_purged purged;
	struct outbox_stats stats;
	bool done = false;

	publish(w, 1, 40);
	deliver(w, false);
	OK(outbox_admin_redact(w->admin, "m-1", "asked for", &done, err));
	assert_true(done);
	OK(outbox_admin_get(w->admin, "m-1", w->arena, &message, err));
	assert_memory_equal(message.message.data, OUTBOX_REDACTED, message.message.size);
	FAILS(outbox_admin_purge(w->admin, &purge, &purged, err), OUTBOX_EINVAL, "no age is given");
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	purge.delivered_before = stats.store_now;
	OK(outbox_admin_purgeable(w->admin, &purge, &purged, err));
	assert_int_equal(purged.messages, 40);
	purge.limit = 10;
	OK(outbox_admin_purgeable(w->admin, &purge, &purged, err));
	assert_int_equal(purged.messages, 10);
	OK(outbox_admin_purge(w->admin, &purge, &purged, err));
	assert_int_equal(purged.messages, 10);
	assert_true(purged.more);
	purge.limit = 0;
	OK(outbox_admin_purge(w->admin, &purge, &purged, err));
	assert_int_equal(purged.messages, 30);
	FAILS(outbox_admin_get(w->admin, "m-1", w->arena, &message, err), OUTBOX_ENOTFOUND, "m-1");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(init_makes_one_and_then_finds_it, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(what_failed_is_seen_and_requeued, setup_ready,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_meant_must_be_said, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(many_are_done_in_pages, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(targets_pause_and_deliveries_wait, setup_ready,
						teardown),
		cmocka_unit_test_setup_teardown(keys_are_seen_and_what_blocks_them_is_corrected,
						setup_ready, teardown),
		cmocka_unit_test_setup_teardown(lanes_that_are_refused_are_realigned, setup_ready,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_finished_is_redacted_and_purged,
						setup_ready, teardown),
		cmocka_unit_test_setup_teardown(health_has_rules_and_limits, setup_ready, teardown),
		cmocka_unit_test_setup_teardown(metrics_are_of_stores_and_relays, setup_ready,
						teardown),
		cmocka_unit_test_setup_teardown(a_lost_connection_is_made_again, setup_ready,
						teardown),
		cmocka_unit_test_setup_teardown(any_thread_may_call, setup_ready, teardown),
	};

	on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
