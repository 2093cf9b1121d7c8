/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/place.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_MAX 64

/* What of a URL's options says where messages go, in the order in which it is shown. */
static const char *const where[] = { "exchange", "queue", "routing_key", "stream", "topic" };

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "mq:5672" is "mq". A colon inside an address of IPv6 has a bracket behind it. */
static void trim_port(char *host, int usual)
{
	char *colon = strrchr(host, ':'), port[12];

	snprintf(port, sizeof(port), "%d", usual);
	if (colon && !strchr(colon, ']') && strcmp(colon + 1, port) == 0)
		*colon = '\0';
}

static size_t split_hosts(char *hosts, int usual_port, char *list[HOSTS_MAX])
{
	char *rest = NULL;
	size_t n = 0;

	for (char *host = strtok_r(hosts, ",", &rest); host && n < HOSTS_MAX;
	     host = strtok_r(NULL, ",", &rest)) {
		trim_port(host, usual_port);
		list[n++] = host;
	}
	return n;
}

/* A list of hosts may come in any order and case, and with the usual port or without. */
static void add_hosts(struct buf *out, char *hosts, int usual_port)
{
	char *list[HOSTS_MAX];
	size_t n;

	for (char *c = hosts; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	n = split_hosts(hosts, usual_port, list);
	if (n)
		qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(out, ',');
		url_escape(out, list[i], ":[]");
	}
}

/* Without what says nothing: "./a" and "a//./b". Not "..", which may lead elsewhere behind a link. */
static void trim_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		size_t n = strcspn(from, "/");
		bool said = n > 0 && !(n == 1 && *from == '.');

		if (said) {
			memmove(to, from, n);
			to += n;
		}
		from += n;
		if (*from == '/' && (said || from == path))
			*to++ = '/';
		from += *from == '/';
	}
	*to = '\0';
}

static void add_path(struct buf *out, const struct url *url)
{
	char folder[PATH_MAX];

	if (strcmp(url->scheme, "file") == 0)
		trim_path(url->path);
	if (strcmp(url->scheme, "file") == 0 && url->path[0] != '/' &&
	    getcwd(folder, sizeof(folder))) {
		url_escape(out, folder, "/");
		buf_char(out, '/');
	}
	url_escape(out, url->path, "/{}");
}

static void add_options(struct buf *out, struct url *url)
{
	char between = '?';

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		const char *value = url_option(url, where[i]);

		if (!value)
			continue;
		buf_printf(out, "%c%s=", between, where[i]);
		url_escape(out, value, "{}");
		between = '&';
	}
}

bool place_of(const char *text, char out[OUTBOX_PLACE_MAX])
{
	_cleanup_(buf_deinit) struct buf place = BUF_INIT((size_t)256 << 10);
	_cleanup_(url_deinit) struct url url = { 0 };

	if (url_parse(text, &url, NULL))
		return false;
	buf_printf(&place, "%s:%s", url.scheme, url.has_authority ? "//" : "");
	if (url.host)
		add_hosts(&place, url.host, url_usual_port(url.scheme));
	add_path(&place, &url);
	add_options(&place, &url);
	if (place.failed)
		return false;
	if (place.size < OUTBOX_PLACE_MAX)
		memcpy(out, buf_str(&place), place.size + 1);
	else
		snprintf(out, OUTBOX_PLACE_MAX, "%.200s...%016llx", buf_str(&place),
			 (unsigned long long)text_hash(buf_str(&place)));
	return true;
}
