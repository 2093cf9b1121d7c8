/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message_options.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int headers_of_options(struct cli *cli, const struct list *given,
		       struct outbox_header headers[LIST_MAX], struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		char name[256];
		int r = pair_split("header", given->items[i], name, sizeof(name), &headers[i].value,
				   err);

		if (r)
			return r;
		headers[i].name = outbox_arena_text(cli->arena, name);
		if (!headers[i].name)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}

void error_names_option(const struct field *options, size_t n_options, struct outbox_error *err)
{
	struct outbox_error found = *err;
	char name[32];

	error_field(&found, name, sizeof(name));
	for (char *at = name; *at; at++)
		*at = *at == '_' ? '-' : *at;
	for (size_t i = 0; i < n_options; i++)
		if (strcmp(options[i].name, name) == 0)
			outbox_fail_native(err, found.status, found.native, "--%s: %.400s", name,
					   error_rest(&found));
}

static int read_all(FILE *file, const char *option, const char *name, struct buf *out,
		    struct outbox_error *err)
{
	char chunk[65536], shown[80];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0 && !out->failed)
		buf_append(out, chunk, n);
	text_shown(shown, sizeof(shown), name);
	if (ferror(file))
		return outbox_fail_native(err, OUTBOX_EINVAL, errno, "--%s: cannot read %s: %s",
					  option, shown, strerror(errno));
	if (out->failed)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--%s: %s is larger than %zu bytes; put large data elsewhere and send a reference",
			option, shown, out->max - 1);
	return OUTBOX_OK;
}

int input_read(const char *option, const char *text, struct buf *out, struct outbox_error *err)
{
	char shown[120];
	FILE *file;
	int r;

	if (strcmp(text, "-") == 0)
		return read_all(stdin, option, "stdin", out, err);
	if (text[0] != '@') {
		buf_text(out, text);
		return OUTBOX_OK;
	}
	file = fopen(text + 1, "rbe");
	if (!file)
		return outbox_fail_native(err, OUTBOX_EINVAL, errno, "--%s: cannot read %s: %s",
					  option, text_shown(shown, sizeof(shown), text + 1),
					  strerror(errno));
	r = read_all(file, option, text + 1, out, err);
	fclose(file);
	return r;
}
