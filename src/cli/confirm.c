/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/confirm.h"

#include "base/buf.h"
#include "cli/safe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse(struct cli *cli, struct outbox_error *err, const char *why)
{
	cli->exit = EXIT_NOT_CONFIRMED;
	return outbox_fail(err, OUTBOX_ECONFLICT, "%s; nothing was changed", why);
}

/* One line from the terminal; false when there is no person to ask. */
static bool ask(const char *prompt, char *answer, int size)
{
	fputs(prompt, stderr);
	fflush(stderr);
	if (!fgets(answer, size, stdin))
		answer[0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] != '\0';
}

static bool person_there(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int confirm_name(struct cli *cli, bool yes, const char *what, const char *name,
		 struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf prompt = BUF_INIT(2000);
	char answer[300];

	if (yes)
		return OUTBOX_OK;
	if (!person_there())
		return refuse(cli, err, "not a terminal: add --yes to confirm");
	safe_wrap(stderr, &(struct wrap){ .width = 80 }, what);
	buf_text(&prompt, "Type its name, ");
	safe_append(&prompt, name, strlen(name), UNCUT);
	buf_text(&prompt, ", to go on: ");
	if (!ask(buf_str(&prompt), answer, sizeof(answer)) || strcmp(answer, name) != 0)
		return refuse(cli, err, "that is not its name");
	return OUTBOX_OK;
}

int confirm_yes(struct cli *cli, bool yes, const char *question, struct outbox_error *err)
{
	char answer[16], prompt[400];

	if (yes)
		return OUTBOX_OK;
	if (!person_there())
		return refuse(cli, err,
			      "not a terminal: add --yes to confirm, or look with --dry-run");
	snprintf(prompt, sizeof(prompt), "%s? [y/N] ", question);
	if (!ask(prompt, answer, sizeof(answer)) ||
	    (strcasecmp(answer, "y") != 0 && strcasecmp(answer, "yes") != 0))
		return refuse(cli, err, "not confirmed");
	return OUTBOX_OK;
}
