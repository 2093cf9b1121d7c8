/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a condition means, in one table; docs/transports/amqp1.md shows it. EAUTH and EFULL are promises that nothing was
 * accepted, and a condition that stands in a rejection is one: the message was not taken.
 */

#include "transport/amqp1/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include <proton/condition.h>

#define BUSY (10 * OUTBOX_SECONDS) /* what Azure asks for */
#define PLACE OUTBOX_RETRY, OUTBOX_EAUTH, OUTBOX_EAUTH, 0
#define FULL OUTBOX_RETRY, OUTBOX_EFULL, OUTBOX_EFULL, 0
#define AGAIN OUTBOX_RETRY, 0, OUTBOX_ECONN, 0
#define NEVER OUTBOX_REJECTED, 0, OUTBOX_ECONN, 0

const struct amqp1_condition amqp1_conditions[] = {
	/* ---- the address, or what we may do there */
	{ "amqp:not-found", PLACE, "create it, or correct the target's address" },
	{ "amqp:resource-deleted", PLACE, "create it again, or correct the target's address" },
	{ "amqp:unauthorized-access", PLACE, "check user, password and permissions" },
	{ "amqp:not-allowed", PLACE, NULL },
	{ "com.microsoft:auth-failed", PLACE, "check the policy and its key" },
	{ "com.microsoft:entity-disabled", PLACE, "enable it" },
	/* ---- room */
	{ "amqp:resource-limit-exceeded", FULL, "make room, or raise the limit" },
	{ "com.microsoft:server-busy", OUTBOX_RETRY, OUTBOX_EFULL, OUTBOX_EFULL, BUSY, NULL },
	/* ---- the message */
	{ "amqp:link:message-size-exceeded", NEVER, NULL },
	{ "amqp:frame-size-too-small", NEVER, NULL },
	{ "amqp:decode-error", NEVER, NULL },
	{ "amqp:invalid-field", NEVER, NULL },
	{ "amqp:not-implemented", NEVER, NULL },
	{ "com.microsoft:argument-error", NEVER, NULL },
	{ "com.microsoft:argument-out-of-range", NEVER, NULL },
	/* ---- the moment */
	{ "amqp:internal-error", AGAIN, NULL },
	{ "amqp:illegal-state", AGAIN, NULL },
	{ "amqp:precondition-failed", AGAIN, NULL },
	{ "amqp:resource-locked", AGAIN, NULL },
	{ "amqp:connection:forced", AGAIN, NULL },
	{ "amqp:connection:redirect", AGAIN, NULL },
	{ "amqp:link:detach-forced", AGAIN, NULL },
	{ "amqp:link:redirect", AGAIN, NULL },
	{ "amqp:link:stolen", AGAIN, NULL },
	{ "amqp:link:transfer-limit-exceeded", AGAIN, NULL },
	{ "com.microsoft:timeout", AGAIN, NULL },
	{ "com.microsoft:operation-cancelled", AGAIN, NULL },
	/* ---- everything else, and no condition at all */
	{ NULL, AGAIN, NULL },
};

const struct amqp1_condition amqp1_no_credit = { "no credit", FULL, NULL };

const struct amqp1_condition *amqp1_condition_find(const char *name)
{
	const struct amqp1_condition *row = amqp1_conditions;

	while (row->name && (!name || strcmp(row->name, name) != 0))
		row++;
	return row;
}

const struct amqp1_condition *amqp1_condition_read(pn_condition_t *condition, char *out, size_t size)
{
	const char *name = pn_condition_get_name(condition);
	const char *text = pn_condition_get_description(condition);
	const struct amqp1_condition *row = amqp1_condition_find(name);
	char shown[AMQP1_WHY_MAX / 2];

	snprintf(shown, sizeof(shown), "%s%s%s", name ? name : "without a reason",
		 text && text[0] ? ": " : "", text ? text : "");
	text_clean(shown);
	snprintf(out, size, "%s%s%s", shown, row->note ? "; " : "", row->note ? row->note : "");
	return row;
}
