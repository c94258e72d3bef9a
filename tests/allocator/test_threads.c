/* Eight threads on eight streams at once; ThreadSanitizer (preset tsan) watches the same test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"

#include <pthread.h>

#define THREADS  8
#define LIVE     64
#define REQUESTS 5000

typedef struct worker {
    gmd_allocator *a;
    cudaStream_t stream;
    uint64_t random;
    uint64_t refused; /* frees of live blocks that were refused: must stay 0 */
    pthread_t thread;
} worker;

static void *churn(void *argument)
{
    worker *w = argument;
    void *live[LIVE] = {0};
    for (int i = 0; i < REQUESTS; i++) {
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        void **slot = &live[(w->random >> 40) % LIVE];
        if (*slot) {
            w->refused += !gmd_allocator_free(w->a, *slot, 0, w->stream);
            *slot = NULL;
        } else {
            *slot = gmd_allocator_malloc(w->a, (w->random >> 30) % (4 * GMD_MIB), 0, w->stream);
        }
        if (i % 1000 == 999) {
            gmd_allocator_empty_cache(w->a);
        }
    }
    for (int i = 0; i < LIVE; i++) {
        w->refused += !gmd_allocator_free(w->a, live[i], 0, w->stream);
    }
    return NULL;
}

static void threads_on_their_own_streams_leave_the_books_at_zero(void **state)
{
    (void)state;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    gmd_sim_reset(&config);
    gmd_allocator *a = NULL;
    assert_int_equal(gmd_allocator_create(&a, 1, NULL, NULL), GMD_OK);
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.a = a, .random = (uint64_t)i + 1};
        cudaStreamCreateWithFlags(&workers[i].stream, cudaStreamNonBlocking);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, churn, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].refused, 0);
    }
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(a, 0, &s));
    assert_int_equal(s.allocated_bytes, 0);
    assert_int_equal(s.allocation_count, 0);
    assert_int_equal(s.requested_bytes, 0);
    gmd_allocator_empty_cache(a);
    gmd_sim_device_state device;
    gmd_sim_device(0, &device);
    assert_int_equal(device.allocated_bytes, 0);
    gmd_allocator_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_on_their_own_streams_leave_the_books_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
