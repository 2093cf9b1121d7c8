/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the URL's #. */

#include "transport/http/driver.h"

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "core/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_IN_FLIGHT 8
#define DEFAULT_TIMEOUT (15 * OUTBOX_SECONDS)
#define SCRATCH_MAX ((size_t)1 << 20)
#define HEADER_OPTION "header."

void http_options_deinit(struct http_transport *t)
{
	signer_deinit(&t->signer);
	for (size_t i = 0; i < t->n_headers; i++) {
		free(t->headers[i].name);
		secret_free(t->headers[i].value);
	}
	t->n_headers = 0;
	curl_slist_free_all(t->fixed);
	t->fixed = NULL;
	free(t->url);
	secret_free(t->token);
	secret_free(t->proxy);
	t->url = t->token = t->proxy = NULL;
}

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- where ---------------------------------------------------------------------------------------- */

static int make_url(struct http_transport *t, const struct url *url, struct outbox_error *err)
{
	const char *request = url->request ? url->request : "";

	if (t->broker.endpoint.n_addresses != 1)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: has several hosts; name one, and make a target for each",
				   url->scheme);
	if (text_has_control(request, strlen(request)) || strpbrk(request, " \"<>\\^`{|}"))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: the path or the query has a character that a URL cannot have; "
				   "write it with percent escapes, such as %%20",
				   url->scheme);
	if (asprintf(&t->url, "%s://%s%s%s", url->scheme, t->broker.endpoint.hosts,
		     request[0] == '/' ? "" : "/", request) < 0) {
		t->url = NULL;
		return no_memory(err);
	}
	return OUTBOX_OK;
}

static int parse_proxy(const char *text, struct url *ret_url, struct outbox_error *err)
{
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	int r = url_parse(text, ret_url, &cause);

	if (r)
		return outbox_fail(err, r, "option proxy: %s", cause.message);
	if (!ret_url->request || !ret_url->host || !ret_url->host[0] || strlen(ret_url->request) > 1)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option proxy: is not a proxy; write http://host:port");
	if (ret_url->password)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option proxy: has a password; put it into a file, and name that "
				   "with proxy_password_file");
	return OUTBOX_OK;
}

/* As curl takes it: with user and password. */
static char *make_proxy(const struct url *proxy, const char *password)
{
	struct buf out = BUF_INIT(4096);

	buf_printf(&out, "%s://", proxy->scheme);
	if (proxy->user || password) {
		url_escape(&out, proxy->user ? proxy->user : "", "");
		buf_char(&out, ':');
		url_escape(&out, password ? password : "", "");
		buf_char(&out, '@');
	}
	buf_text(&out, proxy->host);
	if (out.failed)
		buf_deinit(&out);
	return out.data;
}

static int add_proxy(struct http_transport *t, struct url *url, struct outbox_error *err)
{
	const char *proxy = url_option(url, "proxy");
	const char *file = url_option(url, "proxy_password_file");
	_cleanup_(url_deinit) struct url parsed = { 0 };
	char *password = NULL;
	int r;

	if (!proxy)
		return file ? outbox_fail(err, OUTBOX_ECONFIG,
					  "option proxy_password_file is for a proxy; name it with proxy")
			    : OUTBOX_OK;
	r = parse_proxy(proxy, &parsed, err);
	if (!r && file)
		r = secret_read("proxy_password_file", file, &password, err);
	if (r)
		return r;
	secrets_hide(password);
	t->proxy = make_proxy(&parsed, password);
	secret_free(password);
	return t->proxy ? OUTBOX_OK : no_memory(err);
}

/*
 * The query is the receiver's, so an option that stands there would be sent to it and have no effect. Names that can
 * hardly be a receiver's are refused; those that may be (token, key, timeout) go with the rest, and doctor tells them.
 */
#define OURS_ALONE                                                                              \
	"secret_file, token_file, password_file, header_file, proxy_password_file, in_flight, " \
	"allow_private, idempotency_key"

static bool has_word(const char *list, const char *word, size_t size)
{
	for (size_t n; *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ",");
		if (n == size && memcmp(list, word, n) == 0)
			return true;
	}
	return false;
}

static bool is_header_option(const char *name)
{
	return strncmp(name, HEADER_OPTION, strlen(HEADER_OPTION)) == 0;
}

const char *http_query_option(const char *at)
{
	for (size_t word; *at; at += word + (at[word] == '&')) {
		word = strcspn(at, "&");
		if (is_header_option(at) || has_word(HTTP_OPTIONS, at, strcspn(at, "=&")))
			return at;
	}
	return NULL;
}

static int check_query(const char *request, struct outbox_error *err)
{
	const char *at = strchr(request, '?');
	char name[64], shown[128];

	while (at && (at = http_query_option(at + 1))) {
		size_t size = strcspn(at, "=&");

		snprintf(name, sizeof(name), "%.*s", (int)size, at);
		/* a header's value may be secret, a file's name is not */
		snprintf(shown, sizeof(shown), "%.*s",
			 is_header_option(at) ? (int)size : (int)strcspn(at, "&"), at);
		if (is_header_option(at) || has_word(OURS_ALONE, at, size))
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "option %s: \"%s\" is in the query, which belongs to the "
					   "receiver; write it behind a #, https://host/path?query#%s "
					   "(or %%%02X%s for a parameter of the receiver)",
					   name, shown, shown, (unsigned)(unsigned char)name[0],
					   name + 1);
		at = strchr(at, '&');
	}
	return OUTBOX_OK;
}

/* ---- who ------------------------------------------------------------------------------------------ */

/* A secret that stands in the URL (by way of the configuration) or in a file. NULL: neither. */
static int read_secret(struct url *url, const char *name, const char *file_name, bool all_lines,
		       char **ret_secret, struct outbox_error *err)
{
	const char *value = url_option(url, name), *file = url_option(url, file_name);

	if (value && file)
		return outbox_fail(err, OUTBOX_ECONFIG, "options %s and %s: give one of the two",
				   name, file_name);
	if (file)
		return all_lines ? secret_read_file(file_name, file, ret_secret, err)
				 : secret_read(file_name, file, ret_secret, err);
	*ret_secret = value ? strdup(value) : NULL;
	return value && !*ret_secret ? no_memory(err) : OUTBOX_OK;
}

static int add_signer(struct http_transport *t, struct url *url, struct outbox_error *err)
{
	const char *preset = NULL;
	char *keys = NULL;
	int r = url_choice(url, "sign", "standard or hermodr", &preset, err);

	t->signer.preset = preset && preset[0] == 'h' ? SIGN_HERMODR : SIGN_STANDARD;
	if (!r)
		r = read_secret(url, "secret", "secret_file", true, &keys, err);
	if (!r && keys)
		r = signer_add(&t->signer, url_option(url, "secret") ? "secret" : "secret_file",
			       keys, err);
	secret_free(keys);
	if (!r && preset && !t->signer.n_keys)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option sign: needs a key; name its file with secret_file");
	return r;
}

static int add_token(struct http_transport *t, struct url *url, struct outbox_error *err)
{
	int r = read_secret(url, "token", "token_file", false, &t->token, err);

	if (r || !t->token)
		return r;
	secrets_hide(t->token);
	if (t->broker.endpoint.user || t->broker.endpoint.password)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "the URL has a user, and a token is given; keep one of the two");
	if (text_has_control(t->token, strlen(t->token)))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option token: has a control character; correct it");
	return OUTBOX_OK;
}

/* ---- headers of every request --------------------------------------------------------------------- */

static bool is_framing(const char *name)
{
	static const char *const names[] = { "host",       "content-length", "transfer-encoding",
					     "connection", "content-type",   "expect" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

static int add_header(struct http_transport *t, const char *option, const char *name, size_t length,
		      const char *value, struct outbox_error *err)
{
	struct http_header *header = &t->headers[t->n_headers];
	char shown[80];

	if (t->n_headers == HTTP_HEADERS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option %s: more than %d headers; remove some", option,
				   HTTP_HEADERS_MAX);
	header->name = strndup(name, length);
	header->value = strdup(value);
	t->n_headers++;
	if (!header->name || !header->value)
		return no_memory(err);
	text_shown(shown, sizeof(shown), header->name);
	if (!text_is_token(name, length) || is_framing(header->name))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option %s: \"%s\" is not a header that can be set; choose another",
				   option, shown);
	if (text_has_control(value, strlen(value)))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option %s: the value of \"%s\" has a control character; remove it",
				   option, shown);
	return OUTBOX_OK;
}

/* "Name: value" in each line. */
static int add_header_file(struct http_transport *t, const char *file, struct outbox_error *err)
{
	char *text = NULL, *rest;
	int r = secret_read_file("header_file", file, &text, err);

	if (r)
		return r;
	rest = text;
	for (char *line; !r && (line = strsep(&rest, "\n"));) {
		size_t length = strcspn(line, ":");

		line[strcspn(line, "\r")] = '\0';
		if (!line[0])
			continue;
		if (!line[length]) {
			r = outbox_fail(err, OUTBOX_ECONFIG,
					"option header_file: a line has no colon; write Name: value");
			break;
		}
		secrets_hide(line + length + 1 + strspn(line + length + 1, " \t"));
		r = add_header(t, "header_file", line, length,
			       line + length + 1 + strspn(line + length + 1, " \t"), err);
	}
	secret_free(text);
	return r;
}

static int add_headers(struct http_transport *t, struct url *url, struct outbox_error *err)
{
	const char *file = url_option(url, "header_file");
	int r = file ? add_header_file(t, file, err) : OUTBOX_OK;

	for (size_t i = 0; !r && i < url->n_options; i++) {
		struct url_option *option = &url->options[i];
		const char *name = option->name + strlen(HEADER_OPTION);

		if (strncmp(option->name, HEADER_OPTION, strlen(HEADER_OPTION)) != 0)
			continue;
		option->used = true;
		r = add_header(t, option->name, name, strlen(name), option->value, err);
	}
	return r;
}

/* ---- how ------------------------------------------------------------------------------------------ */

static int add_limits(struct http_transport *t, struct url *url, int envelope,
		      struct outbox_error *err)
{
	const char *timeout = url_option(url, "timeout");
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	int r;

	t->in_flight = DEFAULT_IN_FLIGHT;
	t->batch = 1;
	t->timeout = DEFAULT_TIMEOUT;
	r = url_number(url, "in_flight", 1, 256, &t->in_flight, err);
	if (!r)
		r = url_number(url, "batch", 1, 1000, &t->batch, err);
	if (r)
		return r;
	if (timeout && (duration_parse(timeout, &t->timeout, &cause) || t->timeout <= 0))
		return outbox_fail(err, OUTBOX_ECONFIG, "option timeout: %s",
				   cause.message[0] ? cause.message : "must be above 0");
	if (t->batch > 1 &&
	    (envelope == OUTBOX_ENVELOPE_CE_BINARY || envelope == OUTBOX_ENVELOPE_NATIVE))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option batch: a batch has structured events; leave the envelope out, "
				   "or leave batch out");
	return url_flag(url, "idempotency_key", &t->idempotency_key, err);
}

int http_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct http_transport *t = (struct http_transport *)broker;
	const char *allow = url_option(url, "allow_private");
	int r = check_query(url->request ? url->request : "", err);

	broker->envelope = OUTBOX_ENVELOPE_CE_STRUCTURED;
	t->unordered = config->unordered;
	t->scratch = (struct buf)BUF_INIT(SCRATCH_MAX);
	if (!r)
		r = make_url(t, url, err);
	if (!r)
		r = add_signer(t, url, err);
	if (!r)
		r = add_token(t, url, err);
	if (!r)
		r = add_headers(t, url, err);
	if (!r)
		r = add_limits(t, url, config->envelope, err);
	if (!r && allow)
		r = guard_allow(&t->guard, allow, err);
	if (!r)
		r = add_proxy(t, url, err);
	return r;
}
