/* SPDX-License-Identifier: Apache-2.0 */
/* file: on a full disk. By a size limit here, which everybody may set; on a tmpfs in its own test. */

#include "transport_file_place.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <signal.h>
#include <unistd.h>

/* SIGXFSZ keeps its default action, which is to kill: the driver must not let that happen. */
static void no_limit_leaves_half_a_line(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length, total;

	(void)state;
	file_case_begin(&c);
	transport = case_connect(&c);
	case_messages(&c, "a", 0, 5);
	case_publish_acked(&c, transport);
	length = lines_length(file_case_path(&c));
	total = 2 * length;
	for (off_t limit = length; limit < total; limit += 13) {
		case_reset_verdicts(&c);
		limit_size((rlim_t)limit);
		assert_int_equal(transport->ops->publish(transport, &c.batch, soon(), NULL),
				 OUTBOX_EFULL);
		limit_size(RLIM_INFINITY);
		for (size_t i = 0; i < c.batch.count; i++)
			assert_int_equal(c.batch.items[i]->verdict, OUTBOX_VERDICT_UNSET);
		assert_int_equal(lines_length(file_case_path(&c)), length);
		transport->ops->disconnect(transport);
		assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	}
	case_publish_acked(&c, transport);
	case_read_back(&c);
	assert_int_equal(c.arrivals.count, 10);
	assert_int_equal(lines_length(file_case_path(&c)), total);
	transport_close(transport);
	file_case_end(&c);
}

static void signals_are_left_as_they_were(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	sigset_t before, after, pending;

	(void)state;
	file_case_begin(&c);
	transport = case_connect(&c);
	case_messages(&c, "a", 0, 5);
	sigemptyset(&before);
	sigemptyset(&after);
	sigprocmask(SIG_SETMASK, NULL, &before);
	limit_size(100);
	assert_int_equal(transport->ops->publish(transport, &c.batch, soon(), NULL), OUTBOX_EFULL);
	limit_size(RLIM_INFINITY);
	sigprocmask(SIG_SETMASK, NULL, &after);
	sigpending(&pending);
	assert_int_equal(sigismember(&before, SIGXFSZ), sigismember(&after, SIGXFSZ));
	assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
	assert_int_equal(sigismember(&pending, SIGXFSZ), 0);
	transport_close(transport);
	file_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_leaves_half_a_line),
		cmocka_unit_test(signals_are_left_as_they_were),
	};

	return cmocka_run_group_tests_name("transport_file_full", tests, NULL, NULL);
}
