#define _GNU_SOURCE /* syscall */
#include "watchdog.h"

#include "turns.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TICK_NS     5000000
#define SLEEP_TICKS 4         /* asleep for so long without coming to a yield point: blocked */
#define SPIN_NS     300000000 /* so much processor time without a yield point: it spins */
/* An allocator that does so again and again must not take minutes for a hundred requests. */
#define PATIENT_LAPSES    3
#define IMPATIENT_TICK_NS 1000000
#define IMPATIENT_SPIN_NS 2000000

static bool is_impatient(void)
{
    return turn_state.config.expects_lapses || turn_state.lapses >= PATIENT_LAPSES;
}

static char task_state(pid_t id)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' ? name_end[2] : '?';
}

static uint64_t processor_time_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct observation {
    unsigned current;
    uint64_t operations, since_ns; /* processor time of the current thread at the start */
    unsigned asleep;               /* ticks in a row, without any work in between */
    uint64_t latest_ns;            /* processor time at the latest of them */
} observation;

/* The holder of the turn is in the allocator, and neither comes by nor works, or only spins. */
static bool stands_still(observation *o, unsigned current, bool is_in_subject)
{
    uint64_t operations = atomic_load(&turn_state.operations);
    if (current == NOBODY || !is_in_subject || current != o->current ||
        operations != o->operations) {
        *o = (observation){.current = current, .operations = operations};
        o->since_ns = current == NOBODY ? 0 : processor_time_ns(turn_state.threads[current].clock);
        return false;
    }
    uint64_t now_ns = processor_time_ns(turn_state.threads[current].clock);
    bool has_slept =
        task_state(turn_state.threads[current].id) == 'S' && (!o->asleep || now_ns == o->latest_ns);
    o->asleep = has_slept ? o->asleep + 1 : 0;
    o->latest_ns = now_ns;
    return o->asleep >= SLEEP_TICKS ||
           now_ns - o->since_ns > (is_impatient() ? IMPATIENT_SPIN_NS : SPIN_NS);
}

static void take_turn_from(scheduled_thread *t)
{
    t->state = THREAD_ASTRAY;
    turn_state.lapses++;
    turns_pass(NULL);
}

/* Nobody had the turn, since a thread of the allocator's own could end a wait. A lock that such a
 * thread holds gives no notice when it is free; and such a thread may have ended. */
static void look_again(void)
{
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        scheduled_thread *t = &turn_state.threads[i];
        if (t->state == THREAD_BLOCKED && t->reason == FOR_LOCK && !turns_holder(t->object)) {
            t->state = THREAD_READY;
        }
    }
    turns_pass(NULL);
}

static bool is_ending_after_a_tick(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += is_impatient() ? IMPATIENT_TICK_NS : TICK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_timedwait(&turn_state.ending, &until) == 0;
}

void *turns_watch(void *unused)
{
    (void)unused;
    turns_lock();
    turn_state.watchdog_id = (pid_t)syscall(SYS_gettid);
    turns_unlock();
    observation seen = {.current = NOBODY};
    while (!is_ending_after_a_tick()) {
        turns_lock();
        unsigned current = turn_state.current;
        bool is_in_subject = current != NOBODY && turn_state.threads[current].is_in_subject;
        if (current == NOBODY && turn_state.joined == turn_state.config.thread_count) {
            look_again();
        }
        turns_unlock();
        if (stands_still(&seen, current, is_in_subject)) { /* looked at without the lock: waiting
                                                              for it is sleeping, too */
            turns_lock();
            if (turn_state.current == current && turn_state.threads[current].is_in_subject &&
                atomic_load(&turn_state.operations) == seen.operations) {
                take_turn_from(&turn_state.threads[current]);
            }
            turns_unlock();
        }
    }
    return NULL;
}
