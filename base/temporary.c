#include "gmd_temporary.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { FILES_MAX = 16 }; /* a process writes one file at a time, and probes for another */

/* A signal's handler is given nothing: this is where it finds them. */
static struct {
    _Atomic(const char *) path;
    _Atomic pid_t owner;
} files[FILES_MAX];

void gmd_temporary_announce(const char *path)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&files[i].path, &none, path)) {
            atomic_store(&files[i].owner, getpid());
            return;
        }
    }
}

void gmd_temporary_forget(const char *path)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (atomic_load(&files[i].path) == path) {
            atomic_store(&files[i].owner, 0);
            atomic_store(&files[i].path, NULL);
            return;
        }
    }
}

void gmd_temporary_remove_all(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        const char *path = atomic_load(&files[i].path);
        if (path && atomic_load(&files[i].owner) == getpid()) {
            unlink(path);
        }
    }
}
