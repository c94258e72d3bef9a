/* The scheduler of host threads: who runs is decided by the seed or the choices, blocking gives the
 * turn away, and a deadlock is reported. */
#define _GNU_SOURCE /* pthread_mutex_clocklock */
#include "gmd_interpose.h"
#include "gmd_scheduler.h"
#include "gmd_test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 4, LOG_MAX = 4096 };

typedef struct run {
    scheduler_config config;
    void (*body)(struct run *run, unsigned thread);
    char log[LOG_MAX]; /* one letter each time a thread says that it is there */
    atomic_size_t length;
    atomic_int inside, most_inside;
    unsigned lapses;
    pthread_mutex_t mutex, other_mutex;
    pthread_rwlock_t rwlock;
    pthread_cond_t condition;
    pthread_once_t once;
    int shared, results[THREADS_MAX], pipe[2];
    atomic_int flag;
} run;

static void say(run *r, unsigned thread)
{
    int inside = atomic_fetch_add(&r->inside, 1) + 1;
    if (inside > atomic_load(&r->most_inside)) {
        atomic_store(&r->most_inside, inside);
    }
    size_t at = atomic_fetch_add(&r->length, 1);
    if (at < LOG_MAX - 1) {
        r->log[at] = (char)('a' + thread);
    }
    atomic_fetch_sub(&r->inside, 1);
}

typedef struct start {
    run *run;
    unsigned thread;
} start;

static void *play(void *argument)
{
    start s = *(start *)argument;
    scheduler_join(s.thread);
    scheduler_enter_subject();
    s.run->body(s.run, s.thread);
    scheduler_leave_subject();
    scheduler_leave();
    return NULL;
}

static void describe(void *context, unsigned thread, char *text, size_t size)
{
    (void)context;
    snprintf(text, size, "thread %c", 'a' + (int)thread);
}

/* In a child process: the parent reads the sentence. */
static void deadlocked(void *context, unsigned thread, const gmd_deadlock *deadlock)
{
    (void)thread;
    run *r = context;
    ssize_t written = write(r->pipe[1], deadlock->sentence, strlen(deadlock->sentence));
    _exit(written > 0 ? 7 : 8);
}

static run *new_run(unsigned threads, void (*body)(run *run, unsigned thread))
{
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->body = body;
    r->config = (scheduler_config){
        .thread_count = threads, .context = r, .deadlocked = deadlocked, .describe = describe};
    pthread_mutex_init(&r->mutex, NULL);
    pthread_mutex_init(&r->other_mutex, NULL);
    pthread_rwlock_init(&r->rwlock, NULL);
    pthread_cond_init(&r->condition, NULL);
    r->once = (pthread_once_t)PTHREAD_ONCE_INIT;
    return r;
}

static void carry_out(run *r)
{
    gmd_error error = {""};
    pthread_t threads[THREADS_MAX] = {0};
    start starts[THREADS_MAX] = {{r, 0}};
    assert_int_equal(scheduler_start(&r->config, &error), GMD_OK);
    for (unsigned i = 1; i < r->config.thread_count; i++) {
        starts[i] = (start){r, i};
        assert_int_equal(pthread_create(&threads[i], NULL, play, &starts[i]), 0);
    }
    play(&starts[0]);
    for (unsigned i = 1; i < r->config.thread_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    r->lapses = scheduler_lapses();
    scheduler_stop();
}

static void end_run(run *r)
{
    pthread_mutex_destroy(&r->mutex);
    pthread_mutex_destroy(&r->other_mutex);
    pthread_rwlock_destroy(&r->rwlock);
    pthread_cond_destroy(&r->condition);
    free(r);
}

/* --- the order --------------------------------------------------------------------------- */

static void say_and_yield(run *r, unsigned thread)
{
    for (int i = 0; i < 20; i++) {
        say(r, thread);
        scheduler_yield();
    }
}

static void log_of_seed(uint64_t seed, char log[LOG_MAX])
{
    run *r = new_run(3, say_and_yield);
    r->config.seed = seed;
    carry_out(r);
    memcpy(log, r->log, LOG_MAX);
    end_run(r);
}

TEST(a_seed_gives_the_same_order_every_time)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        char first[LOG_MAX], again[LOG_MAX];
        log_of_seed(seed, first);
        for (int i = 0; i < 3; i++) {
            log_of_seed(seed, again);
            assert_string_equal(first, again);
        }
    }
}

TEST(seeds_differ_in_their_order)
{
    char logs[10][LOG_MAX];
    for (uint64_t seed = 0; seed < 10; seed++) {
        log_of_seed(seed, logs[seed]);
        for (uint64_t other = 0; other < seed; other++) {
            assert_string_not_equal(logs[seed], logs[other]);
        }
    }
}

TEST(only_one_thread_runs_at_a_time)
{
    run *r = new_run(4, say_and_yield);
    carry_out(r);
    assert_int_equal(r->most_inside, 1);
    assert_int_equal(r->length, 80);
    end_run(r);
}

static void say_twice(run *r, unsigned thread)
{
    say(r, thread);
    scheduler_yield();
    say(r, thread);
}

/* Threads a, b and c: the first choice is at the start, the next three as the threads enter. */
TEST(explicit_choices_are_followed_and_then_threads_go_on)
{
    run *r = new_run(3, say_twice);
    r->config.policy = SCHEDULER_EXPLICIT;
    carry_out(r);
    assert_string_equal(r->log, "aabbcc");
    end_run(r);
    static const uint8_t choices[] = {1, 0, 1, 0, 1};
    r = new_run(3, say_twice);
    r->config.policy = SCHEDULER_EXPLICIT;
    r->config.choices = choices;
    r->config.choice_count = sizeof choices;
    carry_out(r);
    assert_string_equal(r->log, "bcaabc");
    end_run(r);
}

/* --- a bounded number of preemptions, and priorities ---------------------------------------- */

enum { ORDER_SEEDS = 2000, ORDER_STEPS = 16 };

static void say_four_times(run *r, unsigned thread)
{
    for (int i = 0; i < 4; i++) {
        say(r, thread);
        scheduler_yield();
    }
}

/* How many of the seeds make the threads speak in that order. */
static unsigned count_orders(scheduler_policy policy, unsigned points, const char *order)
{
    unsigned count = 0;
    for (uint64_t seed = 0; seed < ORDER_SEEDS; seed++) {
        run *r = new_run(2, say_four_times);
        r->config.policy = policy;
        r->config.point_count = points;
        r->config.steps = ORDER_STEPS;
        r->config.seed = seed;
        carry_out(r);
        count += strcmp(r->log, order) == 0;
        end_run(r);
    }
    return count;
}

TEST(without_a_preemption_a_thread_goes_on_to_its_end)
{
    unsigned first = count_orders(SCHEDULER_BOUNDED, 0, "aaaabbbb");
    assert_int_equal(first + count_orders(SCHEDULER_BOUNDED, 0, "bbbbaaaa"), ORDER_SEEDS);
}

/* One preemption among sixteen steps, and one choice of two threads at the start. */
TEST(one_preemption_comes_with_the_probability_that_is_promised)
{
    assert_true(count_orders(SCHEDULER_BOUNDED, 1, "aabbbbaa") >= ORDER_SEEDS / (2 * ORDER_STEPS));
    assert_int_equal(count_orders(SCHEDULER_BOUNDED, 1, "abababab"), 0);
}

/* 1/n of the orders of priorities; and 1/(n k) with one point at which one changes. */
TEST(priorities_bring_orders_with_the_probability_that_is_promised)
{
    unsigned first = count_orders(SCHEDULER_PCT, 0, "aaaabbbb");
    assert_int_equal(first + count_orders(SCHEDULER_PCT, 0, "bbbbaaaa"), ORDER_SEEDS);
    assert_in_range(first, ORDER_SEEDS * 45 / 100, ORDER_SEEDS * 55 / 100);
    assert_true(count_orders(SCHEDULER_PCT, 1, "abbbbaaa") >= ORDER_SEEDS / (2 * ORDER_STEPS));
    assert_int_equal(count_orders(SCHEDULER_PCT, 1, "abababab"), 0);
}

/* --- accesses to memory -------------------------------------------------------------------- */

static void access_twice(run *r, unsigned thread)
{
    say(r, thread);
    scheduler_at_access(r, GMD_TSAN_BEFORE);
    say(r, thread);
}

TEST(atomic_operations_are_yield_points)
{
    static const uint8_t choices[] = {0, 0, 1}; /* at the start, as a enters, at its access */
    run *r = new_run(2, access_twice);
    r->config.policy = SCHEDULER_EXPLICIT;
    r->config.choices = choices;
    r->config.choice_count = sizeof choices;
    carry_out(r);
    assert_string_equal(r->log, "abba");
    end_run(r);
}

static void wait_for_the_other(run *r, unsigned thread)
{
    if (thread) {
        atomic_store(&r->flag, 1);
    }
    while (!atomic_load(&r->flag)) {
        scheduler_at_access(r, GMD_TSAN_BEFORE);
    }
    say(r, thread);
}

/* No choice ever passes the turn on. */
TEST(a_thread_that_asks_again_and_again_lets_others_run)
{
    static const scheduler_policy policies[] = {SCHEDULER_EXPLICIT, SCHEDULER_BOUNDED,
                                                SCHEDULER_PCT, SCHEDULER_RANDOM};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        run *r = new_run(2, wait_for_the_other);
        r->config.policy = policies[i];
        r->config.steps = 1;
        carry_out(r);
        assert_int_equal(strlen(r->log), 2);
        assert_int_equal(r->lapses, 0);
        end_run(r);
    }
}

/* Where blocking is only seen by the watchdog, each time takes a while. */
static uint64_t seed_count(void)
{
    return interpose_is_on() ? 30 : 3;
}

/* --- blocking ---------------------------------------------------------------------------- */

static void count_under_mutex(run *r, unsigned thread)
{
    (void)thread;
    for (int i = 0; i < 30; i++) {
        pthread_mutex_lock(&r->mutex);
        int seen = r->shared;
        scheduler_yield();
        r->shared = seen + 1;
        pthread_mutex_unlock(&r->mutex);
    }
}

TEST(a_mutex_excludes_and_hangs_nobody)
{
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        run *r = new_run(4, count_under_mutex);
        r->config.seed = seed;
        carry_out(r);
        assert_int_equal(r->shared, 120);
        assert_true(r->lapses == 0 || !interpose_is_on());
        end_run(r);
    }
}

static void read_and_write(run *r, unsigned thread)
{
    for (int i = 0; i < 20; i++) {
        if (thread % 2) {
            pthread_rwlock_rdlock(&r->rwlock);
            int seen = r->shared;
            scheduler_yield();
            r->results[thread] += r->shared != seen;
        } else {
            pthread_rwlock_wrlock(&r->rwlock);
            r->shared++;
            scheduler_yield();
            r->shared++;
        }
        pthread_rwlock_unlock(&r->rwlock);
    }
}

TEST(a_read_write_lock_keeps_writers_out)
{
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        run *r = new_run(4, read_and_write);
        r->config.seed = seed;
        carry_out(r);
        assert_int_equal(r->shared, 80);
        assert_int_equal(r->results[1] + r->results[3], 0);
        end_run(r);
    }
}

/* Thread 0 waits for the others' work; each signals it. */
static void hand_over(run *r, unsigned thread)
{
    pthread_mutex_lock(&r->mutex);
    if (thread == 0) {
        while (r->shared < 3) {
            pthread_cond_wait(&r->condition, &r->mutex);
        }
        r->results[0] = r->shared;
    } else {
        r->shared++;
        pthread_cond_signal(&r->condition);
    }
    pthread_mutex_unlock(&r->mutex);
}

TEST(a_condition_variable_wakes_its_waiter)
{
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        run *r = new_run(4, hand_over);
        r->config.seed = seed;
        carry_out(r);
        assert_int_equal(r->results[0], 3);
        assert_true(r->lapses == 0 || !interpose_is_on());
        end_run(r);
    }
}

static void wait_for_nothing(run *r, unsigned thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    pthread_mutex_lock(&r->mutex);
    r->results[thread] = pthread_cond_timedwait(&r->condition, &r->mutex, &until);
    pthread_mutex_unlock(&r->mutex);
}

TEST(a_wait_with_a_time_limit_ends_when_nobody_else_can_run)
{
    if (!interpose_is_on()) {
        skip();
    }
    run *r = new_run(2, wait_for_nothing);
    carry_out(r);
    assert_int_equal(r->results[0], ETIMEDOUT);
    assert_int_equal(r->results[1], ETIMEDOUT);
    end_run(r);
}

static atomic_int made;

static void make_slowly(void)
{
    scheduler_yield();
    made++;
}

static void make_once(run *r, unsigned thread)
{
    pthread_once(&r->once, make_slowly);
    r->results[thread] = made;
}

TEST(a_once_routine_that_is_interrupted_is_waited_for)
{
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        made = 0;
        run *r = new_run(3, make_once);
        r->config.seed = seed;
        carry_out(r);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(r->results[i], 1);
        }
        assert_true(r->lapses == 0 || !interpose_is_on());
        end_run(r);
    }
}

/* What a C++ compiler makes of a function's static variable. */
int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
static uint64_t guard;

static void make_static_variable(run *r, unsigned thread)
{
    if (__cxa_guard_acquire(&guard)) {
        make_slowly();
        __cxa_guard_release(&guard);
    }
    r->results[thread] = made;
}

TEST(a_static_variable_is_made_once_and_waited_for)
{
    if (!interpose_is_on()) {
        skip();
    }
    for (uint64_t seed = 0; seed < seed_count(); seed++) {
        guard = 0;
        made = 0;
        run *r = new_run(3, make_static_variable);
        r->config.seed = seed;
        carry_out(r);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(r->results[i], 1);
        }
        assert_int_equal(r->lapses, 0);
        end_run(r);
    }
}

static void spin_politely(run *r, unsigned thread)
{
    if (thread == 0) {
        scheduler_yield();
        atomic_store(&r->flag, 1);
    }
    while (!atomic_load(&r->flag)) {
        sched_yield();
    }
}

TEST(who_asks_again_and_again_lets_the_others_run)
{
    if (!interpose_is_on()) {
        skip();
    }
    for (uint64_t seed = 0; seed < 20; seed++) {
        run *r = new_run(2, spin_politely);
        r->config.seed = seed;
        carry_out(r);
        assert_int_equal(r->lapses, 0);
        end_run(r);
    }
}

/* --- outside the scheduler --------------------------------------------------------------- */

/* Thread 0 reads from a pipe that thread 1 writes to. */
static void wait_in_the_kernel(run *r, unsigned thread)
{
    char byte = 0;
    if (thread == 0) {
        r->results[0] = (int)read(r->pipe[0], &byte, 1);
    } else {
        r->results[1] = (int)write(r->pipe[1], "x", 1);
    }
}

TEST(a_thread_that_blocks_outside_the_scheduler_loses_its_turn)
{
    run *r = new_run(2, wait_in_the_kernel);
    r->config.policy = SCHEDULER_EXPLICIT; /* thread 0 first */
    assert_int_equal(pipe(r->pipe), 0);
    carry_out(r);
    assert_int_equal(r->results[0], 1);
    assert_int_equal(r->lapses, 1);
    close(r->pipe[0]);
    close(r->pipe[1]);
    end_run(r);
}

static void spin(run *r, unsigned thread)
{
    if (thread == 1) {
        atomic_store(&r->flag, 1);
    }
    while (!atomic_load(&r->flag)) {
    }
}

TEST(a_thread_that_spins_loses_its_turn)
{
    run *r = new_run(2, spin);
    r->config.policy = SCHEDULER_EXPLICIT;
    carry_out(r);
    assert_int_equal(r->lapses, 1);
    end_run(r);
}

/* --- deadlock ---------------------------------------------------------------------------- */

static void lock_in_two_orders(run *r, unsigned thread)
{
    pthread_mutex_t *first = thread ? &r->other_mutex : &r->mutex;
    pthread_mutex_t *second = thread ? &r->mutex : &r->other_mutex;
    pthread_mutex_lock(first);
    r->shared++;
    while (r->shared < 2) { /* both hold one now */
        scheduler_yield();
    }
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void wait_for_a_lost_signal(run *r, unsigned thread)
{
    pthread_mutex_lock(&r->mutex);
    if (thread == 0) {
        pthread_cond_wait(&r->condition, &r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
}

static void lock_again(run *r, unsigned thread)
{
    if (thread == 1) {
        pthread_mutex_lock(&r->mutex);
        pthread_mutex_lock(&r->mutex);
    }
}

static void expect_deadlock(void (*body)(run *run, unsigned thread), const char *first,
                            const char *second)
{
    if (!interpose_is_on()) {
        skip();
    }
    run *r = new_run(2, body);
    assert_int_equal(pipe(r->pipe), 0);
    pid_t child = fork();
    if (child == 0) {
        carry_out(r);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    char sentence[1000] = "";
    assert_true(read(r->pipe[0], sentence, sizeof sentence - 1) > 0);
    if (!strstr(sentence, first) || !strstr(sentence, second)) {
        fail_msg("%s", sentence);
    }
    close(r->pipe[0]);
    close(r->pipe[1]);
    end_run(r);
}

TEST(locks_taken_in_two_orders_are_a_deadlock_that_names_both)
{
    expect_deadlock(lock_in_two_orders, "thread a waits for lock 1, held by thread b",
                    "thread b waits for lock 2, held by thread a");
}

TEST(a_lost_signal_is_a_deadlock)
{
    expect_deadlock(wait_for_a_lost_signal, "thread a waits for a signal that nobody gives", "");
}

static void *sleep_a_little(void *unused)
{
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    return unused;
}

static void wait_for_a_helper_that_ends(run *r, unsigned thread)
{
    if (thread == 0) {
        pthread_t helper;
        if (pthread_create(&helper, NULL, sleep_a_little, NULL) != 0 ||
            pthread_detach(helper) != 0) {
            _exit(9);
        }
    }
    wait_for_a_lost_signal(r, thread);
}

TEST(a_signal_that_only_a_thread_that_has_ended_could_give_is_a_deadlock)
{
    expect_deadlock(wait_for_a_helper_that_ends, "thread a waits for a signal that nobody gives",
                    "");
}

TEST(a_mutex_taken_twice_is_a_deadlock)
{
    expect_deadlock(lock_again, "thread b waits for lock 1, which it holds itself", "");
}
