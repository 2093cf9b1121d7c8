/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What MQTT's reason codes mean, in one table; docs/transports/mqtt.md shows the same.
 *
 * `verdict` is for the message that PUBACK, PUBREC or PUBCOMP answers so; `place` is what it becomes when all messages
 * have one topic, where every one of them would be refused; `status` is for CONNACK and DISCONNECT.
 */

#include "transport/mqtt/driver.h"

#include <stdio.h>

#define ONE_CLIENT "another client has this client id; leave client_id out, or give each its own"

const struct mqtt_code mqtt_codes[] = {
	{ 0x00, "Success", OUTBOX_ACKED, 0, OUTBOX_ECONN, NULL },
	{ 0x10, "No matching subscribers", OUTBOX_ACKED, 0, OUTBOX_ECONN, NULL },
	{ 0x80, "Unspecified error", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x81, "Malformed packet", OUTBOX_RETRY, 0, OUTBOX_EPROTO, NULL },
	{ 0x82, "Protocol error", OUTBOX_RETRY, 0, OUTBOX_EPROTO, NULL },
	{ 0x83, "Implementation specific error", OUTBOX_RETRY, 0, OUTBOX_ECONN,
	  "see the broker's log" },
	{ 0x84, "Unsupported protocol version", OUTBOX_RETRY, 0, OUTBOX_ECONFIG,
	  "MQTT 3.1.1 is spoken with version=3.1.1" },
	{ 0x85, "Client identifier not valid", OUTBOX_RETRY, 0, OUTBOX_ECONFIG,
	  "set client_id= to one that the broker takes" },
	{ 0x86, "Bad user name or password", OUTBOX_RETRY, 0, OUTBOX_EAUTH,
	  "correct user and password" },
	{ 0x87, "Not authorized", OUTBOX_RETRY, OUTBOX_EAUTH, OUTBOX_EAUTH,
	  "check user and password, and let the user publish to its topics" },
	{ 0x88, "Server unavailable", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x89, "Server busy", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x8a, "Banned", OUTBOX_RETRY, 0, OUTBOX_EAUTH, NULL },
	{ 0x8b, "Server shutting down", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x8c, "Bad authentication method", OUTBOX_RETRY, 0, OUTBOX_ECONFIG, NULL },
	{ 0x8d, "Keep alive timeout", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x8e, "Session taken over", OUTBOX_RETRY, 0, OUTBOX_ECONN, ONE_CLIENT },
	{ 0x90, "Topic name invalid", OUTBOX_REJECTED, 0, OUTBOX_ECONFIG, NULL },
	{ 0x91, "Packet identifier in use", OUTBOX_RETRY, 0, OUTBOX_EPROTO, NULL },
	{ 0x92, "Packet identifier not found", OUTBOX_UNKNOWN, 0, OUTBOX_EPROTO, NULL },
	{ 0x93, "Receive Maximum exceeded", OUTBOX_RETRY, 0, OUTBOX_EPROTO, NULL },
	{ 0x94, "Topic Alias invalid", OUTBOX_RETRY, 0, OUTBOX_EPROTO, NULL },
	{ 0x95, "Packet too large", OUTBOX_REJECTED, 0, OUTBOX_ECONN,
	  "raise the broker's limit, or set the target's max_size below it" },
	{ 0x96, "Message rate too high", OUTBOX_RETRY, 0, OUTBOX_ECONN,
	  "set the target's rate below the broker's" },
	{ 0x97, "Quota exceeded", OUTBOX_RETRY, OUTBOX_EFULL, OUTBOX_EFULL, NULL },
	{ 0x98, "Administrative action", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x99, "Payload format invalid", OUTBOX_REJECTED, 0, OUTBOX_ECONN, NULL },
	{ 0x9a, "Retain not supported", OUTBOX_RETRY, 0, OUTBOX_ECONFIG, "leave retain=yes out" },
	{ 0x9b, "QoS not supported", OUTBOX_RETRY, 0, OUTBOX_ECONFIG, "lower qos=" },
	{ 0x9c, "Use another server", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0x9d, "Server moved", OUTBOX_RETRY, 0, OUTBOX_ECONFIG, "change the host in the URL" },
	{ 0x9f, "Connection rate exceeded", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ 0xa0, "Maximum connect time", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
	{ -1, "Unknown reason code", OUTBOX_RETRY, 0, OUTBOX_ECONN, NULL },
};

const struct mqtt_code *mqtt_code_find(int code)
{
	const struct mqtt_code *row = mqtt_codes;

	while (row->code >= 0 && row->code != code)
		row++;
	return row;
}

const char *mqtt_code_text(const struct mqtt_code *row, int code, char *out, size_t size)
{
	snprintf(out, size, "%s (0x%02x)%s%s", row->name, (unsigned)code, row->remedy ? "; " : "",
		 row->remedy ? row->remedy : "");
	return out;
}
