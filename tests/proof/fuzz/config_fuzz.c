/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Configuration files, with a variable and a --set over them. Whatever is wrong is told in clean lines that
 * point into the file; what is accepted makes a relay, can be shown, and means the same when a shown value
 * is set again; a password is seen nowhere.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "QxZ7QxZ7"

struct look {
	unsigned wanted, at;
	struct buf key, value; /* of the row that is wanted */
	bool secret;           /* MARK must not be seen */
};

/* At least as many as YAML sees: it also ends lines at CR, NEL, LS and PS, whose last bytes these are. */
static size_t count_lines(const char *text)
{
	size_t lines = 1;

	for (; *text; text++)
		lines += strchr("\n\r\x85\xa8\xa9", *text) != NULL;
	return lines;
}

static void check_problems(const struct problems *problems, const char *text, bool secret)
{
	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->items[i];
		_cleanup_(buf_deinit) struct buf line = BUF_INIT(8000);

		problem_format(problem, &line);
		CHECK(!line.failed && problem->text[0] && is_printable(line.data, line.size));
		CHECK(problem->place.origin != ORIGIN_DEFAULT);
		CHECK(problem->place.line <= count_lines(text) + 1);
		CHECK(!secret || !strstr(buf_str(&line), MARK));
	}
}

static struct config *load(const char *text, const char *set, char *variable, bool secret)
{
	char *environment[] = { (char *)"HOME=/home/x", variable, NULL };
	struct problems *problems = calloc(1, sizeof(*problems));
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct config *config = NULL;
	struct config_input input = { .file = "outbox.yaml",
				      .text = text,
				      .size = strlen(text),
				      .environment = environment,
				      .sets = &set,
				      .n_sets = *set != '\0' };
	int r;

	CHECK(problems);
	r = config_read(&input, &config, problems, &err);
	check_error(r, &err);
	CHECK((r == OUTBOX_OK) == (config != NULL));
	CHECK(r == OUTBOX_OK || r == OUTBOX_EINVAL);
	problems_sort(problems);
	if (problems->count)
		config = config_free(config);
	check_problems(problems, text, secret);
	free(problems);
	return config;
}

static void look_at(void *context, const char *key, const char *value, const char *from)
{
	struct look *look = context;

	CHECK(is_printable(key, strlen(key)) && is_printable(from, strlen(from)));
	CHECK(!look->secret || !strstr(value, MARK));
	if (look->at++ != look->wanted || strncmp(from, "default", 7) == 0)
		return;
	buf_text(&look->key, key);
	buf_text(&look->value, value);
}

static void check_relay(const struct config *config)
{
	const struct config_source *sources = config->sources.items;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay_config relay;

	CHECK(config->sources.count && config->targets.count);
	for (size_t i = 0; i < config->sources.count; i++) {
		CHECK(config_relay(config, &sources[i], &relay, &err) == OUTBOX_OK);
		CHECK(relay.store && relay.n_targets == config->targets.count);
		CHECK(relay.workers >= 1 && relay.workers <= 64 && relay.batch_bytes > 0);
	}
	for (size_t i = 0; i < relay.n_targets; i++) {
		CHECK(relay.targets[i].name && relay.targets[i].to && relay.targets[i].policy);
		CHECK(relay.targets[i].policy->batch >= 1 && relay.targets[i].policy->lease > 0);
		CHECK(!config->relay.publish_timeout ||
		      config->relay.publish_timeout < relay.targets[i].policy->lease);
	}
}

static void look_init(struct look *look, unsigned wanted, bool secret)
{
	*look = (struct look){ .wanted = wanted, .secret = secret };
	look->key = look->value = (struct buf)BUF_INIT((size_t)1 << 18);
}

/* A value that is shown, set again, is shown again. */
static void check_again(const char *text, const struct config *config, char *variable, unsigned row)
{
	_cleanup_(buf_deinit) struct buf set = BUF_INIT((size_t)1 << 19);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct look first, second;
	struct config *again;

	look_init(&first, row, false);
	look_init(&second, row, false);
	CHECK(config_show(config, look_at, &first, &err) == OUTBOX_OK);
	if (first.key.size && first.value.size && !strstr(buf_str(&first.value), "***")) {
		buf_printf(&set, "%s=%s", buf_str(&first.key), buf_str(&first.value));
		again = load(text, buf_str(&set), variable, false);
		CHECK(again);
		CHECK(config_show(again, look_at, &second, &err) == OUTBOX_OK);
		CHECK(strcmp(buf_str(&first.value), buf_str(&second.value)) == 0);
		config_free(again);
	}
	buf_deinit(&first.key);
	buf_deinit(&first.value);
	buf_deinit(&second.key);
	buf_deinit(&second.value);
}

static void check_secret(const char *text, const struct config *config, char *variable)
{
	const struct config_source *source = config->sources.items;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct look look;
	struct config *again;
	char set[200];

	snprintf(set, sizeof(set), "sources.%s.password=" MARK, source->name);
	again = load(text, set, variable, true);
	look_init(&look, 0, true);
	if (again)
		CHECK(config_show(again, look_at, &look, &err) == OUTBOX_OK);
	config_free(again);
	buf_deinit(&look.key);
	buf_deinit(&look.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	uint8_t row = input_byte(&in);
	const char *set = input_text(&in);
	char *variable = strdup(input_text(&in));
	const char *text = input_text(&in);
	struct config *config;

	CHECK(variable);
	config = load(text, set, *variable ? variable : NULL, false);
	if (config) {
		check_relay(config);
		/* the variable and the first --set would be over what is set here */
		if (!*set)
			check_again(text, config, *variable ? variable : NULL, row);
		if (!*set && !strstr(text, MARK) && !strstr(variable, MARK))
			check_secret(text, config, *variable ? variable : NULL);
		config_free(config);
	}
	free(variable);
	input_end(&in);
	return 0;
}
