/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

/*
 * Named places at which a test can make the process die or stop:
 * OUTBOX_FAILPOINT=after_publish:kill[:N] raises SIGKILL at the N-th pass (default the first),
 * :stop raises SIGSTOP, :exit leaves with status 86. Only test builds (-Dfailpoints=true) link
 * failpoint.c; others link failpoint_off.c, whose body is empty.
 */
void failpoint(const char *name);

#endif
