/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

/*
 * outbox.yaml: sources, targets, the relay's settings, the log. Read with what the environment and
 * --set lay over it, checked as a whole, every default filled in.
 */

#include "base/rate.h"
#include "config/problems.h"
#include "fields/fields.h"

#include <outbox/relay.h>

struct buf;
struct node;

enum config_log_format { CONFIG_LOG_TEXT = 1, CONFIG_LOG_JSON };

struct config_source {
	const char *name, *store, *password;
	struct field_texts targets; /* globs of their names; none: all */
};

struct config_match {
	struct field_texts type;
	int kind;
	struct field_texts headers; /* NAME=GLOB */
	struct field_texts priority;
	bool published;
	bool nothing;
};

struct config_retry {
	const struct outbox_policy *preset;
	int64_t max_attempts, jitter; /* -1: not set */
	outbox_time budget, base, cap;
	double factor;
	struct field_durations schedule;
};

/* Of http and https: what a webhook is signed with. */
struct config_sign {
	const char *hmac, *ed25519, *previous;
	int preset; /* 0: standard */
};

struct config_target {
	const char *name, *to, *password;
	struct config_sign sign;
	const char *bearer;
	struct field_texts allow_private;
	struct config_match match;
	bool external;
	struct field_texts headers; /* of an external one: these leave, too */
	int envelope, order;
	bool hold, bands, paused;
	int64_t max_size;
	struct rate rate;
	int64_t burst;
	struct field_start start;
	const char *dead_letter;
	struct config_retry retry;
	int64_t batch;
	outbox_time lease, poll;
	struct outbox_policy policy; /* all of retry, batch, lease and poll */
};

struct config_relay {
	const char *instance;
	int64_t workers, batch, batch_bytes;
	outbox_time lease, poll, publish_timeout, breaker_min, breaker_max;
	outbox_time retain_delivered, retain_failed, retain_inbox, purge_interval, shutdown_timeout;
	const char *archive;
};

struct config_log {
	int format, level;
};

/* When a source or target is not well, see config/rules.h. */
struct config_health {
	outbox_time interval, settle;
	struct field_texts off; /* globs of rules */
	const char *runbook;    /* the page that alerts link to; NULL: the installed one */
	int64_t failed, backlog, pending, retry_rate;
	outbox_time pending_for, overdue, sending, latency;
};

enum config_alert_format { CONFIG_ALERT_WEBHOOK = 1, CONFIG_ALERT_ALERTMANAGER };

/* A receiver of alerts. */
struct config_alert {
	const char *name, *url, *token;
	struct field_texts rules; /* globs; none: every rule */
	int format;
	outbox_time timeout, repeat; /* repeat 0: by the format */
};

/* The admin HTTP server; off unless listen is set. */
struct config_admin {
	const char *listen, *tokens, *cert, *key;
	struct field_texts hosts;
	bool open_metrics;
};

/* Metrics and spans for an OpenTelemetry collector. */
struct config_otlp {
	const char *endpoint; /* NULL: none */
	const char *headers;  /* NAME=VALUE,NAME=VALUE */
	outbox_time interval;
	bool metrics, traces;
};

struct otlp_header {
	const char *name, *value; /* not ended by NUL */
	size_t name_size, value_size;
};

/* The next one of headers, which *rest is moved along. False: there is none. */
bool otlp_header_next(const char **rest, struct otlp_header *ret_header);

struct config {
	struct field_list sources; /* of struct config_source */
	struct field_list targets; /* of struct config_target */
	struct config_health health;
	struct field_list alerts; /* of struct config_alert */
	struct config_otlp otlp;
	struct config_relay relay;
	struct config_log log;
	struct config_admin admin;
	struct outbox_arena *arena; /* owns all of it */
	struct node *root;          /* what was written where */
	void *owner;                /* of whoever hands it out */
};

struct config_input {
	const char *file;
	const char *text; /* NULL: read the file */
	size_t size;      /* of text */
	const char *const *sets;
	size_t n_sets;
	char *const *environment; /* NAME=value, NULL behind the last; may be NULL */
	bool secrets;             /* read the files that file: names */
	bool server;              /* read those that the admin server needs */
	/* Instead of a file: the tree as a command's options say it. Nothing is laid over it. */
	int (*make_tree)(const void *context, struct outbox_arena *arena, struct node **ret_root,
			 struct outbox_error *err);
	const void *context;
};

/*
 * As far as it can be read: OK with problems, too, for those who have more to check. Then what nobody wrote rightly is
 * missing in *ret_config, and what follows from several values. ENOTFOUND: there is no such file; ENOMEM.
 */
int config_read(const struct config_input *input, struct config **ret_config,
		struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

struct config *config_free(struct config *config);

/* The limits of health where there is no file. */
int config_health_defaults(struct outbox_arena *arena, struct config_health *ret_health,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What outbox_relay_new() takes for one source. Borrows from config and its arena. */
int config_relay(const struct config *config, const struct config_source *source,
		 struct outbox_relay_config *ret_relay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Every value in effect: its key as --set takes it, its text, where it is from. */
typedef void (*config_show_fn)(void *context, const char *key, const char *value, const char *from);
int config_show(const struct config *config, config_show_fn show, void *context,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* JSON Schema (2020-12) for editors. NULL: out of memory. */
json_t *config_json_schema(void);

/* A commented file with every key and its default, ready to be edited. */
void config_reference(struct buf *out);

#endif
