/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/url.h"

#include <string.h>

struct parser {
	const struct option_set *sets;
	outbox_time now;
	bool seen[2][LIST_MAX]; /* options given, by set and place in its table */
	struct parsed *parsed;
};

struct found {
	const struct field *option;
	void *value;
	bool *seen;
};

static bool option_find(struct parser *parser, const char *name, size_t length,
			struct found *ret_found)
{
	for (size_t s = 0; s < 2; s++) {
		const struct option_set *set = &parser->sets[s];

		for (size_t i = 0; i < set->count; i++) {
			const struct field *option = &set->options[i];

			if (strlen(option->name) != length ||
			    strncmp(option->name, name, length) != 0)
				continue;
			ret_found->option = option;
			ret_found->value = (char *)set->values + option->offset;
			ret_found->seen = &parser->seen[s][i];
			return true;
		}
	}
	return false;
}

static int unknown_option(const struct parser *parser, const char *name, struct outbox_error *err)
{
	struct nearest nearest;
	char shown[80];

	nearest_init(&nearest, name);
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < parser->sets[s].count; i++)
			nearest_offer(&nearest, parser->sets[s].options[i].name);
	text_shown(shown, sizeof(shown), name);
	if (nearest.best)
		return outbox_fail(err, OUTBOX_EINVAL, "unknown option --%s; did you mean --%s?",
				   shown, nearest.best);
	return outbox_fail(err, OUTBOX_EINVAL, "unknown option --%s", shown);
}

static int add_to_list(const struct field *option, const char *text, struct list *list,
		       struct outbox_error *err)
{
	if (list->count == LIST_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s was given more than %d times",
				   option->name, LIST_MAX);
	list->items[list->count++] = text;
	return OUTBOX_OK;
}

static int set_value(const struct parser *parser, const struct found *found, const char *text,
		     struct outbox_error *err)
{
	const struct field *option = found->option;
	struct field_context context = { .now = parser->now };

	switch (option->type) {
	case FIELD_BOOL:
		*(bool *)found->value = true;
		return OUTBOX_OK;
	case FIELD_TEXT: /* may be empty here */
		*(const char **)found->value = text;
		return OUTBOX_OK;
	case FIELD_REPEATED:
		return add_to_list(option, text, found->value, err);
	default:
		if (field_parse(option, text, &context, found->value, err) == OUTBOX_OK)
			return OUTBOX_OK;
		return outbox_wrap(err, "--%s", option->name);
	}
}

/* The option at argv[*i], "--name" or "--name=value"; *i moves on to what it used. */
static int parse_option(struct parser *parser, int argc, char **argv, int *i,
			struct outbox_error *err)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '='), *text = NULL;
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	struct found found;

	if (length == 4 && strncmp(name, "help", 4) == 0) {
		parser->parsed->help = true;
		return OUTBOX_OK;
	}
	if (!option_find(parser, name, length, &found))
		return unknown_option(parser, name, err);
	if (*found.seen && found.option->type != FIELD_REPEATED)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s was given twice; give it once",
				   found.option->name);
	*found.seen = true;
	if (found.option->type == FIELD_BOOL) {
		if (equals)
			return outbox_fail(err, OUTBOX_EINVAL, "--%s takes no value",
					   found.option->name);
		return set_value(parser, &found, NULL, err);
	}
	if (equals)
		text = equals + 1;
	else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
		text = argv[++*i];
	if (!text)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--%s needs a value: --%s %s (write --%s=VALUE if it begins with --)",
				   found.option->name, found.option->name, found.option->argument,
				   found.option->name);
	return set_value(parser, &found, text, err);
}

static int check_required(const struct parser *parser, struct outbox_error *err)
{
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < parser->sets[s].count; i++) {
			const struct field *option = &parser->sets[s].options[i];

			if ((option->flags & FIELD_REQUIRED) && !parser->seen[s][i])
				return outbox_fail(err, OUTBOX_EINVAL, "--%s is missing: --%s %s",
						   option->name, option->name, option->argument);
		}
	return OUTBOX_OK;
}

int options_parse(int argc, char **argv, int first, const struct option_set sets[2],
		  outbox_time now, struct parsed *ret_parsed, struct outbox_error *err)
{
	struct parser parser = { .sets = sets, .now = now, .parsed = ret_parsed };
	char shown[80];
	bool ended = false;
	int r;

	for (int i = first; i < argc; i++) {
		const char *word = argv[i];

		if (!ended && strcmp(word, "--") == 0) {
			ended = true;
		} else if (!ended && strcmp(word, "-h") == 0) {
			ret_parsed->help = true;
		} else if (!ended && strncmp(word, "--", 2) == 0) {
			r = parse_option(&parser, argc, argv, &i, err);
			if (r)
				return r;
		} else if (!ended && word[0] == '-' && word[1]) {
			return outbox_fail(err, OUTBOX_EINVAL,
					   "unknown option %s; options are written with two dashes",
					   text_shown(shown, sizeof(shown), word));
		} else if (ret_parsed->n_words == ARRAY_SIZE(ret_parsed->words)) {
			return outbox_fail(err, OUTBOX_EINVAL, "too many arguments; %zu at most",
					   ARRAY_SIZE(ret_parsed->words));
		} else {
			ret_parsed->words[ret_parsed->n_words++] = word;
		}
	}
	return ret_parsed->help ? OUTBOX_OK : check_required(&parser, err);
}

int pair_split(const char *option, const char *text, char *ret_name, size_t size,
	       const char **ret_value, struct outbox_error *err)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	char masked[256], shown[120];

	/* a URL without its name in front must not show its password, hence the mask */
	if (length == 0 || length >= size || strcspn(text, ":/") < length) {
		url_mask(text, masked, sizeof(masked));
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--%s: \"%s\" is not NAME=VALUE; write --%s NAME=VALUE", option,
				   text_shown(shown, sizeof(shown), masked), option);
	}
	memcpy(ret_name, text, length);
	ret_name[length] = '\0';
	*ret_value = equals + 1;
	return OUTBOX_OK;
}
