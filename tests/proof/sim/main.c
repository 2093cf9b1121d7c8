/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim --seeds N [--from S] [--jobs J]   run N seeds, show progress, end with a summary
 * sim --seed N [--trace]                run one and tell its story
 * sim --seed N --shrink                 make a failing seed short: fewer faults, fewer events
 * sim --hash N [--from S]               print the hash of each of N stories
 * sim --canary --seeds N                with brokers that lie: must fail
 */
#include "sim.h"

#include "core/lifecycle.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64

struct job {
	volatile uint64_t done;
	struct sim_totals totals;
	volatile bool failed;
	uint64_t failed_seed;
	char violation[512];
};

static struct sim sim;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_job(struct job *job, uint64_t from, uint64_t seeds, uint64_t step, uint64_t first)
{
	for (uint64_t i = first; i < seeds && !job->failed; i += step) {
		if (!sim_run(&sim, from + i, &job->totals)) {
			job->failed_seed = from + i;
			memcpy(job->violation, sim.violation, sizeof(job->violation));
			job->failed = true;
		}
		job->done++;
	}
}

static void add(struct sim_totals *sum, const struct sim_totals *part)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)part;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

static void progress(const struct job *jobs, int n, uint64_t seeds, double start)
{
	uint64_t done = 0;

	for (int i = 0; i < n; i++)
		done += jobs[i].done;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%llu of %llu seeds, %.0f/s  ", (unsigned long long)done,
			(unsigned long long)seeds, (double)done / (seconds() - start));
}

/* A fault, premise or edge that never happened proves nothing. */
static int print_vacuous(const struct sim_totals *t)
{
	size_t n_rules;
	const struct lifecycle_rule *rules = lifecycle_rules(&n_rules);
	int vacuous = 0;

	for (size_t i = 0; i < n_rules; i++)
		if (rules[i].from && !t->edges[rules[i].from][rules[i].to])
			vacuous++, printf("never happened: %s -> %s, %s\n",
					  outbox_state_name(rules[i].from),
					  outbox_state_name(rules[i].to), rules[i].when);

	for (int i = 0; i < SIM_N_FAULTS; i++)
		if (!t->faults[i])
			vacuous++, printf("never happened: %s\n", sim_fault_texts[i]);
	for (int i = 0; i < SIM_N_PREMISES; i++)
		if (!t->premises[i])
			vacuous++, printf("never happened: %s\n", sim_premise_texts[i]);
	return vacuous;
}

static void print_summary(const struct sim_totals *t, double time, int jobs)
{
	printf("%llu seeds, %llu events, %.1f s, %.0f seeds/s per core\n",
	       (unsigned long long)t->seeds, (unsigned long long)t->events, time,
	       (double)t->seeds / time / jobs);
	for (int i = 0; i < SIM_N_FAULTS; i++)
		printf("  fault    %12llu  %s\n", (unsigned long long)t->faults[i],
		       sim_fault_texts[i]);
	for (int i = 0; i < SIM_N_PREMISES; i++)
		printf("  premise  %12llu  %s\n", (unsigned long long)t->premises[i],
		       sim_premise_texts[i]);
	for (int i = 1; i < SIM_STATES; i++)
		for (int j = 1; j < SIM_STATES; j++)
			if (t->edges[i][j])
				printf("  edge     %12llu  %s -> %s\n",
				       (unsigned long long)t->edges[i][j], outbox_state_name(i),
				       outbox_state_name(j));
}

/* Until every job has ended; returns how many died. */
static int wait_for(struct job *jobs, int n_jobs, uint64_t seeds, double start)
{
	int running = n_jobs, died = 0, status;

	while (running) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			running--;
			if (!WIFEXITED(status))
				died++, printf("a job died with signal %d\n", WTERMSIG(status));
			continue;
		}
		progress(jobs, n_jobs, seeds, start);
		usleep(20000);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%40s\r", "");
	return died;
}

static int run_many(uint64_t from, uint64_t seeds, int n_jobs, bool brief)
{
	struct job *jobs = mmap(NULL, sizeof(*jobs) * (size_t)n_jobs, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sim_totals sum = { 0 };
	double start = seconds();
	int failed;

	if (jobs == MAP_FAILED)
		return 2;
	for (int i = 0; i < n_jobs; i++)
		if (!fork()) {
			run_job(&jobs[i], from, seeds, (uint64_t)n_jobs, (uint64_t)i);
			_exit(0);
		}
	failed = wait_for(jobs, n_jobs, seeds, start);
	for (int i = 0; i < n_jobs; i++) {
		add(&sum, &jobs[i].totals);
		if (!jobs[i].failed)
			continue;
		failed++;
		printf("seed %llu: %s\n", (unsigned long long)jobs[i].failed_seed, jobs[i].violation);
	}
	if (!brief)
		print_summary(&sum, seconds() - start, n_jobs);
	if (seeds >= 10000 && !failed && !brief)
		failed += print_vacuous(&sum);
	printf("%llu passed, %d failed\n", (unsigned long long)sum.seeds - (failed ? 1 : 0), failed);
	return failed ? 1 : 0;
}

static bool fails(uint64_t seed, const char *skip, size_t limit)
{
	struct sim_totals totals = { 0 };

	sim.skip = skip;
	sim.limit = limit;
	sim.tracing = sim.hashing = false;
	return !sim_run(&sim, seed, &totals);
}

/* Fewer kinds of faults, then an earlier end of chaos, while it still fails. */
static int shrink(uint64_t seed)
{
	char skip[SIM_N_FAULTS + 1];
	struct sim_totals totals = { 0 };
	size_t limit;

	memset(skip, '0', SIM_N_FAULTS);
	skip[SIM_N_FAULTS] = '\0';
	if (!fails(seed, skip, 0)) {
		printf("seed %llu does not fail\n", (unsigned long long)seed);
		return 1;
	}
	for (int i = 0; i < SIM_N_FAULTS; i++) {
		skip[i] = '1';
		if (!fails(seed, skip, 0))
			skip[i] = '0';
	}
	limit = sim.max_events;
	while (limit > 1 && fails(seed, skip, limit - 1))
		limit--;
	sim.skip = skip;
	sim.limit = limit;
	sim.tracing = true;
	sim_run(&sim, seed, &totals);
	printf("shrunk: --seed %llu --skip %s --limit %zu\n", (unsigned long long)seed, skip, limit);
	return 0;
}

static int run_one(uint64_t seed, bool trace, const char *skip, size_t limit)
{
	struct sim_totals totals = { 0 };
	bool ok;

	sim.tracing = trace;
	sim.hashing = true;
	sim.skip = skip;
	sim.limit = limit;
	ok = sim_run(&sim, seed, &totals);
	printf("seed %llu: %s, hash %016llx\n", (unsigned long long)seed,
	       ok ? "holds" : sim.violation, (unsigned long long)sim.hash);
	return ok ? 0 : 1;
}

struct wish {
	uint64_t seeds, from, seed, hashes;
	bool trace, shrink, brief;
	const char *skip;
	size_t limit;
	int jobs;
};

static bool take_option(struct wish *w, int option, const char *value)
{
	uint64_t number = value ? strtoull(value, NULL, 10) : 0;

	switch (option) {
	case 'n':
		w->seeds = number;
		return true;
	case 'f':
		w->from = number;
		return true;
	case 'j':
		w->jobs = (int)number;
		return number >= 1 && number <= JOBS_MAX;
	case 's':
		w->seed = number;
		return true;
	case 'h':
		w->hashes = number;
		return true;
	case 'x':
		w->skip = value;
		return strlen(value) == SIM_N_FAULTS;
	case 'l':
		w->limit = number;
		return true;
	case 't':
		return w->trace = true;
	case 'k':
		return w->shrink = true;
	case 'b':
		return w->brief = true;
	case 'c':
		return sim.canary = true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", 1, NULL, 'n' }, { "from", 1, NULL, 'f' },   { "jobs", 1, NULL, 'j' },
		{ "seed", 1, NULL, 's' },  { "trace", 0, NULL, 't' },  { "shrink", 0, NULL, 'k' },
		{ "hash", 1, NULL, 'h' },  { "skip", 1, NULL, 'x' },   { "limit", 1, NULL, 'l' },
		{ "brief", 0, NULL, 'b' }, { "canary", 0, NULL, 'c' }, { NULL, 0, NULL, 0 },
	};
	struct wish w = { .from = 1, .jobs = 2 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (take_option(&w, option, optarg))
			continue;
		fputs("sim: --seeds N [--from S] [--jobs J] | --seed N [--trace|--shrink] | --hash N\n",
		      stderr);
		return 2;
	}
	if (w.shrink)
		return shrink(w.seed);
	for (uint64_t i = 0; i < w.hashes; i++)
		run_one(w.from + i, false, NULL, 0);
	if (w.hashes)
		return 0;
	return w.seed ? run_one(w.seed, w.trace, w.skip, w.limit)
		      : run_many(w.from, w.seeds, w.jobs, w.brief);
}
