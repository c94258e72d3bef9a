#define _GNU_SOURCE /* syscall */
#include "gmd_scheduler.h"

#include "turns.h"
#include "watchdog.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool is_on;

static void leave_in_child_of_fork(void)
{
    gmd_turns_me = NULL; /* the others do not exist there */
    atomic_store(&is_on, false);
}

gmd_status gmd_scheduler_start(const gmd_scheduler_config *config, gmd_error *error)
{
    static bool knows_fork;
    if (!knows_fork) {
        knows_fork = pthread_atfork(NULL, NULL, leave_in_child_of_fork) == 0;
    }
    memset(&gmd_turns, 0, sizeof gmd_turns);
    gmd_turns.config = *config;
    gmd_turns.current = GMD_NOBODY;
    sem_init(&gmd_turns.lock, 0, 1);
    sem_init(&gmd_turns.ending, 0, 0);
    gmd_turns_seed(config->seed);
    for (unsigned i = 0; i < config->thread_count; i++) {
        sem_init(&gmd_turns.threads[i].turn, 0, 0);
    }
    atomic_store(&is_on, true);
    int result = pthread_create(&gmd_turns.watchdog, NULL, gmd_turns_watch, NULL);
    return result == 0
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "a thread cannot be started: %s", strerror(result));
}

bool gmd_scheduler_is_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_acquire);
}

void gmd_scheduler_stop(void)
{
    atomic_store(&is_on, false);
    sem_post(&gmd_turns.ending);
    pthread_join(gmd_turns.watchdog, NULL);
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        sem_destroy(&gmd_turns.threads[i].turn);
    }
    sem_destroy(&gmd_turns.lock);
    sem_destroy(&gmd_turns.ending);
}

void gmd_scheduler_join(unsigned index)
{
    gmd_turns_thread *t = &gmd_turns.threads[index];
    gmd_turns_me = t;
    gmd_turns_lock();
    t->id = (pid_t)syscall(SYS_gettid);
    pthread_getcpuclockid(pthread_self(), &t->clock);
    t->state = GMD_THREAD_READY;
    if (++gmd_turns.joined == gmd_turns.config.thread_count) {
        gmd_turns_seek(t);
    } else {
        gmd_turns_unlock();
        gmd_turns_wait_for(&t->turn);
    }
}

void gmd_scheduler_leave(void)
{
    gmd_turns_thread *t = gmd_turns_me;
    gmd_turns_me = NULL;
    gmd_turns_lock();
    t->state = GMD_THREAD_DONE;
    gmd_turns_pass(t);
    gmd_turns_unlock();
}

void gmd_scheduler_yield(void)
{
    if (gmd_turns_me) {
        gmd_turns_yield(gmd_turns_me);
    }
}

void gmd_scheduler_wait(bool (*is_ready)(void *context, unsigned thread), void *context)
{
    while (!is_ready(context, gmd_turns_index(gmd_turns_me))) {
        gmd_turns_lock();
        gmd_turns_block(gmd_turns_me, GMD_FOR_REQUEST, NULL, false);
    }
}

void gmd_scheduler_changed(void)
{
    gmd_turns_lock();
    gmd_turns_wake(GMD_FOR_REQUEST, NULL);
    gmd_turns_unlock();
}

void gmd_scheduler_enter_subject(void)
{
    if (gmd_turns_me) {
        gmd_turns_lock();
        gmd_turns_me->is_in_subject = true;
        gmd_turns_me->state = GMD_THREAD_READY;
        gmd_turns_seek(gmd_turns_me);
    }
}

void gmd_scheduler_leave_subject(void)
{
    if (!gmd_turns_me) {
        return;
    }
    gmd_turns_lock();
    gmd_turns_me->is_in_subject = false;
    if (gmd_turns_me->state == GMD_THREAD_ASTRAY) { /* what follows needs the turn */
        gmd_turns_me->state = GMD_THREAD_READY;
        gmd_turns_seek(gmd_turns_me);
    } else {
        gmd_turns_unlock();
    }
}

void gmd_scheduler_at_call(void *context, const char *function, bool is_before)
{
    (void)context;
    (void)function;
    gmd_turns_thread *t = gmd_turns_me;
    if (!t || !t->is_in_subject) {
        return;
    }
    if (is_before) {
        if (t->calls == 0) {
            gmd_turns_yield(t);
        }
        t->calls++;
    } else if (--t->calls == 0) {
        gmd_turns_yield(t);
    }
}

unsigned gmd_scheduler_lapses(void)
{
    return gmd_turns.lapses;
}

bool gmd_scheduler_has_foreign_threads(void)
{
    return gmd_turns_has_foreign_threads();
}
