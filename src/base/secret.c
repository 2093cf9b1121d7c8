/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_MAX 65536

bool secret_is_name(const char *option)
{
	static const char *const words[] = { "pass",  "pwd",  "secret",
					     "token", ".pem", "oauthbearer.config" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(option, words[i]))
			return true;
	return false;
}

/* What is wrong with a file as a place for a secret; NULL: nothing. */
static const char *objection(const struct stat *file)
{
	bool root = geteuid() == 0;

	if (!S_ISREG(file->st_mode))
		return "is not a file";
	if (file->st_uid == geteuid() && !(file->st_mode & 077))
		return NULL;
	if (file->st_uid != geteuid() && file->st_uid != 0)
		return "belongs to another user; chown it to the one that runs outbox";
	if (file->st_uid != 0)
		return "can be read or changed by others; chmod 600 it";
	/* Root's. Mounted secrets are often 0444; for root itself anything that can be written was made by hand. */
	if (file->st_mode & (root ? 0222 : 0022))
		return "can be read or changed by others; chmod 600 it";
	return NULL;
}

static const char *why_not(int number)
{
	switch (number) {
	case ELOOP:
		return "is a symbolic link; name the file itself";
	case ENOENT:
	case ENOTDIR:
		return "cannot be read: there is no such file";
	case EACCES:
		return "cannot be read: this user has no permission; chown it to the relay's user";
	default:
		return "cannot be read";
	}
}

static int open_file(const char *option, const char *path, int *ret_fd, struct outbox_error *err)
{
	/* Whoever may put a link there could make us read, and send to a server, another file. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat file;
	const char *what;

	if (fd < 0)
		return outbox_fail_native(err, OUTBOX_ECONFIG, errno, "option %s: %s %s", option,
					  path, why_not(errno));
	what = fstat(fd, &file) == 0 ? objection(&file) : "cannot be read";
	if (what) {
		close(fd);
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s: %s %s", option, path, what);
	}
	*ret_fd = fd;
	return OUTBOX_OK;
}

/* Not through stdio, whose buffer nobody wipes. */
static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t n;

	do {
		n = read(fd, text + length, size - length);
		length += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && length < size) || (n < 0 && errno == EINTR));
	return n < 0 ? -1 : (ssize_t)length;
}

int secret_read_file(const char *option, const char *path, char **ret_text, struct outbox_error *err)
{
	char *text;
	ssize_t size;
	int fd = -1, r = open_file(option, path, &fd, err);

	if (r)
		return error_names_field(r, err);
	text = calloc(1, SECRET_MAX);
	size = text ? read_all(fd, text, SECRET_MAX - 1) : 0;
	close(fd);
	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (size <= 0) {
		secret_free(text);
		r = outbox_fail(err, OUTBOX_ECONFIG, "option %s: %s %s", option, path,
				size < 0 ? "cannot be read" : "is empty");
		return error_names_field(r, err);
	}
	*ret_text = text;
	return OUTBOX_OK;
}

int secret_read(const char *option, const char *path, char **ret_secret, struct outbox_error *err)
{
	char *text = NULL;
	size_t length;
	int r = secret_read_file(option, path, &text, err);

	if (r)
		return r;
	length = strcspn(text, "\r\n");
	explicit_bzero(text + length, strlen(text + length));
	if (!length) {
		secret_free(text);
		r = outbox_fail(err, OUTBOX_ECONFIG, "option %s: %s is empty", option, path);
		return error_names_field(r, err);
	}
	*ret_secret = text;
	return OUTBOX_OK;
}

char *secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
	return NULL;
}
