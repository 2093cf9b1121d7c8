/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_FILE_H
#define TRANSPORT_FILE_H

/* The parts of the file: and stdout: driver. */

#include <outbox/transport.h>

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

/* The most bytes that are collected before they are written. A longer line is written as it is. */
#define FILE_CHUNK ((size_t)256 << 10)

/* How every line of ours begins. Only an unfinished line that looks like this is ever cut away. */
#define FILE_LINE_START "{\"specversion\""

/* A cut that could not be made when it was due. */
struct file_debt {
	dev_t dev;
	ino_t ino;
	off_t from; /* the length that the file was left with; 0: no debt */
	off_t to;
};

struct file_transport {
	struct outbox_transport base;
	struct outbox_clock *clock;
	struct outbox_encoder *encoder;
	char *path;      /* NULL: standard output */
	char shown[128]; /* for error texts: file "out.jsonl" */
	bool sync;       /* fdatasync before ACKED */

	int fd;       /* -1: not connected */
	bool known;   /* it was there once: when it is gone, that is an outage, not a mistake */
	bool regular; /* fd is a regular file */
	bool checked; /* the file's head was looked at since it was opened */
	struct buf chunk;
	off_t start;    /* file: the length before this batch */
	size_t written; /* bytes of this batch that the kernel took */
	struct file_debt debt;
};

/* Fail with the status that errno's value stands for. */
int file_fail(const struct file_transport *file, int number, const char *what,
	      struct outbox_error *err);

/* lock.c: keep out every other writer, other threads too. ETIMEDOUT when one holds it too long. */
int file_lock(struct file_transport *file, outbox_time deadline,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;
void file_unlock(struct file_transport *file);

/*
 * place.c: open what the path names now, lock it and bring its end in order; file->start is its
 * length then. On failure nothing is locked.
 */
int place_take(struct file_transport *file, outbox_time deadline,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Undo this batch: cut the file to file->start. False when that was not possible. */
bool place_cut(struct file_transport *file);
void place_close(struct file_transport *file);

/* write.c: start a batch; call it under the lock. */
void write_begin(struct file_transport *file);
/* A line without its newline (the encoder gives one line, whatever the payload's layout was);
 * written when the chunk is full, or by write_flush(). */
int write_line(struct file_transport *file, const char *line, size_t size, outbox_time deadline,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int write_flush(struct file_transport *file, outbox_time deadline,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
