/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/endpoint.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "core/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void endpoint_deinit(struct endpoint *endpoint)
{
	free(endpoint->addresses);
	free(endpoint->user);
	secret_free(endpoint->password);
	free(endpoint->ca);
	free(endpoint->cert);
	free(endpoint->key);
	free(endpoint->hosts);
	*endpoint = (struct endpoint){ 0 };
}

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int bad_address(const char *text, struct outbox_error *err)
{
	char shown[100];

	return outbox_fail(err, OUTBOX_ECONFIG,
			   "\"%s\" is not a host; write host, host:port or [address]:port",
			   text_shown(shown, sizeof(shown), text));
}

/* One "host", "host:port" or "[::1]:port". */
static int parse_address(const char *text, int default_port, struct address *ret_address,
			 struct outbox_error *err)
{
	struct address address = { .port = default_port };
	bool brackets = text[0] == '[';
	size_t length = brackets ? strcspn(text, "]") : strcspn(text, ":");
	const char *host = text + brackets, *rest = text + length + brackets;
	int64_t port;

	length -= brackets;
	if (!length || length >= sizeof(address.host) || (brackets && text[length + 1] != ']'))
		return bad_address(text, err);
	memcpy(address.host, host, length);
	if (rest[0] && rest[0] != ':')
		return bad_address(text, err);
	if (rest[0]) {
		if (number_parse("the port", rest + 1, 1, 65535, &port, err) != OUTBOX_OK) {
			if (err)
				err->status = OUTBOX_ECONFIG;
			return OUTBOX_ECONFIG;
		}
		address.port = (int)port;
	}
	*ret_address = address;
	return OUTBOX_OK;
}

static int parse_addresses(struct endpoint *e, const char *hosts, int default_port,
			   struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *copy = strdup(hosts);
	char *rest = copy;
	size_t n = 1;

	if (!copy)
		return no_memory(err);
	for (const char *at = hosts; *at; at++)
		n += *at == ',';
	e->addresses = calloc(n, sizeof(*e->addresses));
	if (!e->addresses)
		return no_memory(err);
	for (const char *one; (one = strsep(&rest, ","));) {
		int r = parse_address(one, default_port, &e->addresses[e->n_addresses], err);

		if (r != OUTBOX_OK)
			return r;
		e->n_addresses++;
	}
	return OUTBOX_OK;
}

static int write_hosts(struct endpoint *e, struct outbox_error *err)
{
	struct buf hosts = BUF_INIT((size_t)1 << 16);

	for (size_t i = 0; i < e->n_addresses; i++) {
		bool colons = strchr(e->addresses[i].host, ':');

		buf_printf(&hosts, "%s%s%s%s:%d", i ? "," : "", colons ? "[" : "",
			   e->addresses[i].host, colons ? "]" : "", e->addresses[i].port);
	}
	e->hosts = hosts.data;
	snprintf(e->shown, sizeof(e->shown), "%s", buf_str(&hosts));
	return hosts.failed ? no_memory(err) : OUTBOX_OK;
}

int endpoint_set_hosts(struct endpoint *e, const char *hosts, int default_port,
		       struct outbox_error *err)
{
	int r;

	free(e->addresses);
	free(e->hosts);
	e->addresses = NULL;
	e->hosts = NULL;
	e->n_addresses = 0;
	r = parse_addresses(e, hosts, default_port, err);
	return r == OUTBOX_OK ? write_hosts(e, err) : r;
}

bool endpoint_is_loopback(const struct endpoint *e)
{
	for (size_t i = 0; i < e->n_addresses; i++) {
		const char *host = e->addresses[i].host;

		if (strcmp(host, "localhost") != 0 && strcmp(host, "::1") != 0 &&
		    strncmp(host, "127.", 4) != 0)
			return false;
	}
	return true;
}

/* ---- who, and by which certificates ------------------------------------------------------------ */

static int parse_login(struct endpoint *e, struct url *url, struct outbox_error *err)
{
	const char *file = url_option(url, "password_file");

	if (url->user && url->user[0]) {
		e->user = strdup(url->user);
		if (!e->user)
			return no_memory(err);
	}
	if (file && url->password)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "a password and password_file were given; give one of the two");
	if (file) {
		int r = secret_read("password_file", file, &e->password, err);

		if (r)
			return r;
	} else if (url->password) {
		e->password = strdup(url->password);
		if (!e->password)
			return no_memory(err);
	}
	secrets_hide(e->password);
	return OUTBOX_OK;
}

int endpoint_file(struct url *url, const char *option, char **ret_path, struct outbox_error *err)
{
	const char *path = url_option(url, option);
	char shown[200];

	if (!path)
		return OUTBOX_OK;
	if (access(path, R_OK) != 0)
		return outbox_fail_native(err, OUTBOX_ECONFIG, errno, "option %s: %s cannot be read",
					  option, text_shown(shown, sizeof(shown), path));
	*ret_path = strdup(path);
	return *ret_path ? OUTBOX_OK : no_memory(err);
}

static int parse_tls(struct endpoint *e, struct url *url, struct outbox_error *err)
{
	static const char *const options[] = { "ca", "cert", "key", "verify" };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(options) && !e->tls; i++)
		if (url_option(url, options[i]))
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "option %s is for TLS, which %s:// is not", options[i],
					   url->scheme);
	if (!e->tls)
		return OUTBOX_OK;
	e->verify = true;
	r = url_flag(url, "verify", &e->verify, err);
	if (r == OUTBOX_OK)
		r = endpoint_file(url, "ca", &e->ca, err);
	if (r == OUTBOX_OK)
		r = endpoint_file(url, "cert", &e->cert, err);
	if (r == OUTBOX_OK)
		r = endpoint_file(url, "key", &e->key, err);
	if (r == OUTBOX_OK && !e->cert != !e->key)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "options cert and key belong together; give both or none");
	if (r == OUTBOX_OK && !e->ca) {
		e->ca = strdup(ENDPOINT_CA_BUNDLE);
		r = e->ca ? OUTBOX_OK : no_memory(err);
	}
	return r;
}

int endpoint_parse(struct url *url, int default_port, bool tls, struct endpoint *ret_endpoint,
		   struct outbox_error *err)
{
	struct endpoint e = { .tls = tls };
	int r;

	if (!url->host || !url->host[0])
		return outbox_fail(err, OUTBOX_ECONFIG, "%s: needs a host; write %s://host:%d/",
				   url->scheme, url->scheme, default_port);
	r = endpoint_set_hosts(&e, url->host, default_port, err);
	if (r == OUTBOX_OK)
		r = parse_login(&e, url, err);
	if (r == OUTBOX_OK)
		r = parse_tls(&e, url, err);
	if (r != OUTBOX_OK) {
		endpoint_deinit(&e);
		return r;
	}
	*ret_endpoint = e;
	return OUTBOX_OK;
}

/* ---- connecting -------------------------------------------------------------------------------- */

static bool is_for_people(int status)
{
	return status == OUTBOX_EAUTH || status == OUTBOX_ECONFIG;
}

int endpoint_try(const struct endpoint *e, struct outbox_clock *clock, outbox_time deadline,
		 int (*attempt)(void *context, const struct address *address, outbox_time until,
				struct outbox_error *err),
		 void *context, struct outbox_error *err)
{
	struct outbox_error told = OUTBOX_ERROR_INIT;

	for (size_t i = 0; i < e->n_addresses; i++) {
		outbox_time now = clock->mono(clock), left = deadline - now;
		struct outbox_error why = OUTBOX_ERROR_INIT;
		int r;

		if (left <= 0)
			break;
		r = attempt(context, &e->addresses[i],
			    now + left / (outbox_time)(e->n_addresses - i), &why);
		if (r == OUTBOX_OK)
			return OUTBOX_OK;
		why.status = r;
		if (!is_for_people(told.status) || is_for_people(r))
			told = why;
	}
	if (!told.status)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no time left to connect", e->shown);
	return outbox_fail_native(err, told.status, told.native, "%s", told.message);
}
