/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Encoding of messages that nobody validated. What comes out is one line of JSON without a name
 * twice, or clean headers; the payload and every field can be got back; the external envelope holds
 * the allow-list and the message's own headers only.
 */

#include "base/cleanup.h"
#include "core/message.h"
#include "fuzz_message.h"

#include <outbox/transport.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *place = c ? strchr(digits, c) : NULL;

	return place ? (int)(place - digits) : -1;
}

static void check_base64(const char *text, const uint8_t *data, size_t size)
{
	unsigned bits = 0, n_bits = 0;
	size_t n = 0;

	CHECK(strlen(text) == (size + 2) / 3 * 4);
	for (; *text && *text != '='; text++) {
		int digit = base64_digit(*text);

		CHECK(digit >= 0);
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			CHECK(n < size && data[n] == (uint8_t)(bits >> n_bits));
			n++;
		}
	}
	CHECK(n == size && strspn(text, "=") == strlen(text));
}

/* A value that jansson cannot hold stands in the line as it was, white space between its parts aside. */
static void check_data(const json_t *root, const struct outbox_message *m)
{
	const json_t *data = json_object_get(root, "data");
	const json_t *bytes = json_object_get(root, "data_base64");

	CHECK(!(data && bytes));
	if (m->size == 0) {
		CHECK(!data && !bytes && !json_object_get(root, "datacontenttype"));
	} else if (bytes) {
		CHECK(!content_type_is_json(m->content_type));
		check_base64(json_string_value(bytes), m->data, m->size);
	} else if (content_type_is_json(m->content_type)) {
		json_t *value = json_loadb(m->data, m->size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		CHECK(value && data && json_equal(value, data));
		json_decref(value);
	} else {
		CHECK(json_is_string(data) && json_string_length(data) == m->size);
		CHECK(memcmp(json_string_value(data), m->data, m->size) == 0);
	}
}

static void check_field(const json_t *root, const char *name, const char *value)
{
	const json_t *member = json_object_get(root, name);

	if (value)
		CHECK(json_is_string(member) && strcmp(json_string_value(member), value) == 0);
	else
		CHECK(!member);
}

/* RFC 3339 in UTC: four digits of a year, and so on. */
static void check_time(const char *text)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";
	size_t i;

	for (i = 0; form[i]; i++)
		CHECK(form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i]);
	if (text[i] == '.') {
		CHECK(strspn(text + i + 1, "0123456789") > 0);
		i += 1 + strspn(text + i + 1, "0123456789");
	}
	CHECK(strcmp(text + i, "Z") == 0);
}

static const struct outbox_header *find_header(const struct outbox_message *m, const char *name)
{
	for (size_t i = 0; i < m->n_headers; i++) {
		if (strcmp(m->headers[i].name, name) == 0)
			return &m->headers[i];
	}
	return NULL;
}

/* Each header is an attribute of its name or a member of outboxheaders, with its value. */
static void check_headers(const json_t *root, const struct outbox_message *m)
{
	const char *text = json_string_value(json_object_get(root, "outboxheaders"));
	json_t *others = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	size_t n_others = 0;

	CHECK(!text || others);
	for (size_t i = 0; i < m->n_headers; i++) {
		const char *name = m->headers[i].name;
		const char *value = json_string_value(json_object_get(others, name));

		if (value)
			n_others++;
		else
			value = json_string_value(json_object_get(root, name));
		CHECK(value && strcmp(value, m->headers[i].value) == 0);
	}
	CHECK(json_object_size(others) == n_others);
	json_decref(others);
}

static bool in_list(const char *const *list, const char *name)
{
	for (; *list; list++) {
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

static void check_names(json_t *root, const struct outbox_message *m, bool external)
{
	static const char *const open[] = {
		"specversion", "id",           "source",        "type",        "subject",
		"time",        "partitionkey", "correlationid", "traceparent", "datacontenttype",
		"data",        "data_base64",  "outboxheaders", NULL
	};
	static const char *const internal[] = { "causationid", "kind", "topic", "sequence", NULL };
	const char *name;
	json_t *value;

	json_object_foreach(root, name, value)
	{
		if (in_list(open, name) || (!external && in_list(internal, name)))
			continue;
		CHECK(find_header(m, name) && !in_list(internal, name));
		CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(name));
	}
}

static void check_structured(const struct outbox_message *m, const struct outbox_encoded *encoded,
			     bool external)
{
	json_error_t why;
	json_t *root;

	CHECK(!memchr(encoded->body, '\n', encoded->size));
	CHECK(!memchr(encoded->body, '\r', encoded->size));
	CHECK(strncmp(encoded->body, "{\"specversion\":\"1.0\",", 21) == 0);
	CHECK(json_text_check(encoded->body, encoded->size, NULL) == OUTBOX_OK ||
	      content_type_is_json(m->content_type)); /* one level deeper than the payload */
	root = json_loadb(encoded->body, encoded->size, JSON_ALLOW_NUL, &why);
	if (!root) {
		json_t *value = json_loadb(m->data, m->size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

		CHECK(m->size && content_type_is_json(m->content_type) && !value);
		return;
	}
	check_field(root, "id", m->id);
	check_field(root, "source", m->source);
	check_field(root, "type", m->type);
	check_field(root, "subject", m->subject);
	check_field(root, "partitionkey", m->key);
	check_field(root, "correlationid", m->correlation_id);
	check_field(root, "traceparent", m->traceparent);
	if (!external) {
		check_field(root, "causationid", m->causation_id);
		check_field(root, "topic", m->topic);
	}
	check_time(json_string_value(json_object_get(root, "time")));
	check_names(root, m, external);
	check_headers(root, m);
	check_data(root, m);
	json_decref(root);
}

/* Without the payload, in which names may be there twice: the envelope's own are there once. */
static void check_once(struct outbox_encoder *encoder, const struct outbox_item *item)
{
	struct outbox_message empty = *item->message;
	struct outbox_item bare = *item;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_encoded encoded;
	json_t *root;

	empty.size = 0;
	bare.message = &empty;
	CHECK(outbox_encode(encoder, &bare, &encoded, &err) == OUTBOX_OK);
	root = json_loadb(encoded.body, encoded.size, JSON_REJECT_DUPLICATES, NULL);
	CHECK(root);
	json_decref(root);
}

static void check_in_headers(const struct outbox_message *m, const struct outbox_encoded *encoded)
{
	CHECK(encoded->size == m->size && (!m->size || encoded->body == m->data));
	for (size_t i = 0; i < encoded->n_headers; i++) {
		const struct outbox_header *header = &encoded->headers[i];

		CHECK(header->name && *header->name && header->value);
		CHECK(!strpbrk(header->name, "\r\n: ") && !strpbrk(header->value, "\r\n"));
		CHECK(reference_utf8_valid(header->value, strlen(header->value)));
		for (size_t k = 0; k < i; k++)
			CHECK(strcasecmp(header->name, encoded->headers[k].name) != 0);
	}
	CHECK(!strpbrk(encoded->content_type, "\r\n"));
	CHECK(encoded->n_headers >= m->n_headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	int status[OUTBOX_ENVELOPE_EXTERNAL + 1] = { 0 };
	struct fuzz_message fuzz;
	struct outbox_item item = { .message = &fuzz.message, .created_at = 1, .seq = -1 };

	input_message(&in, &fuzz);
	for (int e = OUTBOX_ENVELOPE_CE_STRUCTURED; e <= OUTBOX_ENVELOPE_EXTERNAL; e++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_encoder *encoder;
		struct outbox_encoded encoded;

		CHECK(outbox_encoder_new(e, NULL, &encoder, &err) == OUTBOX_OK);
		status[e] = outbox_encode(encoder, &item, &encoded, &err);
		check_error(status[e], &err);
		CHECK(status[e] == OUTBOX_OK || status[e] == OUTBOX_EINVAL);
		if (status[e] == OUTBOX_OK &&
		    (e == OUTBOX_ENVELOPE_CE_STRUCTURED || e == OUTBOX_ENVELOPE_EXTERNAL)) {
			check_structured(&fuzz.message, &encoded, e == OUTBOX_ENVELOPE_EXTERNAL);
			check_once(encoder, &item);
		} else if (status[e] == OUTBOX_OK) {
			check_in_headers(&fuzz.message, &encoded);
		}
		outbox_encoder_free(encoder);
	}
	CHECK(status[OUTBOX_ENVELOPE_EXTERNAL] == status[OUTBOX_ENVELOPE_CE_STRUCTURED]);
	CHECK(status[OUTBOX_ENVELOPE_NATIVE] == status[OUTBOX_ENVELOPE_CE_BINARY]);
	input_end(&in);
	return 0;
}
