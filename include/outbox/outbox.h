/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_OUTBOX_H
#define OUTBOX_OUTBOX_H

/* Everything but the database-specific headers (outbox/sqlite.h ...). */

#include <outbox/admin.h>
#include <outbox/arena.h>
#include <outbox/clock.h>
#include <outbox/delivery.h>
#include <outbox/error.h>
#include <outbox/inbox.h>
#include <outbox/message.h>
#include <outbox/relay.h>
#include <outbox/store.h>
#include <outbox/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_VERSION_MAJOR 0
#define OUTBOX_VERSION_MINOR 1
#define OUTBOX_VERSION_PATCH 0

/* The library's version at run time, "0.1.0". */
const char *outbox_version(void);

#ifdef __cplusplus
}
#endif

#endif
