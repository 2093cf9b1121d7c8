/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int socket_wait(int fd, short events, struct outbox_clock *clock, outbox_time deadline,
		short *ret_events)
{
	struct pollfd watched = { .fd = fd, .events = events };
	int n;

	do {
		outbox_time left = deadline - clock->mono(clock);
		outbox_time ms = (left + 999) / OUTBOX_MILLISECONDS;

		n = left > 0 ? poll(&watched, 1, ms < INT_MAX ? (int)ms : INT_MAX) : 0;
	} while (n < 0 && errno == EINTR);
	*ret_events = watched.revents;
	return n;
}

void socket_keep_alive(int fd)
{
	static const int one = 1, idle = 30, interval = 10, count = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static int fail_to_connect(const char *who, int number, struct outbox_error *err)
{
	char text[128];

	return outbox_fail_native(err, OUTBOX_ECONN, number, "%s: cannot connect: %s", who,
				  strerror_r(number, text, sizeof(text)));
}

int socket_await_connection(int fd, const char *who, struct outbox_clock *clock,
			    outbox_time deadline, struct outbox_error *err)
{
	socklen_t size = sizeof(int);
	short events;
	int number = 0, n = socket_wait(fd, POLLOUT, clock, deadline, &events);

	if (n == 0)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: cannot connect: no answer in time",
				   who);
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size) < 0)
		number = errno;
	return number ? fail_to_connect(who, number, err) : OUTBOX_OK;
}

struct connecting {
	const char *who;
	struct outbox_clock *clock;
	int fd; /* once it is connected */
};

static int connect_one(void *context, const struct addrinfo *info, outbox_time until,
		       struct outbox_error *err)
{
	struct connecting *c = context;
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int one = 1;
	int r = OUTBOX_OK;

	if (fd < 0)
		return fail_to_connect(c->who, errno, err);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	socket_keep_alive(fd);
	if (connect(fd, info->ai_addr, info->ai_addrlen) != 0)
		r = errno == EINPROGRESS || errno == EINTR
			    ? socket_await_connection(fd, c->who, c->clock, until, err)
			    : fail_to_connect(c->who, errno, err);
	if (r != OUTBOX_OK)
		close(fd);
	else
		c->fd = fd;
	return r;
}

/* The share of one of so many that are left to try: a silent one does not eat the others' time. */
static outbox_time share(struct outbox_clock *clock, outbox_time deadline, size_t left)
{
	outbox_time now = clock->mono(clock);

	return deadline > now && left > 1 ? now + (deadline - now) / (outbox_time)left : deadline;
}

int socket_try(const struct address *address, const char *who, struct outbox_clock *clock,
	       outbox_time deadline, socket_attempt *attempt, void *context,
	       struct outbox_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct outbox_error why = OUTBOX_ERROR_INIT; /* of one that another makes up for */
	struct addrinfo *list = NULL;
	size_t left = 0;
	char port[16];
	int r;

	snprintf(port, sizeof(port), "%d", address->port);
	r = getaddrinfo(address->host, port, &hints, &list);
	if (r)
		return outbox_fail_native(err, OUTBOX_ECONN, r, "%s: cannot find the host: %s", who,
					  gai_strerror(r));
	for (const struct addrinfo *info = list; info; info = info->ai_next)
		left++;
	r = OUTBOX_ECONN;
	for (const struct addrinfo *info = list; info && r; info = info->ai_next)
		r = attempt(context, info, share(clock, deadline, left--), &why);
	freeaddrinfo(list);
	if (r && err)
		*err = why;
	return r;
}

int socket_connect(const struct address *address, const char *who, struct outbox_clock *clock,
		   outbox_time deadline, int *ret_fd, struct outbox_error *err)
{
	struct connecting connecting = { .who = who, .clock = clock };
	int r = socket_try(address, who, clock, deadline, connect_one, &connecting, err);

	if (!r)
		*ret_fd = connecting.fd;
	return r;
}
