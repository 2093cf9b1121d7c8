/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the tokens: whoever can read it may do what the relay may, whoever can write it or its folder can let
 * anybody in. So both are checked through descriptors that are already open, and links are not followed.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/random.h"
#include "http/access_tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)64 << 10)
#define SECRET_BYTES 32
#define TEXT_MAX 1024

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static int refuse_file(struct outbox_error *err, const char *path, const char *what)
{
	return outbox_fail(err, OUTBOX_ECONFIG, "admin.tokens: %s %s", path, what);
}

static const char *folder_objection(const struct stat *folder)
{
	if (folder->st_uid != geteuid() && folder->st_uid != 0)
		return "belongs to another user, who could replace the file; use a folder of your own";
	if (folder->st_mode & 0022)
		return "can be written by others, who could replace the file; chmod go-w it";
	return NULL;
}

static const char *file_objection(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return "is not a file; name a file, or remove it and the next start creates one";
	if (file->st_uid != geteuid())
		return "belongs to another user; chown it to the one that runs the relay";
	if (file->st_mode & 0077)
		return "can be read by others; chmod 600 it, and change the tokens in it";
	return NULL;
}

/* The parents too, as mkdir -p does; each for us alone. */
static int make_folders(char *folder)
{
	for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
		int r;

		*slash = '\0';
		r = mkdir(folder, 0700);
		*slash = '/';
		if (r && errno != EEXIST)
			return -1;
	}
	return mkdir(folder, 0700) && errno != EEXIST ? -1 : 0;
}

/* ret_name points into path. */
static int open_folder(const char *path, int *ret_fd, const char **ret_name, struct outbox_error *err)
{
	const char *slash = strrchr(path, '/'), *what;
	char folder[TOKENS_PATH_MAX] = ".";
	struct stat stat;
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!(*ret_name)[0] || strlen(path) >= sizeof(folder))
		return refuse_file(err, path, "is not the name of a file");
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			 path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make_folders(folder) == 0)
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return outbox_fail_native(err, OUTBOX_ECONFIG, errno,
					  "admin.tokens: folder %s cannot be opened or made; name "
					  "another file",
					  folder);
	what = fstat(fd, &stat) == 0 ? folder_objection(&stat) : "cannot be read";
	if (what) {
		close(fd);
		return refuse_file(err, folder, what);
	}
	*ret_fd = fd;
	return OUTBOX_OK;
}

static bool make_token(struct buf *out)
{
	unsigned char secret[SECRET_BYTES];
	size_t begin = out->size;

	if (!random_secret(secret, sizeof(secret)))
		return false;
	base64_append(out, secret, sizeof(secret));
	explicit_bzero(secret, sizeof(secret));
	/* as URLs have it, without padding */
	for (size_t i = begin; i < out->size; i++)
		out->data[i] = (char)(out->data[i] == '+'   ? '-'
				      : out->data[i] == '/' ? '_'
							    : out->data[i]);
	while (out->size && out->data[out->size - 1] == '=')
		out->data[--out->size] = '\0';
	return !out->failed;
}

static bool make_text(struct buf *out)
{
	buf_text(out, "# Who may ask the admin server: NAME ROLE TOKEN [EXPIRES]\n"
		      "# ROLE is read or operate; kill -HUP makes a running relay read this again.\n"
		      "operator operate ");
	if (!make_token(out))
		return false;
	buf_text(out, "\nreader read ");
	if (!make_token(out))
		return false;
	buf_char(out, '\n');
	return !out->failed;
}

static bool write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return false;
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) == 0;
}

/* Under another name first: nobody ever finds half a file, and two relays that start at once agree on one. */
static int make_file(int folder, const char *name, const char *path, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(TEXT_MAX);
	_cleanup_(close_fd) int fd = -1;
	char other[300];
	bool done;

	snprintf(other, sizeof(other), ".%.200s.%ld", name, (long)getpid());
	unlinkat(folder, other, 0);
	fd = openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	done = fd >= 0 && make_text(&text) && write_all(fd, text.data, text.size) &&
	       (linkat(folder, other, folder, name, 0) == 0 || errno == EEXIST);
	if (text.data)
		explicit_bzero(text.data, text.size);
	if (!done)
		outbox_fail_native(err, OUTBOX_ECONFIG, errno,
				   "admin.tokens: %s cannot be made; name another file, or make its "
				   "folder writable",
				   path);
	if (fd >= 0)
		unlinkat(folder, other, 0);
	return done ? OUTBOX_OK : OUTBOX_ECONFIG;
}

static int read_file(int fd, const char *path, struct access_tokens **ret_tokens,
		     struct outbox_error *err)
{
	char *text = calloc(1, FILE_MAX + 1);
	size_t size = 0;
	ssize_t n;
	int r;

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	do {
		n = read(fd, text + size, FILE_MAX - size);
		size += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 || size == FILE_MAX)
		r = refuse_file(err, path,
				n < 0 ? "cannot be read" : "is too large to be a file of tokens");
	else if (strlen(text) != size)
		r = refuse_file(err, path, "is not text");
	else
		r = access_tokens_parse(text, path, ret_tokens, err);
	explicit_bzero(text, FILE_MAX);
	free(text);
	return r;
}

int access_tokens_open(const char *path, struct access_tokens **ret_tokens, bool *ret_made,
		       struct outbox_error *err)
{
	static const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	_cleanup_(close_fd) int folder = -1;
	_cleanup_(close_fd) int fd = -1;
	const char *name = NULL, *what;
	struct stat stat;
	int r = open_folder(path, &folder, &name, err);

	if (r)
		return r;
	fd = openat(folder, name, flags);
	*ret_made = fd < 0 && errno == ENOENT;
	if (*ret_made) {
		r = make_file(folder, name, path, err);
		if (r)
			return r;
		fd = openat(folder, name, flags);
	}
	if (fd < 0)
		return refuse_file(err, path,
				   errno == ELOOP ? "is a symbolic link; name the file itself"
						  : "cannot be read");
	what = fstat(fd, &stat) == 0 ? file_objection(&stat) : "cannot be read";
	return what ? refuse_file(err, path, what) : read_file(fd, path, ret_tokens, err);
}

int access_tokens_default_path(char path[TOKENS_PATH_MAX], struct outbox_error *err)
{
	const char *state = getenv("STATE_DIRECTORY"), *home = getenv("HOME");
	const char *data = getenv("XDG_STATE_HOME");
	int n;

	/* systemd may give several, with colons between */
	if (state && state[0] == '/')
		n = snprintf(path, TOKENS_PATH_MAX, "%.*s/tokens", (int)strcspn(state, ":"), state);
	else if (data && data[0] == '/')
		n = snprintf(path, TOKENS_PATH_MAX, "%s/outbox/tokens", data);
	else if (geteuid() == 0)
		n = snprintf(path, TOKENS_PATH_MAX, "/var/lib/outbox/tokens");
	else if (home && home[0] == '/')
		n = snprintf(path, TOKENS_PATH_MAX, "%s/.local/state/outbox/tokens", home);
	else
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "admin.tokens is not set and there is no home to keep the file in; "
				   "name a file");
	if (n < 0 || n >= TOKENS_PATH_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "admin.tokens: the path is too long");
	return OUTBOX_OK;
}
