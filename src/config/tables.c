/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: add a key here, read it where it is used, and nothing else has to be told. */
#include "config/check.h"
#include "config/schema.h"
#include "core/lifecycle.h"

/* indexed by their values */
static const char *const envelopes[] = { NULL, "structured", "binary", "native", NULL };
static const char *const orders[] = { NULL, "strict", "pipelined", "none", NULL };
static const char *const presets[] = { NULL, "standard", "hermodr", NULL };
static const char *const formats[] = { NULL, "text", "json", NULL };

/* one above the library's, whose first is 0: here 0 is "not set" */
static const char *const levels[] = { NULL, "debug", "info", "warn", "error", NULL };

static const struct field source_keys[] = {
	{ KEY(NAME, config_source, name), .flags = FIELD_REQUIRED, .example = "shop",
	  .help = "a name for this database, shown in status, logs and metrics" },
	{ KEY(URL, config_source, store), .flags = FIELD_REQUIRED,
	  .example = "postgres://app@db/shop",
	  .help = "the database with the outbox: sqlite:app.db, postgres://USER@HOST/DB" },
	{ KEY(SECRET, config_source, password), .otherwise = "none",
	  .example = "file:/run/secrets/shop", .help = "inserted into the store's URL" },
	{ KEY(GLOBS, config_source, targets), .otherwise = "all of them", .example = "[events]",
	  .help = "the targets of this source, by name; * stands for anything" },
};

static const struct field match_keys[] = {
	{ KEY(GLOBS, config_match, type), .otherwise = "every type", .example = "[\"order.*\"]",
	  .help = "only messages whose type fits one of these; * stands for anything" },
	{ KEY(WORD, config_match, kind), .words = kind_names, .otherwise = "both",
	  .example = "event", .help = "only this kind of message" },
	{ KEY(GLOBS, config_match, headers), .otherwise = "whatever they are",
	  .example = "[tenant=acme, \"region=eu-*\"]",
	  .help = "only messages with these headers: of one name any, of several names all" },
	{ KEY(GLOBS, config_match, priority), .otherwise = "every priority", .example = "[high]",
	  .help = "only these bands: high (above 0), normal (0), low (below 0)" },
	{ KEY(BOOL, config_match, published), .fallback = "false",
	  .help = "only messages marked as published" },
	{ KEY(BOOL, config_match, nothing), .fallback = "false",
	  .help = "only messages that failed at targets whose dead_letter is this one" },
};

static const struct field retry_keys[] = {
	{ KEY(POLICY, config_retry, preset), .fallback = "default",
	  .help = "the policy that supplies unset values; outbox policy list shows them" },
	{ KEY(NUMBER, config_retry, max_attempts), .min = 0, .max = 1000000, .example = "10",
	  .otherwise = "preset", .help = "tries in all before a delivery fails; 0: no limit" },
	{ KEY(DURATION, config_retry, budget), .otherwise = "preset", .example = "1d",
	  .help = "a delivery fails this long after its first failure; unset: no limit" },
	{ KEY(DURATION, config_retry, base), .otherwise = "preset", .example = "1s",
	  .help = "the first delay, which grows by factor" },
	{ KEY(FACTOR, config_retry, factor), .min = 1, .max = 100, .otherwise = "preset",
	  .example = "2", .help = "each delay is the previous one times this" },
	{ KEY(DURATION, config_retry, cap), .otherwise = "preset", .example = "5m",
	  .help = "the longest delay" },
	{ KEY(NUMBER, config_retry, jitter), .min = 0, .max = 100, .otherwise = "preset",
	  .example = "25", .help = "percentage by which each delay varies at random" },
	{ KEY(DURATIONS, config_retry, schedule), .otherwise = "preset", .example = "[30s, 1m, 5m]",
	  .help = "the list of delays, instead of base, factor and cap" },
};

static const struct config_retry retry_initial = { .max_attempts = -1, .jitter = -1 };

static const struct field sign_keys[] = {
	{ KEY(SECRET, config_sign, hmac), .otherwise = "none", .example = "file:/run/secrets/partner",
	  .help = "a shared key: whsec_ and base64; with preset hermodr any text" },
	{ KEY(SECRET, config_sign, ed25519), .otherwise = "none",
	  .example = "file:/run/secrets/partner-ed25519",
	  .help = "a private key: whsk_ and base64; receivers need only the public one" },
	{ KEY(SECRET, config_sign, previous), .otherwise = "none",
	  .example = "file:/run/secrets/partner-previous",
	  .help = "the former key, while receivers change to the new one: signed with both" },
	{ KEY(WORD, config_sign, preset), .words = presets, .fallback = "standard",
	  .help = "the headers: standard (Standard Webhooks) or hermodr" },
};

static const struct record sign_schema = { SCHEMA(sign_keys, config_sign), .check = check_sign };
static const struct record match_schema = { SCHEMA(match_keys, config_match), .check = check_match };
static const struct record retry_schema = { SCHEMA(retry_keys, config_retry),
					    .initial = &retry_initial, .check = check_retry };

static const struct field target_keys[] = {
	{ KEY(NAME, config_target, name), .flags = FIELD_REQUIRED, .example = "events",
	  .help = "the target's name; the store keeps its state under it" },
	{ KEY(URL, config_target, to), .flags = FIELD_REQUIRED, .example = "redis://mq/?stream=shop",
	  .help = "where to send: amqp://, kafka://, nats://, redis://, https:// ..." },
	{ KEY(SECRET, config_target, password), .otherwise = "none",
	  .example = "file:/run/secrets/mq", .help = "inserted into the URL of to" },
	{ KEY(OBJECT, config_target, sign), .of = &sign_schema,
	  .help = "https targets only: the keys that requests are signed with" },
	{ KEY(SECRET, config_target, bearer), .otherwise = "none",
	  .example = "file:/run/secrets/partner-token",
	  .help = "https targets only: a token for the Authorization header" },
	{ KEY(GLOBS, config_target, allow_private), .otherwise = "none", .example = "[10.0.0.0/8]",
	  .help = "https targets only: networks to allow although they are not public" },
	{ KEY(OBJECT, config_target, match), .of = &match_schema,
	  .help = "which messages this target gets; unset: all" },
	{ KEY(BOOL, config_target, external), .fallback = "false",
	  .help = "outside your organisation: published messages only, nothing internal" },
	{ KEY(GLOBS, config_target, headers), .otherwise = "none", .example = "[tenant]",
	  .help = "external targets only: the headers to send, by name (also traceparent)" },
	{ KEY(WORD, config_target, envelope), .words = envelopes, .otherwise = "the transport's own",
	  .example = "structured", .help = "the form of a message on the wire" },
	{ KEY(WORD, config_target, order), .words = orders, .fallback = "strict",
	  .help = "the order of a key's messages; with pipelined, a failure may reorder them" },
	{ KEY(BOOL, config_target, hold), .fallback = "false",
	  .help = "after a failed message, later messages of its key wait" },
	{ KEY(BYTES, config_target, max_size), .otherwise = "none", .example = "256KiB",
	  .help = "a message with a larger payload fails at once, without being sent" },
	{ KEY(BOOL, config_target, bands), .fallback = "false",
	  .help = "split by priority: NAME-high, NAME, NAME-low; bulk does not delay the rest" },
	{ KEY(RATE, config_target, rate), .otherwise = "none", .example = "50/s",
	  .help = "at most this many messages from this process, all bands together" },
	{ KEY(NUMBER, config_target, burst), .min = 1, .max = 1000000000, .example = "100",
	  .otherwise = "a second's worth of the rate", .help = "this many at once after a pause" },
	{ KEY(START, config_target, start), .otherwise = "oldest until then", .example = "now",
	  .help = "where a new target begins; required once messages were delivered" },
	{ KEY(BOOL, config_target, paused), .fallback = "false",
	  .help = "a new target starts paused: outbox resume starts it; later no effect" },
	{ KEY(NAME, config_target, dead_letter), .otherwise = "none", .example = "parked",
	  .help = "the target that gets what fails here, with the reason in headers" },
	{ KEY(OBJECT, config_target, retry), .of = &retry_schema,
	  .help = "when a refused message is tried again" },
	{ KEY(NUMBER, config_target, batch), .min = 1, .max = 100000,
	  .otherwise = "relay.batch or preset", .example = "500", .help = "messages in one batch" },
	{ KEY(DURATION, config_target, lease), .min = 100 * OUTBOX_MILLISECONDS,
	  .max = OUTBOX_HOURS, .otherwise = "relay.lease or preset", .example = "15s",
	  .help = "a dead relay's lanes are taken over after this" },
	{ KEY(DURATION, config_target, poll), .otherwise = "relay.poll or preset",
	  .example = "250ms", .help = "look for messages at least this often" },
};

static const struct field relay_keys[] = {
	{ KEY(TEXT, config_relay, instance), .otherwise = "host:pid", .example = "relay-a",
	  .flags = FIELD_RESTART, .help = "this relay's name, with a random suffix" },
	{ KEY(NUMBER, config_relay, workers), .min = 1, .max = 64, .fallback = "1",
	  .help = "threads for each target" },
	{ KEY(NUMBER, config_relay, batch), .min = 1, .max = 100000,
	  .otherwise = "the preset, else 500", .example = "500", .help = "messages in one batch" },
	{ KEY(BYTES, config_relay, batch_bytes), .fallback = "8MiB",
	  .help = "bytes of payloads and headers in one batch" },
	{ KEY(DURATION, config_relay, lease), .min = 100 * OUTBOX_MILLISECONDS, .max = OUTBOX_HOURS,
	  .otherwise = "the preset, else 15s", .example = "15s",
	  .help = "a dead relay's lanes are taken over after this; 100ms to 1h" },
	{ KEY(DURATION, config_relay, poll), .otherwise = "the preset, else 250ms",
	  .example = "250ms", .help = "look for messages at least this often" },
	{ KEY(DURATION, config_relay, publish_timeout),
	  .otherwise = "2/3 of the lease, at most 10s", .example = "10s",
	  .help = "time limit for one batch at a broker; must be shorter than every lease" },
	{ KEY(DURATION, config_relay, breaker_min), .fallback = "500ms",
	  .help = "the first pause after a target became unreachable" },
	{ KEY(DURATION, config_relay, breaker_max), .fallback = "30s",
	  .help = "the longest such pause" },
	{ KEY(KEEP, config_relay, retain_delivered),
	  .otherwise = "the first target's preset, else 7d", .example = "7d",
	  .help = "keep delivered messages this long" },
	{ KEY(KEEP, config_relay, retain_failed),
	  .otherwise = "the first target's preset, else forever", .example = "forever",
	  .help = "keep failed messages this long" },
	{ KEY(KEEP, config_relay, retain_inbox), .fallback = "30d",
	  .help = "keep ids in the inbox of a source this long, if it has one" },
	{ KEY(KEEP, config_relay, purge_interval), .otherwise = "the first target's preset, else 1m",
	  .example = "1m", .help = "remove what is past its retention this often; forever: never" },
	{ KEY(TEXT, config_relay, archive), .otherwise = "none", .example = "/var/lib/outbox/archive",
	  .help = "a folder: what is removed is written there first, for outbox replay" },
	{ KEY(DURATION, config_relay, shutdown_timeout), .fallback = "30s", .flags = FIELD_LIVE,
	  .help = "how long to wait for batches in flight when the relay stops" },
};

static const struct field log_keys[] = {
	{ KEY(WORD, config_log, format), .words = formats, .fallback = "text",
	  .help = "lines for people, or one JSON object a line" },
	{ KEY(WORD, config_log, level), .words = levels, .fallback = "info",
	  .help = "the lowest level that is logged" },
};

static const struct field admin_keys[] = {
	{ KEY(TEXT, config_admin, listen), .otherwise = "off", .example = "127.0.0.1:8040",
	  .help = "address of the admin HTTP server, or unix:PATH; other machines need TLS" },
	{ KEY(TEXT, config_admin, tokens), .otherwise = "the state folder",
	  .example = "/var/lib/outbox/tokens",
	  .help = "file of access tokens, mode 0600; created at the first start" },
	{ KEY(TEXT, config_admin, cert), .otherwise = "no TLS", .example = "/etc/outbox/cert.pem",
	  .help = "TLS certificate with its chain, PEM" },
	{ KEY(TEXT, config_admin, key), .otherwise = "no TLS", .example = "/etc/outbox/key.pem",
	  .help = "the private key of cert, PEM, mode 0600" },
	{ KEY(GLOBS, config_admin, hosts), .otherwise = "the address's own",
	  .example = "[\"outbox.example.com\"]",
	  .help = "more host names that requests may use, with :PORT if it differs" },
	{ KEY(BOOL, config_admin, open_metrics), .fallback = "false",
	  .help = "/metrics without a token" },
};

static const struct record source_schema = { SCHEMA(source_keys, config_source),
					     .check = check_source };
static const struct record target_schema = { SCHEMA(target_keys, config_target),
					     .check = check_target };
static const struct record relay_schema = { SCHEMA(relay_keys, config_relay), .check = check_relay };
static const struct record log_schema = { SCHEMA(log_keys, config_log) };
static const struct record admin_schema = { SCHEMA(admin_keys, config_admin) };

static const struct field root_keys[] = {
	{ KEY(LIST, config, sources), .of = &source_schema, .flags = FIELD_REQUIRED,
	  .help = "databases with an outbox; each has a relay of its own, all in one process" },
	{ KEY(LIST, config, targets), .of = &target_schema, .flags = FIELD_REQUIRED,
	  .help = "where messages go; each delivery is independent of the others" },
	{ KEY(OBJECT, config, relay), .of = &relay_schema,
	  .help = "batches, leases, timeouts and retention of the relay" },
	{ KEY(OBJECT, config, log), .of = &log_schema, .flags = FIELD_LIVE,
	  .help = "what the relay logs, on stderr" },
	{ KEY(OBJECT, config, health), .of = &schema_health, .flags = FIELD_LIVE,
	  .help = "when a source or target is unhealthy: rules and their limits" },
	{ KEY(LIST, config, alerts), .of = &schema_alert, .flags = FIELD_LIVE,
	  .help = "receivers of an alert when a rule starts and stops firing; unset: none" },
	{ KEY(OBJECT, config, otlp), .of = &schema_otlp, .flags = FIELD_RESTART,
	  .help = "metrics and traces for OpenTelemetry; unset: none" },
	{ KEY(OBJECT, config, admin), .of = &admin_schema, .flags = FIELD_RESTART,
	  .help = "the admin HTTP server: health, metrics, API" },
};

const struct record schema_root = { SCHEMA(root_keys, config) };
