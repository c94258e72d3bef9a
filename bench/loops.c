#include "loops.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- the operations ---------------------------------------------------------------------- */

bool bench_pairs(const bench_calls *calls, uint64_t bytes, cudaStream_t stream, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = calls->malloc(bytes, 0, stream);
        if (!block) {
            return false;
        }
        calls->free(block, bytes, 0, stream);
    }
    return true;
}

/* xorshift64* (Vigna, 2016): few instructions, so that the loop stays cheap. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static bool churn(const bench_calls *calls, bench_churn *c, uint64_t count)
{
    cudaStream_t stream = calls->streams[0];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t random = next_random(&c->random);
        uint32_t slot = (uint32_t)(((random >> 32) * c->count) >> 32);
        uint8_t size = (uint8_t)((random >> 16) % BENCH_CHURN_SIZES);
        calls->free(c->blocks[slot], bench_churn_sizes[c->sizes[slot]], 0, stream);
        c->blocks[slot] = calls->malloc(bench_churn_sizes[size], 0, stream);
        c->sizes[slot] = size;
        if (!c->blocks[slot]) {
            return false;
        }
    }
    return true;
}

static bool recorded_pairs(const bench_calls *calls, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = calls->malloc(bytes, 0, calls->streams[0]);
        if (!block) {
            return false;
        }
        calls->record_stream(block, calls->streams[1]);
        calls->free(block, bytes, 0, calls->streams[0]);
    }
    return true;
}

static bool misses(const bench_calls *calls, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!bench_pairs(calls, bytes, calls->streams[0], 1)) {
            return false;
        }
        calls->empty_cache();
    }
    return true;
}

/* The limit holds one block: that of the other stream is in the cache, and in the way. */
static bool retries(const bench_calls *calls, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!bench_pairs(calls, bytes, calls->streams[i & 1], 1)) {
            return false;
        }
    }
    return true;
}

static bool run(bench_loop *loop, uint64_t count)
{
    const bench_calls *calls = loop->calls;
    const benchmark *of = loop->of;
    switch (of->kind) {
    case BENCH_CHURN:
        return churn(calls, &loop->churn, count);
    case BENCH_RECORD:
        return recorded_pairs(calls, of->bytes, count);
    case BENCH_MISS:
        return misses(calls, of->bytes, count);
    case BENCH_RETRY:
        return retries(calls, of->bytes, count);
    case BENCH_PAIR:
    case BENCH_THREADS:
    case BENCH_HISTORY:
    case BENCH_FIRST:
        return bench_pairs(calls, of->bytes, calls->streams[0], count);
    }
    return false;
}

gmd_status bench_loop_run(bench_loop *loop, uint64_t count, gmd_error *error)
{
    if (!run(loop, count)) {
        const char *reason = loop->calls->last_error ? loop->calls->last_error() : NULL;
        return gmd_fail(error, GMD_FAILED, "malloc returned NULL%s%.500s", reason ? ": " : "",
                        reason ? reason : "");
    }
    const char *wrong = loop->calls->last_error ? loop->calls->last_error() : NULL;
    return wrong ? gmd_fail(error, GMD_FAILED, "%.700s", wrong) : GMD_OK;
}

/* --- before and after -------------------------------------------------------------------- */

const char *bench_loop_lacks(const bench_calls *calls, const benchmark *of)
{
    switch (of->kind) {
    case BENCH_HISTORY:
        return calls->record_history ? NULL : "it has no gmd_record_history";
    case BENCH_RECORD:
        return calls->record_stream ? NULL : "it has no gmd_record_stream";
    case BENCH_MISS:
        return calls->empty_cache ? NULL : "it has no gmd_empty_cache";
    case BENCH_RETRY:
        return calls->set_memory_fraction && calls->empty_cache
                   ? NULL
                   : "it has no gmd_set_memory_fraction";
    case BENCH_FIRST:
        return calls->total_bytes ? NULL : "nothing that repeats";
    case BENCH_PAIR:
    case BENCH_CHURN:
    case BENCH_THREADS:
        break;
    }
    return NULL;
}

static gmd_status fill(bench_loop *loop, uint64_t seed, gmd_error *error)
{
    bench_churn *c = &loop->churn;
    uint32_t count = loop->of->live;
    c->random = seed * 2 + 1; /* not 0, where the generator would stay */
    c->blocks = calloc(count, sizeof *c->blocks);
    c->sizes = calloc(count, sizeof *c->sizes);
    if (!c->blocks || !c->sizes) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %" PRIu32 " blocks", count);
    }
    for (; c->count < count; c->count++) {
        uint8_t size = (uint8_t)((next_random(&c->random) >> 16) % BENCH_CHURN_SIZES);
        void *block = loop->calls->malloc(bench_churn_sizes[size], 0, loop->calls->streams[0]);
        if (!block) {
            return gmd_fail(error, GMD_FAILED,
                            "malloc returned NULL with %" PRIu32 " of %" PRIu32 " blocks live",
                            c->count, count);
        }
        c->blocks[c->count] = block;
        c->sizes[c->count] = size;
    }
    return GMD_OK;
}

gmd_status bench_loop_open(bench_loop *loop, const bench_calls *calls, const benchmark *of,
                           uint64_t seed, gmd_error *error)
{
    *loop = (bench_loop){.calls = calls, .of = of};
    if (of->kind == BENCH_CHURN) {
        return fill(loop, seed, error);
    }
    if (of->kind == BENCH_RETRY && calls->total_bytes) {
        double limit = 1.5 * (double)of->bytes;
        calls->set_memory_fraction(limit / (double)calls->total_bytes, 0);
    }
    return GMD_OK;
}

void bench_loop_close(bench_loop *loop)
{
    const bench_calls *calls = loop->calls;
    bench_churn *c = &loop->churn;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->blocks[i]) {
            calls->free(c->blocks[i], bench_churn_sizes[c->sizes[i]], 0, calls->streams[0]);
        }
    }
    free((void *)c->blocks);
    free(c->sizes);
    *c = (bench_churn){0};
    if (loop->of->kind == BENCH_RETRY && calls->total_bytes) {
        calls->set_memory_fraction(1, 0);
    }
    if (calls->empty_cache) {
        calls->empty_cache();
    }
}
