/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that serves all sockets. libmicrohttpd reads and writes HTTP; who may connect, how many, and how long each
 * phase may take is decided here, between its runs, because its own timeout begins again with every byte and its
 * own limit keeps newcomers out instead of those that hold a place for nothing.
 */
#include "base/thread.h"
#include "http/internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK (500 * OUTBOX_MILLISECONDS)
#define STREAM_TICK OUTBOX_SECONDS
#define ACCEPT_MAX 4 /* in one go, so that those they displace are gone before the next */
#define PAUSE (200 * OUTBOX_MILLISECONDS)
#define WRITE_STALL 10 /* seconds without a byte taken */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Our own decoding, of what we look at: this one leaves everything as it was sent. */
static size_t leave_escaped(void *context, struct MHD_Connection *http, char *text)
{
	(void)context;
	(void)http;
	return strlen(text);
}

static void *request_began(void *context, const char *target, struct MHD_Connection *http)
{
	(void)http;
	return request_new(context, target);
}

static void request_ended(void *context, struct MHD_Connection *http, void **state,
			  enum MHD_RequestTerminationCode why)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	(void)context;
	(void)why;
	*state = request_free(*state);
	if (info && info->socket_context)
		connection_enter(info->socket_context, PHASE_IDLE, mono_now());
}

static void connection_changed(void *context, struct MHD_Connection *http, void **socket_context,
			       enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_server *server = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED && info) {
		*socket_context = connections_find(&server->connections, info->connect_fd);
	} else if (*socket_context) {
		connections_remove(&server->connections, *socket_context);
		*socket_context = NULL;
	}
}

int loop_make(struct http_server *server, struct outbox_error *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem items[] = {
		{ MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)POOL_BYTES, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, WRITE_STALL, NULL },
		{ MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL },
		{ MHD_OPTION_STRICT_FOR_CLIENT, !framing_is_needed(), NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (server->tls) {
		flags |= MHD_USE_TLS;
		items[5] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, server->cert };
		items[6] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, server->key };
		items[7] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
						    (void *)TLS_PRIORITIES };
	}
	server->http = MHD_start_daemon(flags, 0, NULL, NULL, serve, server, MHD_OPTION_ARRAY,
					items, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, server,
					MHD_OPTION_URI_LOG_CALLBACK, request_began, server,
					MHD_OPTION_NOTIFY_COMPLETED, request_ended, server,
					MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
					MHD_OPTION_END);
	if (server->http)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONFIG,
			   server->tls
				   ? "admin.cert and admin.key: not a PEM certificate with its key"
				   : "admin: the HTTP server cannot be started");
}

/* Let newcomers in. False: no descriptor is left, so it is better to wait a little. */
static bool accept_newcomers(struct http_server *server, outbox_time now)
{
	for (int i = 0; i < ACCEPT_MAX; i++) {
		struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
		socklen_t size = sizeof(address);
		int fd = accept4(server->listener, (struct sockaddr *)&address, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
			       errno != ENOMEM;
		if (!connections_add(&server->connections, fd, (struct sockaddr *)&address, now)) {
			close(fd);
			continue;
		}
		if (MHD_add_connection(server->http, fd, (struct sockaddr *)&address, size) !=
		    MHD_YES) {
			struct connection *left = connections_find(&server->connections, fd);

			/* it has closed the descriptor */
			if (left)
				connections_remove(&server->connections, left);
		}
	}
	return true;
}

static int wait_time(struct http_server *server, outbox_time paused)
{
	MHD_UNSIGNED_LONG_LONG wanted;
	outbox_time wait = server->connections.count || server->streams ? TICK : OUTBOX_NEVER;

	if (paused && paused < wait)
		wait = paused;
	if (MHD_get_timeout(server->http, &wanted) == MHD_YES &&
	    (outbox_time)wanted * OUTBOX_MILLISECONDS < wait)
		wait = (outbox_time)wanted * OUTBOX_MILLISECONDS;
	return wait == OUTBOX_NEVER ? -1 : (int)((wait + 999) / OUTBOX_MILLISECONDS);
}

static void end_serving(struct http_server *server)
{
	streams_wake(server);
	/* what was resumed is taken up again by a run, which a stop would not do */
	for (int i = 0; i < 3; i++)
		MHD_run(server->http);
	MHD_stop_daemon(server->http);
	server->http = NULL;
}

void loop_wake(struct http_server *server)
{
	while (eventfd_write(server->waker, 1) < 0 && errno == EINTR)
		;
}

void *loop_run(void *argument)
{
	struct http_server *server = argument;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd polled[] = { { .fd = server->waker, .events = POLLIN },
				   { .fd = info ? info->epoll_fd : -1, .events = POLLIN },
				   { .fd = server->listener, .events = POLLIN } };
	outbox_time reaped = 0, ticked = 0, paused = 0;
	eventfd_t woken;

	thread_step_back();
	while (!atomic_load(&server->stop)) {
		outbox_time now;

		polled[2].fd = paused ? -1 : server->listener;
		poll(polled, 3, wait_time(server, paused));
		if (polled[0].revents)
			(void)eventfd_read(server->waker, &woken);
		now = mono_now();
		paused = accept_newcomers(server, now) ? 0 : PAUSE;
		MHD_run(server->http);
		if (now - reaped >= TICK) {
			connections_reap(&server->connections, now);
			reaped = now;
		}
		if (now - ticked >= STREAM_TICK) {
			streams_tick(server, now);
			ticked = now;
		}
	}
	end_serving(server);
	return NULL;
}
