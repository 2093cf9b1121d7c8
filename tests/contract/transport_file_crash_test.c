/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: several processes append to one file, run out of space and are killed in the middle of it,
 * again and again. Every line is whole, and everything that any of them saw ACKED is there.
 *
 * write() and ftruncate() are wrapped: writes are slow and in small pieces, so that most kills hit an
 * unfinished line; now and then one fails as on a full disk, and its cut is slow, so that somebody
 * else would write in between if they could.
 */

#include "transport_file_place.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITERS 3
#define KILLS 24
#define BATCH 12
#define BATCHES_MAX 2000 /* a writer is killed long before */
#define LARGE 300000     /* more than a chunk */
#define PIECE 16384      /* of a write */
#define FULL_AT 97       /* each of so many writes fails */

/* Shared with the writers: how many batches each writer's life saw acknowledged. */
static _Atomic size_t *acked;

static bool is_writer;
static unsigned writes;

int __real_ftruncate64(int fd, off_t length);
ssize_t __real_write(int fd, const void *data, size_t size);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_ftruncate64(int fd, off_t length);
ssize_t __wrap_write(int fd, const void *data, size_t size);

static void pause_us(long microseconds)
{
	struct timespec pause = { 0, microseconds * 1000 };

	nanosleep(&pause, NULL);
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	if (!is_writer)
		return __real_write(fd, data, size);
	if (++writes % FULL_AT == 0) {
		errno = ENOSPC;
		return -1;
	}
	pause_us(100);
	return __real_write(fd, data, size < PIECE ? size : PIECE);
}

/* Which of the two the driver calls is up to _FILE_OFFSET_BITS. */
int __wrap_ftruncate64(int fd, off_t length)
{
	if (is_writer)
		pause_us(2000);
	return __real_ftruncate64(fd, length);
}

int __wrap_ftruncate(int fd, off_t length)
{
	return __wrap_ftruncate64(fd, length);
}

/* Publish until it is acknowledged, as the engine would. */
static void publish_until_acked(struct transport_case *c, struct outbox_transport *transport)
{
	int r;

	while ((r = transport->ops->publish(transport, &c->batch, soon(), NULL))) {
		if (r != OUTBOX_EFULL)
			_exit(1);
		transport->ops->disconnect(transport);
		if (connect_to(transport, NULL) != OUTBOX_OK)
			_exit(1);
		case_reset_verdicts(c);
	}
	for (size_t i = 0; i < c->batch.count; i++)
		if (c->batch.items[i]->verdict != OUTBOX_ACKED)
			_exit(1);
}

static void write_until_killed(struct transport_case *c, size_t life)
{
	struct outbox_transport *transport = case_connect(c);
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "life%zu", life);
	for (size_t n = 0; n < BATCHES_MAX; n++) {
		outbox_arena_reset(c->arena);
		case_new_batch(c);
		case_messages(c, prefix, n * BATCH, BATCH);
		if (n % 2) {
			char *text = outbox_arena_alloc(c->arena, LARGE);

			memset(text, 'x', LARGE);
			c->messages[BATCH / 2].data = text;
			c->messages[BATCH / 2].size = LARGE;
			c->messages[BATCH / 2].content_type = "text/plain";
		}
		publish_until_acked(c, transport);
		acked[life] = n + 1;
	}
}

static pid_t start(struct transport_case *c, size_t life)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* Whatever becomes of the test, nobody goes on filling the disk. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		is_writer = true;
		writes = (unsigned)life * 31;
		write_until_killed(c, life);
		_exit(1);
	}
	return pid;
}

static void stop(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* It was alive until then: it did not fail on its own. */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct arrival *)a)->id, ((const struct arrival *)b)->id);
}

static void assert_all_acked_arrived(struct transport_case *c)
{
	size_t total = 0;

	case_read_back(c);
	qsort(c->arrivals.items, c->arrivals.count, sizeof(struct arrival), by_id);
	for (size_t life = 0; life < WRITERS + KILLS; life++) {
		for (size_t n = 0; n < acked[life] * BATCH; n++) {
			char id[64];
			struct arrival wanted = { .id = id };

			snprintf(id, sizeof(id), "life%zu-%zu", life, n);
			if (!bsearch(&wanted, c->arrivals.items, c->arrivals.count, sizeof(wanted),
				     by_id))
				fail_msg("%s was ACKED and is not there", id);
			total++;
		}
	}
	assert_true(total > 0);
}

static void killed_writers_leave_whole_lines(void **state)
{
	struct transport_case c;
	pid_t writers[WRITERS];
	size_t life = 0;

	(void)state;
	acked = mmap(NULL, (WRITERS + KILLS) * sizeof(*acked), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(acked != MAP_FAILED);
	file_case_begin(&c);
	for (size_t i = 0; i < WRITERS; i++)
		writers[i] = start(&c, life++);
	for (size_t i = 0; i < KILLS; i++) {
		/* Somewhere else in its batch each time. */
		pause_us((long)(5 + i * 7 % 23) * 1000);
		stop(writers[i % WRITERS]);
		writers[i % WRITERS] = start(&c, life++);
	}
	for (size_t i = 0; i < WRITERS; i++)
		stop(writers[i]);
	/* The last one may have died in a line of its own. */
	transport_close(case_connect(&c));
	assert_all_acked_arrived(&c);
	munmap(acked, (WRITERS + KILLS) * sizeof(*acked));
	file_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(killed_writers_leave_whole_lines) };

	return cmocka_run_group_tests_name("transport_file_crash", tests, NULL, NULL);
}
