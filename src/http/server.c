/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a running server, and its end. What it does meanwhile is in loop.c. */
#include "http/server.h"

#include "base/thread.h"
#include "http/internal.h"
#include "http/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)256 << 10)

struct daemon *admin_daemon(const struct admin *admin)
{
	return admin->daemon;
}

struct watch *admin_watch(const struct admin *admin)
{
	return admin->watch;
}

const char *admin_address(const struct admin *admin)
{
	return admin->address;
}

static struct admin *admin_free(struct admin *admin)
{
	if (!admin)
		return NULL;
	if (admin->http)
		MHD_stop_daemon(admin->http);
	if (admin->listener >= 0)
		close(admin->listener);
	if (admin->waker >= 0)
		close(admin->waker);
	if (admin->key)
		explicit_bzero(admin->key, strlen(admin->key));
	free(admin->key);
	free(admin->cert);
	free(admin->tokens_path);
	tokens_free(admin->tokens);
	pthread_mutex_destroy(&admin->tokens_lock);
	outbox_arena_free(admin->arena);
	free(admin);
	return NULL;
}

DEFINE_CLEANUP(struct admin *, admin_free)

static int read_tls(struct admin *admin, const struct config_admin *config, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (!config->cert)
		return OUTBOX_OK;
	admin->tls = true;
	r = pem_read(config->cert, false, &admin->cert, err);
	if (r)
		return outbox_wrap(err, "admin.cert");
	r = pem_read(config->key, true, &admin->key, err);
	return r ? outbox_wrap(err, "admin.key") : r;
}

static int read_tokens(struct admin *admin, const char *given, struct outbox_error *err)
{
	char path[TOKENS_PATH_MAX];
	bool made = false;
	int r = OUTBOX_OK;

	if (!given) {
		r = tokens_default_path(path, err);
		given = path;
	}
	if (r)
		return r;
	admin->tokens_path = strdup(given);
	if (!admin->tokens_path)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = tokens_open(admin->tokens_path, &admin->tokens, &made, err);
	if (r)
		return r;
	log_event(&admin->log, EVENT_ADMIN_TOKENS, NULL, "tokens are in %s%s", admin->tokens_path,
		  made ? ", made just now" : "");
	return OUTBOX_OK;
}

int admin_reload(struct admin *admin, struct outbox_error *err)
{
	struct tokens *new = NULL, *old;
	bool made = false;
	int r = tokens_open(admin->tokens_path, &new, &made, err);

	if (r)
		return r;
	pthread_mutex_lock(&admin->tokens_lock);
	old = admin->tokens;
	admin->tokens = new;
	pthread_mutex_unlock(&admin->tokens_lock);
	tokens_free(old);
	return OUTBOX_OK;
}

static struct admin *make(const struct admin_options *options)
{
	struct admin *admin = calloc(1, sizeof(*admin));

	if (!admin)
		return NULL;
	admin->daemon = options->daemon;
	admin->watch = options->watch;
	admin->log = options->log;
	admin->clock = options->clock ? options->clock : outbox_clock_system();
	admin->open_metrics = options->config->open_metrics;
	admin->listener = admin->waker = -1;
	pthread_mutex_init(&admin->tokens_lock, NULL);
	random_init(&admin->random, random_system_seed());
	connections_init(&admin->connections);
	admin->arena = outbox_arena_new(ARENA_MAX);
	return admin->arena ? admin : admin_free(admin);
}

static int prepare(struct admin *admin, const struct config_admin *config, struct outbox_error *err)
{
	const char *key = "listen";
	int r = listen_parse(config->listen, &admin->endpoint, err);

	if (r == OUTBOX_OK)
		r = listen_check(&admin->endpoint, config, &key, err);
	if (r)
		return outbox_wrap(err, "admin.%s", key);
	r = read_tls(admin, config, err);
	if (r == OUTBOX_OK)
		r = read_tokens(admin, config->tokens, err);
	if (r == OUTBOX_OK)
		r = listen_open(&admin->endpoint, &admin->listener, err);
	if (r == OUTBOX_OK)
		r = hosts_make(&admin->endpoint, config, admin->arena, &admin->hosts, err);
	if (r)
		return r;
	snprintf(admin->address, sizeof(admin->address), "%s%s",
		 admin->endpoint.is_unix ? ""
		 : admin->tls            ? "https://"
					 : "http://",
		 admin->endpoint.text);
	admin->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (admin->waker < 0)
		return outbox_fail_native(err, OUTBOX_ENOMEM, errno, "admin: no descriptor is left");
	return serve_make(admin, err);
}

int admin_start(const struct admin_options *options, struct admin **ret_admin,
		struct outbox_error *err)
{
	_cleanup_(admin_freep) struct admin *admin = make(options);
	int r;

	if (!admin)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = prepare(admin, options->config, err);
	if (r == OUTBOX_OK)
		r = workers_start(admin, &admin->workers, err);
	if (r)
		return r;
	if (thread_start(&admin->thread, serve_run, admin)) {
		workers_stop(admin->workers);
		workers_free(admin->workers);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	log_event(&admin->log, EVENT_ADMIN_LISTEN, NULL, "listening on %s", admin->address);
	*ret_admin = admin;
	admin = NULL;
	return OUTBOX_OK;
}

struct admin *admin_stop(struct admin *admin)
{
	if (!admin)
		return NULL;
	/* those that wait for a handler are answered first, so that no connection is left suspended */
	workers_stop(admin->workers);
	atomic_store(&admin->stop, true);
	serve_wake(admin);
	pthread_join(admin->thread, NULL);
	/* until now somebody may have asked for them */
	workers_free(admin->workers);
	if (admin->endpoint.is_unix)
		unlink(admin->endpoint.address.un.sun_path);
	return admin_free(admin);
}
