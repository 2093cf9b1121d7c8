/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/listen.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 512
#define SILENT_SECONDS 5
#define UNREAD_BYTES (64 << 10)
#define SOCKET_MODE 0660

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
		return outbox_fail(err, OUTBOX_ECONFIG, "is set without admin.%s; TLS wants both",
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

static bool is_stale(const struct endpoint *endpoint)
{
	struct stat file;
	int fd, r;

	if (lstat(endpoint->address.un.sun_path, &file) || !S_ISSOCK(file.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	r = connect(fd, &endpoint->address.any, endpoint->size);
	r = r ? errno : 0;
	close(fd);
	return r == ECONNREFUSED;
}

static int bind_to(int fd, const struct endpoint *endpoint)
{
	mode_t mask;
	int r;

	if (!endpoint->is_unix)
		return bind(fd, &endpoint->address.any, endpoint->size);
	if (is_stale(endpoint))
		unlink(endpoint->address.un.sun_path);
	/* before it exists, so that it is never open to others; threads are started later */
	mask = umask(0777 & ~SOCKET_MODE);
	r = bind(fd, &endpoint->address.any, endpoint->size);
	umask(mask);
	return r;
}

static void learn_port(int fd, struct endpoint *endpoint)
{
	char *colon = strrchr(endpoint->text, ':');

	if (endpoint->is_unix || endpoint->port || !colon ||
	    getsockname(fd, &endpoint->address.any, &endpoint->size))
		return;
	endpoint->port =
		ntohs(endpoint->address.any.sa_family == AF_INET ? endpoint->address.in.sin_port
								 : endpoint->address.in6.sin6_port);
	snprintf(colon + 1, sizeof(endpoint->text) - (size_t)(colon + 1 - endpoint->text), "%u",
		 (unsigned)endpoint->port);
}

int listen_open(struct endpoint *endpoint, int *ret_fd, struct outbox_error *err)
{
	const int yes = 1, silent = SILENT_SECONDS, unread = UNREAD_BYTES;
	int fd = socket(endpoint->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	/* inherited by each connection: who does not read does not make us write megabytes */
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	if (fd >= 0 && !endpoint->is_unix) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		/* who says nothing takes no place, and who asks is read as soon as he is let in */
		setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent, sizeof(silent));
	}
	if (fd < 0 || bind_to(fd, endpoint) || listen(fd, BACKLOG)) {
		int number = errno;

		if (fd >= 0)
			close(fd);
		if (number == EADDRINUSE)
			return outbox_fail_native(err, OUTBOX_ECONN, number,
						  "admin.listen: %s is in use, by another relay "
						  "perhaps; choose another",
						  endpoint->text);
		return outbox_fail_native(err, OUTBOX_ECONFIG, number,
					  "admin.listen: %s cannot be listened on (%s)",
					  endpoint->text,
					  number == EACCES          ? "no permission"
					  : number == EADDRNOTAVAIL ? "not an address of this machine"
								    : "is the path right?");
	}
	learn_port(fd, endpoint);
	*ret_fd = fd;
	return OUTBOX_OK;
}

struct host_list {
	struct outbox_arena *arena;
	const char **items;
	size_t count, max;
	bool failed;
};

static void add_host(struct host_list *list, const char *name, unsigned port)
{
	char text[300];

	if (port)
		snprintf(text, sizeof(text), "%s:%u", name, port);
	else
		snprintf(text, sizeof(text), "%s", name);
	if (list->count == list->max)
		return;
	list->items[list->count] = outbox_arena_text(list->arena, text);
	list->failed |= !list->items[list->count++];
}

/* A name with a port stands for itself: a proxy in front has one of its own. */
static bool has_port(const char *name)
{
	const char *end = strrchr(name, ']');

	return strchr(end ? end : name, ':') != NULL;
}

static void add_own(struct host_list *list, const struct endpoint *endpoint, bool tls,
		    const char *name)
{
	if (!endpoint->is_unix)
		add_host(list, name, endpoint->port);
	if (endpoint->is_unix || endpoint->port == (tls ? 443 : 80))
		add_host(list, name, 0);
}

/* Without a port: ours, or the one of a proxy in front that nobody writes. */
static void add_named(struct host_list *list, const struct endpoint *endpoint, const char *name)
{
	add_host(list, name, 0);
	if (!endpoint->is_unix && !has_port(name))
		add_host(list, name, endpoint->port);
}

int hosts_make(const struct endpoint *endpoint, const struct config_admin *config,
	       struct outbox_arena *arena, struct hosts *ret_hosts, struct outbox_error *err)
{
	static const char *const own[] = { "127.0.0.1", "localhost", "[::1]" };
	struct host_list list = { .arena = arena, .max = 2 * (config->hosts.count + 4) };
	bool tls = config->cert != NULL;
	char literal[128];

	list.items = outbox_arena_alloc(arena, list.max * sizeof(*list.items));
	if (!list.items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; endpoint->local && i < ARRAY_SIZE(own); i++)
		add_own(&list, endpoint, tls, own[i]);
	if (!endpoint->local) {
		snprintf(literal, sizeof(literal), "%.*s",
			 (int)(strrchr(endpoint->text, ':') - endpoint->text), endpoint->text);
		add_own(&list, endpoint, tls, literal);
	}
	ret_hosts->named = list.count;
	for (size_t i = 0; i < config->hosts.count; i++)
		add_named(&list, endpoint, config->hosts.items[i]);
	if (list.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	ret_hosts->items = list.items;
	ret_hosts->count = list.count;
	return OUTBOX_OK;
}
