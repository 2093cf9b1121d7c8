/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/publish_lines.h"

#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "operate/lines/publish_lines.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BATCH 1000
#define WRONG_SHOWN 20  /* on a screen */
#define WRONG_KEPT 1000 /* for programs */

struct publishing {
	struct cli *cli;
	const struct publish_from *given;
	struct publish_lines lines;
	const char *name; /* "orders.jsonl" */
	json_t *wrong;    /* the first of them */
	int64_t made;     /* lines without an id, seen so far */
	int signal;
};

/* Of which file, which line, and what is in it. */
static bool hash_line(const struct publishing *p, int64_t line, const char *text, size_t size,
		      unsigned char ret_hash[EVP_MAX_MD_SIZE])
{
	const char *run = p->given->run ? p->given->run : "";
	EVP_MD_CTX *sha = EVP_MD_CTX_new();
	char place[24];
	bool done;

	snprintf(place, sizeof(place), "%lld", (long long)line);
	done = sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) &&
	       EVP_DigestUpdate(sha, run, strlen(run) + 1) &&
	       EVP_DigestUpdate(sha, p->name, strlen(p->name) + 1) &&
	       EVP_DigestUpdate(sha, place, strlen(place) + 1) &&
	       EVP_DigestUpdate(sha, text, size) && EVP_DigestFinal_ex(sha, ret_hash, NULL);
	EVP_MD_CTX_free(sha);
	return done;
}

/* An id that only this line of a file of this name has: a UUID (version 8) of a hash. */
static int make_id(void *context, int64_t line, const char *text, size_t size, char ret_id[37],
		   struct outbox_error *err)
{
	struct publishing *p = context;
	unsigned char hash[EVP_MAX_MD_SIZE];
	size_t at = 0;

	/* CRLF or LF, the same line */
	while (size && strchr(" \t\r", text[size - 1]))
		size--;
	if (!hash_line(p, line, text, size, hash))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	hash[6] = (unsigned char)(0x80 | (hash[6] & 0x0f));
	hash[8] = (unsigned char)(0x80 | (hash[8] & 0x3f));
	for (int i = 0; i < 16; i++)
		at += (size_t)snprintf(ret_id + at, 37 - at, "%s%02x",
				       i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", hash[i]);
	p->made++;
	return OUTBOX_OK;
}

static void say_wrong(void *context, int64_t line, const char *why)
{
	struct publishing *p = context;

	if (json_array_size(p->wrong) < WRONG_KEPT)
		json_array_append_new(p->wrong, json_pack("{s:I, s:o}", "line", (json_int_t)line,
							  "error", json_text(why)));
}

static void tell_wrong(const struct publishing *p)
{
	size_t n = json_array_size(p->wrong);
	char count[COUNT_TEXT_MAX];

	for (size_t i = 0; i < n && i < WRONG_SHOWN; i++) {
		json_t *one = json_array_get(p->wrong, i);

		printable_printf(stderr, "%s, line %lld: %s", p->name,
				 (long long)json_integer_value(json_object_get(one, "line")),
				 json_string_value(json_object_get(one, "error")));
	}
	if (p->lines.wrong > WRONG_SHOWN)
		printable_printf(stderr, "and %s more",
				 count_human(p->lines.wrong - WRONG_SHOWN, count));
}

static int tell_json(const struct publishing *p, struct outbox_error *err)
{
	return json_print(json_pack("{s:b, s:I, s:I, s:I, s:I, s:O, s:b}", "dry_run",
				    p->given->dry_run, "messages", (json_int_t)p->lines.messages,
				    "published", (json_int_t)p->lines.published, "repeated",
				    (json_int_t)p->lines.repeated, "invalid",
				    (json_int_t)p->lines.wrong, "errors", p->wrong, "interrupted",
				    p->signal != 0),
			  err);
}

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* Lines are wrong, and nothing was published. */
static int tell_refused(struct publishing *p, struct outbox_error *err)
{
	int64_t all = p->lines.messages + p->lines.wrong;
	char wrong[COUNT_TEXT_MAX], total[COUNT_TEXT_MAX];

	p->cli->exit = EXIT_USAGE;
	printable_printf(
		stderr,
		"%s of %s line%s %s wrong: nothing was published. Correct %s, or leave %s out with --skip-invalid",
		count_human(p->lines.wrong, wrong), count_human(all, total), plural(all),
		p->lines.wrong == 1 ? "is" : "are", p->lines.wrong == 1 ? "it" : "them",
		p->lines.wrong == 1 ? "it" : "them");
	return p->cli->json ? tell_json(p, err) : OUTBOX_OK;
}

static void tell_published(const struct publishing *p)
{
	char done[COUNT_TEXT_MAX], before[COUNT_TEXT_MAX];

	printable_printf(stdout, "published %s message%s%s%s%s",
			 count_human(p->lines.published, done), plural(p->lines.published),
			 p->lines.repeated ? "; " : "",
			 p->lines.repeated ? count_human(p->lines.repeated, before) : "",
			 p->lines.repeated == 0   ? ""
			 : p->lines.repeated == 1 ? " was there already"
						  : " were there already");
	if (!p->lines.published && p->lines.repeated && p->made && !p->signal)
		printable_printf(
			stderr,
			"lines without an id are published once; to publish them once more, add --run NAME");
}

static int tell_end(struct publishing *p, struct outbox_error *err)
{
	char done[COUNT_TEXT_MAX], all[COUNT_TEXT_MAX];

	if (p->signal) {
		p->cli->exit = EXIT_SIGNAL + p->signal;
		printable_printf(
			stderr,
			"interrupted: %s of %s messages are published. Run the same command%s again to publish the rest",
			count_human(p->lines.published + p->lines.repeated, done),
			count_human(p->lines.messages, all),
			strcmp(p->given->path, "-") == 0 ? " with the same input" : "");
	} else if (p->lines.wrong) {
		p->cli->exit = EXIT_REPORTED;
		printable_printf(stderr, "left out %s line%s that %s wrong",
				 count_human(p->lines.wrong, all), plural(p->lines.wrong),
				 p->lines.wrong == 1 ? "is" : "are");
	}
	if (p->cli->json)
		return tell_json(p, err);
	if (p->given->dry_run)
		printable_printf(
			stdout,
			"would publish %s message%s, except those whose ids are in the log. Run again without --dry-run.",
			count_human(p->lines.messages, all), plural(p->lines.messages));
	else if (!p->lines.messages)
		puts("nothing to publish: there is no line that is a message");
	else
		tell_published(p);
	return OUTBOX_OK;
}

/* Nothing is written yet: a signal may end it anywhere, also while a pipe brings nothing. */
static int check_all(struct publishing *p, struct outbox_error *err)
{
	struct shown_work work = { 0 };
	int r;

	work_begin(&work, "checking", 0);
	pthread_sigmask(SIG_UNBLOCK, &work.signals, NULL);
	r = publish_lines_check(&p->lines, &work.bulk, err);
	work_end(&work);
	tell_wrong(p);
	return r ? outbox_wrap(err, "nothing was published") : OUTBOX_OK;
}

static int append_all(struct publishing *p, struct outbox_error *err)
{
	struct shown_work work = { 0 };
	int r;

	work_begin(&work, "publishing", p->lines.messages);
	r = publish_lines_append(&p->lines, &work.bulk, err);
	work_end(&work);
	p->signal = work.signal;
	if (!r)
		return OUTBOX_OK;
	return outbox_wrap(err,
			   "after %lld messages; run the same command again to publish the rest",
			   (long long)p->lines.published + p->lines.repeated);
}

static int publish_all(struct publishing *p, struct outbox_error *err)
{
	int r = line_reader_open_twice(p->given->path, &p->lines.reader, err);

	if (r == OUTBOX_OK)
		r = check_all(p, err);
	if (r)
		return r;
	if (p->lines.wrong && !p->given->skip_invalid)
		return tell_refused(p, err);
	if (!p->given->dry_run && p->lines.messages)
		r = append_all(p, err);
	return r ? r : tell_end(p, err);
}

int publish_from(struct cli *cli, const struct publish_from *given, struct outbox_error *err)
{
	const char *slash = strrchr(given->path, '/');
	struct publishing p = {
		.cli = cli,
		.given = given,
		.name = strcmp(given->path, "-") == 0 ? "stdin"
			: slash                       ? slash + 1
						      : given->path,
		.wrong = json_array(),
		.lines = { .store = cli->store,
			   .clock = cli->clock,
			   .format = given->format,
			   .batch = given->batch ? given->batch : BATCH,
			   .skip_invalid = given->skip_invalid,
			   .make_id = make_id,
			   .say_wrong = say_wrong },
	};
	int r;

	p.lines.context = &p;
	r = p.wrong ? publish_all(&p, err) : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	line_reader_close(p.lines.reader);
	json_decref(p.wrong);
	return r;
}
