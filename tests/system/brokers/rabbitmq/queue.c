/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <amqp_tcp_socket.h>
#include <cmocka.h>

static void must(amqp_rpc_reply_t reply, const char *what)
{
	if (reply.reply_type != AMQP_RESPONSE_NORMAL)
		fail_msg("rabbitmq: %s: %s", what, amqp_error_string2(reply.library_error));
}

amqp_connection_state_t queue_connect(int port)
{
	amqp_connection_state_t c = amqp_new_connection();

	assert_int_equal(amqp_socket_open(amqp_tcp_socket_new(c), "127.0.0.1", port), AMQP_STATUS_OK);
	must(amqp_login(c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
	amqp_channel_open(c, 1);
	must(amqp_get_rpc_reply(c), "channel");
	return c;
}

void queue_disconnect(amqp_connection_state_t c)
{
	amqp_connection_close(c, AMQP_REPLY_SUCCESS);
	amqp_destroy_connection(c);
}

void queue_make(amqp_connection_state_t c, const char *name)
{
	amqp_bytes_t bytes = amqp_cstring_bytes(name);

	amqp_exchange_declare(c, 1, bytes, amqp_cstring_bytes("topic"), 0, 1, 0, 0, amqp_empty_table);
	must(amqp_get_rpc_reply(c), "exchange");
	amqp_queue_declare(c, 1, bytes, 0, 1, 0, 0, amqp_empty_table);
	must(amqp_get_rpc_reply(c), "queue");
	amqp_queue_bind(c, 1, bytes, bytes, amqp_cstring_bytes("#"), amqp_empty_table);
	must(amqp_get_rpc_reply(c), "bind");
}

void queue_remove(amqp_connection_state_t c, const char *name)
{
	amqp_queue_delete(c, 1, amqp_cstring_bytes(name), 0, 0);
	must(amqp_get_rpc_reply(c), "delete");
	amqp_exchange_delete(c, 1, amqp_cstring_bytes(name), 0);
	must(amqp_get_rpc_reply(c), "delete");
}

bool queue_take(amqp_connection_state_t c, const char *name, amqp_message_t *ret_message)
{
	amqp_rpc_reply_t reply = amqp_basic_get(c, 1, amqp_cstring_bytes(name), 1);

	must(reply, "get");
	if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD)
		return false;
	must(amqp_read_message(c, 1, ret_message, 0), "read");
	amqp_maybe_release_buffers(c);
	return true;
}
