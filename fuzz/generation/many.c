#include "many.h"

#include "burst.h"

#include "gmd_min.h"
#include "gmd_size.h"

/* --- recorded streams of one block ------------------------------------------------------- */

/* All work is short but that of one stream, mostly the last: what waits for some streams only hands
 * the block out while that one still works on it. Mostly the streams come in falling order: work on
 * those of high numbers is over when it is asked for (GMD_TRACKED_STREAMS). */
static void append_records(burst *b)
{
    uint32_t last = b->g->profile->stream_count - 1, wanted = draw_count(b, 2, 8);
    uint32_t count = (uint32_t)gmd_min(wanted, last), first = below(b, last);
    uint8_t device = generator_choose_device(b->g);
    uint64_t bytes = generator_choose_size(b->g, device);
    gmd_generated_block of = put_alloc(b, bytes, below(b, 3), device);
    uint32_t slow = chance(b, 60) ? count - 1 : below(b, count);
    bool has_use = chance(b, 80), is_used_first = chance(b, 50), is_falling = chance(b, 70);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stream = is_falling ? count - i : 1 + (first + i) % last;
        uint64_t ns = i == slow ? LONG_NS : SHORT_NS;
        gmd_request record = {
            .op = GMD_OP_RECORD, .block = of.block, .device = device, .stream = stream};
        if (has_use && is_used_first) {
            put_use(b, &of, stream, ns);
        }
        put(b, record);
        if (!is_used_first && (has_use || i == slow)) {
            put_use(b, &of, stream, ns);
        }
    }
    put_free(b, of.block);
    if (chance(b, 60)) {
        put_advance(b, chance(b, 50) ? 100 * SHORT_NS : 2 * LONG_NS);
    }
    gmd_generated_block next = put_alloc(b, bytes, chance(b, 80) ? of.stream : below(b, 3), device);
    if (chance(b, 50)) {
        put_use(b, &next, next.stream, SHORT_NS);
    }
}

/* --- streams ------------------------------------------------------------------------------ */

/* Each stream works on a block of its own, and frees it while it does; then each, from another one
 * on, asks for one alike. */
static void append_streams(burst *b)
{
    uint32_t last = b->g->profile->stream_count - 1, wanted = draw_count(b, 2, 8);
    uint32_t count = (uint32_t)gmd_min(wanted, last), shift = chance(b, 50) ? 0 : below(b, count);
    uint8_t device = generator_choose_device(b->g);
    uint64_t bytes = generator_choose_size(b->g, device);
    bool is_freed_late = chance(b, 30), is_freed_again = chance(b, 70);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t first = b->g->next_block;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t stream = 1 + (round ? i + shift : i) % count;
            gmd_generated_block of = put_alloc(b, bytes, stream, device);
            put_use(b, &of, stream, chance(b, 80) ? LONG_NS : SHORT_NS);
            if (!round && !is_freed_late) {
                put_free(b, of.block);
            }
        }
        for (uint32_t i = 0; i < count && (!round || is_freed_again); i++) {
            put_free(b, first + i);
        }
    }
}

/* --- live blocks ------------------------------------------------------------------------- */

/* The order in which the blocks from `first` on are freed. */
static void free_blocks(burst *b, uint32_t first, uint32_t count)
{
    uint32_t order = below(b, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t half = (count + 1) / 2;
        uint32_t which = order == 0   ? i
                         : order == 1 ? count - 1 - i
                         : order == 2 ? (i < half ? 2 * i : 2 * (i - half) + 1)
                                      : below(b, count);
        put_free(b, first + which);
    }
}

static uint64_t segment_size(burst *b)
{
    static const uint64_t sizes[] = {512, 4096, GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};
    return chance(b, 50) ? b->g->profile->palette[below(b, b->g->profile->palette_count)]
                         : sizes[below(b, sizeof sizes / sizeof *sizes)];
}

/* Blocks alike, or each of a size of its own; idle, or freed while their streams still work on
 * them: then those that are asked for next are for other streams, mostly. */
static void append_blocks(burst *b)
{
    uint32_t count = draw_count(b, 4, 10), streams = 1 + below(b, b->g->profile->stream_count);
    uint64_t bytes = segment_size(b), step = chance(b, 25) ? 512 : 0;
    uint8_t device = generator_choose_device(b->g);
    bool has_use = chance(b, 40);
    uint32_t rounds = has_use ? 2 : 1 + below(b, 2);
    uint32_t shift = has_use ? below(b, b->g->profile->stream_count) : 0;
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t first = b->g->next_block;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t stream = (i % streams + round * shift) % b->g->profile->stream_count;
            gmd_generated_block of = put_alloc(b, bytes + i * step, stream, device);
            if (has_use) {
                put_use(b, &of, stream, LONG_NS);
            }
        }
        if (chance(b, 85)) {
            free_blocks(b, first, count);
        }
        if (chance(b, 40) && !is_left_out(b, GMD_OP_EMPTY_CACHE)) {
            put(b, (gmd_request){.op = GMD_OP_EMPTY_CACHE});
        }
    }
}

/* --- devices and threads ----------------------------------------------------------------- */

/* What one device got is freed and asked for on the others: in their order, and the other way
 * round. */
static void append_devices(burst *b)
{
    uint32_t count = b->g->profile->conditions.device_count, streams = b->g->profile->stream_count;
    uint64_t bytes = generator_choose_size(b->g, 0);
    uint32_t stream = below(b, streams);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t first = b->g->next_block;
        for (uint32_t i = 0; i < count; i++) {
            uint8_t device = (uint8_t)(round ? count - 1 - i : i);
            gmd_generated_block of = put_alloc(b, bytes, stream, device);
            if (chance(b, 30)) {
                put_use(b, &of, stream, chance(b, 50) ? SHORT_NS : LONG_NS);
            }
        }
        for (uint32_t i = 0; i < count && chance(b, 95); i++) {
            put_free(b, first + i);
        }
    }
}

static void put_record_and_use(burst *b, const gmd_generated_block *of, uint32_t stream)
{
    put(b, (gmd_request){
               .op = GMD_OP_RECORD, .block = of->block, .device = of->device, .stream = stream});
    put_use(b, of, stream, LONG_NS);
}

/* Each thread allocates, then each frees its own or its neighbour's: idle, or recorded on another
 * stream that still works on it. */
static void append_threads(burst *b)
{
    gmd_generator *g = b->g;
    uint32_t count = g->profile->thread_count, shift = below(b, 3);
    uint8_t device = generator_choose_device(g);
    uint64_t bytes = generator_choose_size(g, device);
    bool has_other_streams = chance(b, 50);
    bool has_records = g->profile->weights[GMD_OP_RECORD] && chance(b, 50);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t first = g->next_block;
        for (uint32_t i = 0; i < count; i++) {
            g->thread = (uint8_t)i;
            uint32_t stream = has_other_streams ? i % g->profile->stream_count : 0;
            gmd_generated_block of = put_alloc(b, bytes, stream, device);
            if (has_records) {
                put_record_and_use(b, &of, (stream + 1) % g->profile->stream_count);
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            g->thread = (uint8_t)((i + shift) % count);
            put_free(b, first + i);
        }
    }
    g->thread = 0;
}

/* --- pools and captures ------------------------------------------------------------------ */

/* A block in each of many pools; then all are released, and may come again. */
static void append_pools(burst *b)
{
    uint32_t room = GMD_MAX_POOLS - b->g->pool_count, wanted = draw_count(b, 2, 6);
    uint32_t count = (uint32_t)gmd_min(wanted, room), first = b->g->pool_count;
    uint8_t device = generator_choose_device(b->g);
    uint64_t bytes = generator_choose_size(b->g, device);
    bool keeps_blocks = chance(b, 50);
    end_open_pool(b, device);
    for (uint32_t i = 0; i < count; i++) {
        put_on_pool(b, GMD_OP_BEGIN_POOL, device, first + i, GMD_ALL_STREAMS);
        gmd_generated_block of = put_alloc(b, bytes, 0, device);
        if (!keeps_blocks || chance(b, 20)) {
            put_free(b, of.block);
        }
        put_on_pool(b, GMD_OP_END_POOL, device, first + i, 0);
    }
    for (uint32_t i = 0; i < count && chance(b, 99); i++) {
        put_on_pool(b, GMD_OP_RELEASE_POOL, device, first + i, 0);
    }
}

/* One graph after the other is captured into a pool, with or without a block that lives on. */
static void append_captures(burst *b)
{
    gmd_generator *g = b->g;
    uint8_t device = generator_choose_device(g);
    uint32_t room = GMD_MAX_POOLS - g->pool_count, count = draw_count(b, 2, 6);
    uint32_t pool = room ? g->pool_count : 0, stream = 1 + below(b, g->profile->stream_count - 1);
    uint64_t bytes = generator_choose_size(g, device);
    bool keeps_blocks = chance(b, 30), has_use = chance(b, 60);
    end_open_pool(b, device);
    for (uint32_t i = 0; i < count; i++) {
        if (!put_on_pool(b, GMD_OP_BEGIN_CAPTURE, device, pool, stream)) {
            return;
        }
        gmd_generated_block of = put_alloc(b, bytes, stream, device);
        if (has_use) {
            put_use(b, &of, stream, SHORT_NS);
        }
        if (!keeps_blocks) {
            put_free(b, of.block);
        }
        put_on_pool(b, GMD_OP_END_CAPTURE, device, pool, 0);
        if (chance(b, 10)) {
            put_on_pool(b, GMD_OP_LAUNCH, device, pool, stream);
        }
    }
    uint32_t released = chance(b, 70) ? count : below(b, count);
    for (uint32_t i = 0; i < released; i++) {
        put_on_pool(b, GMD_OP_RELEASE_POOL, device, pool, 0);
    }
    if (released < count) { /* the latest graphs are still there */
        put_alloc(b, bytes, stream, device);
        put_on_pool(b, GMD_OP_LAUNCH, device, pool, stream);
    }
}

/* --- operations -------------------------------------------------------------------------- */

/* Over 2^16 blocks, one after the other. */
static void append_operations(burst *b)
{
    uint32_t count = (UINT32_C(1) << 16) + 1 + below(b, 512), streams = b->g->profile->stream_count;
    uint8_t device = generator_choose_device(b->g);
    uint64_t bytes = segment_size(b);
    uint32_t stream = below(b, streams);
    for (uint32_t i = 0; i < count && b->status == GMD_OK; i++) {
        gmd_generated_block of = put_alloc(b, bytes, stream, device);
        put_free(b, of.block);
    }
}

/* --- the whole --------------------------------------------------------------------------- */

gmd_status many_append(gmd_generator *generator, gmd_trace *trace, gmd_error *error)
{
    static void (*const kinds[GMD_MANY_KINDS])(burst *) = {
        [GMD_MANY_STREAMS] = append_streams,   [GMD_MANY_RECORDS] = append_records,
        [GMD_MANY_BLOCKS] = append_blocks,     [GMD_MANY_DEVICES] = append_devices,
        [GMD_MANY_THREADS] = append_threads,   [GMD_MANY_POOLS] = append_pools,
        [GMD_MANY_CAPTURES] = append_captures, [GMD_MANY_OPERATIONS] = append_operations,
    };
    burst b = {.g = generator, .trace = trace, .error = error};
    kinds[generator->profile->many](&b);
    return b.status;
}
