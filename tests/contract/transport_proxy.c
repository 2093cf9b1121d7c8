/* SPDX-License-Identifier: Apache-2.0 */
#include "transport_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 64
#define TICK_MS 5

struct pair {
	int client, broker; /* -1: free */
};

struct proxy {
	pthread_t thread;
	pthread_mutex_t mutex; /* guards all below */
	struct pair pairs[PAIRS_MAX];
	int place;    /* bound and never listening: nobody else gets the port while we are down */
	int listener; /* -1: down */
	int port, upstream;
	bool ending, touched, stalled, mute;
	size_t sent, rounds;
	size_t cut_at; /* SIZE_MAX: never */
};

static void die(const char *what)
{
	perror(what);
	abort();
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void hang_up(int fd)
{
	struct linger reset = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

static void end_pair(struct pair *pair)
{
	if (pair->client >= 0)
		hang_up(pair->client);
	if (pair->broker >= 0)
		close(pair->broker);
	pair->client = pair->broker = -1;
}

/* A socket at the proxy's port; the first one chooses it. */
static int bind_place(struct proxy *p)
{
	struct sockaddr_in address = loopback(p->port);
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, size) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		die("proxy: bind");
	p->port = ntohs(address.sin_port);
	return fd;
}

static void go_up(struct proxy *p)
{
	if (p->listener >= 0)
		return;
	p->listener = bind_place(p);
	if (listen(p->listener, 64))
		die("proxy: listen");
	p->mute = p->stalled = false;
	p->cut_at = SIZE_MAX;
}

static void go_down(struct proxy *p)
{
	if (p->listener >= 0) {
		/* The thread may be polling it, which keeps a closed socket listening. */
		shutdown(p->listener, SHUT_RDWR);
		close(p->listener);
	}
	p->listener = -1;
	for (size_t i = 0; i < PAIRS_MAX; i++)
		end_pair(&p->pairs[i]);
}

static void admit(struct proxy *p)
{
	struct sockaddr_in address = loopback(p->upstream);
	int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
	int broker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	p->touched |= client >= 0;
	for (size_t i = 0; i < PAIRS_MAX && client >= 0; i++) {
		if (p->pairs[i].client >= 0)
			continue;
		if (connect(broker, (struct sockaddr *)&address, sizeof(address)))
			break;
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		p->pairs[i] = (struct pair){ .client = client, .broker = broker };
		return;
	}
	if (client >= 0)
		hang_up(client);
	close(broker);
}

static bool send_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* The end of it. The broker may still answer what it got, and that may still come through. */
static void cut(struct proxy *p)
{
	char data[16384];

	usleep(20000);
	for (size_t i = 0; i < PAIRS_MAX && !p->mute; i++) {
		ssize_t n = p->pairs[i].broker < 0
				    ? 0
				    : recv(p->pairs[i].broker, data, sizeof(data), MSG_DONTWAIT);

		if (n > 0)
			send_all(p->pairs[i].client, data, (size_t)n);
	}
	usleep(p->mute ? 0 : 5000);
	go_down(p);
}

/* What was polled may be another connection by now, with the same number. */
static bool nothing_yet(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void pass_down(struct proxy *p, struct pair *pair)
{
	char data[16384];
	ssize_t n = recv(pair->broker, data, sizeof(data), MSG_DONTWAIT);

	if (nothing_yet(n))
		return;
	if (n <= 0 || (!p->mute && !send_all(pair->client, data, (size_t)n)))
		end_pair(pair);
}

static void pass_up(struct proxy *p, struct pair *pair)
{
	char data[16384];
	ssize_t n = recv(pair->client, data, sizeof(data), MSG_DONTWAIT);
	size_t size = n > 0 ? (size_t)n : 0;
	bool over = p->cut_at != SIZE_MAX && p->sent + size >= p->cut_at;

	if (nothing_yet(n))
		return;
	if (over)
		size = p->cut_at > p->sent ? p->cut_at - p->sent : 0;
	if (n <= 0 || !send_all(pair->broker, data, size)) {
		end_pair(pair);
		return;
	}
	p->sent += size;
	if (over)
		cut(p);
}

static nfds_t gather(struct proxy *p, struct pollfd *fds)
{
	nfds_t n = 0;

	if (p->listener >= 0)
		fds[n++] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
	for (size_t i = 0; i < PAIRS_MAX && !p->stalled; i++) {
		if (p->pairs[i].client < 0)
			continue;
		fds[n++] = (struct pollfd){ .fd = p->pairs[i].client, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = p->pairs[i].broker, .events = POLLIN };
	}
	return n;
}

static void serve(struct proxy *p, const struct pollfd *fds, nfds_t n)
{
	for (nfds_t k = 0; k < n; k++) {
		if (!fds[k].revents)
			continue;
		if (fds[k].fd == p->listener) {
			admit(p);
			continue;
		}
		for (size_t i = 0; i < PAIRS_MAX; i++) {
			if (p->pairs[i].client == fds[k].fd)
				pass_up(p, &p->pairs[i]);
			else if (p->pairs[i].broker == fds[k].fd)
				pass_down(p, &p->pairs[i]);
		}
	}
}

static void *run(void *argument)
{
	struct proxy *p = argument;
	struct pollfd fds[2 * PAIRS_MAX + 1];

	for (bool ending = false; !ending;) {
		nfds_t n;

		pthread_mutex_lock(&p->mutex);
		n = gather(p, fds);
		pthread_mutex_unlock(&p->mutex);
		poll(fds, n, TICK_MS);
		pthread_mutex_lock(&p->mutex);
		serve(p, fds, n);
		p->rounds++;
		ending = p->ending;
		pthread_mutex_unlock(&p->mutex);
	}
	return NULL;
}

struct proxy *proxy_start(int upstream_port)
{
	return proxy_start_at(0, upstream_port);
}

struct proxy *proxy_start_at(int port, int upstream_port)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		die("proxy");
	p->port = port;
	p->upstream = upstream_port;
	p->place = bind_place(p);
	p->listener = -1;
	for (size_t i = 0; i < PAIRS_MAX; i++)
		p->pairs[i] = (struct pair){ -1, -1 };
	go_up(p);
	pthread_mutex_init(&p->mutex, NULL);
	if (pthread_create(&p->thread, NULL, run, p))
		die("proxy: thread");
	return p;
}

int proxy_port(const struct proxy *proxy)
{
	return proxy->port;
}

void proxy_stop(struct proxy *p)
{
	pthread_mutex_lock(&p->mutex);
	p->ending = true;
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	go_down(p);
	close(p->place);
	pthread_mutex_destroy(&p->mutex);
	free(p);
}

void proxy_down(struct proxy *p, bool down)
{
	size_t round;

	pthread_mutex_lock(&p->mutex);
	if (down)
		go_down(p);
	else
		go_up(p);
	/* What the thread polls is closed only when it comes back. */
	for (round = p->rounds; down && p->rounds == round;) {
		pthread_mutex_unlock(&p->mutex);
		usleep(500);
		pthread_mutex_lock(&p->mutex);
	}
	pthread_mutex_unlock(&p->mutex);
}

void proxy_cut_after(struct proxy *p, size_t bytes, bool answers)
{
	pthread_mutex_lock(&p->mutex);
	p->cut_at = p->sent + bytes;
	p->mute = !answers;
	pthread_mutex_unlock(&p->mutex);
}

void proxy_stall(struct proxy *p, bool stalled)
{
	pthread_mutex_lock(&p->mutex);
	p->stalled = stalled;
	pthread_mutex_unlock(&p->mutex);
}

bool proxy_touched(struct proxy *p)
{
	bool touched;

	pthread_mutex_lock(&p->mutex);
	touched = p->touched;
	pthread_mutex_unlock(&p->mutex);
	return touched;
}

size_t proxy_sent(struct proxy *p)
{
	size_t sent;

	pthread_mutex_lock(&p->mutex);
	sent = p->sent;
	pthread_mutex_unlock(&p->mutex);
	return sent;
}
