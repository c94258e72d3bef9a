#define _GNU_SOURCE /* pthread_cond_clockwait and its like */
#include "gmd_host_clock.h"

#include "host_calls.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_PER_US     1000
#define ADDED_MOST    (INT64_C(1) << 61) /* 73 years: an allocator's own sums do not overflow */

/* The functions in the libraries' tables are called without a context. */
static _Atomic int64_t added_ns;

static struct timespec moved(struct timespec t, int64_t by_ns)
{
    int64_t ns = t.tv_nsec + by_ns % NS_PER_SECOND;
    t.tv_sec += by_ns / NS_PER_SECOND;
    t.tv_sec += ns >= NS_PER_SECOND ? 1 : ns < 0 ? -1 : 0;
    t.tv_nsec = (ns + NS_PER_SECOND) % NS_PER_SECOND;
    return t;
}

static bool is_of_the_wall(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
        return true;
    default:
        return false;
    }
}

/* --- clocks ------------------------------------------------------------------------------ */

static int moved_clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = clock_gettime(clock, t);
    if (result == 0 && is_of_the_wall(clock)) {
        *t = moved(*t, atomic_load_explicit(&added_ns, memory_order_relaxed));
    }
    return result;
}

static int moved_gettimeofday(struct timeval *t, void *zone)
{
    int result = gettimeofday(t, zone);
    if (result == 0 && t) {
        struct timespec now = {t->tv_sec, t->tv_usec * NS_PER_US};
        now = moved(now, atomic_load_explicit(&added_ns, memory_order_relaxed));
        *t = (struct timeval){now.tv_sec, now.tv_nsec / NS_PER_US};
    }
    return result;
}

static int moved_timespec_get(struct timespec *t, int base)
{
    int result = timespec_get(t, base);
    if (result) {
        *t = moved(*t, atomic_load_explicit(&added_ns, memory_order_relaxed));
    }
    return result;
}

/* It reads the coarse clock, as the C library's does. */
static time_t moved_time(time_t *out)
{
    struct timespec t = {0};
    moved_clock_gettime(CLOCK_REALTIME_COARSE, &t);
    if (out) {
        *out = t.tv_sec;
    }
    return t.tv_sec;
}

/* --- waits that end at a time ------------------------------------------------------------ */

/* What was before the clock began is over. */
static struct timespec real_time(const struct timespec *until)
{
    struct timespec t = moved(*until, -atomic_load_explicit(&added_ns, memory_order_relaxed));
    return t.tv_sec < 0 ? (struct timespec){0} : t;
}

static int real_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                               const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_cond_timedwait(condition, mutex, &t);
}

static int real_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                               const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_cond_clockwait(condition, mutex, clock, &t);
}

static int real_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_mutex_timedlock(mutex, &t);
}

static int real_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_mutex_clocklock(mutex, clock, &t);
}

static int real_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_rwlock_timedrdlock(lock, &t);
}

static int real_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_rwlock_timedwrlock(lock, &t);
}

static int real_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                                   const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_rwlock_clockrdlock(lock, clock, &t);
}

static int real_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                                   const struct timespec *until)
{
    struct timespec t = real_time(until);
    return pthread_rwlock_clockwrlock(lock, clock, &t);
}

static int real_sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct timespec t = real_time(until);
    return sem_timedwait(semaphore, &t);
}

static int real_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    struct timespec t = real_time(until);
    return sem_clockwait(semaphore, clock, &t);
}

static int real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                struct timespec *left)
{
    bool is_moved = (flags & TIMER_ABSTIME) && is_of_the_wall(clock);
    struct timespec t = is_moved ? real_time(time) : *time;
    return clock_nanosleep(clock, flags, &t, left);
}

static const host_call calls[] = {
    {"clock_gettime", (host_function *)moved_clock_gettime},
    {"gettimeofday", (host_function *)moved_gettimeofday},
    {"timespec_get", (host_function *)moved_timespec_get},
    {"time", (host_function *)moved_time},
    {"pthread_cond_timedwait", (host_function *)real_cond_timedwait},
    {"pthread_cond_clockwait", (host_function *)real_cond_clockwait},
    {"pthread_mutex_timedlock", (host_function *)real_mutex_timedlock},
    {"pthread_mutex_clocklock", (host_function *)real_mutex_clocklock},
    {"pthread_rwlock_timedrdlock", (host_function *)real_rwlock_timedrdlock},
    {"pthread_rwlock_timedwrlock", (host_function *)real_rwlock_timedwrlock},
    {"pthread_rwlock_clockrdlock", (host_function *)real_rwlock_clockrdlock},
    {"pthread_rwlock_clockwrlock", (host_function *)real_rwlock_clockwrlock},
    {"sem_timedwait", (host_function *)real_sem_timedwait},
    {"sem_clockwait", (host_function *)real_sem_clockwait},
    {"clock_nanosleep", (host_function *)real_clock_nanosleep},
};

void host_clock_follow(void)
{
    host_calls_exchange(calls, sizeof calls / sizeof *calls);
}

void host_clock_advance(uint64_t duration_ns)
{
    int64_t before = atomic_load_explicit(&added_ns, memory_order_relaxed), after;
    do {
        uint64_t room = (uint64_t)(ADDED_MOST - before);
        after = before + (int64_t)(duration_ns < room ? duration_ns : room);
    } while (!atomic_compare_exchange_weak_explicit(&added_ns, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
}
