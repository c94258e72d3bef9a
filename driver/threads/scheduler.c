#define _GNU_SOURCE /* syscall */
#include "gmd_scheduler.h"

#include "choices.h"
#include "gmd_self_deadlock.h"
#include "turns.h"
#include "watchdog.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool is_on;

static void leave_in_child_of_fork(void)
{
    turns_me = NULL; /* the others do not exist there */
    atomic_store(&is_on, false);
}

gmd_status scheduler_start(const scheduler_config *config, gmd_error *error)
{
    static bool knows_fork;
    if (!knows_fork) {
        knows_fork = pthread_atfork(NULL, NULL, leave_in_child_of_fork) == 0;
    }
    memset(&turn_state, 0, sizeof turn_state);
    turn_state.config = *config;
    turn_state.current = NOBODY;
    sem_init(&turn_state.lock, 0, 1);
    sem_init(&turn_state.ending, 0, 0);
    choices_start();
    for (unsigned i = 0; i < config->thread_count; i++) {
        sem_init(&turn_state.threads[i].turn, 0, 0);
    }
    atomic_store(&is_on, true);
    int result = pthread_create(&turn_state.watchdog, NULL, turns_watch, NULL);
    return result == 0
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "a thread cannot be started: %s", strerror(result));
}

bool scheduler_is_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_acquire);
}

void scheduler_stop(void)
{
    atomic_store(&is_on, false);
    sem_post(&turn_state.ending);
    pthread_join(turn_state.watchdog, NULL);
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        sem_destroy(&turn_state.threads[i].turn);
    }
    sem_destroy(&turn_state.lock);
    sem_destroy(&turn_state.ending);
}

void scheduler_join(unsigned index)
{
    scheduled_thread *t = &turn_state.threads[index];
    turns_me = t;
    turns_lock();
    t->id = (pid_t)syscall(SYS_gettid);
    pthread_getcpuclockid(pthread_self(), &t->clock);
    t->state = THREAD_READY;
    if (++turn_state.joined == turn_state.config.thread_count) {
        turns_seek(t);
    } else {
        turns_unlock();
        turns_wait_for(&t->turn);
    }
}

void scheduler_leave(void)
{
    scheduled_thread *t = turns_me;
    turns_me = NULL;
    turns_lock();
    t->state = THREAD_DONE;
    turns_pass(t);
    turns_unlock();
}

void scheduler_yield(void)
{
    if (turns_me) {
        turns_yield(turns_me);
    }
}

void scheduler_wait(bool (*is_ready)(void *context, unsigned thread), void *context)
{
    while (!is_ready(context, turns_index(turns_me))) {
        turns_lock();
        turns_block(turns_me, FOR_REQUEST, NULL, false);
    }
}

void scheduler_changed(void)
{
    turns_lock();
    turns_wake(FOR_REQUEST, NULL);
    turns_unlock();
}

void scheduler_enter_subject(void)
{
    if (turns_me) {
        turns_lock();
        turns_me->is_in_subject = true;
        turns_me->stand = (gmd_stand){.kind = GMD_STANDS_AT_ENTRY};
        turns_me->state = THREAD_READY;
        turns_seek(turns_me);
    }
}

void scheduler_leave_subject(void)
{
    if (!turns_me) {
        return;
    }
    turns_lock();
    turns_me->is_in_subject = false;
    if (turns_me->state == THREAD_ASTRAY) { /* what follows needs the turn */
        turns_me->state = THREAD_READY;
        turns_seek(turns_me);
    } else {
        turns_unlock();
    }
}

void scheduler_at_call(void *context, const char *function, bool is_before)
{
    (void)context;
    scheduled_thread *t = turns_me;
    if (!t || !t->is_in_subject) {
        return;
    }
    t->stand = (gmd_stand){GMD_STANDS_AT_CALL, function};
    if (is_before) {
        if (t->calls == 0) {
            turns_yield(t);
        }
        t->calls++;
    } else if (--t->calls == 0) {
        turns_yield(t);
    }
}

/* Each thread's draws follow from its own accesses, so that no other's are between them. */
static bool is_passed_over(scheduled_thread *t)
{
    return turn_state.plain_mask == NEVER ||
           (gmd_random_next(&t->plain) & turn_state.plain_mask) != 0;
}

void scheduler_at_access(const void *place, gmd_tsan_access access)
{
    scheduled_thread *t = turns_me;
    if (!t || !t->is_in_subject || t->calls || (access == GMD_TSAN_PLAIN && is_passed_over(t))) {
        return;
    }
    t->stand = (gmd_stand){GMD_STANDS_AT_ACCESS, place};
    t->accesses++;
    turns_yield(t);
}

void scheduler_stand_text(const gmd_stand *stand, char *text, size_t size)
{
    switch (stand->kind) {
    case GMD_STANDS_AT_ENTRY:
        snprintf(text, size, "at its entry");
        break;
    case GMD_STANDS_AT_CALL:
        snprintf(text, size, "at %s", (const char *)stand->at);
        break;
    case GMD_STANDS_AT_LOCK:
        name_object("at the lock", stand->at, text, size);
        break;
    default:
        name_object("at an access", stand->at, text, size);
    }
}

unsigned scheduler_lapses(void)
{
    return turn_state.lapses;
}

bool scheduler_has_foreign_threads(void)
{
    return turns_has_foreign_threads();
}
