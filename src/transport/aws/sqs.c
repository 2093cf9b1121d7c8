/* SPDX-License-Identifier: Apache-2.0 */
/* What SQS speaks: the AWS JSON protocol 1.0. */

#include "transport/aws/driver.h"

#include "base/text.h"
#include "core/json.h"
#include "core/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_place(struct aws_transport *t, const char *account, const char *name,
		     struct outbox_error *err)
{
	if (asprintf(&t->place, "%s%s/%s", t->url, account, name) >= 0)
		return OUTBOX_OK;
	t->place = NULL;
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- requests --------------------------------------------------------------------------------------- */

static void put_begin(const struct aws_transport *t, struct buf *out)
{
	json_append_member(out, '{', "QueueUrl", t->place);
	buf_text(out, ",\"Entries\":[");
}

static void put_entry(struct buf *out, const struct aws_entry *entry)
{
	buf_printf(out, "%s{\"Id\":\"%zu\",\"MessageBody\":", entry->id ? "," : "", entry->id);
	json_append_string(out, entry->body, entry->size);
	buf_text(out, ",\"MessageAttributes\":");
	for (size_t i = 0; i < entry->n_attributes; i++) {
		const struct outbox_header *attribute = &entry->attributes[i];

		buf_char(out, i ? ',' : '{');
		json_append_string(out, attribute->name, strlen(attribute->name));
		buf_text(out, ":{\"DataType\":\"String\"");
		json_append_member(out, ',', "StringValue", attribute->value);
		buf_char(out, '}');
	}
	buf_char(out, '}');
	if (entry->group) {
		json_append_member(out, ',', "MessageGroupId", entry->group);
		json_append_member(out, ',', "MessageDeduplicationId", entry->duplicate);
	}
	buf_char(out, '}');
}

static void put_end(struct buf *out)
{
	buf_text(out, "]}");
}

/* ---- answers ---------------------------------------------------------------------------------------- */

static bool is_json(const char *body, size_t size)
{
	return json_text_check(body, size, NULL) == OUTBOX_OK;
}

/* False: the object has no such member. */
static bool find_member(const char *object, size_t size, const char *name,
			struct json_piece *ret_value)
{
	struct json_members members;
	struct json_piece found;

	if (!json_members_begin(&members, object, size))
		return false;
	while (json_members_next(&members, &found, ret_value))
		if (found.size == strlen(name) + 2 &&
		    strncmp(found.at + 1, name, found.size - 2) == 0)
			return true;
	return false;
}

/* A string, cut to size. False: it has none of this name. */
static bool read_text(const char *object, size_t size, const char *name, char *out, size_t out_size)
{
	struct json_piece value;
	char *text;
	bool read;

	if (!find_member(object, size, name, &value) || value.at[0] != '"')
		return false;
	text = malloc(value.size);
	read = text && !json_string_read(&value, text);
	if (read)
		aws_text_keep(out, out_size, text);
	free(text);
	return read;
}

static void read_entries(const char *body, size_t size, const char *name, bool done,
			 struct aws_result results[AWS_BATCH_MAX])
{
	struct json_piece list, entry, fault;
	struct json_members elements;

	if (!find_member(body, size, name, &list) ||
	    !json_elements_begin(&elements, list.at, list.size))
		return;
	while (json_elements_next(&elements, &entry)) {
		struct aws_result *result;
		char id[8] = "";

		read_text(entry.at, entry.size, "Id", id, sizeof(id));
		if (strlen(id) != 1 || id[0] < '0' || id[0] > '9')
			continue;
		result = &results[id[0] - '0'];
		result->state = done ? AWS_DONE : AWS_FAILED;
		read_text(entry.at, entry.size, "Code", result->code, sizeof(result->code));
		read_text(entry.at, entry.size, "Message", result->text, sizeof(result->text));
		result->our_fault = find_member(entry.at, entry.size, "SenderFault", &fault) &&
				    fault.at[0] == 't';
	}
}

static bool read_results(const char *body, size_t size, struct aws_result results[AWS_BATCH_MAX])
{
	struct json_piece list;

	if (!is_json(body, size) || (!find_member(body, size, "Successful", &list) &&
				     !find_member(body, size, "Failed", &list)))
		return false;
	read_entries(body, size, "Successful", true, results);
	read_entries(body, size, "Failed", false, results);
	return true;
}

static bool read_error(const char *body, size_t size, struct aws_result *ret_error)
{
	if (!is_json(body, size) ||
	    !read_text(body, size, "__type", ret_error->code, sizeof(ret_error->code)))
		return false;
	if (!read_text(body, size, "message", ret_error->text, sizeof(ret_error->text)))
		read_text(body, size, "Message", ret_error->text, sizeof(ret_error->text));
	return true;
}

/* ---- what an acknowledgement is worth --------------------------------------------------------------- */

static void put_check(const struct aws_transport *t, struct buf *out)
{
	json_append_member(out, '{', "QueueUrl", t->place);
	buf_text(out, ",\"AttributeNames\":[\"All\"]}");
}

static bool read_attribute(const char *body, size_t size, const char *name, char *out,
			   size_t out_size)
{
	struct json_piece attributes;

	return is_json(body, size) && find_member(body, size, "Attributes", &attributes) &&
	       read_text(attributes.at, attributes.size, name, out, out_size);
}

static void judge(const struct aws_transport *t, const char *body, size_t size,
		  struct findings *findings)
{
	char text[400];

	if (!t->fifo)
		findings_add(findings, t->unordered ? FINDING_OK : FINDING_WARNING,
			     "a standard queue keeps no order and may deliver twice%s",
			     t->unordered
				     ? ""
				     : "; use a FIFO queue, or say that this target needs no order");
	else
		findings_add(
			findings, FINDING_OK,
			"FIFO: the order of a key is kept, and a repeat within 5 minutes is dropped");
	if (!read_attribute(body, size, "RedrivePolicy", text, sizeof(text)))
		findings_add(findings, FINDING_NOTE,
			     "no dead-letter queue: what its consumers cannot handle comes again until it "
			     "expires");
}

const struct aws_service aws_sqs = {
	.name = "sqs",
	.content_type = "application/x-amz-json-1.0",
	.target = "AmazonSQS.SendMessageBatch",
	.set_place = set_place,
	.put_begin = put_begin,
	.put_entry = put_entry,
	.put_end = put_end,
	.read_results = read_results,
	.read_error = read_error,
	.check_target = "AmazonSQS.GetQueueAttributes",
	.put_check = put_check,
	.read_attribute = read_attribute,
	.judge = judge,
};
