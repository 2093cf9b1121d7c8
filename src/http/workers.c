/* SPDX-License-Identifier: Apache-2.0 */
#include "http/workers.h"

#include "base/thread.h"
#include "base/wait.h"
#include "http/internal.h"

#include <stdlib.h>

struct workers {
	struct waiting waiting; /* guards the queue */
	struct request *queue[WORKERS_QUEUE];
	size_t first, queued;
	bool stop;
	pthread_t threads[WORKERS];
	size_t count;
};

static struct request *take_request(struct workers *workers)
{
	struct request *request = workers->queue[workers->first];

	if (!workers->queued)
		return NULL;
	workers->first = (workers->first + 1) % WORKERS_QUEUE;
	workers->queued--;
	return request;
}

/* After this the request belongs to the serving thread again. */
static void give_request_back(struct request *request)
{
	struct MHD_Connection *http = request->http;
	struct http_server *server = request->server;

	MHD_resume_connection(http);
	loop_wake(server); /* libmicrohttpd does not, when somebody else polls for it */
}

static void *run_worker(void *argument)
{
	struct workers *workers = argument;

	thread_step_back();
	waiting_lock(&workers->waiting);
	while (!workers->stop) {
		struct request *request = take_request(workers);

		if (!request) {
			waiting_wait(&workers->waiting, OUTBOX_DAYS);
			continue;
		}
		waiting_unlock(&workers->waiting);
		request_handle(request);
		give_request_back(request);
		waiting_lock(&workers->waiting);
	}
	waiting_unlock(&workers->waiting);
	return NULL;
}

bool workers_give(struct workers *workers, struct request *request)
{
	bool taken;

	waiting_lock(&workers->waiting);
	taken = !workers->stop && workers->queued < WORKERS_QUEUE;
	if (taken) {
		workers->queue[(workers->first + workers->queued++) % WORKERS_QUEUE] = request;
		waiting_ring(&workers->waiting);
	}
	waiting_unlock(&workers->waiting);
	return taken;
}

int workers_start(struct workers **ret_workers, struct outbox_error *err)
{
	struct workers *workers = calloc(1, sizeof(*workers));

	if (!workers || waiting_init(&workers->waiting, err)) {
		free(workers);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
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

	waiting_lock(&workers->waiting);
	workers->stop = true;
	waiting_ring(&workers->waiting);
	waiting_unlock(&workers->waiting);
	for (size_t i = 0; i < workers->count; i++)
		pthread_join(workers->threads[i], NULL);
	/* nobody adds to it any more */
	while ((request = take_request(workers))) {
		request->response.retry_after = 5;
		request_refuse(request, 503, "busy", "the server is shutting down");
		request->step = STEP_DONE;
		give_request_back(request);
	}
}

struct workers *workers_free(struct workers *workers)
{
	if (!workers)
		return NULL;
	waiting_deinit(&workers->waiting);
	free(workers);
	return NULL;
}
