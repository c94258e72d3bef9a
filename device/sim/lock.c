#define _GNU_SOURCE /* syscall */
#include "lock.h"

#include "futex.h"

#include <pthread.h>
#include <sys/single_threaded.h>

/* A futex of our own: half of what a call costs would be a mutex, and gmd interposes the mutexes of
 * the allocator under test. */
static _Atomic uint32_t lock; /* 0: free, 1: held, 2: held, and waited for */

/* A child of fork starts with the lock free, whoever held it in the parent. */
__attribute__((constructor)) static void keep_lock_across_fork(void)
{
    pthread_atfork(sim_lock, sim_unlock, sim_unlock);
}

/* A process of one thread, which starts none while it is in here, needs no atomic exchange: that is
 * most of what the lock costs. */
void sim_lock(void)
{
    uint32_t seen = 0;
    if (__libc_single_threaded) {
        atomic_store_explicit(&lock, 1, memory_order_relaxed);
        return;
    }
    if (atomic_compare_exchange_strong_explicit(&lock, &seen, 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        return;
    }
    while (atomic_exchange_explicit(&lock, 2, memory_order_acquire) != 0) {
        futex_wait(&lock, 2);
    }
}

void sim_unlock(void)
{
    if (__libc_single_threaded) {
        atomic_store_explicit(&lock, 0, memory_order_relaxed);
        return;
    }
    if (atomic_exchange_explicit(&lock, 0, memory_order_release) == 2) {
        futex_wake(&lock, 1);
    }
}
