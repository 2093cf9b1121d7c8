/* SPDX-License-Identifier: Apache-2.0 */
#include "client/publisher.h"

#include "client/publish.h"

void publisher_init(struct outbox_publisher *publisher, const struct publisher_ops *ops,
		    unsigned flags)
{
	publisher->ops = ops;
	publisher->clock = outbox_clock_system();
	publisher->flags = flags;
	random_init(&publisher->random, random_system_seed());
}

const char *publisher_id(struct outbox_publisher *publisher, const struct outbox_message *message,
			 char room[37])
{
	if (message->id)
		return message->id;
	outbox_uuid(publisher->clock, &publisher->random.base, room);
	return room;
}

int outbox_publisher_publish_batch(struct outbox_publisher *publisher,
				   const struct outbox_message *messages, size_t n,
				   struct outbox_published *ret_published, struct outbox_error *err)
{
	int r;

	if (!publisher)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: the publisher is NULL");
	if (!messages && n)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: the messages are NULL");
	r = publish_validate(messages, n, err);
	return r == OUTBOX_OK && n
		       ? publisher->ops->publish(publisher, messages, n, ret_published, err)
		       : r;
}

int outbox_publisher_publish(struct outbox_publisher *publisher,
			     const struct outbox_message *message,
			     struct outbox_published *ret_published, struct outbox_error *err)
{
	return outbox_publisher_publish_batch(publisher, message, 1, ret_published, err);
}

int outbox_publisher_flush(struct outbox_publisher *publisher, struct outbox_error *err)
{
	if (!publisher)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: the publisher is NULL");
	return publisher->ops->flush(publisher, err);
}

void outbox_publisher_free(struct outbox_publisher *publisher)
{
	if (publisher)
		publisher->ops->free(publisher);
}
