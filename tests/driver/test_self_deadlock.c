/* Waits of the allocator that nobody can end. The report of one leaves the wait by a jump. */
#define _GNU_SOURCE /* PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP */
#include "gmd_interpose.h"
#include "gmd_self_deadlock.h"
#include "gmd_test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static jmp_buf back;
static char reported[200];

static unsigned one_thread(void *context)
{
    (void)context;
    return 1;
}

static void stuck(void *context, const char *what, const char *name)
{
    (void)context;
    (void)name;
    strncpy(reported, what, sizeof reported - 1);
    longjmp(back, 1);
}

static const self_deadlock_watch watch = {.own_threads = one_thread, .stuck = stuck};

/* What is said of the wait, or "" where it ended. */
static const char *what_is_told_of(void (*wait)(void))
{
    reported[0] = '\0';
    if (setjmp(back) == 0) {
        self_deadlock_enter(&watch);
        wait();
    }
    self_deadlock_leave();
    return reported;
}

/* There the clock tells. */
static void skip_under_thread_sanitizer(void)
{
    if (!interpose_is_on()) {
        skip();
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void take_twice(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

TEST(a_mutex_that_is_taken_twice_is_told)
{
    skip_under_thread_sanitizer();
    assert_non_null(strstr(what_is_told_of(take_twice), "the lock at "));
    pthread_mutex_unlock(&mutex);
}

static int second_result;

static void take_checked_twice(void)
{
    pthread_mutex_lock(&checked);
    second_result = pthread_mutex_lock(&checked);
}

TEST(a_mutex_that_checks_for_itself_answers_for_itself)
{
    skip_under_thread_sanitizer();
    assert_string_equal(what_is_told_of(take_checked_twice), "");
    assert_int_equal(second_result, EDEADLK);
    pthread_mutex_unlock(&checked);
}

static void read_and_write(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
}

TEST(writing_what_oneself_reads_is_told)
{
    skip_under_thread_sanitizer();
    assert_non_null(strstr(what_is_told_of(read_and_write), "the lock at "));
    pthread_rwlock_unlock(&rwlock);
}

static void wait_for_a_signal(void)
{
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
}

TEST(a_signal_that_nobody_can_give_is_told)
{
    skip_under_thread_sanitizer();
    assert_non_null(strstr(what_is_told_of(wait_for_a_signal), "a signal of the condition"));
    pthread_mutex_unlock(&mutex);
}

static void *hold_for_a_while(void *barrier)
{
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(barrier);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL); /* twice the patience */
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void take_and_give_back(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

TEST(another_thread_may_give_the_lock_back)
{
    skip_under_thread_sanitizer();
    pthread_t holder;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&holder, NULL, hold_for_a_while, &barrier), 0);
    pthread_barrier_wait(&barrier);
    assert_string_equal(what_is_told_of(take_and_give_back), "");
    pthread_join(holder, NULL);
    pthread_barrier_destroy(&barrier);
}
