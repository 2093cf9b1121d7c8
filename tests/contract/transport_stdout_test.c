/* SPDX-License-Identifier: Apache-2.0 */
/* stdout: when standard output is a pipe: readers that leave, stop, or are slow. */

#include "transport_case.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_MAX ((size_t)64 << 20)

extern const struct outbox_transport_ops file_transport_ops;

static const char *url(void *state)
{
	(void)state;
	return "stdout:";
}

static const struct transport_fixture fixture = {
	.name = "transport_stdout",
	.ops = &file_transport_ops,
	.url = url,
};

/* Every so many writes are refused, as by a pipe that another process filled meanwhile. */
static unsigned refuse_every, writes;

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	if (refuse_every && ++writes % refuse_every == 0) {
		errno = EAGAIN;
		return -1;
	}
	return __real_write(fd, data, size);
}

/* Standard output is a pipe between begin and end; c.place is not used. */
static int saved_stdout = -1, reader_fd;
static char *collected;
static size_t collected_size;

static void begin(struct transport_case *c)
{
	int fds[2];

	*c = (struct transport_case){ .fixture = &fixture };
	c->arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(c->arena);
	case_new_batch(c);
	collected = malloc(READ_MAX);
	assert_non_null(collected);
	collected_size = 0;
	fflush(stdout);
	saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO);
	close(fds[1]);
	reader_fd = fds[0];
}

/* Also when the test failed: what it prints must not fill the pipe. */
static int restore_stdout(void **state)
{
	(void)state;
	if (saved_stdout >= 0) {
		dup2(saved_stdout, STDOUT_FILENO);
		close(saved_stdout);
	}
	saved_stdout = -1;
	refuse_every = 0;
	return 0;
}

static void end(struct transport_case *c)
{
	restore_stdout(NULL);
	if (reader_fd >= 0)
		close(reader_fd);
	free(collected);
	outbox_arena_free(c->arena);
}

/* The last writer of the pipe leaves, so that its reader sees the end. */
static void hang_up(void)
{
	restore_stdout(NULL);
}

/* Reads until the last writer closes the pipe. */
static void *collect(void *unused)
{
	ssize_t n;

	(void)unused;
	while ((n = read(reader_fd, collected + collected_size, READ_MAX - collected_size)) > 0)
		collected_size += (size_t)n;
	return NULL;
}

/* Lines that are whole; *ret_broken counts the others. */
static size_t whole_lines(size_t *ret_broken)
{
	size_t whole = 0;
	char *line = collected, *newline;

	*ret_broken = 0;
	while ((newline = memchr(line, '\n', collected_size - (size_t)(line - collected)))) {
		json_t *event = json_loadb(line, (size_t)(newline - line), 0, NULL);

		whole += event != NULL;
		*ret_broken += event == NULL;
		json_decref(event);
		line = newline + 1;
	}
	*ret_broken += line != collected + collected_size;
	return whole;
}

static void large_messages(struct transport_case *c, const char *prefix, size_t count)
{
	size_t size = 10000;
	char *text = outbox_arena_alloc(c->arena, size);

	assert_non_null(text);
	memset(text, 'x', size);
	for (size_t i = 0; i < count; i++) {
		struct outbox_message *m = case_message(c, prefix, i);

		m->data = text;
		m->size = size;
		m->content_type = "text/plain";
	}
}

static void a_reader_that_left_is_an_outage(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	sigset_t pending;

	(void)state;
	begin(&c);
	transport = case_connect(&c);
	case_messages(&c, "a", 0, 3);
	close(reader_fd);
	reader_fd = -1;
	/* SIGPIPE has its default action here: to kill. */
	assert_int_equal(transport->ops->publish(transport, &c.batch, soon(), NULL), OUTBOX_ECONN);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
	for (size_t i = 0; i < c.batch.count; i++)
		assert_int_not_equal(c.batch.items[i]->verdict, OUTBOX_ACKED);
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_ECONN);
	transport_close(transport);
	end(&c);
}

static void a_reader_that_stopped_costs_the_deadline_only(void **state)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct transport_case c;
	struct outbox_transport *transport;
	pthread_t reader;
	size_t broken, unknown = 0;

	(void)state;
	begin(&c);
	transport = case_connect(&c);
	large_messages(&c, "a", 50);
	assert_int_equal(transport->ops->publish(transport, &c.batch,
						 clock->mono(clock) + OUTBOX_SECONDS, NULL),
			 OUTBOX_ETIMEDOUT);
	for (size_t i = 0; i < c.batch.count; i++) {
		assert_int_not_equal(c.batch.items[i]->verdict, OUTBOX_ACKED);
		unknown += c.batch.items[i]->verdict == OUTBOX_UNKNOWN;
	}
	/* What is in the pipe may be read; the last ones were never written. */
	assert_in_range(unknown, 1, 49);
	transport->ops->disconnect(transport);

	/* It reads again. The half line ends; what comes then are lines of their own. */
	assert_int_equal(pthread_create(&reader, NULL, collect, NULL), 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_new_batch(&c);
	case_messages(&c, "b", 0, 5);
	case_publish_acked(&c, transport);
	case_publish_acked(&c, transport);
	transport_close(transport);
	hang_up();
	pthread_join(reader, NULL);
	assert_true(whole_lines(&broken) >= 10);
	assert_int_equal(broken, 1);
	assert_non_null(memmem(collected, collected_size, "\n{\"specversion\":\"1.0\",\"id\":\"b-0\"",
			       strlen("\n{\"specversion\":\"1.0\",\"id\":\"b-0\"")));
	end(&c);
}

static void a_slow_reader_gets_everything(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	pthread_t reader;
	size_t broken;

	(void)state;
	begin(&c);
	/* A shell may leave O_NONBLOCK set on what it shares with us. */
	assert_int_equal(fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK), 0);
	refuse_every = 3;
	assert_int_equal(pthread_create(&reader, NULL, collect, NULL), 0);
	transport = case_connect(&c);
	large_messages(&c, "a", 100);
	case_publish_acked(&c, transport);
	transport_close(transport);
	hang_up();
	pthread_join(reader, NULL);
	assert_int_equal(whole_lines(&broken), 100);
	assert_int_equal(broken, 0);
	end(&c);
}

static void *publish_many(void *argument)
{
	struct transport_case *c = argument;
	struct outbox_transport *transport = case_connect(c);

	for (size_t i = 0; i < 20; i++) {
		case_reset_verdicts(c);
		case_publish_acked(c, transport);
	}
	transport_close(transport);
	return NULL;
}

static void workers_do_not_mix_their_lines(void **state)
{
	struct transport_case c, other = { .fixture = &fixture };
	pthread_t reader, worker;
	size_t broken;

	(void)state;
	begin(&c);
	other.arena = outbox_arena_new((size_t)16 << 20);
	assert_non_null(other.arena);
	case_new_batch(&other);
	large_messages(&c, "a", 20);
	large_messages(&other, "b", 20);
	assert_int_equal(pthread_create(&reader, NULL, collect, NULL), 0);
	assert_int_equal(pthread_create(&worker, NULL, publish_many, &other), 0);
	publish_many(&c);
	pthread_join(worker, NULL);
	hang_up();
	pthread_join(reader, NULL);
	assert_int_equal(whole_lines(&broken), 2 * 20 * 20);
	assert_int_equal(broken, 0);
	outbox_arena_free(other.arena);
	end(&c);
}

static void check_says_that_a_pipe_is_no_disk(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	char text[256];

	(void)state;
	begin(&c);
	transport = case_connect(&c);
	assert_int_equal(transport_check(transport, soon(), text, sizeof(text)), 1);
	assert_non_null(strstr(text, "pipe"));
	transport_close(transport);
	end(&c);
}

#define TEST(name) cmocka_unit_test_teardown(name, restore_stdout)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_that_left_is_an_outage),
		TEST(a_reader_that_stopped_costs_the_deadline_only),
		TEST(a_slow_reader_gets_everything),
		TEST(workers_do_not_mix_their_lines),
		TEST(check_says_that_a_pipe_is_no_disk),
	};

	/* As in a program that never thought of it. */
	signal(SIGPIPE, SIG_DFL);
	return cmocka_run_group_tests_name("transport_stdout", tests, NULL, NULL);
}
