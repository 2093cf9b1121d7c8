/* SPDX-License-Identifier: Apache-2.0 */

/* The command line's options: values within their bounds, words in their order, clear errors. */

#include "base/cleanup.h"
#include "cli/options.h"
#include "fuzz.h"

#include <string.h>

#define NOW (20000 * OUTBOX_DAYS)
#define WORDS_MAX 100

struct values {
	bool flag;
	const char *text;
	struct list list;
	int64_t number, size;
	double rate;
	outbox_time wait, keep, at, ago;
};

/* clang-format off */
#define OPTION_OF(name_, kind_, min_, max_) \
	{ .name = #name_, .type = kind_, .offset = offsetof(struct values, name_), \
	  .argument = "VALUE", .help = "help", .min = min_, .max = max_ }

static const struct field options[] = {
	OPTION_OF(flag, FIELD_BOOL, 0, 0),
	OPTION_OF(text, FIELD_TEXT, 0, 0),
	OPTION_OF(list, FIELD_REPEATED, 0, 0),
	OPTION_OF(number, FIELD_NUMBER, -5, 500),
	OPTION_OF(size, FIELD_BYTES, 0, 0),
	OPTION_OF(rate, FIELD_PER_SECOND, 0, 0),
	OPTION_OF(wait, FIELD_DURATION, 0, 0),
	OPTION_OF(keep, FIELD_KEEP, 0, 0),
};
static const struct field more[] = {
	OPTION_OF(at, FIELD_TIME, 0, 0),
	{ .name = "ago", .type = FIELD_AGO, .offset = offsetof(struct values, ago),
	  .argument = "VALUE", .help = "help", .flags = FIELD_REQUIRED },
};
/* clang-format on */

static void check_words(const struct parsed *parsed, char **argv, int argc)
{
	int i = 0;

	for (size_t w = 0; w < parsed->n_words; w++, i++) {
		while (i < argc && argv[i] != parsed->words[w])
			i++;
		CHECK(i < argc);
	}
}

/* What was not given is -1 (number: 0) as before; what was given is above 0. */
static void check_values(const struct values *values)
{
	CHECK(values->number >= -5 && values->number <= 500);
	CHECK(values->size == -1 || values->size > 0);
	CHECK(values->rate < 0 ? values->rate > -1.5 : values->rate > 0);
	CHECK(values->wait == -1 || values->wait > 0);
	CHECK(values->keep == -1 || values->keep > 0);
	CHECK(values->at == -1 || values->at > 0);
	CHECK(values->ago == -1 || (values->ago > 0 && values->ago <= NOW));
	CHECK(values->list.count <= LIST_MAX);
}

static void check_pair(const char *text)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const char *value = NULL;
	char name[16];
	int r = pair_split("target", text, name, sizeof(name), &value, &err);

	check_error(r, &err);
	if (r != OUTBOX_OK)
		return;
	CHECK(*name && !strpbrk(name, "=:/") && strlen(name) < sizeof(name));
	CHECK(strncmp(text, name, strlen(name)) == 0);
	CHECK(value == text + strlen(name) + 1 && value[-1] == '=');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	bool with_more = input_byte(&in) & 1;
	struct values values = { .size = -1, .rate = -1, .wait = -1, .keep = -1, .at = -1, .ago = -1 };
	struct parsed parsed = { 0 };
	struct option_set sets[2] = { { options, ARRAY_SIZE(options), &values },
				      { more, with_more ? ARRAY_SIZE(more) : 0, &values } };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char *argv[WORDS_MAX + 1] = { NULL };
	int argc = 0, r;

	while (in.size && argc < WORDS_MAX)
		argv[argc++] = (char *)(uintptr_t)input_text(&in);
	r = options_parse(argc, argv, 0, sets, NOW, &parsed, &err);
	check_error(r, &err);
	CHECK(r == OUTBOX_OK || r == OUTBOX_EINVAL);
	check_words(&parsed, argv, argc);
	if (r == OUTBOX_OK)
		check_values(&values);
	CHECK(r != OUTBOX_OK || !with_more || parsed.help || values.ago > 0);
	for (int i = 0; i < argc; i++)
		check_pair(argv[i]);
	input_end(&in);
	return 0;
}
