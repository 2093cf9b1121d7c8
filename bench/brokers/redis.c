/* SPDX-License-Identifier: Apache-2.0 */
#include "../series.h"
#include "plain.h"

#include <hiredis/hiredis.h>
#include <string.h>

static void *open_redis(const char *url)
{
	char host[256];
	redisContext *redis;
	int port;

	plain_address(url, host, &port);
	redis = redisConnect(host, port);
	if (!redis || redis->err)
		die("redis", redis ? redis->errstr : "out of memory");
	return redis;
}

static void make(void *broker)
{
	freeReplyObject(redisCommand(broker, "DEL bench"));
}

static long count(void *broker)
{
	redisReply *reply = redisCommand(broker, "XLEN bench");
	long n = reply ? (long)reply->integer : -1;

	freeReplyObject(reply);
	return n;
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	redisContext *redis = broker;
	redisReply *reply;

	for (size_t i = 0; i < n; i++) {
		const struct plain_message *m = &messages[i];
		const char *words[] = { "XADD",
					"bench",
					"*",
					"ce-specversion",
					"1.0",
					"ce-id",
					m->id,
					"ce-source",
					PLAIN_SOURCE,
					"ce-type",
					m->type,
					"ce-time",
					m->time,
					"ce-partitionkey",
					m->key,
					"content-type",
					PLAIN_CONTENT_TYPE,
					"data",
					m->body };
		size_t lengths[sizeof(words) / sizeof(words[0])];
		int count = (int)(sizeof(words) / sizeof(words[0]));

		for (int k = 0; k < count - 1; k++)
			lengths[k] = strlen(words[k]);
		lengths[count - 1] = m->size;
		redisAppendCommandArgv(redis, count, words, lengths);
	}
	for (size_t i = 0; i < n; i++) {
		if (redisGetReply(redis, (void **)&reply) != REDIS_OK ||
		    reply->type != REDIS_REPLY_STRING)
			die("XADD", redis->errstr);
		freeReplyObject(reply);
	}
}

static void close_redis(void *broker)
{
	redisFree(broker);
}

const struct plain_ops plain_redis = { .name = "redis",
				       .env = "OUTBOX_TEST_REDIS",
				       .options = "?stream=bench",
				       .open = open_redis,
				       .make = make,
				       .count = count,
				       .publish = publish,
				       .close = close_redis };
