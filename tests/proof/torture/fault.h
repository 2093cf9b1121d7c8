/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_FAULT_H
#define TORTURE_FAULT_H

/*
 * Points at which a call can be made to fail: every allocation, or every I/O call. A scenario runs again
 * and again; the Nth point that it passes while armed fails, once or with all that follow.
 */

#include <stdbool.h>
#include <stddef.h>

enum fault_kind { FAULT_MEMORY = 1, FAULT_IO = 2 };

/* What a failing I/O call says. */
enum fault_flavour {
	FAULT_BROKEN = 0, /* EIO: any call */
	FAULT_FULL = 1    /* ENOSPC, and BUSY for locks: only calls that write or lock are points */
};

struct fault_plan {
	enum fault_kind kind;
	enum fault_flavour flavour;
	bool persistent;
	long at; /* 1: the first point; 0: none, count only */
};

/* Choose what fails in the next run. Nothing does until fault_on(). */
void fault_plan(const struct fault_plan *plan);
void fault_on(void);
void fault_off(void);
/* Look at the world without faults in the middle of a run: resume takes what pause gave. */
bool fault_pause(void);
void fault_resume(bool was_on);

/* Points passed while armed, and whether one of them failed. */
long fault_points(void);
bool fault_fired(void);
enum fault_flavour fault_flavour(void);

/* A point: true when this call must fail. writes: it writes or locks. */
bool fault_memory(void);
bool fault_io(bool writes);
/* The same for a call that looks the same in either flavour; sets errno. */
bool fault_errno(bool writes);

/* wrap_memory.c: blocks of ours that are live now; give SQLite and Jansson our allocator. */
long memory_live(void);
/* Memory of the test's own that outlives a run: realloc and free that nobody counts. */
void *memory_keep(void *old, size_t size);
void memory_drop(void *block);
void memory_install_jansson(void);

#endif
