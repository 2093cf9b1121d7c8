/* SPDX-License-Identifier: Apache-2.0 */
#include "http/workers.h"

#include "base/thread.h"
#include "http/internal.h"
#include "http/loop.h"

#include <stdlib.h>

struct workers {
	struct http_server *server;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct request *first, **last;
	size_t queued;
	bool stop;
	pthread_t threads[WORKERS];
	size_t count;
};

static struct request *take_request(struct workers *workers)
{
	struct request *request = workers->first;

	if (!request)
		return NULL;
	workers->first = request->next;
	if (!workers->first)
		workers->last = &workers->first;
	workers->queued--;
	return request;
}

/* After this the request belongs to the serving thread again. */
static void give_request_back(struct request *request)
{
	struct MHD_Connection *http = request->http;
	struct http_server *server = request->server;

	MHD_resume_connection(http);
	serve_wake(server); /* libmicrohttpd does not, when somebody else polls for it */
}

static void *run_worker(void *argument)
{
	struct workers *workers = argument;

	thread_step_back();
	pthread_mutex_lock(&workers->lock);
	for (;;) {
		struct request *request = workers->stop ? NULL : take_request(workers);

		if (workers->stop)
			break;
		if (!request) {
			pthread_cond_wait(&workers->more, &workers->lock);
			continue;
		}
		pthread_mutex_unlock(&workers->lock);
		request_handle(request);
		give_request_back(request);
		pthread_mutex_lock(&workers->lock);
	}
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

bool workers_give(struct workers *workers, struct request *request)
{
	bool taken;

	pthread_mutex_lock(&workers->lock);
	taken = !workers->stop && workers->queued < WORKERS_QUEUE;
	if (taken) {
		request->next = NULL;
		*workers->last = request;
		workers->last = &request->next;
		workers->queued++;
		pthread_cond_signal(&workers->more);
	}
	pthread_mutex_unlock(&workers->lock);
	return taken;
}

int workers_start(struct http_server *server, struct workers **ret_workers, struct outbox_error *err)
{
	struct workers *workers = calloc(1, sizeof(*workers));

	if (!workers)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	workers->server = server;
	workers->last = &workers->first;
	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->more, NULL);
	for (; workers->count < WORKERS; workers->count++)
		if (thread_start(&workers->threads[workers->count], run_worker, workers)) {
			workers_stop(workers);
			workers_free(workers);
			return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
		}
	*ret_workers = workers;
	return OUTBOX_OK;
}

void workers_stop(struct workers *workers)
{
	struct request *request;

	pthread_mutex_lock(&workers->lock);
	workers->stop = true;
	pthread_cond_broadcast(&workers->more);
	pthread_mutex_unlock(&workers->lock);
	for (size_t i = 0; i < workers->count; i++)
		pthread_join(workers->threads[i], NULL);
	/* nobody adds to it any more */
	while ((request = take_request(workers))) {
		request->response.retry_after = 5;
		request_refuse(request, 503, "busy", "the server ends");
		request->step = STEP_DONE;
		give_request_back(request);
	}
}

struct workers *workers_free(struct workers *workers)
{
	if (!workers)
		return NULL;
	pthread_cond_destroy(&workers->more);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
	return NULL;
}
