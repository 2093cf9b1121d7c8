/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

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
		/* whoever sends nothing takes no place; whoever sends is read as soon as it is let in */
		setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent, sizeof(silent));
	}
	if (fd < 0 || bind_to(fd, endpoint) || listen(fd, BACKLOG)) {
		int number = errno;

		if (fd >= 0)
			close(fd);
		if (number == EADDRINUSE)
			return outbox_fail_native(err, OUTBOX_ECONN, number,
						  "admin.listen: %s is in use, perhaps by another "
						  "relay; choose another",
						  endpoint->text);
		return outbox_fail_native(err, OUTBOX_ECONFIG, number,
					  "admin.listen: cannot listen on %s (%s)", endpoint->text,
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
