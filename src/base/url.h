/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_URL_H
#define BASE_URL_H

/*
 * URLs of stores and targets: scheme:rest, or scheme://[user[:password]@]host[:port][,host:port]/path,
 * each with ?name=value&... behind. Percent escapes are decoded in user, password, path, names and
 * values. Options that no driver asked for are errors, so a typing mistake never becomes a default.
 *
 * The query of an http or https URL belongs to the receiver and stays as it is. There, options are behind a #, which no
 * receiver ever sees: https://host/path?theirs=1#ours=2&...
 */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define URL_OPTIONS_MAX 32

struct url_option {
	char *name;
	char *value;
	bool used;
};

struct url {
	char *scheme;
	bool has_authority;
	char *user, *password; /* NULL when absent */
	char *host;            /* "host:port,host:port" as written; NULL without authority */
	char *path;            /* "out.jsonl", "/var/lib/app.db"; "" when absent */
	char *request;         /* http and https: "/path?query" as written; NULL for all others */
	struct url_option options[URL_OPTIONS_MAX];
	size_t n_options;
};

/* ECONFIG with the value (password masked) and the remedy. */
int url_parse(const char *text, struct url *ret_url, struct outbox_error *err) OUTBOX_MUSTCHECK;
void url_deinit(struct url *url);

/* The scheme of a URL without parsing the rest; false when there is none. */
bool url_scheme(const char *text, char *ret_scheme, size_t size);

/* The port of a broker whose URL names none; 0: there is no usual one for this scheme. */
int url_usual_port(const char *scheme);

/* The option's value, or NULL; marks it as used. */
const char *url_option(struct url *url, const char *name);

/*
 * The value of an option of one kind; what is not given stays as it is. ECONFIG names the option, its value and what is
 * possible. choices: "topic, direct or fanout".
 */
int url_flag(struct url *url, const char *name, bool *ret_flag,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;
int url_number(struct url *url, const char *name, int64_t min, int64_t max, int64_t *ret_number,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int url_choice(struct url *url, const char *name, const char *choices, const char **ret_choice,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ECONFIG for the first option nobody asked for; known is a list for the remedy: "fsync, mode". */
int url_finish(struct url *url, const char *known, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ECONFIG unless it is a scheme and a colon and nothing else: "null:". */
int url_check_bare(const char *text, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Append text to a URL, percent escapes for all but letters, digits, -._~ and the characters of keep. */
void url_escape(struct buf *out, const char *text, const char *keep);

/* A copy of text for people, passwords replaced by ***, also in ?password=. */
void url_mask(const char *text, char *out, size_t size);

#endif
