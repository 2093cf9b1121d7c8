/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_transport/broker.h"

#include <outbox/arena.h>

#include "base/text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES_MAX ((size_t)1 << 30)
#define RULE_BYTES_MAX ((size_t)1 << 20)

struct rule {
	struct memory_rule rule;
	int left;
	struct rule *next;
};

struct memory_broker {
	pthread_mutex_t lock;
	/* What arrived. Records live in the arena, so that pointers to them stay valid. */
	struct outbox_arena *kept;
	struct memory_record **records;
	size_t count, capacity;
	struct memory_counts counts;
	uint64_t calls, connections;
	/* The script. */
	struct outbox_arena *texts;
	struct rule *rules, **last_rule;
	struct memory_hooks hooks;
	int down;              /* status; 0: up */
	uint64_t oldest_alive; /* connections before this one broke */
	unsigned refuse;
	int refuse_status;
	bool lose_armed, lose_acks;
	size_t lose_after;
};

int memory_broker_new(struct memory_broker **ret_broker, struct outbox_error *err)
{
	_cleanup_(memory_broker_freep) struct memory_broker *broker = calloc(1, sizeof(*broker));

	if (!broker)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	pthread_mutex_init(&broker->lock, NULL);
	broker->last_rule = &broker->rules;
	broker->kept = outbox_arena_new(KEPT_BYTES_MAX);
	broker->texts = outbox_arena_new(RULE_BYTES_MAX);
	if (!broker->kept || !broker->texts)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_broker = broker;
	broker = NULL;
	return OUTBOX_OK;
}

struct memory_broker *memory_broker_free(struct memory_broker *broker)
{
	if (!broker)
		return NULL;
	outbox_arena_free(broker->kept);
	outbox_arena_free(broker->texts);
	free(broker->records);
	pthread_mutex_destroy(&broker->lock);
	free(broker);
	return NULL;
}

/* ---- the script ---------------------------------------------------------------------------- */

int memory_broker_rule(struct memory_broker *broker, const struct memory_rule *rule,
		       struct outbox_error *err)
{
	struct rule *added;
	bool complete = false;

	pthread_mutex_lock(&broker->lock);
	added = outbox_arena_alloc(broker->texts, sizeof(*added));
	if (added) {
		added->rule = *rule;
		added->left = rule->times;
		added->rule.type = outbox_arena_text(broker->texts, rule->type);
		added->rule.key = outbox_arena_text(broker->texts, rule->key);
		added->rule.id = outbox_arena_text(broker->texts, rule->id);
		added->rule.reason = outbox_arena_text(broker->texts, rule->reason);
		complete = !rule->type == !added->rule.type && !rule->key == !added->rule.key &&
			   !rule->id == !added->rule.id && !rule->reason == !added->rule.reason;
	}
	if (complete) {
		*broker->last_rule = added;
		broker->last_rule = &added->next;
	}
	pthread_mutex_unlock(&broker->lock);
	return complete ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

void memory_broker_forget_rules(struct memory_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	/* The arena is kept: an answer in another thread may still hold a rule's reason. */
	broker->rules = NULL;
	broker->last_rule = &broker->rules;
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_hooks(struct memory_broker *broker, const struct memory_hooks *hooks)
{
	pthread_mutex_lock(&broker->lock);
	broker->hooks = hooks ? *hooks : (struct memory_hooks){ 0 };
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_down(struct memory_broker *broker, int status)
{
	pthread_mutex_lock(&broker->lock);
	broker->down = status;
	broker->oldest_alive = broker->connections + 1;
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_up(struct memory_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->down = 0;
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_refuse(struct memory_broker *broker, unsigned n, int status)
{
	pthread_mutex_lock(&broker->lock);
	broker->refuse = n;
	broker->refuse_status = status;
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_lose(struct memory_broker *broker, size_t after, bool acks_lost)
{
	pthread_mutex_lock(&broker->lock);
	broker->lose_armed = true;
	broker->lose_after = after;
	broker->lose_acks = acks_lost;
	pthread_mutex_unlock(&broker->lock);
}

/* ---- what arrived -------------------------------------------------------------------------- */

size_t memory_broker_count(struct memory_broker *broker)
{
	size_t count;

	pthread_mutex_lock(&broker->lock);
	count = broker->count;
	pthread_mutex_unlock(&broker->lock);
	return count;
}

const struct memory_record *memory_broker_at(struct memory_broker *broker, size_t i)
{
	const struct memory_record *record;

	pthread_mutex_lock(&broker->lock);
	record = i < broker->count ? broker->records[i] : NULL;
	pthread_mutex_unlock(&broker->lock);
	return record;
}

size_t memory_broker_count_id(struct memory_broker *broker, const char *id)
{
	size_t count = 0;

	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < broker->count; i++)
		count += strcmp(broker->records[i]->id, id) == 0;
	pthread_mutex_unlock(&broker->lock);
	return count;
}

void memory_broker_counts(struct memory_broker *broker, struct memory_counts *ret_counts)
{
	pthread_mutex_lock(&broker->lock);
	*ret_counts = broker->counts;
	pthread_mutex_unlock(&broker->lock);
}

void memory_broker_clear(struct memory_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	outbox_arena_reset(broker->kept);
	broker->count = 0;
	broker->counts = (struct memory_counts){ 0 };
	pthread_mutex_unlock(&broker->lock);
}

/* ---- for the transports -------------------------------------------------------------------- */

int broker_connect(struct memory_broker *broker, uint64_t *ret_connection, struct outbox_error *err)
{
	int status;

	pthread_mutex_lock(&broker->lock);
	status = broker->down;
	if (!status && broker->refuse) {
		broker->refuse--;
		status = broker->refuse_status;
	}
	if (status) {
		broker->counts.refused++;
	} else {
		broker->counts.connects++;
		*ret_connection = ++broker->connections;
	}
	pthread_mutex_unlock(&broker->lock);
	if (status)
		return outbox_fail(err, status, "memory: the broker is out of reach");
	return OUTBOX_OK;
}

int broker_begin(struct memory_broker *broker, uint64_t connection, const struct outbox_batch *batch,
		 struct memory_call *ret_call, struct outbox_error *err)
{
	struct memory_call call = { .lost_at = SIZE_MAX };
	struct memory_hooks hooks;
	int status = OUTBOX_OK;

	pthread_mutex_lock(&broker->lock);
	hooks = broker->hooks;
	call.number = ++broker->calls;
	broker->counts.publishes++;
	pthread_mutex_unlock(&broker->lock);

	if (hooks.on_publish)
		hooks.on_publish(hooks.context, batch);

	pthread_mutex_lock(&broker->lock);
	if (connection < broker->oldest_alive)
		status = broker->down ? broker->down : OUTBOX_ECONN;
	else if (broker->lose_armed && broker->lose_after >= batch->count)
		broker->lose_after -= batch->count;
	else if (broker->lose_armed) {
		broker->lose_armed = false;
		call.lost_at = broker->lose_after;
		call.acks_lost = broker->lose_acks;
	}
	pthread_mutex_unlock(&broker->lock);
	if (status)
		return outbox_fail(err, status, "memory: the connection is gone");
	*ret_call = call;
	return OUTBOX_OK;
}

static bool rule_matches(const struct memory_rule *rule, const struct outbox_item *item)
{
	const struct outbox_message *m = item->message;

	if (rule->type && !glob_match(rule->type, m->type))
		return false;
	if (rule->key && (!m->key || strcmp(rule->key, m->key) != 0))
		return false;
	if (rule->id && strcmp(rule->id, m->id) != 0)
		return false;
	return !rule->seq || rule->seq == item->seq;
}

struct memory_answer broker_answer(struct memory_broker *broker, uint64_t connection,
				   const struct outbox_item *item)
{
	struct memory_answer answer = { .fate = MEMORY_DEFAULT, .status = OUTBOX_ECONN };
	struct memory_hooks hooks;

	pthread_mutex_lock(&broker->lock);
	broker->counts.offered++;
	hooks = broker->hooks;
	pthread_mutex_unlock(&broker->lock);

	if (hooks.on_message)
		answer.fate = hooks.on_message(hooks.context, item);
	if (answer.fate != MEMORY_DEFAULT)
		return answer;

	pthread_mutex_lock(&broker->lock);
	if (connection < broker->oldest_alive) {
		answer.fate = MEMORY_DROP;
		answer.status = broker->down ? broker->down : OUTBOX_ECONN;
	}
	for (struct rule *rule = broker->rules; rule && !answer.fate; rule = rule->next) {
		if ((rule->rule.times && !rule->left) || !rule_matches(&rule->rule, item))
			continue;
		rule->left -= rule->rule.times != 0;
		answer.fate = rule->rule.fate;
		answer.reason = rule->rule.reason;
		answer.wait = rule->rule.wait;
		if (rule->rule.status)
			answer.status = rule->rule.status;
	}
	pthread_mutex_unlock(&broker->lock);
	return answer;
}

static bool reserve(struct memory_broker *broker)
{
	size_t capacity = broker->capacity ? 2 * broker->capacity : 256;
	struct memory_record **grown;

	if (broker->count < broker->capacity)
		return true;
	grown = reallocarray(broker->records, capacity, sizeof(*grown));
	if (!grown)
		return false;
	broker->records = grown;
	broker->capacity = capacity;
	return true;
}

static bool copy_headers(struct outbox_arena *arena, const struct outbox_encoded *encoded,
			 struct memory_record *record)
{
	struct outbox_header *headers;

	headers = outbox_arena_alloc(arena, (encoded->n_headers + 1) * sizeof(*headers));
	if (!headers)
		return false;
	for (size_t i = 0; i < encoded->n_headers; i++) {
		headers[i].name = outbox_arena_text(arena, encoded->headers[i].name);
		headers[i].value = outbox_arena_text(arena, encoded->headers[i].value);
		if (!headers[i].name || !headers[i].value)
			return false;
	}
	record->headers = headers;
	record->n_headers = encoded->n_headers;
	return true;
}

static struct memory_record *copy(struct outbox_arena *arena, const struct outbox_item *item,
				  const struct outbox_encoded *encoded)
{
	const struct outbox_message *m = item->message;
	struct memory_record *record = outbox_arena_alloc(arena, sizeof(*record));

	if (!record)
		return NULL;
	record->id = outbox_arena_text(arena, m->id);
	record->type = outbox_arena_text(arena, m->type);
	record->key = outbox_arena_text(arena, m->key);
	record->content_type = outbox_arena_text(arena, encoded->content_type);
	record->seq = item->seq;
	record->attempts = item->attempts;
	record->body = outbox_arena_copy(arena, encoded->body ? encoded->body : "", encoded->size);
	record->size = encoded->size;
	if (!record->id || !record->type || !record->body || (m->key && !record->key) ||
	    (encoded->content_type && !record->content_type))
		return NULL;
	return copy_headers(arena, encoded, record) ? record : NULL;
}

int broker_keep(struct memory_broker *broker, const struct outbox_item *item,
		const struct outbox_encoded *encoded, const struct memory_record *origin,
		struct outbox_error *err)
{
	struct memory_record *record;

	pthread_mutex_lock(&broker->lock);
	record = reserve(broker) ? copy(broker->kept, item, encoded) : NULL;
	if (record) {
		record->connection = origin->connection;
		record->call = origin->call;
		record->confirmed = origin->confirmed;
		broker->records[broker->count++] = record;
		broker->counts.acked += record->confirmed;
	}
	pthread_mutex_unlock(&broker->lock);
	return record ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "memory: the broker is full");
}
