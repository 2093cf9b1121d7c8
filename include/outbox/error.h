/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_ERROR_H
#define OUTBOX_ERROR_H

/*
 * Errors.
 *
 * Every fallible function returns an `enum outbox_status` as int (0 is success) and takes a
 * `struct outbox_error *` as its last argument. The struct belongs to the caller, may be NULL, is
 * written only on failure and never on success. There is no errno and no thread-local last error.
 *
 * A status is a decision, not a diagnosis: it tells the caller what to do next. The diagnosis is the
 * message, one line for a person, `detail`, where a program needs to know more than the status, and
 * `native`, the code of the library or system below us. Never parse the message: its words change.
 */

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OUTBOX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define OUTBOX_MUSTCHECK __attribute__((warn_unused_result))
#else
#define OUTBOX_PRINTF(fmt, args)
#define OUTBOX_MUSTCHECK
#endif

/*
 * What OUTBOX_*_INIT of a struct with a struct_size is made of: that size, and zeros. In two forms,
 * because a list that leaves members out is warned about by -Wextra, in C++ also when it names them.
 */
#ifdef __cplusplus
extern "C++" {
template <typename T> struct outbox_sized {
	static T make()
	{
		T value = T();

		value.struct_size = sizeof(T);
		return value;
	}
};
}
#define OUTBOX_SIZED(type) outbox_sized<type>::make()
#else
#define OUTBOX_SIZED(type)                  \
	{                                   \
		.struct_size = sizeof(type) \
	}
#endif

enum outbox_status {
	OUTBOX_OK = 0,
	OUTBOX_EINVAL = 1,  /* the caller's data or arguments are wrong: repair them */
	OUTBOX_ENOMEM = 2,  /* out of memory: nothing was changed */
	OUTBOX_ECONFIG = 3, /* configuration is wrong: a person must repair it */
	OUTBOX_ECONN = 4,   /* database or broker unreachable: back off, connect again */
	OUTBOX_EAUTH = 5,   /* refused by the other side: a person must repair it; back off long */
	OUTBOX_ETIMEDOUT = 6, /* no answer in time: the outcome is unknown, repeat the same request */
	OUTBOX_EBUSY = 7, /* locked, deadlock, serialization failure: repeat soon, charge no attempt */
	OUTBOX_EFENCED = 8, /* another owner has the lane now: forget all about it */
	OUTBOX_ECONFLICT =
		9, /* the delivery's state does not allow it, or it is being sent right now */
	OUTBOX_ENOTFOUND = 10, /* no such message, target, database, policy ... */
	OUTBOX_ENOTSUP = 11,   /* this driver or this build cannot do it */
	OUTBOX_ESCHEMA = 12,   /* the schema is missing, older or newer than this program */
	OUTBOX_EFULL = 13,  /* disk full or quota reached: an outage; retry after space was made */
	OUTBOX_EPROTO = 14, /* the other side broke its protocol, or stored data is invalid */
	OUTBOX_EINTERNAL = 15, /* a bug of ours */
	OUTBOX_EGONE =
		16 /* the place says that it is gone for good: nothing goes there until a person says so */
};

enum outbox_detail {
	OUTBOX_DETAIL_NONE = 0,
	OUTBOX_DETAIL_FIELD = 1, /* one field is wrong: the message begins with its name and ": " */
	OUTBOX_DETAIL_PASSWORD = 2 /* a user was given, and no password */
};

#define OUTBOX_ERROR_MAX 2048 /* what is kept of a failed try, 2,000 characters, fits */

struct outbox_error {
	int status; /* enum outbox_status */
	int native; /* code of the library below, 0 when there is none */
	int detail; /* enum outbox_detail */
	char message[OUTBOX_ERROR_MAX];
};

#define OUTBOX_ERROR_INIT \
	{                 \
		0, 0, 0,  \
		{         \
			0 \
		}         \
	}

/* Fill `err` (if not NULL) and return `status`: `return outbox_fail(err, OUTBOX_EINVAL, "...")`. */
int outbox_fail(struct outbox_error *err, int status, const char *format, ...) OUTBOX_PRINTF(3, 4);

/* The same with the native code of the library below. */
int outbox_fail_native(struct outbox_error *err, int status, int native, const char *format, ...)
	OUTBOX_PRINTF(4, 5);

/* The same with a detail (enum outbox_detail). */
int outbox_fail_detail(struct outbox_error *err, int status, int detail, const char *format, ...)
	OUTBOX_PRINTF(4, 5);

/* Prefix the message with what was being done, "claim batch: ...", and return err->status. */
int outbox_wrap(struct outbox_error *err, const char *format, ...) OUTBOX_PRINTF(2, 3);

/* Short stable name of a status: "conn", "fenced", ... Used in JSON output and logs. */
const char *outbox_status_name(int status);

#ifdef __cplusplus
}
#endif

#endif
