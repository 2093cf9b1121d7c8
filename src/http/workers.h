/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_WORKERS_H
#define HTTP_WORKERS_H

/*
 * The threads that run what may wait, for a store above all. There are two, so no number of clients opens more than
 * two connections to a store at a time, and a queue of a few: whoever comes when it is full is asked to try again.
 */

#include <outbox/error.h>

#include <stdbool.h>

struct request;
struct workers;

#define WORKERS 2
#define WORKERS_QUEUE 16

int workers_start(struct workers **ret_workers, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* What is queued is refused; what runs is waited for; what comes later is not taken. */
void workers_stop(struct workers *workers);
/* Stopped, and nobody gives any more. NULL is legal; returns NULL. */
struct workers *workers_free(struct workers *workers);

/* The request's connection must be suspended; it is resumed when the answer is there. False: the queue is full. */
bool workers_give(struct workers *workers, struct request *request);

#endif
