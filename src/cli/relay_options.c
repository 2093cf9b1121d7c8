/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options make the tree that a file would have made, and each node remembers its option: types, defaults and checks
 * are those of the configuration's tables, and a mistake is told with the option's name.
 */
#include "cli/relay_options.h"

#include "base/nearest.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/config_file.h"
#include "cli/policies.h"
#include "cli/store_url.h"
#include "config/node.h"
#include "core/routing.h"
#include "daemon/configure.h"
#include "daemon/journal.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE (OUTBOX_TARGET_NAME_MAX + 1)

/* An option and the key that it sets. */
struct setting {
	const char *option, *group, *key;
	size_t offset; /* in struct relay_values */
};

#define SETTING(option_, group_, key_, field_)                               \
	{                                                                    \
		option_, group_, key_, offsetof(struct relay_values, field_) \
	}

/* NAME=VALUE each, of a target; NAME alone for what is true or not set. */
static const struct setting target_settings[] = {
	SETTING("match", "match", "type", match),
	SETTING("match-header", "match", "headers", match_header),
	SETTING("kind", "match", "kind", kind),
	SETTING("envelope", NULL, "envelope", envelope),
	SETTING("order", NULL, "order", order),
	SETTING("start", NULL, "start", start),
	SETTING("dead-letter", NULL, "dead_letter", dead_letter),
	SETTING("policy", "retry", "preset", policy),
	SETTING("rate", NULL, "rate", rate),
	SETTING("max-size", NULL, "max_size", max_size),
	SETTING("hold", NULL, "hold", hold),
	SETTING("bands", NULL, "bands", bands),
};

static const struct setting process_settings[] = {
	SETTING("workers", "relay", "workers", workers),
	SETTING("batch", "relay", "batch", batch),
	SETTING("batch-bytes", "relay", "batch_bytes", batch_bytes),
	SETTING("lease", "relay", "lease", lease),
	SETTING("poll", "relay", "poll", poll),
	SETTING("retain-delivered", "relay", "retain_delivered", retain_delivered),
	SETTING("retain-failed", "relay", "retain_failed", retain_failed),
	SETTING("shutdown-timeout", "relay", "shutdown_timeout", shutdown_timeout),
	SETTING("instance", "relay", "instance", instance),
	SETTING("listen", "admin", "listen", listen),
};

static const struct list *list_of(const struct relay_values *given, const struct setting *setting)
{
	return (const struct list *)((const char *)given + setting->offset);
}

static const char *text_of(const struct relay_values *given, const struct setting *setting)
{
	return *(const char *const *)((const char *)given + setting->offset);
}

/* What the tree is made of: the options and the store, which is a matter of all commands. */
struct origin_options {
	const struct relay_values *given;
	const char *store;
};

struct tree {
	struct outbox_arena *arena;
	struct node *root, *targets;
	bool no_memory;
};

static struct node *add_node(struct tree *tree, struct node *parent, enum node_kind kind,
			     const char *key)
{
	struct node *node = tree->no_memory ? NULL : node_add(tree->arena, parent, kind, key);

	if (node)
		node->place.origin = ORIGIN_OPTION;
	tree->no_memory |= !node;
	return node;
}

/* The map or list of this key, made when it is not there. */
static struct node *get_node(struct tree *tree, struct node *map, enum node_kind kind,
			     const char *key)
{
	struct node *found = node_find(map, key);

	return found ? found : add_node(tree, map, kind, key);
}

/* option is with its dashes, and the target's name if it is of one. */
static void set_text(struct tree *tree, struct node *node, const char *option, const char *text)
{
	if (!node)
		return;
	node->place.name = outbox_arena_text(tree->arena, option);
	node->text = outbox_arena_text(tree->arena, text);
	tree->no_memory |= !node->place.name || !node->text;
}

static void set_key(struct tree *tree, struct node *map, const char *key, const char *option,
		    const char *text)
{
	set_text(tree, map ? get_node(tree, map, NODE_TEXT, key) : NULL, option, text);
}

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
static void name_store(const char *store, char *out)
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

static void add_source(struct tree *tree, const char *store)
{
	struct node *list = add_node(tree, tree->root, NODE_LIST, "sources");
	struct node *source = add_node(tree, list, NODE_MAP, NULL);
	char name[NAME_SIZE];

	name_store(store, name);
	set_key(tree, source, "name", "--store", name);
	set_key(tree, source, "store", "--store", store);
}

static int add_targets(struct tree *tree, const struct list *to, struct outbox_error *err)
{
	tree->targets = add_node(tree, tree->root, NODE_LIST, "targets");
	for (size_t i = 0; i < to->count; i++) {
		struct node *target;
		char name[NAME_SIZE], option[NAME_SIZE + 20], scheme[32], shown[80];
		const char *url;
		int r = pair_split("to", to->items[i], name, sizeof(name), &url, err);

		if (r == OUTBOX_OK)
			r = target_name_check(name, err);
		if (r)
			return r;
		if (!url_scheme(url, scheme, sizeof(scheme)))
			return outbox_fail(err, OUTBOX_EINVAL,
					   "--to %s: \"%s\" has no scheme; did you mean file:%s?",
					   name, text_shown(shown, sizeof(shown), url), shown);
		if (node_named(tree->targets, name))
			return outbox_fail(err, OUTBOX_EINVAL,
					   "--to: target \"%s\" is named twice; names are unique",
					   name);
		url_warn("to", url);
		target = add_node(tree, tree->targets, NODE_MAP, NULL);
		snprintf(option, sizeof(option), "--to %s", name);
		set_key(tree, target, "name", option, name);
		set_key(tree, target, "to", option, url);
	}
	return OUTBOX_OK;
}

static void set_one(struct tree *tree, struct node *target, const struct setting *setting,
		    const char *value)
{
	struct node *map = target;
	const char *key = setting->key;
	char option[NAME_SIZE + 40];

	snprintf(option, sizeof(option), "--%s %s", setting->option, node_name(target));
	if (setting->group)
		map = get_node(tree, target, NODE_MAP, setting->group);
	if (strcmp(key, "headers") == 0 || (strcmp(key, "type") == 0 && strcmp(value, "-") != 0)) {
		struct node *globs = get_node(tree, map, NODE_LIST, key);

		set_text(tree, add_node(tree, globs, NODE_TEXT, NULL), option, value);
		return;
	}
	if (strcmp(key, "type") == 0)
		key = "nothing";
	else if (strcmp(key, "envelope") == 0 && strcmp(value, "external") == 0)
		key = "external"; /* a file says external: true */
	set_key(tree, map, key, option, key == setting->key ? value : "true");
}

/* A file has a key of its own for external, so that its words are fewer. */
static int check_envelope(const char *name, const char *value, struct outbox_error *err)
{
	static const char *const forms[] = { "structured", "binary", "native", "external", NULL };
	static const struct field envelope = { .type = FIELD_TEXT, .words = forms };
	const char *known;

	if (field_parse(&envelope, value, &(struct field_context){ 0 }, &known, err) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_wrap(err, "--envelope %s", name);
}

static bool is_option(const struct setting *setting, const char *option)
{
	return strcmp(setting->option, option) == 0;
}

/* A policy without a name is for all targets. */
static int set_targets(struct tree *tree, const struct setting *setting, const char *text,
		       struct outbox_error *err)
{
	const bool flag = is_option(setting, "hold") || is_option(setting, "bands");
	const bool all = is_option(setting, "policy") && !strchr(text, '=');
	const char *name = text, *value = flag ? "true" : text;
	const struct outbox_policy *policy;
	struct nearest nearest;
	char named[NAME_SIZE];
	bool found = false;
	int r;

	if (!flag && !all) {
		r = pair_split(setting->option, text, named, sizeof(named), &value, err);
		if (r)
			return r;
		name = named;
	}
	/* one that does not exist is not found, as with every command */
	if (is_option(setting, "policy") && policy_find(value, &policy, err))
		return outbox_wrap(err, "--policy");
	if (is_option(setting, "envelope") && check_envelope(name, value, err))
		return OUTBOX_EINVAL;
	nearest_init(&nearest, name);
	for (struct node *target = tree->targets->first; target; target = target->next) {
		nearest_offer(&nearest, node_name(target));
		if (!all && strcmp(node_name(target), name) != 0)
			continue;
		set_one(tree, target, setting, value);
		found = true;
	}
	if (found)
		return OUTBOX_OK;
	r = nearest_fail(&nearest, OUTBOX_EINVAL, "target", err);
	outbox_wrap(err, "--%s", setting->option);
	return r;
}

static int make_tree(const void *context, struct outbox_arena *arena, struct node **ret_root,
		     struct outbox_error *err)
{
	const struct origin_options *from = context;
	struct tree tree = { .arena = arena };
	int r;

	tree.root = add_node(&tree, NULL, NODE_MAP, NULL);
	add_source(&tree, from->store);
	r = add_targets(&tree, &from->given->to, err);
	for (size_t i = 0; i < ARRAY_SIZE(target_settings); i++) {
		const struct setting *setting = &target_settings[i];
		const struct list *list = list_of(from->given, setting);

		for (size_t j = 0; r == OUTBOX_OK && !tree.no_memory && j < list->count; j++)
			r = set_targets(&tree, setting, list->items[j], err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(process_settings); i++) {
		const struct setting *setting = &process_settings[i];
		const char *text = text_of(from->given, setting);
		char option[40];

		snprintf(option, sizeof(option), "--%s", setting->option);
		if (text)
			set_key(&tree, get_node(&tree, tree.root, NODE_MAP, setting->group),
				setting->key, option, text);
	}
	*ret_root = tree.root;
	return tree.no_memory ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : r;
}

static int refuse_option(const char *option, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL,
			   "--%s cannot be combined with --config; set it in the file, or override the file "
			   "with --set KEY=VALUE",
			   option);
}

/* Two places for one setting would leave people guessing which one holds. */
static int refuse_options(const struct relay_values *given, struct outbox_error *err)
{
	if (given->to.count)
		return refuse_option("to", err);
	for (size_t i = 0; i < ARRAY_SIZE(target_settings); i++)
		if (list_of(given, &target_settings[i])->count)
			return refuse_option(target_settings[i].option, err);
	for (size_t i = 0; i < ARRAY_SIZE(process_settings); i++)
		if (text_of(given, &process_settings[i]))
			return refuse_option(process_settings[i].option, err);
	return OUTBOX_OK;
}

static int read_file(const struct cli *cli, const struct relay_values *given, const char *file,
		     struct config **ret_config, struct outbox_error *err)
{
	int r = refuse_options(given, err);

	if (r == OUTBOX_OK && cli->store_option[0])
		r = outbox_fail(err, OUTBOX_EINVAL,
				"--store cannot be combined with --config, whose file names the store");
	sets_warn(&given->set);
	if (r == OUTBOX_OK)
		r = config_open_told(file, &given->set, true, ret_config, err);
	if (r == OUTBOX_OK)
		journal_choose((*ret_config)->log.format == CONFIG_LOG_JSON,
			       (*ret_config)->log.level - 1);
	return r;
}

static int read_options(struct cli *cli, const struct relay_values *given,
			struct config **ret_config, struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct origin_options from = { given, cli->store_url };
	struct config_input input = { .make_tree = make_tree, .context = &from, .secrets = true };

	if (given->set.count || given->source)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s works only with --config FILE",
				   given->source ? "source" : "set");
	if (!given->to.count)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--to is missing: --to NAME=URL, or --config FILE");
	if (!cli->store_url)
		return cli_open(cli, OPEN_READY, err); /* says what is missing */
	if (!problems)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return configure(&input, ret_config, problems, err);
}

int relay_configure(struct cli *cli, const struct relay_values *given,
		    struct daemon_setup *ret_setup, struct config **ret_config,
		    struct outbox_error *err)
{
	const char *file = given->config ? given->config : getenv("OUTBOX_CONFIG");

	if (!given->config && (given->to.count || !file || !*file))
		return read_options(cli, given, ret_config, err);
	*ret_setup = (struct daemon_setup){ .file = file,
					    .sets = given->set.items,
					    .n_sets = given->set.count,
					    .only = given->source };
	return read_file(cli, given, file, ret_config, err);
}
