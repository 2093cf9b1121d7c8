/* SPDX-License-Identifier: Apache-2.0 */
#include "vfs.h"
#include "fault.h"
#include "pool.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shim_file {
	sqlite3_file base;
	sqlite3_file *real; /* in the same block, behind this struct */
};

static sqlite3_vfs *below;
static sqlite3_mem_methods allocator;

static sqlite3_file *real(sqlite3_file *file)
{
	return ((struct shim_file *)file)->real;
}

/* ---- files --------------------------------------------------------------------------------- */

static int file_close(sqlite3_file *file)
{
	return real(file)->pMethods ? real(file)->pMethods->xClose(real(file)) : SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *data, int size, sqlite3_int64 place)
{
	if (fault_io(false))
		return SQLITE_IOERR_READ;
	return real(file)->pMethods->xRead(real(file), data, size, place);
}

static int write_fault(int broken)
{
	return fault_flavour() == FAULT_FULL ? SQLITE_FULL : broken;
}

static int file_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 place)
{
	if (fault_io(true)) {
		/* A disk that breaks or fills up takes a part first. */
		if (size > 1)
			real(file)->pMethods->xWrite(real(file), data, size / 2, place);
		return write_fault(SQLITE_IOERR_WRITE);
	}
	return real(file)->pMethods->xWrite(real(file), data, size, place);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	if (fault_io(false))
		return SQLITE_IOERR_TRUNCATE;
	return real(file)->pMethods->xTruncate(real(file), size);
}

static int file_sync(sqlite3_file *file, int flags)
{
	(void)file;
	(void)flags;
	return fault_io(false) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	if (fault_io(false))
		return SQLITE_IOERR_FSTAT;
	return real(file)->pMethods->xFileSize(real(file), ret_size);
}

static int lock_fault(int broken)
{
	return fault_flavour() == FAULT_FULL ? SQLITE_BUSY : broken;
}

static int file_lock(sqlite3_file *file, int level)
{
	if (fault_io(true))
		return lock_fault(SQLITE_IOERR_LOCK);
	return real(file)->pMethods->xLock(real(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
	return real(file)->pMethods->xUnlock(real(file), level);
}

static int file_reserved(sqlite3_file *file, int *ret)
{
	if (fault_io(false))
		return SQLITE_IOERR_CHECKRESERVEDLOCK;
	return real(file)->pMethods->xCheckReservedLock(real(file), ret);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
	return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int file_sector(sqlite3_file *file)
{
	return real(file)->pMethods->xSectorSize(real(file));
}

static int file_traits(sqlite3_file *file)
{
	return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
	if (fault_io(false))
		return SQLITE_IOERR_SHMMAP;
	return real(file)->pMethods->xShmMap(real(file), page, size, extend, ret);
}

static int shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	if ((flags & SQLITE_SHM_LOCK) && fault_io(true))
		return lock_fault(SQLITE_IOERR_SHMLOCK);
	return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}

static void shm_barrier(sqlite3_file *file)
{
	real(file)->pMethods->xShmBarrier(real(file));
}

static int shm_unmap(sqlite3_file *file, int remove)
{
	return real(file)->pMethods->xShmUnmap(real(file), remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
	.xShmMap = shm_map,
	.xShmLock = shm_lock,
	.xShmBarrier = shm_barrier,
	.xShmUnmap = shm_unmap,
};

/* ---- the file system ----------------------------------------------------------------------- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct shim_file *shim = (struct shim_file *)file;
	int rc;

	(void)vfs;
	shim->base.pMethods = NULL;
	shim->real = (sqlite3_file *)&shim[1];
	if (fault_io(false))
		return SQLITE_CANTOPEN;
	rc = below->xOpen(below, name, shim->real, flags, ret_flags);
	if (rc == SQLITE_OK)
		shim->base.pMethods = &methods;
	return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)sync;
	return fault_io(false) ? SQLITE_IOERR_DELETE : below->xDelete(below, name, 0);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	return fault_io(false) ? SQLITE_IOERR_ACCESS : below->xAccess(below, name, flags, ret);
}

static int vfs_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	(void)vfs;
	return fault_io(false) ? SQLITE_CANTOPEN : below->xFullPathname(below, name, size, ret);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
	(void)vfs;
	return microseconds;
}

/* The same numbers in each run, so that a WAL has the same bytes in all of them. */
static int vfs_random(sqlite3_vfs *vfs, int size, char *ret)
{
	(void)vfs;
	memset(ret, 7, (size_t)size);
	return size;
}

static void *allocate(int size)
{
	return fault_memory() ? NULL : allocator.xMalloc(size);
}

static void *grow(void *old, int size)
{
	return fault_memory() ? NULL : allocator.xRealloc(old, size);
}

static void must(int rc, const char *what)
{
	if (rc == SQLITE_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, sqlite3_errstr(rc));
	abort();
}

void vfs_install(void)
{
	static sqlite3_vfs shim;
	sqlite3_mem_methods ours;

#ifdef TORTURE_POOL
	must(sqlite3_config(SQLITE_CONFIG_MUTEX, &pool_mutexes), "set the mutexes");
	allocator = pool_methods;
#else
	must(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &allocator), "get the allocator");
#endif
	ours = allocator;
	ours.xMalloc = allocate;
	ours.xRealloc = grow;
	must(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), "set the allocator");
	must(sqlite3_initialize(), "start");
	below = sqlite3_vfs_find(NULL);
	shim = *below;
	shim.pNext = NULL;
	shim.zName = "torture";
	shim.szOsFile = (int)sizeof(struct shim_file) + below->szOsFile;
	shim.xOpen = vfs_open;
	shim.xDelete = vfs_delete;
	shim.xAccess = vfs_access;
	shim.xFullPathname = vfs_path;
	shim.xSleep = vfs_sleep;
	shim.xRandomness = vfs_random;
	must(sqlite3_vfs_register(&shim, 1), "register");
}
