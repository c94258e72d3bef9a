/* Histories that are switched and read while threads work; ThreadSanitizer (preset tsan) watches
 * the same tests. */
#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"
#include "gmd_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, LIVE = 32 };

typedef struct worker {
    gmd_allocator *a;
    cudaStream_t stream;
    uint64_t random;
    const atomic_bool *is_over;
    pthread_t thread;
} worker;

static void *churn(void *context)
{
    worker *w = context;
    void *live[LIVE] = {0};
    while (!atomic_load(w->is_over)) {
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        void **slot = &live[(w->random >> 40) % LIVE];
        if (*slot) {
            gmd_allocator_free(w->a, *slot, 0, w->stream);
            *slot = NULL;
        } else {
            *slot = gmd_allocator_malloc(w->a, (w->random >> 30) % (4 * GMD_MIB), 0, w->stream);
        }
    }
    for (int i = 0; i < LIVE; i++) {
        gmd_allocator_free(w->a, live[i], 0, w->stream);
    }
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    const gmd_snapshot_event *const *x = a, *const *y = b;
    int order = ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
    return order ? order : (*x > *y) - (*x < *y); /* then by the order in the file */
}

/* At each address an alloc and a free by turns. */
static void check_turns(const gmd_snapshot *s)
{
    const gmd_snapshot_event **sorted = malloc((s->event_count + 1) * sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < s->event_count; i++) {
        uint8_t action = s->events[i].action;
        if (action == GMD_ACTION_ALLOC || action == GMD_ACTION_FREE_REQUESTED) {
            sorted[count++] = &s->events[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, by_address);
    for (size_t i = 1; i < count; i++) {
        if (sorted[i]->address == sorted[i - 1]->address) {
            assert_int_not_equal(sorted[i]->action, sorted[i - 1]->action);
        }
    }
    free(sorted);
}

static void check_times(const gmd_snapshot *s)
{
    for (size_t i = 1; i < s->event_count; i++) {
        assert_true(s->events[i].time_us >= s->events[i - 1].time_us);
    }
}

static size_t tell(void *context, char *text, size_t size)
{
    static _Thread_local unsigned calls;
    (void)context;
    return (size_t)snprintf(text, size, "a.py:%u:work", calls++ % 500);
}

static void switch_and_look(gmd_allocator *a, const char *path)
{
    gmd_error error = {""};
    gmd_snapshot seen;
    for (unsigned round = 0; round < 20; round++) {
        gmd_stacks which = round % 3;
        gmd_allocator_set_stack_source(a, round % 2 ? tell : NULL, NULL);
        assert_int_equal(gmd_allocator_record_history(a, round % 5 ? 3000 : 0, which, &error),
                         GMD_OK);
        usleep(2000);
        assert_int_equal(gmd_allocator_dump_snapshot(a, path, &error), GMD_OK);
        if (gmd_snapshot_read(&seen, path, &error) != GMD_OK) {
            fail_msg("%s", error.text);
        }
        assert_true(seen.event_count <= (round % 5 ? 3000 : 0));
        check_turns(&seen);
        check_times(&seen);
        gmd_snapshot_free(&seen);
    }
}

TEST(snapshots_are_whole_while_threads_work)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    gmd_sim_reset(&config);
    gmd_allocator *a = NULL;
    assert_int_equal(gmd_allocator_create(&a, 1, NULL, NULL), GMD_OK);
    atomic_bool is_over = false;
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.a = a, .random = (uint64_t)i + 1, .is_over = &is_over};
        cudaStreamCreateWithFlags(&workers[i].stream, cudaStreamNonBlocking);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, churn, &workers[i]), 0);
    }
    char path[64];
    snprintf(path, sizeof path, "threads-%ld.pickle", (long)getpid());
    switch_and_look(a, path);
    unlink(path);
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    gmd_allocator_destroy(a);
}

/* --- who waits for whom ------------------------------------------------------------------- */

/* As Python's GIL is: held by some who call the allocator, and wanted by whoever tells a stack. */
static pthread_mutex_t interpreter;

static size_t tell_with_lock(void *context, char *text, size_t size)
{
    (void)context;
    pthread_mutex_lock(&interpreter);
    size_t length = (size_t)snprintf(text, size, "a.py:1:work");
    pthread_mutex_unlock(&interpreter);
    return length;
}

static void request_all(gmd_allocator *a)
{
    gmd_allocator_free(a, gmd_allocator_malloc(a, 3 * GMD_MIB, 0, NULL), 0, NULL);
    gmd_allocator_empty_cache(a);
}

static void *work_with_lock(void *context)
{
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&interpreter);
        request_all(context);
        pthread_mutex_unlock(&interpreter);
    }
    return NULL;
}

TEST(a_source_may_wait_for_a_lock_that_callers_hold)
{
    gmd_allocator *a = NULL;
    gmd_sim_config config;
    pthread_t thread;
    pthread_mutexattr_t recursive;
    gmd_sim_default_config(&config);
    gmd_sim_reset(&config);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&interpreter, &recursive);
    assert_int_equal(gmd_allocator_create(&a, 1, NULL, NULL), GMD_OK);
    gmd_allocator_set_stack_source(a, tell_with_lock, NULL);
    assert_int_equal(gmd_allocator_record_history(a, 1000, GMD_STACKS_ALL, NULL), GMD_OK);
    assert_int_equal(pthread_create(&thread, NULL, work_with_lock, a), 0);
    for (int i = 0; i < 500; i++) {
        request_all(a);
    }
    pthread_join(thread, NULL); /* does not come back where both wait for each other */
    gmd_allocator_destroy(a);
}
