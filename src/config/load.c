/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a configuration comes about: the file; ${VAR} in its texts; OUTBOX_* variables; --set;
 * types, defaults and checks by the tables; what follows from several values. Each step adds to one list
 * of problems, and only a file that is no YAML ends it early.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/secret.h"
#include "base/text.h"
#include "config/check.h"
#include "config/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)64 << 20)

struct config *config_free(struct config *config)
{
	if (config)
		outbox_arena_free(config->arena);
	free(config);
	return NULL;
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static int read_file(const char *file, struct buf *out, struct outbox_error *err)
{
	_cleanup_(close_file) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char shown[200], chunk[4096];
	struct stat info;
	ssize_t n = 0;

	text_shown(shown, sizeof(shown), file);
	if (fd < 0)
		return outbox_fail_native(
			err, errno == ENOENT ? OUTBOX_ENOTFOUND : OUTBOX_ECONFIG, errno, "%s: %s",
			shown,
			errno == ENOENT
				? "no such file; outbox config reference prints one to begin with"
				: "cannot be read");
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
		return outbox_fail(err, OUTBOX_ECONFIG, "%s: is not a file", shown);
	/* Whoever may write it says which servers get the messages, and which files are sent as passwords. */
	if (info.st_uid != geteuid() && info.st_uid != 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: belongs to another user; chown it to root or to the one that "
				   "runs outbox",
				   shown);
	if (info.st_mode & S_IWOTH)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: can be changed by others; chmod o-w it", shown);
	while (!out->failed && (n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_append(out, chunk, (size_t)n);
	if (n < 0)
		return outbox_fail_native(err, OUTBOX_ECONFIG, errno, "%s: cannot be read", shown);
	if (out->failed)
		return outbox_fail(err, OUTBOX_ECONFIG, "%s: is larger than 1 MiB", shown);
	return OUTBOX_OK;
}

static int read_tree(const struct config_input *input, struct config *config,
		     struct problems *problems, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(YAML_SIZE_MAX);
	const char *file = outbox_arena_text(config->arena, input->file);
	int r = OUTBOX_OK;

	if (!file)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!input->text)
		r = read_file(input->file, &text, err);
	else if (input->size > YAML_SIZE_MAX)
		r = outbox_fail(err, OUTBOX_ECONFIG, "%s: is larger than 1 MiB", file);
	if (r == OUTBOX_OK)
		r = yaml_read(file, input->text ? input->text : buf_str(&text),
			      input->text ? input->size : text.size, config->arena, problems,
			      &config->root, err);
	if (r || config->root || problems->count)
		return r;
	/* an empty file: every mistake in it is one of leaving out */
	config->root = node_add(config->arena, NULL, NODE_MAP, NULL);
	if (!config->root)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	config->root->place = (struct place){ ORIGIN_FILE, file, 1, 1 };
	return OUTBOX_OK;
}

static int lay_over(const struct config_input *input, struct config *config,
		    struct problems *problems, struct outbox_error *err)
{
	int r = expand_tree(config->root, input->environment, config->arena, problems, err);

	if (config->root->kind != NODE_MAP)
		return r;
	if (r == OUTBOX_OK)
		r = override_environment(config->root, input->environment, config->arena, problems,
					 err);
	for (size_t i = 0; r == OUTBOX_OK && i < input->n_sets; i++)
		r = override_set(config->root, input->sets[i], config->arena, problems, err);
	return r;
}

/* The n-th entry of a list in the file. */
static const struct node *item_node(const struct config *config, const char *list, size_t n)
{
	const struct node *item = node_find(config->root, list)->first;

	while (n-- > 0)
		item = item->next;
	return item;
}

struct secrets {
	struct outbox_arena *arena;
	struct problems *problems;
	bool no_memory;
};

/* file:PATH becomes what is in the file. */
static void read_secret(void *context, const struct leaf *leaf)
{
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	struct secrets *secrets = context;
	const char **secret =
		(const char **)(uintptr_t)leaf->value; /* of a configuration that is being made */
	char *text;

	if (leaf->key->type != FIELD_SECRET || !*secret || strncmp(*secret, "file:", 5) != 0)
		return;
	if (secret_read("password", *secret + 5, &text, &cause)) {
		problems_about(secrets->problems, leaf->node, "%s", error_rest(&cause));
		return;
	}
	*secret = outbox_arena_text(secrets->arena, text);
	secret_free(text);
	secrets->no_memory |= !*secret;
}

static int read_secrets(struct config *config, struct problems *problems, struct outbox_error *err)
{
	struct secrets secrets = { .arena = config->arena, .problems = problems };
	const struct config_alert *alerts = config->alerts.items;
	size_t before = problems->count;

	schema_walk(&schema_root, config->root, config, read_secret, &secrets);
	if (secrets.no_memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (problems->count > before)
		return OUTBOX_OK;
	for (size_t i = 0; i < config->alerts.count; i++)
		if (alerts[i].url)
			check_alert_url(item_node(config, "alerts", i), &alerts[i], problems);
	check_otlp_secrets(node_find(config->root, "otlp"), &config->otlp, problems);
	return OUTBOX_OK;
}

static outbox_time first_time(outbox_time given, outbox_time preset, outbox_time fallback)
{
	return given ? given : preset ? preset : fallback;
}

/* Names of targets that nobody has. */
static void check_source_targets(const struct config *config, struct problems *problems)
{
	const struct config_source *sources = config->sources.items;
	const struct config_target *targets = config->targets.items;
	char shown[80];

	for (size_t i = 0; config->targets.count && i < config->sources.count; i++)
		for (size_t j = 0; j < sources[i].targets.count; j++) {
			const char *glob = sources[i].targets.items[j];
			size_t k = 0;

			while (k < config->targets.count &&
			       (!targets[k].name || !glob_match(glob, targets[k].name)))
				k++;
			if (k == config->targets.count)
				problems_about(problems,
					       node_find(item_node(config, "sources", i), "targets"),
					       "\"%s\" is not the name of a target",
					       text_shown(shown, sizeof(shown), glob));
		}
}

static void check_dead_letter(const struct config *config, size_t i, struct problems *problems)
{
	const struct config_target *targets = config->targets.items;
	const char *dead = targets[i].dead_letter;
	struct nearest nearest;

	nearest_init(&nearest, dead);
	for (size_t j = 0; j < config->targets.count; j++) {
		const char *name = targets[j].name;

		if (name && strcmp(name, dead) == 0)
			return;
		if (name && j != i)
			nearest_offer(&nearest, name);
	}
	problems_about(problems, node_find(item_node(config, "targets", i), "dead_letter"),
		       "\"%s\" is not the name of a target%s%s%s", dead,
		       nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
		       nearest.best ? "?"
				    : "; add a target of that name, with match: { nothing: true }");
}

/* In a file; options may name a target that another relay registered, which the store knows. */
static void check_dead_letters(const struct config *config, struct problems *problems)
{
	const struct config_target *targets = config->targets.items;

	for (size_t i = 0; i < config->targets.count; i++)
		if (targets[i].dead_letter)
			check_dead_letter(config, i, problems);
}

/* What follows from several values; the file is right so far. */
static void complete(struct config *config, struct problems *problems)
{
	struct config_target *targets = config->targets.items;
	struct config_relay *relay = &config->relay;
	const struct outbox_policy *first = targets[0].retry.preset;

	for (size_t i = 0; i < config->targets.count; i++) {
		target_complete(&targets[i], relay);
		if (relay->publish_timeout >= targets[i].lease)
			problems_about(problems,
				       node_find(node_find(config->root, "relay"), "publish_timeout"),
				       "must be shorter than every lease, or a slow broker would cost the relay its lane; "
				       "the lease of \"%s\" is not longer",
				       targets[i].name);
	}
	relay->retain_delivered =
		first_time(relay->retain_delivered, first->retain_delivered, 7 * OUTBOX_DAYS);
	relay->retain_failed = first_time(relay->retain_failed, first->retain_failed, OUTBOX_NEVER);
	for (size_t i = 0; i < config->alerts.count; i++) {
		struct config_alert *alert = (struct config_alert *)config->alerts.items + i;

		alert->repeat =
			first_time(alert->repeat, 0,
				   alert->format == CONFIG_ALERT_ALERTMANAGER ? OUTBOX_MINUTES
									      : 4 * OUTBOX_HOURS);
	}
	relay->purge_interval =
		first_time(relay->purge_interval, first->purge_interval, OUTBOX_MINUTES);
}

static int load(const struct config_input *input, struct config *config, struct problems *problems,
		struct outbox_error *err)
{
	int r = input->make_tree
			? input->make_tree(input->context, config->arena, &config->root, err)
			: read_tree(input, config, problems, err);

	if (r == OUTBOX_OK && config->root && !input->make_tree)
		r = lay_over(input, config, problems, err);
	if (r == OUTBOX_OK && config->root)
		r = schema_read(&schema_root, config->root, config->arena, problems, config, err);
	if (r || !config->root)
		return r;
	if (problems->count == 0)
		complete(config, problems);
	check_source_targets(config, problems);
	if (!input->make_tree)
		check_dead_letters(config, problems);
	return input->secrets ? read_secrets(config, problems, err) : OUTBOX_OK;
}

int config_read(const struct config_input *input, struct config **ret_config,
		struct problems *problems, struct outbox_error *err)
{
	struct config *config = calloc(1, sizeof(*config));
	int r;

	if (config)
		config->arena = outbox_arena_new(ARENA_MAX);
	if (!config || !config->arena) {
		config_free(config);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = load(input, config, problems, err);
	if (problems->no_memory)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r)
		config_free(config);
	else
		*ret_config = config;
	return r;
}
