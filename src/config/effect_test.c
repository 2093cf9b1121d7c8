/* SPDX-License-Identifier: Apache-2.0 */
/* What a good file leads to: the values in effect, where they come from, and the relay that is made. */
#include "config/check.h"
#include "config/load_test.h"
#include "config/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GOOD                                                                                          \
	"sources: [{ name: shop, store: 'postgres://app@db/shop', password: pass-w0rd }]\n"           \
	"targets:\n"                                                                                  \
	"  - name: events\n"                                                                          \
	"    to: 'amqp://u:hidden@mq/?exchange=x'\n"                                                  \
	"    retry: { preset: blueprint, max_attempts: 3, jitter: 0 }\n"                              \
	"  - { name: partner-x, to: 'null:', external: true, match: { type: [a.*, b] }, batch: 9 }\n" \
	"relay: { workers: 2, lease: 20s }\n"

DEFINE_CLEANUP(struct config *, config_free)

static struct config *load(const char *text, char *const *environment, const char *const *sets,
			   size_t n_sets)
{
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(9000);
	struct config *config = load_told((struct config_input){ .text = text,
								 .environment = environment,
								 .sets = sets,
								 .n_sets = n_sets,
								 .secrets = true },
					  &told);

	assert_string_equal(buf_str(&told), "");
	return config;
}

/* What is told, all of it, about overrides that are wrong. */
static void refused(char *const *environment, const char *set, const char *want)
{
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(9000);

	assert_null(load_told((struct config_input){ .text = GOOD,
						     .environment = environment,
						     .sets = &set,
						     .n_sets = set != NULL },
			      &told));
	assert_string_equal(buf_str(&told), want);
}

static void collect(void *context, const char *key, const char *value, const char *from)
{
	buf_printf(context, "%s=%s [%s]\n", key, value, from);
}

static void assert_shown(const struct config *config, const char *line)
{
	_cleanup_(buf_deinit) struct buf shown = BUF_INIT(40000);

	assert_ok(config_show(config, collect, &shown, err));
	if (!strstr(buf_str(&shown), line))
		fail_msg("\"%s\" is not in:\n%s", line, buf_str(&shown));
}

static void test_show(void **state)
{
	_cleanup_(config_freep) struct config *config = load(GOOD, NULL, NULL, 0);
	_cleanup_(buf_deinit) struct buf shown = BUF_INIT(40000);

	(void)state;
	assert_shown(config, "\nsources.shop.password=*** [outbox.yaml:1:68]\n");
	assert_shown(config, "\ntargets.events.to=amqp://u:***@mq/?exchange=x [outbox.yaml:4:9]\n");
	assert_shown(config, "\ntargets.events.retry.max_attempts=3 [outbox.yaml:5:47]\n");
	assert_shown(config, "\ntargets.events.retry.jitter=0 [outbox.yaml:5:58]\n");
	assert_shown(config, "\ntargets.events.retry.base=5s [default: preset]\n");
	assert_shown(config, "\ntargets.events.batch=20 [default: relay.batch or preset]\n");
	assert_shown(config, "\ntargets.events.lease=20s [default: relay.lease or preset]\n");
	assert_shown(config, "\ntargets.partner-x.match.type=a.*,b [outbox.yaml:6:68]\n");
	assert_shown(config, "\nrelay.workers=2 [outbox.yaml:7:19]\n");
	assert_shown(config, "\nrelay.batch_bytes=8MiB [default]\n");
	assert_ok(config_show(config, collect, &shown, err));
	assert_null(strstr(buf_str(&shown), "pass-w0rd"));
	assert_null(strstr(buf_str(&shown), "hidden"));
}

static void test_overrides(void **state)
{
	char *const environment[] = { (char *)"OUTBOX_RELAY_WORKERS=3",
				      (char *)"OUTBOX_LOG_LEVEL=warn",
				      (char *)"OUTBOX_TARGETS_PARTNER_X_MATCH_TYPE=c,d.*",
				      (char *)"OUTBOX_TARGETS_EVENTS_BATCH=5",
				      (char *)"OUTBOX_STORE=sqlite:other.db",
				      (char *)"OUTBOX_RELAY=${nothing}",
				      NULL };
	const char *const sets[] = { "targets.events.batch=6", "relay.workers=4", "relay.workers=5",
				     "relay.instance=a=b ${HOME}" };
	_cleanup_(config_freep) struct config *config = load(GOOD, environment, sets, 4);

	(void)state;
	assert_shown(config, "\nrelay.workers=5 [--set relay.workers]\n");
	assert_shown(config, "\nlog.level=warn [OUTBOX_LOG_LEVEL]\n");
	assert_shown(config,
		     "\ntargets.partner-x.match.type=c,d.* [OUTBOX_TARGETS_PARTNER_X_MATCH_TYPE]\n");
	assert_shown(config, "\ntargets.events.batch=6 [--set targets.events.batch]\n");
	assert_shown(config, "\nrelay.instance=a=b ${HOME} [--set relay.instance]\n");
}

static void test_overrides_of_an_empty_group(void **state)
{
	static const char text[] = "sources: [{ name: s, store: 'sqlite:a' }]\n"
				   "targets: [{ name: events, to: 'null:' }]\nrelay:\n";
	char *const environment[] = { (char *)"OUTBOX_RELAY_WORKERS=3", NULL };
	const char *const sets[] = { "log.format=json" };
	_cleanup_(config_freep) struct config *config = load(text, environment, sets, 1);

	(void)state;
	assert_shown(config, "\nrelay.workers=3 [OUTBOX_RELAY_WORKERS]\n");
	assert_shown(config, "\nlog.format=json [--set log.format]\n");
}

static void test_overrides_refused(void **state)
{
	static const struct {
		const char *variable, *set, *told;
	} rows[] = {
		{ "OUTBOX_RELAY_WORKRES=3", NULL,
		  "OUTBOX_RELAY_WORKRES: this variable sets no key; did you mean OUTBOX_RELAY_WORKERS?\n" },
		{ "OUTBOX_RELAY_WORKERS=x", NULL,
		  "OUTBOX_RELAY_WORKERS: relay.workers: \"x\" is not a whole number from 1 to 64\n" },
		{ "OUTBOX_TARGETS_NOBODY_TO=x", NULL,
		  "OUTBOX_TARGETS_NOBODY_TO: this variable sets no key; outbox config show lists the keys\n" },
		{ "OUTBOX_RELAY_INSTANCE=a\033b", NULL,
		  "OUTBOX_RELAY_INSTANCE: holds a control character or a line break\n" },
		{ NULL, "relay.wrokers=1",
		  "--set relay.wrokers: there is no key \"wrokers\"; did you mean workers?\n" },
		{ NULL, "targets.nobody.to=x",
		  "--set targets.nobody.to: nothing in targets is named \"nobody\"; there are events, partner-x\n" },
		{ NULL, "relay=1",
		  "--set relay: is a group of keys, not a value; name a key in it\n" },
		{ NULL, "targets.events=1",
		  "--set targets.events: is a group of keys, not a value; name a key in it\n" },
		{ NULL, "targets=1",
		  "--set targets: is a group of keys, not a value; name a key in it\n" },
		{ NULL, "relay.workers.x=1",
		  "--set relay.workers.x: there is no key \"x\"; outbox config reference lists them\n" },
		{ NULL, "relay.workers=",
		  "--set relay.workers: relay.workers: is empty; write a value, or leave "
		  "it out\n" },
		{ NULL, "nonsense",
		  "--set: \"nonsense\" is not KEY=VALUE; write --set relay.batch=100\n" },
		{ NULL, "sources.shop.store=sqlite:x",
		  "outbox.yaml:1:68: sources[0] \"shop\", password: the URL has no host, so no password is used; "
		  "remove it\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *const environment[] = { (char *)rows[i].variable, NULL };

		refused(environment, rows[i].set, rows[i].told);
	}
}

static void test_relay(void **state)
{
	_cleanup_(config_freep) struct config *config = load(GOOD, NULL, NULL, 0);
	struct outbox_relay_config relay;
	const struct outbox_target_config *events, *partner;

	(void)state;
	assert_ok(config_relay(config, config->sources.items, &relay, err));
	assert_string_equal(relay.store, "postgres://app:pass-w0rd@db/shop");
	assert_int_equal(relay.n_targets, 2);
	assert_int_equal(relay.workers, 2);
	assert_int_equal(relay.batch_messages, 0);
	assert_int_equal(relay.batch_bytes, 8 << 20);
	assert_int_equal(relay.retain_delivered, 7 * OUTBOX_DAYS);
	assert_true(relay.retain_failed == OUTBOX_NEVER);
	events = &relay.targets[0];
	assert_int_equal(events->policy->max_attempts, 3);
	assert_int_equal(events->policy->base, 5 * OUTBOX_SECONDS);
	assert_int_equal(events->policy->batch, 20);
	assert_int_equal(events->policy->lease, 20 * OUTBOX_SECONDS);
	assert_int_equal(events->policy->poll, 5 * OUTBOX_SECONDS);
	assert_false(events->route.published_only);
	partner = &relay.targets[1];
	assert_int_equal(partner->policy->batch, 9);
	assert_int_equal(partner->policy->jitter_percent, 25);
	assert_int_equal(partner->envelope, OUTBOX_ENVELOPE_EXTERNAL);
	assert_true(partner->route.published_only);
	assert_int_equal(partner->route.n_types, 2);
	assert_string_equal(partner->route.types[1], "b");
}

static void test_bands_and_rates(void **state)
{
	static const char text[] =
		"sources: [{ name: s, store: 'sqlite:a' }]\n"
		"targets:\n"
		"  - { name: a, to: 'null:', bands: true, rate: 3000/min, burst: 7 }\n"
		"  - { name: b, to: 'null:', rate: none, match: { priority: [low, high] } }\n";
	_cleanup_(config_freep) struct config *config = load(text, NULL, NULL, 0);
	struct outbox_relay_config relay;
	struct outbox_error err;

	(void)state;
	assert_int_equal(config_relay(config, config->sources.items, &relay, &err), OUTBOX_OK);
	assert_true(relay.targets[0].bands);
	assert_int_equal(relay.targets[0].rate_count, 3000);
	assert_int_equal(relay.targets[0].rate_period, OUTBOX_MINUTES);
	assert_int_equal(relay.targets[0].rate_burst, 7);
	assert_int_equal(relay.targets[0].route.bands, 0);
	assert_false(relay.targets[1].bands);
	assert_int_equal(relay.targets[1].rate_count, 0);
	assert_int_equal(relay.targets[1].route.bands, OUTBOX_BAND_HIGH | OUTBOX_BAND_LOW);
}

static void test_schedule(void **state)
{
	static const char *const sets[] = { "targets.events.retry.schedule=1s,2s" };
	static const char plain[] = "sources: [{ name: s, store: 'sqlite:a' }]\n"
				    "targets: [{ name: events, to: 'null:' }]\n";
	static const char over[] =
		"sources: [{ name: s, store: 'sqlite:a' }]\n"
		"targets: [{ name: events, to: 'null:', retry: { preset: hermodr, base: 1s, "
		"factor: 3, cap: 1m } }]\n";
	_cleanup_(config_freep) struct config *scheduled = load(plain, NULL, sets, 1);
	_cleanup_(config_freep) struct config *grown = load(over, NULL, NULL, 0);
	const struct config_target *target = scheduled->targets.items;

	(void)state;
	assert_int_equal(target->policy.n_schedule, 2);
	assert_int_equal(target->policy.max_attempts, 3);
	assert_int_equal(target->policy.schedule[1], 2 * OUTBOX_SECONDS);
	/* a preset with a schedule, and delays that grow said over it */
	target = grown->targets.items;
	assert_int_equal(target->policy.n_schedule, 0);
	assert_int_equal(target->policy.max_attempts, 5);
}

static void test_passwords(void **state)
{
	static const struct {
		const char *url, *password, *want;
	} rows[] = {
		{ "postgres://app@db/shop?x=a@b", "p:@/% ",
		  "postgres://app:p%3A%40%2F%25%20@db/shop?x=a@b" },
		{ "redis://r1/?stream=x", "pw", "redis://:pw@r1/?stream=x" },
		{ "sqlite:app.db", NULL, "sqlite:app.db" },
	};
	struct outbox_arena *arena = outbox_arena_new(10000);
	const char *url;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_ok(url_add_password(rows[i].url, rows[i].password, arena, &url, err));
		assert_string_equal(url, rows[i].want);
	}
	outbox_arena_free(arena);
}

/* What a driver reads is in the URL, behind the #; what was not read yet is left out. */
static void test_web_targets(void **state)
{
	const char *networks[] = { "10.0.0.0/8", "fd00::/8" };
	struct config_target target = { .to = "https://h/p?q=1#in_flight=2",
					.sign = { .hmac = "whsec_a+b", .previous = "whsec_c" },
					.bearer = "t&t",
					.allow_private = { networks, 2 } };
	struct outbox_arena *arena = outbox_arena_new(10000);
	const char *url;

	(void)state;
	assert_ok(target_url(&target, NULL, arena, &url, err));
	assert_string_equal(url,
			    "https://h/p?q=1#in_flight=2&secret=whsec_a%2Bb%2Cwhsec_c&token=t%26t"
			    "&allow_private=10.0.0.0%2F8%2Cfd00%3A%3A%2F8");
	target.sign = (struct config_sign){ .hmac = "file:/x", .preset = 2 };
	target.bearer = "file:/y";
	target.allow_private.count = 0;
	target.to = "http://u@h/";
	assert_ok(target_url(&target, "pw", arena, &url, err));
	assert_string_equal(url, "http://u:pw@h/");
	target.sign.hmac = "text";
	assert_ok(target_url(&target, NULL, arena, &url, err));
	assert_string_equal(url, "http://u@h/#secret=text&sign=hermodr");
	target.to = "redis://h/";
	assert_ok(target_url(&target, NULL, arena, &url, err));
	assert_string_equal(url, "redis://h/");
	outbox_arena_free(arena);
}

static void test_secret_files(void **state)
{
	char path[] = "/tmp/outbox-config-XXXXXX", set[100];
	const char *sets[] = { set };
	int fd = mkstemp(path);
	struct outbox_relay_config relay;
	struct config *config;

	(void)state;
	assert_int_equal(write(fd, "from-file\n", 10), 10);
	close(fd);
	snprintf(set, sizeof(set), "sources.shop.password=file:%s", path);
	config = load(GOOD, NULL, sets, 1);
	assert_ok(config_relay(config, config->sources.items, &relay, err));
	assert_string_equal(relay.store, "postgres://app:from-file@db/shop");
	config_free(config);
	unlink(path);
}

/* With every # of a key taken away the reference is still a good file. */
static void test_reference(void **state)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(100000);
	_cleanup_(buf_deinit) struct buf opened = BUF_INIT(100000);
	const char *sets[] = { "sources.shop.password=x", "targets.events.password=x",
			       "alerts.on-call.token=x", "otlp.headers=a=x",
			       /* sign, bearer and allow_private are for these */
			       "targets.events.to=https://partner.example/",
			       "targets.events.sign.hmac=x", "targets.events.sign.ed25519=x",
			       "targets.events.sign.previous=x", "targets.events.bearer=x" };

	(void)state;
	config_reference(&text);
	config_free(load(buf_str(&text), NULL, &sets[1], 1));
	for (const char *c = buf_str(&text); *c; c++) {
		if (strncmp(c, "#schedule", 9) == 0)
			buf_text(&opened, "# "); /* instead of base, factor and cap */
		else if (strncmp(c, "#dead_letter", 12) == 0)
			buf_text(&opened, "# "); /* it has one target only */
		else if (strncmp(c, "#headers: [", 11) == 0)
			buf_text(&opened, "# "); /* it is no external one */
		else if (strncmp(c, "#envelope", 9) == 0 || *c != '#' ||
			 ((c[1] < 'a' || c[1] > 'z') && c[1] != '-'))
			buf_char(&opened, *c);
	}
	config_free(load(buf_str(&opened), NULL, sets, ARRAY_SIZE(sets)));
	for (size_t i = 0; i < schema_root.count; i++)
		assert_non_null(strstr(buf_str(&opened), schema_root.fields[i].name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_overrides_of_an_empty_group),
		cmocka_unit_test(test_overrides_refused),
		cmocka_unit_test(test_relay),
		cmocka_unit_test(test_bands_and_rates),
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_passwords),
		cmocka_unit_test(test_web_targets),
		cmocka_unit_test(test_secret_files),
		cmocka_unit_test(test_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
