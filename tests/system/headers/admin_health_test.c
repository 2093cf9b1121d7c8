/* SPDX-License-Identifier: Apache-2.0 */

/* Health, metrics and the connection. Run by admin_test.c. */

#include "admin_world.h"

#include <pthread.h>
#include <stdio.h>

/* ---- health and metrics -------------------------------------------------------------------- */

static bool found(const struct outbox_health *health, const char *rule)
{
	for (size_t i = 0; i < health->count; i++)
		if (strcmp(health->findings[i].rule, rule) == 0)
			return true;
	return false;
}

void health_has_rules_and_limits(void **state)
{
	struct world *w = *state;
	struct outbox_health_limits limits = OUTBOX_HEALTH_LIMITS_INIT;
	const char *off[] = { "no_relay" };
	struct outbox_health health;
	struct outbox_admin *other;

	OK(outbox_admin_health(w->admin, w->arena, &health, err));
	assert_int_equal(health.level, OUTBOX_HEALTHY);
	publish(w, 1, 1);
	OK(outbox_admin_health(w->admin, w->arena, &health, err));
	assert_int_equal(health.level, OUTBOX_DEGRADED);
	assert_true(found(&health, "no_target"));
	deliver(w, true);
	OK(outbox_admin_health(w->admin, w->arena, &health, err));
	assert_int_equal(health.level, OUTBOX_UNHEALTHY);
	assert_string_equal(health.findings[0].rule, "failed");
	assert_string_equal(health.findings[0].target, "events");
	limits.failed = 1;
	limits.off = off;
	limits.n_off = 1;
	other = admin_of(w->url, NULL, &limits);
	OK(outbox_admin_health(other, w->arena, &health, err));
	assert_int_equal(health.level, OUTBOX_HEALTHY);
	outbox_admin_free(other);
	other = admin_of(on_postgres ? "postgres://u:hunter22@127.0.0.1:1/x" : "sqlite:/nowhere/x",
			 NULL, NULL);
	OK(outbox_admin_health(other, w->arena, &health, err));
	assert_int_equal(health.level, OUTBOX_UNHEALTHY);
	assert_true(found(&health, "source_down"));
	assert_null(strstr(health.findings[0].text, "hunter22"));
	outbox_admin_free(other);
}

static size_t times(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

void metrics_are_of_stores_and_relays(void **state)
{
	struct world *w = *state;
	struct outbox_metrics_source sources[2] = { OUTBOX_METRICS_SOURCE_INIT,
						    OUTBOX_METRICS_SOURCE_INIT };
	struct outbox_admin *shop = admin_of(w->url, "shop", NULL);
	struct outbox_admin *away = admin_of("sqlite:/nowhere/x", "away", NULL);
	struct outbox_relay *relay = relay_new(w);
	const char *text = NULL;

	publish(w, 1, 3);
	OK(outbox_relay_run_until_idle(relay, NULL, err));
	sources[0].admin = shop;
	sources[0].relay = relay;
	sources[1].admin = away;
	OK(outbox_metrics_text(sources, 2, w->arena, &text, err));
	assert_non_null(
		strstr(text, "\noutbox_delivered_total{source=\"shop\",target=\"events\"} 3\n"));
	assert_non_null(
		strstr(text,
		       "\noutbox_store_delivered_total{source=\"shop\",target=\"events\"} 3\n"));
	assert_non_null(strstr(text, "\noutbox_source_up{source=\"shop\"} 1\n"));
	assert_non_null(strstr(text, "\noutbox_source_up{source=\"away\"} 0\n"));
	assert_non_null(
		strstr(text, "outbox_finding{source=\"away\",target=\"\",rule=\"source_down\""));
	assert_int_equal(times(text, "# TYPE outbox_source_up gauge\n"), 1);
	assert_null(strstr(text, "process_"));
	sources[1].admin = NULL;
	FAILS(outbox_metrics_text(sources, 2, w->arena, &text, err), OUTBOX_EINVAL, "number 2");
	outbox_relay_free(relay);
	outbox_admin_free(away);
	outbox_admin_free(shop);
}

/* ---- the connection ------------------------------------------------------------------------ */

void a_lost_connection_is_made_again(void **state)
{
	struct world *w = *state;
	struct outbox_stats stats;
	char sql[200];

	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
	snprintf(sql, sizeof(sql),
		 "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '%s' AND "
		 "pid <> pg_backend_pid()",
		 w->place);
	if (on_postgres)
		run(w, sql);
	OK(outbox_admin_stats(w->admin, w->arena, &stats, err));
}

static void *look_often(void *context)
{
	struct world *w = context;
	struct outbox_arena *arena = outbox_arena_new((size_t)1 << 20);
	struct outbox_health health;
	size_t failures = 0;

	for (int i = 0; i < 50; i++) {
		outbox_arena_reset(arena);
		failures += outbox_admin_health(w->admin, arena, &health, NULL) != OUTBOX_OK;
		failures += health.level != OUTBOX_HEALTHY;
	}
	outbox_arena_free(arena);
	return failures ? w : NULL;
}

void any_thread_may_call(void **state)
{
	struct world *w = *state;
	pthread_t threads[4];
	void *failed;

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_often, w), 0);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}
