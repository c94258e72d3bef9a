/* interpose.c - gmd's versions of pthread's blocking functions. The program exports them, so that
 * libraries that it loads call these instead of the C library's. For a thread that the scheduler
 * runs they are yield points, and blocking gives the turn away; any other thread gets the C
 * library's function, for the price of reading a thread-local variable. */
#define _GNU_SOURCE /* dlvsym, RTLD_NEXT */
#include "gmd_interpose.h"

#include "gmd_scheduler.h"
#include "gmd_self_deadlock.h"
#include "locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define IS_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_UNDER_TSAN 1
#endif
#endif

#ifdef IS_UNDER_TSAN

bool interpose_is_on(void)
{
    return false;
}

#else

#define EXPORT __attribute__((visibility("default")))

bool interpose_is_on(void)
{
    return true;
}

/* The C library's own. Looked up when first needed: other libraries' constructors may come before
 * any of ours. */
#define FUNCTIONS(X)                                                                               \
    X(pthread_mutex_lock)                                                                          \
    X(pthread_mutex_trylock)                                                                       \
    X(pthread_mutex_timedlock)                                                                     \
    X(pthread_mutex_clocklock)                                                                     \
    X(pthread_mutex_unlock)                                                                        \
    X(pthread_rwlock_rdlock)                                                                       \
    X(pthread_rwlock_clockrdlock)                                                                  \
    X(pthread_rwlock_clockwrlock)                                                                  \
    X(pthread_rwlock_tryrdlock)                                                                    \
    X(pthread_rwlock_wrlock)                                                                       \
    X(pthread_rwlock_trywrlock)                                                                    \
    X(pthread_rwlock_unlock)                                                                       \
    X(pthread_cond_wait)                                                                           \
    X(pthread_cond_timedwait)                                                                      \
    X(pthread_cond_clockwait)                                                                      \
    X(pthread_cond_signal)                                                                         \
    X(pthread_cond_broadcast)                                                                      \
    X(pthread_once)                                                                                \
    X(sched_yield)                                                                                 \
    X(usleep)                                                                                      \
    X(nanosleep)                                                                                   \
    X(clock_nanosleep)

#define FIELD(name) __typeof__(&name) name;
static struct {
    FUNCTIONS(FIELD)
} real;
#undef FIELD

/* Condition variables have an older version on some machines, which is another object. */
static void *find(const char *name)
{
    void *found = strncmp(name, "pthread_cond_", strlen("pthread_cond_")) == 0
                      ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2")
                      : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void look_up(void)
{
#define LOOK_UP(name) *(void **)&real.name = find(#name);
    FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

/* The C library's headers name parameters with reserved names.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

#define REAL(name) (__builtin_expect(!real.name, 0) ? look_up() : (void)0, real.name)

#define WHY_LOCKED " (left locked, or taken twice)"

/* --- mutexes ----------------------------------------------------------------------------- */

static int try_mutex(void *mutex)
{
    return REAL(pthread_mutex_trylock)(mutex);
}

static int release_mutex(void *mutex)
{
    return REAL(pthread_mutex_unlock)(mutex);
}

/* Without contention a try is what a lock is. */
static int lock_alone(pthread_mutex_t *mutex)
{
    int result = try_mutex(mutex);
    if (result != EBUSY) {
        return result;
    }
    struct timespec until = self_deadlock_patience();
    result = REAL(pthread_mutex_clocklock)(mutex, CLOCK_MONOTONIC, &until);
    if (result != ETIMEDOUT) {
        return result;
    }
    self_deadlock_waits("the lock", WHY_LOCKED, mutex);
    return REAL(pthread_mutex_lock)(mutex);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (scheduler_is_active()) {
        return scheduler_lock(mutex, try_mutex, false);
    }
    return self_deadlock_is_inside() ? lock_alone(mutex) : REAL(pthread_mutex_lock)(mutex);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return scheduler_is_active() ? scheduler_try_lock(mutex, try_mutex)
                                 : REAL(pthread_mutex_trylock)(mutex);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    return scheduler_is_active() ? scheduler_lock(mutex, try_mutex, true)
                                 : REAL(pthread_mutex_timedlock)(mutex, until);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until)
{
    return scheduler_is_active() ? scheduler_lock(mutex, try_mutex, true)
                                 : REAL(pthread_mutex_clocklock)(mutex, clock, until);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    return scheduler_is_active() ? scheduler_unlock(mutex, release_mutex)
                                 : REAL(pthread_mutex_unlock)(mutex);
}

/* --- read-write locks -------------------------------------------------------------------- */

static int try_to_read(void *rwlock)
{
    return REAL(pthread_rwlock_tryrdlock)(rwlock);
}

static int try_to_write(void *rwlock)
{
    return REAL(pthread_rwlock_trywrlock)(rwlock);
}

static int release_rwlock(void *rwlock)
{
    return REAL(pthread_rwlock_unlock)(rwlock);
}

static int read_alone(pthread_rwlock_t *rwlock)
{
    int result = try_to_read(rwlock);
    if (result == EBUSY) {
        struct timespec until = self_deadlock_patience();
        result = REAL(pthread_rwlock_clockrdlock)(rwlock, CLOCK_MONOTONIC, &until);
        if (result == ETIMEDOUT) {
            self_deadlock_waits("the lock", WHY_LOCKED, rwlock);
            result = REAL(pthread_rwlock_rdlock)(rwlock);
        }
    }
    return result;
}

static int write_alone(pthread_rwlock_t *rwlock)
{
    int result = try_to_write(rwlock);
    if (result == EBUSY) {
        struct timespec until = self_deadlock_patience();
        result = REAL(pthread_rwlock_clockwrlock)(rwlock, CLOCK_MONOTONIC, &until);
        if (result == ETIMEDOUT) {
            self_deadlock_waits("the lock", WHY_LOCKED, rwlock);
            result = REAL(pthread_rwlock_wrlock)(rwlock);
        }
    }
    return result;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
    if (scheduler_is_active()) {
        return scheduler_lock(rwlock, try_to_read, false);
    }
    return self_deadlock_is_inside() ? read_alone(rwlock) : REAL(pthread_rwlock_rdlock)(rwlock);
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
    return scheduler_is_active() ? scheduler_try_lock(rwlock, try_to_read)
                                 : REAL(pthread_rwlock_tryrdlock)(rwlock);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
    if (scheduler_is_active()) {
        return scheduler_lock(rwlock, try_to_write, false);
    }
    return self_deadlock_is_inside() ? write_alone(rwlock) : REAL(pthread_rwlock_wrlock)(rwlock);
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
    return scheduler_is_active() ? scheduler_try_lock(rwlock, try_to_write)
                                 : REAL(pthread_rwlock_trywrlock)(rwlock);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
    return scheduler_is_active() ? scheduler_unlock(rwlock, release_rwlock)
                                 : REAL(pthread_rwlock_unlock)(rwlock);
}

/* --- condition variables ----------------------------------------------------------------- */

static int wait_signal(pthread_cond_t *condition, pthread_mutex_t *mutex, bool is_timed)
{
    return scheduler_wait_signal(condition, mutex, release_mutex, try_mutex, is_timed);
}

static int wait_alone(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct timespec until = self_deadlock_patience();
    int result = REAL(pthread_cond_clockwait)(condition, mutex, CLOCK_MONOTONIC, &until);
    if (result != ETIMEDOUT) {
        return result;
    }
    self_deadlock_waits("a signal of the condition variable", "", condition);
    return REAL(pthread_cond_wait)(condition, mutex);
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (scheduler_is_active()) {
        return wait_signal(condition, mutex, false);
    }
    return self_deadlock_is_inside() ? wait_alone(condition, mutex)
                                     : REAL(pthread_cond_wait)(condition, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    return scheduler_is_active() ? wait_signal(condition, mutex, true)
                                 : REAL(pthread_cond_timedwait)(condition, mutex, until);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *until)
{
    return scheduler_is_active() ? wait_signal(condition, mutex, true)
                                 : REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
}

/* Threads of the allocator's own wait in the C library's function: they get the signal as well. */
EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    int result = REAL(pthread_cond_signal)(condition);
    if (scheduler_is_on()) {
        scheduler_signal(condition, false);
    }
    return result;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    int result = REAL(pthread_cond_broadcast)(condition);
    if (scheduler_is_on()) {
        scheduler_signal(condition, true);
    }
    return result;
}

/* --- once -------------------------------------------------------------------------------- */

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    if (!scheduler_is_active()) {
        return REAL(pthread_once)(control, routine);
    }
    scheduler_begin_once(control);
    int result = REAL(pthread_once)(control, routine);
    scheduler_end_once(control);
    return result;
}

/* --- C++'s static variables in functions ------------------------------------------------- */

/* The C++ library's, which came with the allocator, if it is a C++ one: then it is not among the
 * libraries that a plain search sees. */
static void *find_in_cxx(const char *name)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (library) {
        dlclose(library);
    }
    return found;
}

/* The functions' types are the ABI's. NOLINTBEGIN(readability-non-const-parameter) */

/* Without one (it is linked into the allocator): the ABI says that the guard's first byte tells
 * that the variable is there; the second is ours to use. */
static int acquire_guard(uint8_t *guard)
{
    while (!__atomic_load_n(&guard[0], __ATOMIC_ACQUIRE)) {
        if (!__atomic_exchange_n(&guard[1], 1, __ATOMIC_ACQUIRE)) {
            return 1;
        }
        REAL(sched_yield)();
    }
    return 0;
}

static void release_guard(uint8_t *guard)
{
    __atomic_store_n(&guard[0], 1, __ATOMIC_RELEASE);
    __atomic_store_n(&guard[1], 0, __ATOMIC_RELEASE);
}

static void abort_guard(uint8_t *guard)
{
    __atomic_store_n(&guard[1], 0, __ATOMIC_RELEASE);
}

static struct {
    int (*acquire)(uint8_t *guard);
    void (*release)(uint8_t *guard), (*abort)(uint8_t *guard);
} guards;

static void look_up_guards(void)
{
    *(void **)&guards.acquire = find_in_cxx("__cxa_guard_acquire");
    *(void **)&guards.release = find_in_cxx("__cxa_guard_release");
    *(void **)&guards.abort = find_in_cxx("__cxa_guard_abort");
    if (!guards.acquire || !guards.release || !guards.abort) {
        guards.acquire = acquire_guard;
        guards.release = release_guard;
        guards.abort = abort_guard;
    }
}

/* One of each is used for the same guard: all three are chosen at the first call of any. */
static pthread_once_t guards_once = PTHREAD_ONCE_INIT;

EXPORT int __cxa_guard_acquire(uint8_t *guard);
EXPORT void __cxa_guard_release(uint8_t *guard);
EXPORT void __cxa_guard_abort(uint8_t *guard);

int __cxa_guard_acquire(uint8_t *guard)
{
    REAL(pthread_once)(&guards_once, look_up_guards);
    if (!scheduler_is_active()) {
        return guards.acquire(guard);
    }
    scheduler_begin_once(guard);
    int must_make = guards.acquire(guard);
    if (!must_make) {
        scheduler_end_once(guard);
    }
    return must_make;
}

void __cxa_guard_release(uint8_t *guard)
{
    REAL(pthread_once)(&guards_once, look_up_guards);
    guards.release(guard);
    if (scheduler_is_active()) {
        scheduler_end_once(guard);
    }
}

void __cxa_guard_abort(uint8_t *guard)
{
    REAL(pthread_once)(&guards_once, look_up_guards);
    guards.abort(guard);
    if (scheduler_is_active()) {
        scheduler_end_once(guard);
    }
}

/* NOLINTEND(readability-non-const-parameter) */

/* --- waiting by asking again ------------------------------------------------------------- */

/* Who waits by asking again and again lets the others run instead of spending time. */
static bool others_ran(void)
{
    return scheduler_is_active() && scheduler_stand_back();
}

EXPORT int sched_yield(void)
{
    return others_ran() ? 0 : REAL(sched_yield)();
}

EXPORT int usleep(useconds_t time)
{
    return others_ran() ? 0 : REAL(usleep)(time);
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
    return others_ran() ? 0 : REAL(nanosleep)(time, left);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *left)
{
    return others_ran() ? 0 : REAL(clock_nanosleep)(clock, flags, time, left);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

#endif
