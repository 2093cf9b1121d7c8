/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the path, and its end.
 *
 * Whenever the lock is taken, the path may name another file than the open one (rotation: the open
 * one is left alone, the new one is opened), and the end of the file may be half a line of a writer
 * that died: it is cut away, since that line was never acknowledged. Whole lines of a dead writer
 * stay; they are sent again as duplicates, which at-least-once allows.
 *
 * Only an unfinished line that begins as ours do is cut, in a file that begins with "{": somebody
 * who names the wrong file gets an error instead of a damaged file.
 */

#include "transport/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCAN ((size_t)16 << 10)
#define REOPEN_MAX 16

void place_close(struct file_transport *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static int open_path(struct file_transport *file, struct outbox_error *err)
{
	struct stat st;
	int r;

	/* O_NONBLOCK: a FIFO is refused below and must not block here. */
	do
		file->fd =
			open(file->path,
			     O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
	while (file->fd < 0 && errno == EINTR);
	if (file->fd < 0)
		return file_fail(file, errno, "cannot open", err);
	file->checked = false;
	if (fstat(file->fd, &st) < 0) {
		r = file_fail(file, errno, "cannot look at it", err);
		place_close(file);
		return r;
	}
	file->regular = S_ISREG(st.st_mode);
	if (!file->regular) {
		place_close(file);
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s is not a regular file; name one, or use stdout:", file->shown);
	}
	return OUTBOX_OK;
}

/* A new file's name must survive a power cut as well as its lines do. */
static int sync_directory(const struct file_transport *file, struct outbox_error *err)
{
	char *copy = strdup(file->path);
	int fd, r = OUTBOX_OK;

	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	/* A directory that we may enter but not read cannot be synced; file systems that matter
	 * write the name with the file's own sync. */
	if (fd < 0)
		return OUTBOX_OK;
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		r = file_fail(file, errno, "cannot sync its directory", err);
	close(fd);
	return r;
}

static ssize_t read_at(int fd, char *data, size_t size, off_t place)
{
	ssize_t n;

	do
		n = pread(fd, data, size, place);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = EIO; /* shorter than its length: cut by somebody who does not lock */
	return n > 0 ? n : -1;
}

/* Where the last whole line ends; 0 when there is none. -1: errno. */
static off_t last_line_end(int fd, off_t size)
{
	char data[SCAN];

	while (size > 0) {
		size_t n = size < (off_t)SCAN ? (size_t)size : SCAN;
		off_t place = size - (off_t)n;
		const char *newline;

		for (size_t have = 0; have < n;) {
			ssize_t got = read_at(fd, data + have, n - have, place + (off_t)have);

			if (got < 0)
				return -1;
			have += (size_t)got;
		}
		newline = memrchr(data, '\n', n);
		if (newline)
			return place + (newline - data) + 1;
		size = place;
	}
	return 0;
}

/* Is the unfinished line at `place` one of ours? Zeros are what a power cut leaves of one. -1: errno. */
static int is_ours(int fd, off_t place)
{
	char data[sizeof(FILE_LINE_START) - 1];
	ssize_t n = read_at(fd, data, sizeof(data), place);

	if (n < 0)
		return -1;
	return data[0] == '\0' || memcmp(data, FILE_LINE_START, (size_t)n) == 0;
}

static int repair_tail(struct file_transport *file, off_t *size, struct outbox_error *err)
{
	int ours;
	off_t end;
	char last;

	if (read_at(file->fd, &last, 1, *size - 1) < 0)
		return file_fail(file, errno, "cannot read its end", err);
	if (last == '\n')
		return OUTBOX_OK;
	end = last_line_end(file->fd, *size);
	ours = end < 0 ? -1 : is_ours(file->fd, end);
	if (ours < 0)
		return file_fail(file, errno, "cannot read its end", err);
	if (!ours)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s ends in an unfinished line that outbox did not write; end "
				   "it with a newline or name another file",
				   file->shown);
	if (ftruncate(file->fd, end) < 0)
		return file_fail(file, errno, "cannot cut its unfinished last line", err);
	*size = end;
	return OUTBOX_OK;
}

/* Once after each open. */
static int check_head(struct file_transport *file, off_t size, struct outbox_error *err)
{
	char first;

	if (size == 0)
		return file->sync ? sync_directory(file, err) : OUTBOX_OK;
	if (read_at(file->fd, &first, 1, 0) < 0)
		return file_fail(file, errno, "cannot read", err);
	if (first != '{')
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s does not hold JSON lines; name another file", file->shown);
	return OUTBOX_OK;
}

/* Make a cut that failed when it was due, unless somebody wrote behind it meanwhile. */
static int pay_debt(struct file_transport *file, const struct stat *st, off_t *size,
		    struct outbox_error *err)
{
	const struct file_debt *debt = &file->debt;

	if (debt->from > 0 && debt->dev == st->st_dev && debt->ino == st->st_ino &&
	    debt->from == *size) {
		if (ftruncate(file->fd, debt->to) < 0)
			return file_fail(file, errno, "cannot cut an unfinished batch", err);
		*size = debt->to;
	}
	file->debt = (struct file_debt){ 0 };
	return OUTBOX_OK;
}

/* Under the lock. */
static int put_in_order(struct file_transport *file, const struct stat *st, struct outbox_error *err)
{
	off_t size = st->st_size;
	int r = pay_debt(file, st, &size, err);

	if (!r && !file->checked)
		r = check_head(file, size, err);
	if (!r && size > 0)
		r = repair_tail(file, &size, err);
	if (r)
		return r;
	file->checked = true;
	file->known = true;
	file->start = size;
	return OUTBOX_OK;
}

/* Does the path still name the open file? 1 yes, 0 no, -1: errno. */
static int still_there(const struct file_transport *file, struct stat *ret_open)
{
	struct stat named;

	if (fstat(file->fd, ret_open) < 0)
		return -1;
	if (stat(file->path, &named) < 0)
		return errno == ENOENT ? 0 : -1;
	return ret_open->st_dev == named.st_dev && ret_open->st_ino == named.st_ino;
}

int place_take(struct file_transport *file, outbox_time deadline, struct outbox_error *err)
{
	for (int tries = 0; tries < REOPEN_MAX; tries++) {
		struct stat st;
		int same, r = file->fd < 0 ? open_path(file, err) : OUTBOX_OK;

		if (!r)
			r = file_lock(file, deadline, err);
		if (r)
			return r;
		same = still_there(file, &st);
		if (same < 0)
			r = file_fail(file, errno, "cannot look at it", err);
		else if (same)
			r = put_in_order(file, &st, err);
		if (r)
			file_unlock(file);
		if (r || same)
			return r;
		file_unlock(file);
		place_close(file);
	}
	return outbox_fail(err, OUTBOX_ECONN, "%s is replaced all the time", file->shown);
}

bool place_cut(struct file_transport *file)
{
	struct stat st;

	if (ftruncate(file->fd, file->start) == 0)
		return true;
	if (fstat(file->fd, &st) == 0)
		file->debt = (struct file_debt){ st.st_dev, st.st_ino, st.st_size, file->start };
	return false;
}
