/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving while the library hangs (in a name look-up, say): nobody waits for it, and it is destroyed in the end. */
#include "mock.h"

#include <semaphore.h>
#include <stdio.h>

static sem_t let_go, gone;
static bool hangs;

void __real_rd_kafka_destroy_flags(rd_kafka_t *handle, int flags);
void __wrap_rd_kafka_destroy_flags(rd_kafka_t *handle, int flags);

void __wrap_rd_kafka_destroy_flags(rd_kafka_t *handle, int flags)
{
	bool hung = hangs;

	if (hung)
		sem_wait(&let_go);
	__real_rd_kafka_destroy_flags(handle, flags);
	if (hung)
		sem_post(&gone);
}

static void disconnect_does_not_wait_for_ever(void **state)
{
	struct mock *m = *state;
	struct outbox_transport *transport = case_connect(&m->c);

	hangs = true;
	transport->ops->disconnect(
		transport); /* here a driver that waits would end this test by its timeout */
	hangs = false;
	/* The hanging one is left behind; a new connection does not need it. */
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_messages(&m->c, "a", 0, 3);
	case_publish_acked(&m->c, transport);
	transport_close(transport);
	sem_post(&let_go);
	sem_wait(&gone);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOCK_CASE(disconnect_does_not_wait_for_ever),
	};

	sem_init(&let_go, 0, 0);
	sem_init(&gone, 0, 0);
	return cmocka_run_group_tests_name("kafka_mock_leave", tests, NULL, NULL);
}
