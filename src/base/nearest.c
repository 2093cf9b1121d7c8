/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 40

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b: the restricted Damerau distance. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][LENGTH_MAX + 1], n = strlen(a), m = strlen(b);
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	if (n > LENGTH_MAX || m > LENGTH_MAX)
		return LENGTH_MAX;
	for (size_t j = 0; j <= m; j++)
		before[j] = last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *spare = before;

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	size_t length = strlen(word), edits = least(length / 3, 3);

	/* a third of the letters may be wrong; one of two to five, or "shwo" would mean nothing */
	if (!edits && length > 1)
		edits = 1;
	*nearest = (struct nearest){ .word = word, .distance = edits + 1 };
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	size_t d = distance(nearest->word, name), used = strlen(nearest->names);

	snprintf(nearest->names + used, sizeof(nearest->names) - used, "%s%s", used ? ", " : "",
		 name);
	if (d < nearest->distance) {
		nearest->best = name;
		nearest->distance = d;
	}
}

int nearest_fail(const struct nearest *nearest, int status, const char *what,
		 struct outbox_error *err)
{
	char shown[80];

	text_shown(shown, sizeof(shown), nearest->word);
	if (nearest->best)
		return outbox_fail(err, status, "there is no %s \"%s\"; did you mean %s?", what,
				   shown, nearest->best);
	return outbox_fail(err, status, "there is no %s \"%s\"; there are%s%s", what, shown,
			   *nearest->names ? ": " : " none", nearest->names);
}
