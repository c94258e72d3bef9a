#define _GNU_SOURCE
#include "host_memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

static struct {
    uint64_t nth; /* 0: none is refused */
    bool every_later;
    uint64_t asked, bytes;
} refusals;

void begin_refusals(uint64_t nth, bool every_later)
{
    refusals.nth = nth;
    refusals.every_later = every_later;
    refusals.asked = 0;
    refusals.bytes = 0;
}

bool end_refusals(void)
{
    bool were_any = refusals.asked >= refusals.nth;
    refusals.nth = 0;
    return were_any;
}

uint64_t bytes_asked_for(void)
{
    return refusals.bytes;
}

void sweep_refusals(refusal_case *run, void *context)
{
    for (uint64_t nth = 1; run(context, nth, false); nth++) {
    }
    for (uint64_t nth = 1; run(context, nth, true); nth++) {
    }
}

static bool is_refused(uint64_t bytes)
{
    if (!refusals.nth) {
        return false;
    }
    refusals.asked++;
    refusals.bytes += bytes;
    return refusals.asked == refusals.nth ||
           (refusals.every_later && refusals.asked > refusals.nth);
}

/* --- in place of the C library's --------------------------------------------------------- */

/* Seen from outside, or the linker complains of shared libraries that ask for the same names. */
#define REPLACEMENT __attribute__((visibility("default")))

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_mmap(void *at, size_t size, int access, int flags, int file, off_t offset);
int __real_memfd_create(const char *name, unsigned flags);
REPLACEMENT void *__wrap_malloc(size_t size);
REPLACEMENT void *__wrap_calloc(size_t count, size_t size);
REPLACEMENT void *__wrap_realloc(void *memory, size_t size);
REPLACEMENT void *__wrap_aligned_alloc(size_t alignment, size_t size);
REPLACEMENT char *__wrap_strdup(const char *text);
REPLACEMENT int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
REPLACEMENT void *__wrap_mmap(void *at, size_t size, int access, int flags, int file, off_t offset);
REPLACEMENT int __wrap_memfd_create(const char *name, unsigned flags);

void *__wrap_malloc(size_t size)
{
    return is_refused(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_refused(size) ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_refused(size) ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return is_refused(strlen(text) + 1) ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    return is_refused(size) ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *__wrap_mmap(void *at, size_t size, int access, int flags, int file, off_t offset)
{
    if (is_refused(size)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, access, flags, file, offset);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (is_refused(0)) {
        errno = ENFILE;
        return -1;
    }
    return __real_memfd_create(name, flags);
}
