/* The reference allocator against a naive model (fuzz/targets/gmd_naive_model.h): the same rules on
 * a plain array, searched from end to end. Every address, every device call and the sums must agree
 * over random requests on three streams under a tight limit. */
#include "gmd_allocator.h"
#include "gmd_naive_model.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_test.h"

#define STREAMS   3
#define BLOCK_MAX 4096
#define LIMIT     (256 * GMD_MIB)

typedef struct call_log {
    uint64_t allocated_at[16];
    int alloc_count, free_count;
} call_log;

static void note_call(void *context, const gmd_sim_call *call)
{
    call_log *log = context;
    if (call->result != 0) {
        return;
    }
    if (call->kind == GMD_SIM_CALL_MALLOC) {
        log->allocated_at[log->alloc_count++] = call->address;
    }
    log->free_count += call->kind == GMD_SIM_CALL_FREE;
}

static uint64_t draw_size(uint64_t random)
{
    static const uint64_t edges[] = {512, GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
    uint64_t kind = random % 10;
    if (kind < 3) { /* around a boundary of the rules */
        return edges[random / 16 % 5] - 2 + random / 128 % 5;
    }
    return kind < 8 ? random / 16 % (256 * GMD_KIB) + 1 : random / 16 % (30 * GMD_MIB) + 1;
}

TEST(every_answer_is_that_of_the_naive_model)
{
    enum { LIVE = 300, STEPS = 60000 };
    static gmd_naive_block blocks[BLOCK_MAX];
    gmd_naive_model model = {.blocks = blocks, .limit = LIMIT};
    static uint64_t live[LIVE];
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = 2 * LIMIT;
    config.placement = GMD_SIM_REUSE_FIRST;
    gmd_sim_reset(&config);
    cudaStream_t streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    }
    gmd_allocator *a = NULL;
    assert_int_equal(gmd_allocator_create(&a, 1, NULL, NULL), GMD_OK);
    assert_true(gmd_allocator_set_memory_fraction(a, 0.5, 0));
    call_log log = {0};
    gmd_sim_observe(note_call, &log);
    uint64_t random = 99;
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &live[(random >> 20) % LIVE];
        log = (call_log){0};
        if (*slot) {
            assert_true(gmd_allocator_free(a, (void *)(uintptr_t)*slot, 0, NULL));
            gmd_naive_free(&model, *slot);
            *slot = 0;
        } else {
            int stream = (int)((random >> 50) % STREAMS);
            uint64_t size = draw_size(random >> 16);
            *slot = (uint64_t)(uintptr_t)gmd_allocator_malloc(a, size, 0, streams[stream]);
            gmd_naive_answer expected =
                gmd_naive_malloc(&model, size, (uint32_t)stream, log.allocated_at[0]);
            assert_int_equal(*slot, expected.address);
            assert_int_equal(log.alloc_count, expected.made);
            assert_int_equal(log.free_count, expected.given);
        }
    }
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(a, 0, &s));
    assert_int_equal(s.reserved_bytes, model.reserved);
    assert_int_equal(s.num_ooms, model.ooms);
    assert_int_equal(s.num_alloc_retries, model.retries);
    assert_true(model.ooms > 10 && model.retries > model.ooms); /* the limit was felt */
    gmd_sim_observe(NULL, NULL);
    gmd_allocator_destroy(a);
}
