/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_MAX ((size_t)64 << 20)

struct fake {
	int waits;
	struct fake_script script;
	pthread_t thread;
	int listener, port;
	_Atomic int client; /* -1: none */
	atomic_bool ending;
	/* of the connection */
	size_t adds;
	char *in;
	size_t in_size;
	bool answered;
};

enum word { PING, AUTH, CLIENT, SELECT, INFO, WAIT, EVAL, XADD, WORDS };

static const char *const words[WORDS] = {
	"$4\r\nPING\r\n", "$4\r\nAUTH\r\n", "$6\r\nCLIENT\r\n", "$6\r\nSELECT\r\n",
	"$4\r\nINFO\r\n", "$4\r\nWAIT\r\n", "$4\r\nEVAL\r\n",   "$4\r\nXADD\r\n",
};

static void die(const char *what)
{
	perror(what);
	abort();
}

static bool send_reply(struct fake *f, const char *text, size_t size)
{
	while (size) {
		ssize_t n = send(f->client, text, size, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		text += n;
		size -= (size_t)n;
	}
	return true;
}

static bool say_text(struct fake *f, const char *text)
{
	f->answered = true;
	return send_reply(f, text, strlen(text));
}

static bool trickle(struct fake *f)
{
	bool ok = say_text(f, "$500000\r\n");

	while (ok && !f->ending) {
		usleep(20000);
		ok = send_reply(f, "x", 1);
	}
	return false;
}

static bool pad(struct fake *f)
{
	char *text = malloc(f->script.padding + 16);
	bool ok;

	if (!text)
		die("fake");
	memcpy(text, "-ERR ", 5);
	memset(text + 5, 'x', f->script.padding);
	memcpy(text + 5 + f->script.padding, "\r\n", 3);
	ok = say_text(f, text);
	free(text);
	return ok;
}

static bool answer_add(struct fake *f)
{
	size_t i = f->adds++;

	if (f->script.trickle)
		return trickle(f);
	if (f->script.padding)
		return pad(f);
	while (i && (i >= FAKE_ADDS || !f->script.adds[i]))
		i--;
	return say_text(f, f->script.adds[i] ? f->script.adds[i] : "$3\r\n1-0\r\n");
}

static bool answer(struct fake *f, enum word word)
{
	const struct fake_script *s = &f->script;

	switch (word) {
	case PING:
		return say_text(f, s->ping ? s->ping : "+PONG\r\n");
	case AUTH:
		return say_text(f, s->auth ? s->auth : "+OK\r\n");
	case INFO:
		return say_text(f, s->info ? s->info : "$13\r\nrole:master\r\n\r\n");
	case WAIT:
		if (f->waits++ == 0) /* at connect, before anything was added */
			return say_text(f, s->first_wait ? s->first_wait : ":99\r\n");
		return say_text(f, s->wait ? s->wait : ":0\r\n");
	case EVAL:
		return say_text(f, s->eval ? s->eval : "-NOPERM this command is not for you\r\n");
	case XADD:
		return answer_add(f);
	default:
		return say_text(f, "+OK\r\n");
	}
}

/* The word of a command stands behind the number of its words; another one is what a script is to do. */
static bool begins_command(const struct fake *f, const char *at)
{
	const char *line = at - f->in >= 2 ? at - 2 : f->in;

	while (line > f->in && line[-1] != '\n')
		line--;
	return *line == '*';
}

/* Answer the commands that came whole enough to be known. */
static bool answer_all(struct fake *f)
{
	for (;;) {
		char *first = NULL;
		int which = 0;
		bool command;
		size_t used;

		for (int i = 0; i < WORDS; i++) {
			char *at = memmem(f->in, f->in_size, words[i], strlen(words[i]));

			if (at && (!first || at < first)) {
				first = at;
				which = i;
			}
		}
		if (!first)
			return true;
		command = begins_command(f, first);
		used = (size_t)(first - f->in) + strlen(words[which]);
		memmove(f->in, f->in + used, f->in_size - used);
		f->in_size -= used;
		if (!command)
			continue;
		if (!answer(f, (enum word)which) || (f->script.hang_up && f->answered))
			return false;
	}
}

static void serve(struct fake *f)
{
	ssize_t n;

	f->adds = f->in_size = 0;
	f->answered = false;
	if (f->script.greeting && !send_reply(f, f->script.greeting, strlen(f->script.greeting)))
		return;
	while ((n = recv(f->client, f->in + f->in_size, 65536, 0)) > 0) {
		f->in_size += (size_t)n;
		if (!answer_all(f) || f->in_size + 65536 > IN_MAX)
			return;
	}
}

static void *run(void *argument)
{
	struct fake *f = argument;

	while (!f->ending) {
		int client = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;

		if (client < 0)
			break;
		/* What was said has arrived when send_reply() returns. */
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		f->client = client;
		if (!f->ending)
			serve(f);
		f->client = -1;
		close(client);
	}
	return NULL;
}

struct fake *fake_start(const struct fake_script *script)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	struct fake *f = calloc(1, sizeof(*f));

	if (!f || !(f->in = malloc(IN_MAX)))
		die("fake");
	f->script = *script;
	f->client = -1;
	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(f->listener, (struct sockaddr *)&address, size) || listen(f->listener, 8) ||
	    getsockname(f->listener, (struct sockaddr *)&address, &size))
		die("fake: listen");
	f->port = ntohs(address.sin_port);
	if (pthread_create(&f->thread, NULL, run, f))
		die("fake: thread");
	return f;
}

int fake_port(const struct fake *fake)
{
	return fake->port;
}

void fake_say(struct fake *f, const char *text)
{
	send_reply(f, text, strlen(text));
}

void fake_stop(struct fake *f)
{
	int client;

	f->ending = true;
	shutdown(f->listener, SHUT_RDWR);
	client = f->client;
	if (client >= 0)
		shutdown(client, SHUT_RDWR);
	pthread_join(f->thread, NULL);
	close(f->listener);
	free(f->in);
	free(f);
}
