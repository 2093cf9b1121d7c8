/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_message.h"

#include <string.h>

void input_message(struct input *in, struct fuzz_message *ret_message)
{
	struct outbox_message *m = &ret_message->message;
	unsigned mask = input_byte(in);

	mask |= (unsigned)input_byte(in) << 8;
	*ret_message = (struct fuzz_message){ .message = OUTBOX_MESSAGE_INIT };
	m->n_headers = input_byte(in) % (FUZZ_HEADERS + 1);
	m->headers = m->n_headers ? ret_message->headers : NULL;
	m->kind = (int8_t)input_byte(in);
	m->priority = (int8_t)input_byte(in);
	m->event_time = mask >> 10 & 1 ? input_number(in) : 0;
	m->due_at = mask >> 11 & 1 ? input_number(in) : 0;
	m->expires_at = mask >> 12 & 1 ? input_number(in) : 0;
	m->published = mask >> 13 & 1;
	m->type = input_text_if(in, mask, 0);
	m->id = input_text_if(in, mask, 1);
	m->source = input_text_if(in, mask, 2);
	m->content_type = input_text_if(in, mask, 3);
	m->key = input_text_if(in, mask, 4);
	m->subject = input_text_if(in, mask, 5);
	m->topic = input_text_if(in, mask, 6);
	m->correlation_id = input_text_if(in, mask, 7);
	m->causation_id = input_text_if(in, mask, 8);
	m->traceparent = input_text_if(in, mask, 9);
	for (size_t i = 0; i < m->n_headers; i++) {
		ret_message->headers[i].name = input_text(in);
		ret_message->headers[i].value = input_text(in);
	}
	m->size = in->size;
	m->data = m->size || mask >> 14 & 1 ? input_rest(in) : NULL;
}
