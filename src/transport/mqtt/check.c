/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acknowledgement is worth here. A client cannot ask a broker whether it writes to disk and how much it keeps for
 * a subscriber that is away; only which broker it is, if it tells ($SYS/broker/version).
 */

#include "transport/mqtt/driver.h"

#include "base/text.h"
#include "base/thread.h"

#include <stdio.h>

#define VERSION_TOPIC "$SYS/broker/version"

/*
 * A retained message follows the answer to its subscription. The second subscription is only asked for to have something
 * behind it: when that is answered, the version has come, or will not.
 */
static int ask_version(struct mqtt_transport *t, outbox_time deadline, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	t->answer = (struct mqtt_answer){ 0 };
	for (int n = 1; n <= 2 && r == OUTBOX_OK && t->answer.code < MQTT_REFUSED; n++) {
		int rc = mosquitto_subscribe(t->client, NULL, VERSION_TOPIC, 0);

		if (rc != MOSQ_ERR_SUCCESS)
			return mqtt_client_fail(t, rc, err);
		while (r == OUTBOX_OK && t->answer.subscribed < n)
			r = mqtt_client_turn(t, true, deadline, err);
	}
	return r;
}

static void judge_version(struct findings *f, const struct mqtt_transport *t)
{
	if (!t->v5)
		findings_add(f, FINDING_WARNING,
			     "MQTT 3.1.1 has no reason codes: what the broker refuses (size, topic, quota) "
			     "is acknowledged and gone; leave version=3.1.1 out if it speaks MQTT 5");
	if (t->retain)
		findings_add(f, FINDING_NOTE,
			     "retain=yes: a topic keeps only its last message for later subscribers");
}

static void judge_broker(struct findings *f, const struct mqtt_transport *t)
{
	const char *version = t->answer.version;
	char shown[100];

	text_shown(shown, sizeof(shown), version[0] ? version : "it does not say which one");
	findings_add(f, FINDING_NOTE,
		     "acknowledged when the broker has it (%s), which does not tell whether it is on disk: for "
		     "mosquitto set persistence, autosave_interval, and max_queued_messages, beyond which "
		     "messages for an absent subscriber are dropped after their acknowledgement",
		     shown);
	findings_add(f, FINDING_NOTE, "without a subscriber it is acknowledged and gone%s",
		     t->v5 ? " (reason code 0x10)" : "");
}

int mqtt_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct mqtt_transport *t = mqtt_downcast(transport);
	struct findings f = FINDINGS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct held_signals signals;
	int r;

	signals_hold(&signals);
	r = broker_ready(&t->broker, t->client, deadline, &err);
	if (r == OUTBOX_OK) {
		r = ask_version(t, deadline, &err);
		if (r != OUTBOX_OK)
			mqtt_client_drop(t);
	}
	signals_release(&signals);
	if (r == OUTBOX_OK) {
		judge_version(&f, t);
		judge_broker(&f, t);
	}
	return findings_finish(&f, r, &err, text, size);
}
