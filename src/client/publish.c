/* SPDX-License-Identifier: Apache-2.0 */
#include "client/publish.h"

#include "core/message.h"

struct outbox_message publish_message_at(const struct outbox_message *messages, size_t i)
{
	size_t stride = messages->struct_size ? messages->struct_size : MESSAGE_SIZE_V1;

	return message_view((const struct outbox_message *)((const char *)messages + i * stride));
}

int publish_check(const void *connection, const struct outbox_message *messages, size_t n,
		  unsigned flags, unsigned known, struct outbox_error *err)
{
	if (!connection)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: the database connection is NULL");
	if (!messages && n)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: the messages are NULL");
	if (flags & ~known)
		return outbox_fail(err, OUTBOX_EINVAL, "publish: flags 0x%x are unknown",
				   flags & ~known);
	return OUTBOX_OK;
}

int cancel_check(const void *connection, const char *id, struct outbox_error *err)
{
	if (!connection)
		return outbox_fail(err, OUTBOX_EINVAL, "cancel: the database connection is NULL");
	if (!id || !id[0])
		return outbox_fail(err, OUTBOX_EINVAL, "cancel: the id of a message is missing");
	return OUTBOX_OK;
}

int cancel_no_transaction(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL,
			   "cancel: not in a transaction: a message is cancelled together with your "
			   "rows; BEGIN first");
}

static int check_inbox_text(const char *field, const char *text, size_t max, struct outbox_error *err)
{
	if (!text)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: is missing", field);
	return message_text_check(field, text, max, err);
}

int inbox_check(const void *connection, const char *consumer, const char *id, const bool *ret_first,
		struct outbox_error *err)
{
	int r;

	if (!connection)
		return outbox_fail(err, OUTBOX_EINVAL, "accept: the database connection is NULL");
	if (!ret_first)
		return outbox_fail(err, OUTBOX_EINVAL, "accept: ret_first is NULL");
	r = check_inbox_text("consumer", consumer, OUTBOX_CONSUMER_MAX, err);
	return r ? r : check_inbox_text("id", id, OUTBOX_ID_MAX, err);
}

int inbox_no_transaction(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL,
			   "accept: not in a transaction: the id would be remembered although your work "
			   "may still fail; BEGIN first");
}

int publish_validate(const struct outbox_message *messages, size_t n, struct outbox_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct outbox_message m = publish_message_at(messages, i);
		int r = outbox_message_validate(&m, 0, err);

		if (r != OUTBOX_OK)
			return publish_name_message(n, i, r, err);
	}
	return OUTBOX_OK;
}

int publish_check_autocommit(unsigned flags, struct outbox_error *err)
{
	if (flags & OUTBOX_ALLOW_AUTOCOMMIT)
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_EINVAL,
		"not in a transaction: your rows could be committed without the message, or it without them; BEGIN "
		"first, or set OUTBOX_ALLOW_AUTOCOMMIT");
}

int publish_name_message(size_t n, size_t i, int r, struct outbox_error *err)
{
	if (err && n > 1)
		outbox_wrap(err, "message %zu", i);
	return r;
}
