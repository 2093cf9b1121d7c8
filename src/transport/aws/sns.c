/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SNS speaks: forms as questions, XML as answers. Of the XML only elements are read that have no attributes, and in
 * texts a "<" is always escaped, so looking for tags is enough.
 */

#include "transport/aws/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES "&PublishBatchRequestEntries.member."

static int set_place(struct aws_transport *t, const char *account, const char *name,
		     struct outbox_error *err)
{
	const char *partition = strncmp(t->region, "cn-", 3) == 0       ? "aws-cn"
				: strncmp(t->region, "us-gov-", 7) == 0 ? "aws-us-gov"
									: "aws";

	if (asprintf(&t->place, "arn:%s:sns:%s:%s:%s", partition, t->region, account, name) >= 0)
		return OUTBOX_OK;
	t->place = NULL;
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- requests --------------------------------------------------------------------------------------- */

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~", c));
}

static void put_escaped(struct buf *out, const char *text, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		char escape[3] = { '%', digits[c >> 4], digits[c & 15] };

		if (is_plain(c))
			buf_char(out, (char)c);
		else
			buf_append(out, escape, sizeof(escape));
	}
}

static void put_field(struct buf *out, size_t entry, const char *name, const char *value, size_t size)
{
	buf_printf(out, ENTRIES "%zu.%s=", entry + 1, name);
	put_escaped(out, value, size);
}

static void put_begin(const struct aws_transport *t, struct buf *out)
{
	buf_text(out, "Action=PublishBatch&Version=2010-03-31&TopicArn=");
	put_escaped(out, t->place, strlen(t->place));
}

static void put_entry(struct buf *out, const struct aws_entry *entry)
{
	char name[80];

	buf_printf(out, ENTRIES "%zu.Id=%zu", entry->id + 1, entry->id);
	put_field(out, entry->id, "Message", entry->body, entry->size);
	for (size_t i = 0; i < entry->n_attributes; i++) {
		const struct outbox_header *attribute = &entry->attributes[i];

		snprintf(name, sizeof(name), "MessageAttributes.entry.%zu.Name", i + 1);
		put_field(out, entry->id, name, attribute->name, strlen(attribute->name));
		snprintf(name, sizeof(name), "MessageAttributes.entry.%zu.Value.DataType", i + 1);
		put_field(out, entry->id, name, "String", strlen("String"));
		snprintf(name, sizeof(name), "MessageAttributes.entry.%zu.Value.StringValue", i + 1);
		put_field(out, entry->id, name, attribute->value, strlen(attribute->value));
	}
	if (!entry->group)
		return;
	put_field(out, entry->id, "MessageGroupId", entry->group, strlen(entry->group));
	put_field(out, entry->id, "MessageDeduplicationId", entry->duplicate,
		  strlen(entry->duplicate));
}

static void put_end(struct buf *out)
{
	(void)out;
}

/* ---- answers ---------------------------------------------------------------------------------------- */

struct piece {
	const char *at;
	size_t size;
};

/* What is in the first element of this name; *ret_rest is what is behind it. False: there is none. */
static bool find_element(struct piece in, const char *name, struct piece *ret_content,
			 struct piece *ret_rest)
{
	char tag[60];
	int n = snprintf(tag, sizeof(tag), "<%s>", name);
	const char *end = in.at + in.size, *from = memmem(in.at, in.size, tag, (size_t)n), *to;

	if (!from)
		return false;
	from += n;
	n = snprintf(tag, sizeof(tag), "</%s>", name);
	to = memmem(from, (size_t)(end - from), tag, (size_t)n);
	if (!to)
		return false;
	*ret_content = (struct piece){ from, (size_t)(to - from) };
	*ret_rest = (struct piece){ to + n, (size_t)(end - to) - (size_t)n };
	return true;
}

static char entity_at(const struct piece *text, size_t at, size_t *ret_length)
{
	static const struct {
		const char *name;
		char meant;
	} entities[] = { { "&lt;", '<' },
			 { "&gt;", '>' },
			 { "&amp;", '&' },
			 { "&quot;", '"' },
			 { "&apos;", '\'' } };

	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
		*ret_length = strlen(entities[i].name);
		if (text->size - at >= *ret_length &&
		    memcmp(text->at + at, entities[i].name, *ret_length) == 0)
			return entities[i].meant;
	}
	*ret_length = 1;
	return text->at[at];
}

/* False: it has no such element. */
static bool read_text(struct piece in, const char *name, char *out, size_t out_size)
{
	_cleanup_(buf_deinit) struct buf read = BUF_INIT(WEB_READ_MAX);
	struct piece text, rest;
	size_t length;

	if (!find_element(in, name, &text, &rest))
		return false;
	for (size_t i = 0; i < text.size; i += length)
		buf_char(&read, entity_at(&text, i, &length));
	aws_text_keep(out, out_size, buf_str(&read));
	return true;
}

static void read_entries(struct piece in, const char *name, bool done,
			 struct aws_result results[AWS_BATCH_MAX])
{
	struct piece list, rest, entry;

	if (!find_element(in, name, &list, &rest))
		return;
	while (find_element(list, "member", &entry, &list)) {
		struct aws_result *result;
		char id[8] = "", fault[8] = "";

		if (!read_text(entry, "Id", id, sizeof(id)) || strlen(id) != 1 || id[0] < '0' ||
		    id[0] > '9')
			continue;
		result = &results[id[0] - '0'];
		result->state = done ? AWS_DONE : AWS_FAILED;
		read_text(entry, "Code", result->code, sizeof(result->code));
		read_text(entry, "Message", result->text, sizeof(result->text));
		read_text(entry, "SenderFault", fault, sizeof(fault));
		result->our_fault = strcmp(fault, "true") == 0;
	}
}

static bool read_results(const char *body, size_t size, struct aws_result results[AWS_BATCH_MAX])
{
	struct piece all = { body, size }, result, rest;

	if (!find_element(all, "PublishBatchResult", &result, &rest))
		return false;
	read_entries(result, "Successful", true, results);
	read_entries(result, "Failed", false, results);
	return true;
}

static bool read_error(const char *body, size_t size, struct aws_result *ret_error)
{
	struct piece all = { body, size }, error, rest;

	if (!find_element(all, "Error", &error, &rest) ||
	    !read_text(error, "Code", ret_error->code, sizeof(ret_error->code)))
		return false;
	read_text(error, "Message", ret_error->text, sizeof(ret_error->text));
	return true;
}

/* ---- what an acknowledgement is worth --------------------------------------------------------------- */

static void put_check(const struct aws_transport *t, struct buf *out)
{
	buf_text(out, "Action=GetTopicAttributes&Version=2010-03-31&TopicArn=");
	put_escaped(out, t->place, strlen(t->place));
}

static bool read_attribute(const char *body, size_t size, const char *name, char *out,
			   size_t out_size)
{
	struct piece rest = { body, size }, entry;
	char key[100];

	while (find_element(rest, "entry", &entry, &rest))
		if (read_text(entry, "key", key, sizeof(key)) && strcmp(key, name) == 0)
			return read_text(entry, "value", out, out_size);
	return false;
}

static void judge(const struct aws_transport *t, const char *body, size_t size,
		  struct findings *findings)
{
	char confirmed[20];

	if (t->fifo)
		findings_add(findings, FINDING_OK,
			     "FIFO: the order of a key is kept towards FIFO queues, and a repeat within 5 "
			     "minutes is dropped");
	else
		findings_add(findings, t->unordered ? FINDING_OK : FINDING_WARNING,
			     "a standard topic keeps no order and may deliver twice%s",
			     t->unordered
				     ? ""
				     : "; use a FIFO topic, or say that this target needs no order");
	if (read_attribute(body, size, "SubscriptionsConfirmed", confirmed, sizeof(confirmed)) &&
	    strcmp(confirmed, "0") == 0)
		findings_add(findings, FINDING_WARNING,
			     "nobody has subscribed: what is published is acknowledged and dropped");
}

const struct aws_service aws_sns = {
	.name = "sns",
	.content_type = "application/x-www-form-urlencoded; charset=utf-8",
	.set_place = set_place,
	.put_begin = put_begin,
	.put_entry = put_entry,
	.put_end = put_end,
	.read_results = read_results,
	.read_error = read_error,
	.put_check = put_check,
	.read_attribute = read_attribute,
	.judge = judge,
};
