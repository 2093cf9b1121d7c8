/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/configure.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "base/url.h"
#include "config/check.h"
#include "config/compare.h"
#include "config/listen.h"
#include "operate/schema_check.h"
#include "relay/plan.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PLAN_MAX ((size_t)16 << 20)

DEFINE_CLEANUP(struct config *, config_free)
DEFINE_CLEANUP(struct outbox_store *, store_close)

/* Does one of these drivers know the scheme? Those there are, are added to names. */
static bool known_scheme(const char *const *schemes, const char *scheme, struct buf *names)
{
	bool found = false;

	for (; *schemes; schemes++) {
		if (scheme_listed(*schemes))
			buf_printf(names, "%s%s:", names->size ? ", " : "", *schemes);
		found |= strcmp(*schemes, scheme) == 0 && scheme_usable(*schemes);
	}
	return found;
}

/* Is there a driver for the URL of this key? */
static bool check_scheme(const struct node *item, const char *key, struct problems *problems)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(300);
	const struct node *node = node_find(item, key);
	char scheme[32] = "";
	bool found = false;

	if (node->place.origin == ORIGIN_OPTION)
		return true; /* opening it says so, in the words of every other command */
	url_scheme(node->text, scheme, sizeof(scheme));
	for (size_t i = 0; strcmp(key, "store") == 0 && store_drivers[i]; i++)
		found |= known_scheme(store_drivers[i]->schemes, scheme, &names);
	for (size_t i = 0; strcmp(key, "to") == 0 && transport_drivers[i]; i++)
		found |= known_scheme(transport_drivers[i]->schemes, scheme, &names);
	if (!found)
		problems_about(problems, node, "\"%s:\" is not known to this build; there are %s",
			       scheme, buf_str(&names));
	return found;
}

struct checks {
	const struct config *config;
	struct problems *problems;
	bool options, secrets, server;
	struct random_state random;
};

/* What a driver or the engine says of one entry; memory is not the file's fault. */
static int add_problem(const struct checks *checks, const struct node *node, int r,
		       struct outbox_error *err)
{
	if (r == OUTBOX_OK || r == OUTBOX_ENOMEM)
		return r;
	problems_about(checks->problems, node, "%s", err->message);
	*err = (struct outbox_error)OUTBOX_ERROR_INIT;
	return OUTBOX_OK;
}

/* Opening a transport connects to nothing, but looks at every option of its URL and reads its secrets. */
static int try_transport(struct checks *checks, const struct config_target *target,
			 const char *password, struct outbox_error *err)
{
	struct outbox_transport_config config = OUTBOX_SIZED(struct outbox_transport_config);
	struct outbox_transport *transport = NULL;
	int r = target_url(target, password, checks->config->arena, &config.url, err);

	if (r)
		return r;
	config.target = target->name;
	config.envelope = target->external ? OUTBOX_ENVELOPE_EXTERNAL : target->envelope;
	config.clock = outbox_clock_system();
	config.random = &checks->random.base;
	r = registry_open_transport(NULL, &config, &transport, err);
	transport_close(transport);
	return r;
}

static int check_target_url(struct checks *checks, const struct node *item,
			    const struct config_target *target, struct outbox_error *err)
{
	struct outbox_error found = OUTBOX_ERROR_INIT, with = OUTBOX_ERROR_INIT;
	const struct node *to = node_find(item, "to");
	bool user = strstr(target->to, "://") && check_url_has_user(target->to);
	int r = try_transport(checks, target, target->password, &found), other;

	if (r && r != OUTBOX_ENOMEM && user && !target->password && !checks->options) {
		other = try_transport(checks, target, "password", &with);
		if (found.detail == OUTBOX_DETAIL_PASSWORD) {
			outbox_fail(err, r, "%.400s; or write password: file:PATH beside it",
				    found.message);
			r = add_problem(checks, to, r, err);
			found = with;
			r = r ? r : other;
		}
	}
	if (r)
		*err = found;
	return add_problem(checks, to, r, err);
}

static const struct node *first_of(const struct config *config, const char *list)
{
	const struct node *node = node_find(config->root, list);

	return node ? node->first : NULL;
}

/* Every URL by its driver; those that the tables refused are reported already. */
static int check_urls(struct checks *checks, struct outbox_error *err)
{
	const struct config *config = checks->config;
	const struct node *item = first_of(config, "sources");
	int r = OUTBOX_OK;

	for (size_t i = 0; r == OUTBOX_OK && i < config->sources.count; i++, item = item->next) {
		const struct config_source *source =
			(struct config_source *)config->sources.items + i;
		const char *url;

		if (!source->store || !check_scheme(item, "store", checks->problems) ||
		    !checks->secrets)
			continue;
		r = url_add_password(source->store, source->password, config->arena, &url, err);
		if (r == OUTBOX_OK)
			r = registry_check_store(NULL, url, err);
		r = add_problem(checks, node_find(item, "store"), r, err);
	}
	item = first_of(config, "targets");
	for (size_t i = 0; r == OUTBOX_OK && i < config->targets.count; i++, item = item->next) {
		const struct config_target *target =
			(struct config_target *)config->targets.items + i;

		if (target->name && target->to && check_scheme(item, "to", checks->problems) &&
		    checks->secrets)
			r = check_target_url(checks, item, target, err);
	}
	return r;
}

static int check_pem(const char *path, bool secret, struct outbox_error *err)
{
	char *text = NULL;
	int r = pem_read(path, secret, &text, err);

	if (text && secret)
		explicit_bzero(text, strlen(text));
	free(text);
	return r;
}

static int check_admin(const struct checks *checks, struct outbox_error *err)
{
	const struct config_admin *admin = &checks->config->admin;
	const struct node *map = node_find(checks->config->root, "admin");
	const char *key = "listen";
	struct endpoint endpoint;
	int r = OUTBOX_OK;

	if (admin->listen)
		r = listen_parse(admin->listen, &endpoint, err);
	if (r == OUTBOX_OK && admin->listen)
		r = listen_check(&endpoint, admin, &key, err);
	r = add_problem(checks, node_find(map, key), r, err);
	if (r == OUTBOX_OK && checks->server && admin->cert)
		r = add_problem(checks, node_find(map, "cert"), check_pem(admin->cert, false, err),
				err);
	if (r == OUTBOX_OK && checks->server && admin->key)
		r = add_problem(checks, node_find(map, "key"), check_pem(admin->key, true, err), err);
	return r;
}

static void check_folder(const struct checks *checks, const struct node *node, const char *folder)
{
	struct stat info;
	char shown[200];

	if (stat(folder, &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
		problems_about(checks->problems, node, "there is no folder %s; create it first",
			       text_shown(shown, sizeof(shown), folder));
	else if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
		problems_about(checks->problems, node, "%s is not a folder; name one",
			       text_shown(shown, sizeof(shown), folder));
}

/* Folders that do not exist. A relay waits for them, so only people who ask learn of it. */
static int check_folders(const struct checks *checks, struct outbox_error *err)
{
	const struct config *config = checks->config;
	const struct config_target *targets = config->targets.items;
	const struct node *item = first_of(config, "targets");
	const struct node *archive = node_find(node_find(config->root, "relay"), "archive");

	if (config->relay.archive && archive)
		check_folder(checks, archive, config->relay.archive);
	for (size_t i = 0; i < config->targets.count; i++, item = item->next) {
		_cleanup_(url_deinit) struct url url = { 0 };
		_cleanup_(cleanup_free) char *path = NULL;

		if (!targets[i].to || url_parse(targets[i].to, &url, NULL) != OUTBOX_OK ||
		    strcmp(url.scheme, "file") != 0 || !strchr(url.path, '/'))
			continue;
		path = strdup(url.path);
		if (!path)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		check_folder(checks, node_find(item, "to"), dirname(path));
	}
	return OUTBOX_OK;
}

/* All that the engine itself checks, for every source. */
static int try_plans(const struct checks *checks, struct outbox_error *err)
{
	const struct config *config = checks->config;
	const struct config_source *sources = config->sources.items;
	struct outbox_arena *arena = outbox_arena_new(PLAN_MAX);
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && i < config->sources.count; i++) {
		struct outbox_relay_config relay;
		struct relay_plan plan;

		r = config_relay(config, &sources[i], &relay, err);
		if (r == OUTBOX_OK)
			r = plan_make(&relay, arena, &plan, err);
		r = add_problem(checks,
				checks->options ? config->root : node_find(config->root, "targets"),
				r, err);
	}
	outbox_arena_free(arena);
	return r;
}

static int check_all(struct checks *checks, struct outbox_error *err)
{
	bool whole = checks->problems->count == 0;
	int r;

	random_init(&checks->random, random_system_seed());
	r = check_urls(checks, err);
	if (r == OUTBOX_OK && checks->secrets)
		r = check_admin(checks, err);
	if (r == OUTBOX_OK && checks->server)
		r = check_folders(checks, err);
	/* what is not there cannot be planned */
	if (r == OUTBOX_OK && whole)
		r = try_plans(checks, err);
	return r;
}

int configure(const struct config_input *input, struct config **ret_config,
	      struct problems *problems, struct outbox_error *err)
{
	_cleanup_(config_freep) struct config *config = NULL;
	struct checks checks = { .problems = problems,
				 .options = input->make_tree,
				 .secrets = input->secrets,
				 .server = input->server };
	int r = config_read(input, &config, problems, err);

	checks.config = config;
	if (r == OUTBOX_OK && config->root)
		r = check_all(&checks, err);
	if (r)
		return r;
	if (problems->count == 0) {
		*ret_config = config;
		config = NULL;
		return OUTBOX_OK;
	}
	problems_sort(problems);
	if (input->make_tree) {
		_cleanup_(buf_deinit) struct buf line = BUF_INIT(2000);

		problem_format(&problems->items[0], &line);
		return outbox_fail(err, OUTBOX_EINVAL, "%s", buf_str(&line));
	}
	return outbox_fail(err, OUTBOX_ECONFIG, "%s: %zu mistake%s", input->file,
			   problems->count + problems->more, problems->count == 1 ? "" : "s");
}

/* One source against its database. */
struct source_check {
	const struct config *config;
	const struct config_source *source;
	const struct node *node; /* the source's */
	struct problems *problems;
};

static int open_source(const struct source_check *check, struct random_state *random,
		       struct outbox_store **ret_store, struct outbox_error *err)
{
	_cleanup_(store_closep) struct outbox_store *store = NULL;
	struct outbox_store_info info = { 0 };
	struct outbox_relay_config relay;
	int r = config_relay(check->config, check->source, &relay, err);

	if (r == OUTBOX_OK)
		r = registry_open_store(NULL, relay.store, false, outbox_clock_system(),
					&random->base, &store, err);
	if (r == OUTBOX_OK)
		r = store_info(store, &info, err);
	if (r == OUTBOX_OK)
		r = store_ready(&info, relay.store, "", err);
	if (r == OUTBOX_OK) {
		*ret_store = store;
		store = NULL;
	}
	return r;
}

/* Only the database knows whether a target is new among messages that were delivered. */
static int check_starts(const struct source_check *check, struct outbox_store *store,
			struct outbox_error *err)
{
	const struct config_target *targets = check->config->targets.items;
	const struct node *node = node_find(check->config->root, "targets")->first;
	int r = OUTBOX_OK;

	for (size_t i = 0; r == OUTBOX_OK && i < check->config->targets.count;
	     i++, node = node->next) {
		bool wants = false;

		if (!config_source_has(check->source, targets[i].name) || targets[i].start.where ||
		    targets[i].match.nothing)
			continue;
		r = store_wants_start(store, targets[i].name, &wants, err);
		if (wants)
			problems_about(check->problems, node,
				       "source %s: it is new, and messages were already delivered there: "
				       "say where it starts, with start: oldest, now or a time",
				       check->source->name);
	}
	return r;
}

int configure_connect(const struct config *config, struct problems *problems,
		      struct outbox_error *err)
{
	const struct config_source *sources = config->sources.items;
	const struct node *node = node_find(config->root, "sources")->first;

	for (size_t i = 0; i < config->sources.count; i++, node = node->next) {
		_cleanup_(store_closep) struct outbox_store *store = NULL;
		struct source_check check = { config, &sources[i], node, problems };
		struct outbox_error found = OUTBOX_ERROR_INIT;
		struct random_state random;
		int r;

		random_init(&random, random_system_seed());
		r = open_source(&check, &random, &store, &found);
		if (r == OUTBOX_OK)
			r = check_starts(&check, store, &found);
		if (r)
			problems_about(problems, node_find(node, "store"), "%s", found.message);
	}
	if (problems->count == 0)
		return OUTBOX_OK;
	problems_sort(problems);
	return outbox_fail(err, OUTBOX_ECONFIG, "%zu mistake%s", problems->count + problems->more,
			   problems->count == 1 ? "" : "s");
}

int config_source_find(const struct config *config, const char *name,
		       const struct config_source **ret_source, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	const struct config_source *sources = config->sources.items;
	char shown[80];

	for (size_t i = 0; i < config->sources.count; i++) {
		if (name ? strcmp(sources[i].name, name) == 0 : config->sources.count == 1) {
			*ret_source = &sources[i];
			return OUTBOX_OK;
		}
		buf_printf(&names, "%s%s", i ? ", " : "", sources[i].name);
	}
	if (!name)
		return outbox_fail(err, OUTBOX_EINVAL, "source is missing; there are: %s",
				   buf_str(&names));
	return outbox_fail(err, OUTBOX_ENOTFOUND, "no source \"%s\" in the file; there are: %s",
			   text_shown(shown, sizeof(shown), name), buf_str(&names));
}
