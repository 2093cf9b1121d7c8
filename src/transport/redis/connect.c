/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/redis/driver.h"

#include "base/cleanup.h"
#include "transport/socket.h"

#include <string.h>

/* ECONN, ETIMEDOUT: tries each address that the name has. */
static int connect_wire(struct redis_wire *wire, const struct address *address,
			outbox_time deadline, struct outbox_error *err)
{
	int r;

	redis_wire_close(wire);
	snprintf(wire->shown, sizeof(wire->shown), "redis %s:%d", address->host, address->port);
	r = socket_connect(address, wire->shown, wire->clock, deadline, &wire->fd, err);
	if (r)
		return r;
	wire->reader = redisReaderCreate();
	return wire->reader ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Ask; an error reply that `may_refuse` lets pass is no failure. *ret_reply may be NULL. */
static int ask(struct redis_transport *t, const char *const *words, bool may_refuse,
	       outbox_time deadline, redisReply **ret_reply, struct outbox_error *err)
{
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	const char *remedy;
	int r;

	redis_wire_command(&t->wire, words);
	r = redis_wire_ask(&t->wire, false, deadline, &reply, err);
	if (r)
		return r;
	if (reply->type == REDIS_REPLY_ERROR) {
		enum redis_refusal refusal = redis_refusal_of(reply->str, &remedy);
		bool passes = may_refuse && (refusal == REDIS_AGAIN || refusal == REDIS_WRONG ||
					     strncmp(reply->str, "NOPERM", 6) == 0);

		return passes ? OUTBOX_OK : redis_refused(&t->wire, reply->str, err);
	}
	if (ret_reply) {
		*ret_reply = reply;
		reply = NULL;
	}
	return OUTBOX_OK;
}

/* A server may repeat what it did not understand, and that would be the password: its text is not shown. */
static int log_in(struct redis_transport *t, outbox_time deadline, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	const char *const auth[] = { "AUTH", e->user ? e->user : e->password,
				     e->user ? e->password : NULL, NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	size_t length;
	int r;

	if (!e->password)
		return OUTBOX_OK;
	redis_wire_command(&t->wire, auth);
	r = redis_wire_ask(&t->wire, false, deadline, &reply, err);
	if (t->wire.out.data)
		explicit_bzero(t->wire.out.data, t->wire.out.capacity);
	if (r || reply->type != REDIS_REPLY_ERROR)
		return r;
	if (strncmp(reply->str, "LOADING", 7) == 0 || strstr(reply->str, "max number of clients"))
		return redis_refused(&t->wire, reply->str, err);
	if (strstr(reply->str, "without any password configured"))
		return outbox_fail(err, OUTBOX_EAUTH,
				   "%s: the server has no password, the URL has one; leave it out, or "
				   "set one at the server (requirepass, ACL SETUSER)",
				   t->wire.shown);
	length = strspn(reply->str, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	length = length < 20 && reply->str[length] == ' ' ? length : 0;
	return outbox_fail(err, OUTBOX_EAUTH,
			   "%s: the server refused the login%s%.*s; correct user and password",
			   t->wire.shown, length ? ": " : "", (int)length, reply->str);
}

const char *redis_info(const char *info, const char *name, char *out, size_t size)
{
	size_t length = strlen(name);

	out[0] = '\0';
	for (const char *line = info; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			line += length + 1;
			snprintf(out, size, "%.*s", (int)strcspn(line, "\r\n"), line);
			break;
		}
	}
	return out;
}

int64_t redis_info_replicas(const char *info)
{
	int64_t n = 0;

	for (const char *at = info; (at = strstr(at, ",state=online")); at++)
		n++;
	return n;
}

/* A replica takes no writes; one that was asked to wait for replicas it does not have would make duplicates. */
static int check_role(struct redis_transport *t, outbox_time deadline, struct outbox_error *err)
{
	static const char *const words[] = { "INFO", "replication", NULL };
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int64_t replicas;
	char role[24];
	int r = ask(t, words, true, deadline, &reply, err);

	if (r || !reply || reply->type != REDIS_REPLY_STRING)
		return r;
	if (strcmp(redis_info(reply->str, "role", role, sizeof(role)), "slave") == 0)
		return outbox_fail(err, OUTBOX_ECONN,
				   "%s: is a read-only replica; name the primary in the URL",
				   t->wire.shown);
	replicas = redis_info_replicas(reply->str);
	if (replicas < t->replicas)
		return outbox_fail(err, OUTBOX_ECONN,
				   "%s: has %lld replicas online, but wait=%lld requires as many; "
				   "nothing is sent until they are back",
				   t->wire.shown, (long long)replicas, (long long)t->replicas);
	return OUTBOX_OK;
}

/* Before anything is sent that could not be confirmed: it would be sent again and again. May we wait, and for whom? */
static int check_wait(struct redis_transport *t, outbox_time deadline, struct outbox_error *err)
{
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	char number[24];
	const char *const words[] = { "WAIT", number, "1000", NULL };
	int64_t answering;
	int r;

	if (t->replicas == 0)
		return OUTBOX_OK;
	snprintf(number, sizeof(number), "%lld", (long long)t->replicas);
	r = ask(t, words, false, deadline, &reply, err);
	if (r)
		return r;
	answering = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
	if (answering >= t->replicas)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONN,
			   "%s: %lld replicas answer, but wait=%lld requires as many; nothing is sent until "
			   "they are back",
			   t->wire.shown, (long long)answering, (long long)t->replicas);
}

static int begin_session(struct redis_transport *t, outbox_time deadline, struct outbox_error *err)
{
	const char *const name[] = { "CLIENT", "SETNAME", t->client, NULL };
	static const char *const ping[] = { "PING", NULL };
	char number[24];
	const char *const select[] = { "SELECT", number, NULL };
	int r;

	snprintf(number, sizeof(number), "%lld", (long long)t->database);
	r = log_in(t, deadline, err);
	if (!r)
		r = ask(t, ping, true, deadline, NULL, err);
	if (!r)
		r = ask(t, name, true, deadline, NULL, err);
	if (!r && t->database)
		r = ask(t, select, false, deadline, NULL, err);
	if (!r)
		r = check_role(t, deadline, err);
	if (!r)
		r = check_wait(t, deadline, err);
	return r ? r : redis_wire_check_quiet(&t->wire, err);
}

static int use_address(void *context, const struct address *address, outbox_time until,
		       struct outbox_error *err)
{
	struct redis_transport *t = context;
	int r = connect_wire(&t->wire, address, until, err);

	t->no_scripts = false;
	return r ? r : begin_session(t, until, err);
}

int redis_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct redis_transport *t = redis_downcast(transport);
	int r = endpoint_try(&t->broker.endpoint, t->wire.clock, deadline, use_address, t, err);

	if (r)
		redis_wire_close(&t->wire);
	return r;
}
