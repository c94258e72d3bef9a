/* trouble.c - allocators that fail a benchmark: PATH.so:refuse_malloc,nothing_free and so on. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *nothing_malloc(size_t size, int device, void *stream);
EXPORT void *refuse_malloc(size_t size, int device, void *stream);
EXPORT void *crash_malloc(size_t size, int device, void *stream);
EXPORT void *hang_malloc(size_t size, int device, void *stream);
EXPORT void nothing_free(void *ptr, size_t size, int device, void *stream);
EXPORT int gmd_record_history(uint64_t max_entries, int stacks, char *message, size_t size);

static char nothing[512];
static _Atomic int count;

void *nothing_malloc(size_t size, int device, void *stream)
{
    (void)size;
    (void)device;
    (void)stream;
    return nothing;
}

/* Well for a while: the failure comes in the middle of a benchmark. */
void *refuse_malloc(size_t size, int device, void *stream)
{
    return count++ < 1000 ? nothing_malloc(size, device, stream) : NULL;
}

void *crash_malloc(size_t size, int device, void *stream)
{
    if (count++ >= 1000) {
        raise(SIGABRT);
    }
    return nothing_malloc(size, device, stream);
}

void *hang_malloc(size_t size, int device, void *stream)
{
    while (count++ >= 1000) {
        pause();
    }
    return nothing_malloc(size, device, stream);
}

void nothing_free(void *ptr, size_t size, int device, void *stream)
{
    (void)ptr;
    (void)size;
    (void)device;
    (void)stream;
}

int gmd_record_history(uint64_t max_entries, int stacks, char *message, size_t size)
{
    if (max_entries > 65536 || stacks != 0) {
        snprintf(message, size, "more than the benchmark needs");
        return -1;
    }
    return 0;
}
