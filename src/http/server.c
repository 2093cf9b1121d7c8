/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a running server, and its end. What it does meanwhile is in loop.c. */
#include "http/server.h"

#include "base/thread.h"
#include "http/internal.h"
#include "http/workers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)256 << 10)

static struct http_server *http_server_free(struct http_server *server)
{
	if (!server)
		return NULL;
	if (server->http)
		MHD_stop_daemon(server->http);
	if (server->listener >= 0)
		close(server->listener);
	if (server->waker >= 0)
		close(server->waker);
	if (server->key)
		explicit_bzero(server->key, strlen(server->key));
	free(server->key);
	free(server->cert);
	free(server->tokens_path);
	access_tokens_free(server->tokens);
	pthread_mutex_destroy(&server->tokens_lock);
	outbox_arena_free(server->arena);
	free(server);
	return NULL;
}

DEFINE_CLEANUP(struct http_server *, http_server_free)

static int read_tls(struct http_server *server, const struct config_admin *config,
		    struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (!config->cert)
		return OUTBOX_OK;
	server->tls = true;
	r = pem_read(config->cert, false, &server->cert, err);
	if (r)
		return outbox_wrap(err, "admin.cert");
	r = pem_read(config->key, true, &server->key, err);
	return r ? outbox_wrap(err, "admin.key") : r;
}

static int read_tokens(struct http_server *server, const char *given, struct outbox_error *err)
{
	char path[TOKENS_PATH_MAX];
	bool made = false;
	int r = OUTBOX_OK;

	if (!given) {
		r = access_tokens_default_path(path, err);
		given = path;
	}
	if (r)
		return r;
	server->tokens_path = strdup(given);
	if (!server->tokens_path)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = access_tokens_open(server->tokens_path, &server->tokens, &made, err);
	if (r)
		return r;
	journal(EVENT_ADMIN_TOKENS, NULL, "tokens are in %s%s", server->tokens_path,
		made ? ", created just now" : "");
	return OUTBOX_OK;
}

int http_server_reload(struct http_server *server, struct outbox_error *err)
{
	struct access_tokens *new = NULL, *old;
	bool made = false;
	int r = access_tokens_open(server->tokens_path, &new, &made, err);

	if (r)
		return r;
	pthread_mutex_lock(&server->tokens_lock);
	old = server->tokens;
	server->tokens = new;
	pthread_mutex_unlock(&server->tokens_lock);
	access_tokens_free(old);
	return OUTBOX_OK;
}

static struct http_server *make_server(struct daemon *daemon, struct sampler *sampler)
{
	struct http_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->daemon = daemon;
	server->sampler = sampler;
	server->listener = server->waker = -1;
	pthread_mutex_init(&server->tokens_lock, NULL);
	random_init(&server->random, random_system_seed());
	connections_init(&server->connections);
	server->arena = outbox_arena_new(ARENA_MAX);
	return server->arena ? server : http_server_free(server);
}

static int prepare_server(struct http_server *server, const struct config_admin *config,
			  struct outbox_error *err)
{
	const char *key = "listen";
	int r;

	server->open_metrics = config->open_metrics;
	r = listen_parse(config->listen, &server->endpoint, err);
	if (r == OUTBOX_OK)
		r = listen_check(&server->endpoint, config, &key, err);
	if (r)
		return outbox_wrap(err, "admin.%s", key);
	r = read_tls(server, config, err);
	if (r == OUTBOX_OK)
		r = read_tokens(server, config->tokens, err);
	if (r == OUTBOX_OK)
		r = listen_open(&server->endpoint, &server->listener, err);
	if (r == OUTBOX_OK)
		r = hosts_make(&server->endpoint, config, server->arena, &server->hosts, err);
	if (r)
		return r;
	snprintf(server->address, sizeof(server->address), "%s%s",
		 server->endpoint.is_unix ? ""
		 : server->tls            ? "https://"
					  : "http://",
		 server->endpoint.text);
	server->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->waker < 0)
		return outbox_fail_native(err, OUTBOX_ENOMEM, errno,
					  "admin: out of file descriptors");
	return loop_make(server, err);
}

int http_server_start(const struct config_admin *config, struct daemon *daemon,
		      struct sampler *sampler, struct http_server **ret_server,
		      struct outbox_error *err)
{
	_cleanup_(http_server_freep) struct http_server *server = make_server(daemon, sampler);
	int r;

	if (!server)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = prepare_server(server, config, err);
	if (r == OUTBOX_OK)
		r = workers_start(&server->workers, err);
	if (r)
		return r;
	if (thread_start(&server->thread, loop_run, server)) {
		workers_stop(server->workers);
		workers_free(server->workers);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	journal(EVENT_ADMIN_LISTEN, NULL, "listening on %s", server->address);
	*ret_server = server;
	server = NULL;
	return OUTBOX_OK;
}

struct http_server *http_server_stop(struct http_server *server)
{
	if (!server)
		return NULL;
	/* those that wait for a handler are answered first, so that no connection is left suspended */
	workers_stop(server->workers);
	atomic_store(&server->stop, true);
	loop_wake(server);
	pthread_join(server->thread, NULL);
	/* until now somebody may have asked for them */
	workers_free(server->workers);
	if (server->endpoint.is_unix)
		unlink(server->endpoint.address.un.sun_path);
	return http_server_free(server);
}
