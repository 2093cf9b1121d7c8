/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_LOAD_TEST_H
#define CONFIG_LOAD_TEST_H

/* For *_test.c only. */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/unit_test.h"
#include "config/config.h"

/*
 * Load "outbox.yaml", whose text and the rest are in input; NULL when it is not good. Everything that is told about it, a
 * line each, is appended to told.
 */
static inline struct config *load_told(struct config_input input, struct buf *told)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct config *config = NULL;
	int r;

	input.file = "outbox.yaml";
	input.size = strlen(input.text);
	r = config_read(&input, &config, problems, &err);
	assert_int_equal(r != OUTBOX_OK, err.status != OUTBOX_OK);
	assert_int_equal(r == OUTBOX_OK, config != NULL);
	problems_sort(problems);
	if (problems->count)
		config = config_free(config);
	for (size_t i = 0; i < problems->count; i++) {
		problem_format(&problems->items[i], told);
		buf_char(told, '\n');
	}
	if (problems->more)
		buf_printf(told, "and %zu more\n", problems->more);
	if (r && !problems->count)
		buf_printf(told, "%s\n", err.message);
	return config;
}

#endif
