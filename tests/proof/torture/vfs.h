/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_VFS_H
#define TORTURE_VFS_H

/*
 * SQLite is a shared library: it gets our allocator by sqlite3_config() and our I/O as a VFS before its
 * own, which becomes the default one, so that the store opens through it unawares.
 *
 * Syncs are counted and then left out: nothing here cuts the power. Sleeps are left out as well.
 */
void vfs_install(void);

#endif
