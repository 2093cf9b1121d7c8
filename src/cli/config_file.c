/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_file.h"

#include "base/buf.h"
#include "base/printable.h"

#include <stdio.h>
#include <unistd.h>

void problems_tell(const struct problems *problems)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4000);

	for (size_t i = 0; i < problems->count; i++) {
		buf_clear(&line);
		problem_format(&problems->items[i], &line);
		printable_line(stderr, "", buf_str(&line));
	}
	if (problems->more)
		fprintf(stderr, "and %zu more\n", problems->more);
}

int config_open_told(const char *file, const struct list *sets, bool secrets,
		     struct config **ret_config, struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));
	struct config_input input = { .file = file,
				      .sets = sets->items,
				      .n_sets = sets->count,
				      .environment = environ,
				      .secrets = secrets };
	int r;

	if (!problems)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = configure(&input, ret_config, problems, err);
	problems_tell(problems);
	return r;
}
