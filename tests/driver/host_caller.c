/* host_caller.c - a library that calls what an allocator under test calls of the host. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *caller_malloc(size_t size);
EXPORT void *caller_calloc(size_t count, size_t size);
EXPORT void *caller_realloc(void *old, size_t size);
EXPORT void *caller_aligned(size_t alignment, size_t size);
EXPORT void caller_free(void *memory);
EXPORT int64_t caller_clock_s(clockid_t clock);
EXPORT int64_t caller_time_s(void);
EXPORT int64_t caller_gettimeofday_s(void);
EXPORT int caller_wait_ms(long milliseconds);

void *caller_malloc(size_t size)
{
    return malloc(size);
}

void *caller_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *caller_realloc(void *old, size_t size)
{
    return realloc(old, size);
}

void *caller_aligned(size_t alignment, size_t size)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

void caller_free(void *memory)
{
    free(memory);
}

int64_t caller_clock_s(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return t.tv_sec;
}

int64_t caller_time_s(void)
{
    return time(NULL);
}

int64_t caller_gettimeofday_s(void)
{
    struct timeval t = {0};
    gettimeofday(&t, NULL);
    return t.tv_sec;
}

/* ETIMEDOUT, once that time is over. */
int caller_wait_ms(long milliseconds)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    int result = 0;
    while (result == 0) {
        result = pthread_cond_timedwait(&condition, &mutex, &until);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
