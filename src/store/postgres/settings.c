/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/connect.h"

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_DEFAULT (30 * OUTBOX_SECONDS)
#define CONNECT_TIMEOUT (10 * OUTBOX_SECONDS)
#define CA_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

void pg_settings_deinit(struct pg_settings *settings)
{
	url_deinit(&settings->url);
	free(settings->hosts);
	free(settings->ports);
	secret_free(settings->password);
}

/* The first one set stays: the URL goes before our defaults. */
static void set(struct pg_settings *settings, const char *key, const char *value)
{
	for (size_t i = 0; i < settings->count; i++) {
		if (strcmp(settings->keys[i], key) == 0)
			return;
	}
	if (settings->count == PG_SETTINGS_MAX || !value)
		return;
	settings->keys[settings->count] = key;
	settings->values[settings->count++] = value;
}

static const char *setting(const struct pg_settings *settings, const char *key)
{
	for (size_t i = 0; i < settings->count; i++) {
		if (strcmp(settings->keys[i], key) == 0)
			return settings->values[i];
	}
	return NULL;
}

/* libpq says it only when it connects. */
static int check_ports(const char *ports, struct outbox_error *err)
{
	int64_t port;
	char one[40];
	int r = OUTBOX_OK;

	for (size_t size; r == OUTBOX_OK && *ports; ports += size + (ports[size] == ',')) {
		size = strcspn(ports, ",");
		snprintf(one, sizeof(one), "%.*s", (int)size, ports);
		if (size && number_parse("the store's URL, port", one, 1, 65535, &port, err))
			r = OUTBOX_ECONFIG;
	}
	if (r && err)
		err->status = r;
	return r;
}

/* "h1:1,h2" is "h1,h2" and "1," to libpq. An IPv6 address is in brackets. */
static int split_hosts(struct pg_settings *settings, struct outbox_error *err)
{
	const char *at = settings->url.host ? settings->url.host : "";
	char *hosts = calloc(1, strlen(at) + 1), *ports = calloc(1, strlen(at) + 2);
	char *host = hosts, *port = ports;
	bool in_port = false, bracket = false;

	settings->hosts = hosts;
	settings->ports = ports;
	if (!hosts || !ports)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (; *at; at++) {
		if (*at == '[' || *at == ']') {
			bracket = *at == '[';
		} else if (*at == ',') {
			*host++ = *port++ = ',';
			in_port = false;
		} else if (*at == ':' && !bracket) {
			in_port = true;
		} else if (in_port) {
			*port++ = *at;
		} else {
			*host++ = *at;
		}
	}
	if (hosts[0])
		set(settings, "host", hosts);
	if (ports[0] && strspn(ports, ",") != strlen(ports))
		set(settings, "port", ports);
	return check_ports(ports, err);
}

static bool is_libpq_option(const char *name)
{
	PQconninfoOption *options = PQconndefaults();
	bool found = false;

	for (PQconninfoOption *o = options; o && o->keyword && !found; o++)
		found = strcmp(o->keyword, name) == 0;
	PQconninfoFree(options);
	return found;
}

static int read_password(struct pg_settings *settings, const char *path, struct outbox_error *err)
{
	int r;

	if (setting(settings, "password"))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "password_file: the URL has a password, too; leave one of them out");
	r = secret_read("password_file", path, &settings->password, err);
	if (r == OUTBOX_OK)
		set(settings, "password", settings->password);
	return r;
}

static int duration(struct url *url, const char *name, outbox_time *time, struct outbox_error *err)
{
	const char *text = url_option(url, name);
	int r;

	if (!text)
		return OUTBOX_OK;
	r = duration_parse(text, time, err);
	if (r != OUTBOX_OK) {
		outbox_wrap(err, "%s", name);
		if (err)
			err->status = OUTBOX_ECONFIG;
		return OUTBOX_ECONFIG;
	}
	if (*time < OUTBOX_SECONDS / 10 || *time > 10 * OUTBOX_MINUTES)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: \"%s\" is not between 100 ms and 10 minutes", name, text);
	return OUTBOX_OK;
}

static int parse_options(struct pg_settings *settings, struct outbox_error *err)
{
	struct url *url = &settings->url;
	const char *clock = url_option(url, "clock"), *file = url_option(url, "password_file");
	int r;

	settings->schema = url_option(url, "schema");
	settings->timeout = TIMEOUT_DEFAULT;
	settings->connect_timeout = CONNECT_TIMEOUT;
	r = duration(url, "timeout", &settings->timeout, err);
	if (r == OUTBOX_OK)
		r = duration(url, "connect_timeout", &settings->connect_timeout, err);
	if (r == OUTBOX_OK && file)
		r = read_password(settings, file, err);
	if (r != OUTBOX_OK)
		return r;
	if (clock && strcmp(clock, "client") != 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "clock: leave it out (\"client\" is for tests)");
	settings->client_clock = clock;
	for (size_t i = 0; i < url->n_options; i++) {
		if (!url->options[i].used && is_libpq_option(url->options[i].name))
			set(settings, url->options[i].name, url_option(url, url->options[i].name));
	}
	return OUTBOX_OK;
}

/* As libpq finds it: in the URL, else in the environment. */
static const char *found(const struct pg_settings *settings, const char *key, const char *variable)
{
	const char *value = setting(settings, key);

	if (!value || !value[0])
		value = getenv(variable);
	return value && value[0] ? value : NULL;
}

/* For people: which server is meant, wherever that is said. */
static void set_where(struct pg_settings *settings)
{
	const char *service = found(settings, "service", "PGSERVICE");
	const char *host = settings->url.host && settings->url.host[0] ? settings->url.host : NULL;
	const char *port = found(settings, "port", "PGPORT"),
		   *db = found(settings, "dbname", "PGDATABASE");
	char at[16] = "";

	/* what the URL's host names has its ports in it */
	if (port && !(host && setting(settings, "port")))
		snprintf(at, sizeof(at), ":%s", port);
	if (!host)
		host = found(settings, "host", "PGHOST");
	if (!host)
		host = found(settings, "hostaddr", "PGHOSTADDR");
	if (host || !service)
		snprintf(settings->where, sizeof(settings->where), "postgres %s%s/%s",
			 host ? host : "local", at, db ? db : "");
	else
		snprintf(settings->where, sizeof(settings->where), "postgres service %s", service);
}

static int set_name(struct pg_settings *settings, struct outbox_error *err)
{
	const char *name = url_option(&settings->url, "name"), *db = setting(settings, "dbname");

	if (name &&
	    (!name[0] || strlen(name) >= sizeof(settings->name) || !utf8_valid(name, strlen(name))))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "name: give 1 to %zu bytes of UTF-8, the store's short name",
				   sizeof(settings->name) - 1);
	snprintf(settings->name, sizeof(settings->name), "%s", name ? name : (db ? db : "postgres"));
	set_where(settings);
	return url_finish(&settings->url,
			  "schema, name, timeout, connect_timeout, password_file and libpq's own",
			  err);
}

/* Is every host this machine? A comma-separated list. */
static bool is_local(const char *hosts)
{
	size_t length;

	if (!hosts)
		return true;
	for (const char *at = hosts;; at += length + 1) {
		length = strcspn(at, ",");
		if (length && at[0] != '/' && at[0] != '@' &&
		    !(length == 9 && strncasecmp(at, "localhost", 9) == 0) &&
		    strncmp(at, "127.", 4) != 0 && !(length == 3 && strncmp(at, "::1", 3) == 0))
			return false;
		if (!at[length])
			return true;
	}
}

static void set_defaults(struct pg_settings *settings)
{
	const char *host = setting(settings, "host");
	const char *address = setting(settings, "hostaddr");

	if (!getenv("PGSSLMODE") && !setting(settings, "service") &&
	    !(is_local(host ? host : getenv("PGHOST")) &&
	      is_local(address ? address : getenv("PGHOSTADDR")))) {
		set(settings, "sslmode", "verify-full");
		if (!getenv("PGSSLROOTCERT") && access(CA_BUNDLE, R_OK) == 0 &&
		    strcmp(setting(settings, "sslmode"), "verify-full") == 0)
			set(settings, "sslrootcert", CA_BUNDLE);
	}
	settings->several = host && strchr(host, ',') && !address;
	set(settings, "target_session_attrs", "read-write");
	set(settings, "client_encoding", "UTF8");
	set(settings, "fallback_application_name", "outbox");
	set(settings, "keepalives", "1");
	set(settings, "keepalives_idle", "30");
	set(settings, "keepalives_interval", "10");
	set(settings, "keepalives_count", "3");
	set(settings, "tcp_user_timeout", "30000");
}

int pg_settings_parse(const char *url_text, struct pg_settings *settings, struct outbox_error *err)
{
	struct url *url = &settings->url;
	int r;

	r = url_parse(url_text, url, err);
	if (r != OUTBOX_OK)
		return r;
	if (!url->has_authority)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "two slashes are missing: write postgres://USER@HOST:PORT/DATABASE");
	r = split_hosts(settings, err);
	if (r != OUTBOX_OK)
		return r;
	if (url->user && url->user[0])
		set(settings, "user", url->user);
	if (url->password)
		set(settings, "password", url->password);
	if (url->path[0] == '/' && url->path[1])
		set(settings, "dbname", url->path + 1);
	r = parse_options(settings, err);
	if (r == OUTBOX_OK)
		r = set_name(settings, err);
	if (r == OUTBOX_OK)
		set_defaults(settings);
	return r;
}
