/* SPDX-License-Identifier: Apache-2.0 */
#include "config/listen.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX ((size_t)256 << 10)

static int refuse(struct outbox_error *err, const char *text, const char *remedy)
{
	char shown[80];

	return outbox_fail(err, OUTBOX_EINVAL, "\"%s\" %s", text_shown(shown, sizeof(shown), text),
			   remedy);
}

static int parse_unix(const char *text, struct endpoint *endpoint, struct outbox_error *err)
{
	const char *path = text + strlen("unix:");

	if (!path[0] || strlen(path) >= sizeof(endpoint->address.un.sun_path) ||
	    strlen(text) >= sizeof(endpoint->text))
		return refuse(err, text, "is not a path of at most 107 bytes");
	endpoint->is_unix = endpoint->local = true;
	endpoint->address.un.sun_family = AF_UNIX;
	memcpy(endpoint->address.un.sun_path, path, strlen(path) + 1);
	endpoint->size = sizeof(endpoint->address.un);
	memcpy(endpoint->text, text, strlen(text) + 1);
	return OUTBOX_OK;
}

static bool parse_address(const char *host, struct endpoint *endpoint)
{
	size_t size = strlen(host);
	char inner[INET6_ADDRSTRLEN + 1] = "";

	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &endpoint->address.in.sin_addr) == 1) {
		endpoint->address.in.sin_family = AF_INET;
		endpoint->address.in.sin_port = htons(endpoint->port);
		endpoint->size = sizeof(endpoint->address.in);
		endpoint->local = ntohl(endpoint->address.in.sin_addr.s_addr) >> 24 == 127;
		return true;
	}
	if (host[0] != '[' || host[size - 1] != ']' || size - 2 >= sizeof(inner))
		return false;
	memcpy(inner, host + 1, size - 2);
	if (inet_pton(AF_INET6, inner, &endpoint->address.in6.sin6_addr) != 1)
		return false;
	endpoint->address.in6.sin6_family = AF_INET6;
	endpoint->address.in6.sin6_port = htons(endpoint->port);
	endpoint->size = sizeof(endpoint->address.in6);
	endpoint->local = IN6_IS_ADDR_LOOPBACK(&endpoint->address.in6.sin6_addr);
	return true;
}

int listen_parse(const char *text, struct endpoint *ret_endpoint, struct outbox_error *err)
{
	static const char remedy[] = "is not ADDRESS:PORT; write 127.0.0.1:8040, [::1]:8040 or "
				     "unix:PATH";
	struct endpoint endpoint = { .local = false };
	const char *colon = strrchr(text, ':');
	int64_t port = 0;
	char host[64];
	int r;

	if (strncmp(text, "unix:", 5) == 0) {
		r = parse_unix(text, &endpoint, err);
	} else {
		if (!colon || (size_t)(colon - text) >= sizeof(host) || colon == text)
			return refuse(err, text, remedy);
		memcpy(host, text, (size_t)(colon - text));
		host[colon - text] = '\0';
		if (number_parse("port", colon + 1, 0, 65535, &port, NULL))
			return refuse(err, text, remedy);
		endpoint.port = (uint16_t)port;
		snprintf(endpoint.text, sizeof(endpoint.text), "%s:%d", host, (int)port);
		r = parse_address(host, &endpoint) ? OUTBOX_OK : refuse(err, text, remedy);
	}
	if (r == OUTBOX_OK)
		*ret_endpoint = endpoint;
	return r;
}

int listen_check(const struct endpoint *endpoint, const struct config_admin *config,
		 const char **ret_key, struct outbox_error *err)
{
	*ret_key = config->cert ? "cert" : config->key ? "key" : "listen";
	if (!config->cert != !config->key)
		return outbox_fail(err, OUTBOX_ECONFIG, "is set without admin.%s; TLS needs both",
				   config->cert ? "key" : "cert");
	if (endpoint->is_unix && config->cert)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "a UNIX socket has no TLS; remove one of the two");
	if (!endpoint->local && !config->cert)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s can be reached from other machines, where tokens "
				   "must not travel in the clear; set admin.cert and admin.key, or listen "
				   "on 127.0.0.1 and put a TLS proxy or ssh -L in front",
				   endpoint->text);
	return OUTBOX_OK;
}

int pem_read(const char *path, bool secret, char **ret_text, struct outbox_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat file = { .st_mode = 0 };
	const char *wrong = NULL;
	char *text = NULL;
	ssize_t n;

	if (fd < 0 || fstat(fd, &file) || !S_ISREG(file.st_mode) || (size_t)file.st_size > PEM_MAX)
		wrong = "cannot be read; name a PEM file";
	else if (secret && file.st_mode & 0077)
		wrong = "can be read by others; chmod 600 it";
	if (!wrong) {
		text = calloc(1, (size_t)file.st_size + 1);
		n = text ? read(fd, text, (size_t)file.st_size) : -1;
		if (n != file.st_size)
			wrong = "cannot be read; name a PEM file";
	}
	if (fd >= 0)
		close(fd);
	if (wrong) {
		free(text);
		return outbox_fail(err, OUTBOX_ECONFIG, "%s %s", path, wrong);
	}
	*ret_text = text;
	return OUTBOX_OK;
}
