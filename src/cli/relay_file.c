/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relay_file.h"

#include "base/buf.h"
#include "base/text.h"
#include "cli/config_file.h"
#include "daemon/configure.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE (OUTBOX_TARGET_NAME_MAX + 1)

/* A character as it may stand in a name; 0: not at its beginning. */
static char name_char(char given, bool first)
{
	char c = (char)tolower((unsigned char)given);

	if (c >= 'a' && c <= 'z')
		return c;
	if (first)
		return 0;
	return c >= '0' && c <= '9' ? c : '-';
}

/* A name that people recognise: the last part of the store's URL, as far as a name can hold it. */
static void name_of(const char *store, char *out)
{
	size_t end = strcspn(store, "?"), begin = end, n = 0;

	while (begin > 0 && !strchr("/:", store[begin - 1]))
		begin--;
	for (; begin < end && store[begin] != '.' && n + 1 < NAME_SIZE; begin++) {
		out[n] = name_char(store[begin], n == 0);
		n += out[n] != 0;
	}
	out[n] = '\0';
	if (!n)
		snprintf(out, NAME_SIZE, "store");
}

/* A ${ in an option is no variable: the shell has replaced those. */
static json_t *text_json(const char *text)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)64 << 10);

	for (; *text; text++)
		buf_printf(&out, "%s%c", strncmp(text, "${", 2) == 0 ? "$" : "", *text);
	return json_string(buf_str(&out));
}

static json_t *find(json_t *targets, const char *name)
{
	json_t *target;
	size_t i;

	json_array_foreach(targets, i,
			   target) if (strcmp(json_string_value(json_object_get(target, "name")),
					      name) == 0) return target;
	return NULL;
}

static json_t *group(json_t *target, const char *name)
{
	json_t *found = json_object_get(target, name);

	if (!found) {
		json_object_set_new(target, name, json_object());
		found = json_object_get(target, name);
	}
	return found;
}

static void set_one(json_t *target, const char *option, const char *value)
{
	json_t *match;

	if (strcmp(option, "envelope") == 0 && strcmp(value, "external") == 0) {
		json_object_set_new(target, "external", json_true());
	} else if (strcmp(option, "policy") == 0) {
		json_object_set_new(group(target, "retry"), "preset", json_string(value));
	} else if (strcmp(option, "kind") == 0) {
		json_object_set_new(group(target, "match"), "kind", json_string(value));
	} else if (strcmp(option, "match") == 0 && strcmp(value, "-") == 0) {
		json_object_set_new(group(target, "match"), "nothing", json_true());
	} else if (strcmp(option, "match") == 0) {
		match = group(target, "match");
		if (!json_object_get(match, "type"))
			json_object_set_new(match, "type", json_array());
		json_array_append_new(json_object_get(match, "type"), text_json(value));
	} else {
		json_object_set_new(target, option, text_json(value));
	}
}

/* NAME=VALUE of one target; VALUE alone for all. */
static void set_each(json_t *targets, const char *option, const struct list *given)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *equals = strchr(given->items[i], '=');
		char name[NAME_SIZE];
		json_t *target;
		size_t at;

		snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - given->items[i]) : 0,
			 given->items[i]);
		json_array_foreach(targets, at, target) if (!equals || target == find(targets, name))
			set_one(target, option, equals ? equals + 1 : given->items[i]);
	}
}

static json_t *targets_json(const struct relay_values *given)
{
	json_t *targets = json_array();

	for (size_t i = 0; i < given->to.count; i++) {
		const char *equals = strchr(given->to.items[i], '=');

		json_array_append_new(targets, json_pack("{s:s%, s:o}", "name", given->to.items[i],
							 (size_t)(equals - given->to.items[i]),
							 "to", text_json(equals + 1)));
	}
	set_each(targets, "match", &given->match);
	set_each(targets, "kind", &given->kind);
	set_each(targets, "envelope", &given->envelope);
	set_each(targets, "order", &given->order);
	set_each(targets, "start", &given->start);
	set_each(targets, "dead_letter", &given->dead_letter);
	set_each(targets, "policy", &given->policy);
	set_each(targets, "rate", &given->rate);
	for (size_t i = 0; i < given->hold.count; i++)
		json_object_set_new(find(targets, given->hold.items[i]), "hold", json_true());
	for (size_t i = 0; i < given->bands.count; i++)
		json_object_set_new(find(targets, given->bands.items[i]), "bands", json_true());
	return targets;
}

static void set_number(json_t *relay, const char *key, int64_t value)
{
	if (value)
		json_object_set_new(relay, key, json_integer(value));
}

static void set_time(json_t *relay, const char *key, outbox_time value)
{
	char text[DURATION_TEXT_MAX];

	if (value)
		json_object_set_new(relay, key,
				    json_string(value == OUTBOX_NEVER ? "forever"
								      : duration_exact(value, text)));
}

static json_t *relay_json(const struct relay_values *given)
{
	json_t *relay = json_object();

	if (given->instance)
		json_object_set_new(relay, "instance", text_json(given->instance));
	set_number(relay, "workers", given->workers);
	set_number(relay, "batch", given->batch);
	set_number(relay, "batch_bytes", given->batch_bytes);
	set_time(relay, "lease", given->lease);
	set_time(relay, "poll", given->poll);
	set_time(relay, "retain_delivered", given->retain_delivered);
	set_time(relay, "retain_failed", given->retain_failed);
	set_time(relay, "shutdown_timeout", given->shutdown_timeout);
	return relay;
}

int relay_file_make(const struct relay_values *given, const char *store, struct config **ret_config,
		    struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	_cleanup_(cleanup_free) char *text = NULL;
	struct config_input input = { .file = "the options", .secrets = true, .options = true };
	char name[NAME_SIZE];
	json_t *root;
	int r;

	name_of(store, name);
	root = json_pack("{s:[{s:s, s:o}], s:o, s:o}", "sources", "name", name, "store",
			 text_json(store), "targets", targets_json(given), "relay",
			 relay_json(given));
	if (root && given->listen)
		json_object_set_new(root, "admin",
				    json_pack("{s:o}", "listen", text_json(given->listen)));
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!problems || !text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	input.text = text;
	input.size = strlen(text);
	r = configure(&input, ret_config, problems, err);
	/* all on one line of a file that nobody wrote: the place says nothing */
	if (r == OUTBOX_ECONFIG && problems->count)
		outbox_fail(err, r, "%s", problems->items[0].text);
	explicit_bzero(text, strlen(text));
	return r;
}
