/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acknowledgement is worth here: XADD is answered when the entry is in the server's memory, so it depends
 * on the append-only file, its fsync, the eviction policy and the replicas.
 */

#include "transport/redis/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* The value of a setting; "" when we may not know. */
static int ask_setting(struct redis_transport *t, const char *name, outbox_time deadline, char *out,
		       size_t size, struct outbox_error *err)
{
	const char *const get[] = { "CONFIG", "GET", name, NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int r;

	redis_wire_command(&t->wire, get);
	r = redis_wire_ask(&t->wire, true, deadline, &reply, err);
	if (r)
		return r;
	out[0] = '\0';
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[1]->type == REDIS_REPLY_STRING)
		snprintf(out, size, "%s", reply->element[1]->str);
	return OUTBOX_OK;
}

static void judge_disk(struct findings *f, const char *info, const char *fsync)
{
	char value[40];

	redis_info(info, "aof_enabled", value, sizeof(value));
	if (strcmp(value, "1") != 0) {
		findings_add(f, FINDING_WARNING,
			     "acknowledged when in memory: appendonly is off, so a crash loses all since the "
			     "last snapshot; set appendonly yes");
		return;
	}
	if (strcmp(fsync, "always") == 0)
		findings_add(f, FINDING_OK,
			     "acknowledged when on disk (appendonly, appendfsync always)");
	else if (strcmp(fsync, "everysec") == 0)
		findings_add(f, FINDING_NOTE,
			     "acknowledged when in memory, on disk within a second (appendfsync everysec): a crash or "
			     "a power cut can lose up to two seconds");
	else if (strcmp(fsync, "no") == 0)
		findings_add(f, FINDING_WARNING,
			     "acknowledged when in memory, on disk when the kernel writes it (appendfsync no): a power cut "
			     "can lose half a minute; set everysec or always");
	else
		findings_add(f, FINDING_NOTE,
			     "acknowledged when in memory; the append-only file is on, and its appendfsync could not "
			     "be read (CONFIG GET is not allowed)");
	redis_info(info, "aof_last_write_status", value, sizeof(value));
	if (value[0] && strcmp(value, "ok") != 0)
		findings_add(f, FINDING_ERROR,
			     "the server cannot write its append-only file now; see its log");
}

static void judge_memory(struct findings *f, const struct redis_transport *t, const char *info)
{
	char policy[40], limit[40], shown[60];

	redis_info(info, "maxmemory_policy", policy, sizeof(policy));
	redis_info(info, "maxmemory", limit, sizeof(limit));
	if (strncmp(policy, "allkeys", 7) == 0)
		findings_add(f, FINDING_WARNING,
			     "maxmemory-policy %s may evict whole streams%s; set noeviction",
			     text_shown(shown, sizeof(shown), policy),
			     strcmp(limit, "0") == 0 ? " once maxmemory is set" : "");
	if (t->maxlen)
		findings_add(f, FINDING_NOTE, "maxlen=%lld removes older entries, read or not",
			     (long long)t->maxlen);
}

static void judge_replicas(struct findings *f, const struct redis_transport *t, const char *info)
{
	long long replicas = redis_info_replicas(info);

	if (t->replicas)
		findings_add(f, FINDING_OK, "and in the memory of %lld replicas (%lld online)",
			     (long long)t->replicas, replicas);
	else if (replicas)
		findings_add(f, FINDING_NOTE,
			     "replicas %lld, asynchronous: a failover can lose the last messages; wait=%lld "
			     "waits for them",
			     replicas, replicas > 1 ? replicas - 1 : 1);
	else
		findings_add(f, FINDING_NOTE,
			     "no replica: the loss of this machine loses the streams");
}

/* A target with one stream: would the next message get in? Whoever may not ask for the type is told nothing. */
static int judge_stream(struct redis_transport *t, outbox_time deadline, struct findings *f,
			struct outbox_error *err)
{
	const char *const type[] = { "TYPE", buf_str(&t->key), NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	char shown[200];
	int r;

	if (!t->fixed)
		return OUTBOX_OK;
	redis_wire_command(&t->wire, type);
	r = redis_wire_ask(&t->wire, false, deadline, &reply, err);
	if (r || reply->type != REDIS_REPLY_STATUS || strcmp(reply->str, "stream") == 0)
		return r;
	text_shown(shown, sizeof(shown), buf_str(&t->key));
	if (strcmp(reply->str, "none") != 0)
		findings_add(f, FINDING_ERROR,
			     "\"%s\" exists and is not a stream: every message will be refused; name "
			     "another one, or remove it",
			     shown);
	else if (!t->create)
		findings_add(f, FINDING_ERROR,
			     "there is no stream \"%s\", and create=no: every message will be refused; "
			     "make it (XGROUP CREATE ... MKSTREAM), or leave create=no out",
			     shown);
	return OUTBOX_OK;
}

/* Without scripts everything arrives in the same order, but slower. */
static int judge_scripts(struct redis_transport *t, outbox_time deadline, struct findings *f,
			 struct outbox_error *err)
{
	static const char *const words[] = { "EVAL", "return 1", "0", NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int r;

	redis_wire_command(&t->wire, words);
	r = redis_wire_ask(&t->wire, false, deadline, &reply, err);
	if (!r && reply->type == REDIS_REPLY_ERROR)
		findings_add(f, FINDING_NOTE,
			     "EVAL is not allowed: with few keys, messages wait for each other's answers; "
			     "let the user run it (+eval)");
	return r;
}

static int ask_all(struct redis_transport *t, outbox_time deadline, struct findings *f,
		   struct outbox_error *err)
{
	static const char *const info[] = { "INFO", NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	char value[40];
	int r;

	redis_wire_command(&t->wire, info);
	r = redis_wire_ask(&t->wire, false, deadline, &reply, err);
	if (r)
		return r;
	if (reply->type != REDIS_REPLY_STRING) {
		findings_add(f, FINDING_NOTE,
			     "acknowledged when in the server's memory; how durable that is could not be read "
			     "(INFO is not allowed)");
		return OUTBOX_OK;
	}
	r = ask_setting(t, "appendfsync", deadline, value, sizeof(value), err);
	if (r)
		return r;
	judge_disk(f, reply->str, value);
	judge_memory(f, t, reply->str);
	judge_replicas(f, t, reply->str);
	return OUTBOX_OK;
}

int redis_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct redis_transport *t = redis_downcast(transport);
	struct findings f = FINDINGS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = broker_ready(&t->broker, t->wire.fd >= 0, deadline, &err);

	if (!r)
		r = judge_stream(t, deadline, &f, &err);
	if (!r)
		r = ask_all(t, deadline, &f, &err);
	if (!r)
		r = judge_scripts(t, deadline, &f, &err);
	if (r)
		redis_wire_close(&t->wire);
	return findings_finish(&f, r, &err, text, size);
}
