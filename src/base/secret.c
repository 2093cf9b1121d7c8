/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MAX 8192

int secret_read(const char *option, const char *path, char **ret_secret, struct outbox_error *err)
{
	char text[SECRET_MAX];
	FILE *file = fopen(path, "re");
	char *copy;
	size_t size;
	bool failed;

	if (!file)
		return outbox_fail_native(err, OUTBOX_ECONFIG, errno,
					  "option %s: %s cannot be read", option, path);
	/* not through a buffer that nobody wipes */
	setvbuf(file, NULL, _IONBF, 0);
	size = fread(text, 1, sizeof(text) - 1, file);
	failed = ferror(file);
	fclose(file);
	text[size] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	copy = strdup(text);
	explicit_bzero(text, sizeof(text));
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (failed || !copy[0]) {
		secret_free(copy);
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s: %s %s", option, path,
				   failed ? "cannot be read" : "is empty");
	}
	*ret_secret = copy;
	return OUTBOX_OK;
}

char *secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
	return NULL;
}
