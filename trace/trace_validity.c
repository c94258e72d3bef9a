#include "gmd_trace_validity.h"

#include "gmd_pool_state.h"

#include <string.h>
#include <sys/mman.h>

#define FEW_BLOCKS 4096

typedef struct walk {
    const gmd_trace *trace;
    uint8_t *devices;     /* by block: 1 + that of the live block; 0: it is not live */
    gmd_pool_state pools; /* cleared where the trace has pools */
    const char *violation;
} walk;

static void find(walk *w, bool holds, const char *sentence)
{
    if (!holds && !w->violation) {
        w->violation = sentence;
    }
}

/* --- one request ------------------------------------------------------------------------- */

static void check_streams(walk *w, const gmd_request *request)
{
    gmd_request r = *request;
    uint32_t *streams[2];
    size_t count = gmd_request_streams(&r, streams);
    for (size_t i = 0; i < count; i++) {
        find(w, *streams[i] < w->trace->streams.count, "each stream has an entry");
    }
    find(w, !gmd_op_has(r.op, GMD_FIELD_OWN_STREAM) || r.stream,
         "the default stream is never destroyed");
}

static void check_names(walk *w, const gmd_request *r)
{
    const gmd_trace *t = w->trace;
    find(w, r->thread < t->threads.count, "each thread has an entry");
    find(w, r->device < (t->conditions.device_count ? t->conditions.device_count : GMD_MAX_DEVICES),
         "each device is one of the trace's");
    find(w, !gmd_op_has_block(r->op) || r->block < t->blocks.count, "each block has an entry");
    find(w, !gmd_op_has(r->op, GMD_FIELD_POOL) || r->pool < t->pools.count,
         "each pool has an entry");
    find(w,
         !gmd_op_has(r->op, GMD_FIELD_FUNCTION) ||
             (r->function < t->functions.count && t->functions.items[r->function]),
         "each function has a name");
    check_streams(w, r);
}

static void check_values(walk *w, const gmd_request *r)
{
    find(w, !gmd_op_has(r->op, GMD_FIELD_EXPECT) || r->expect <= GMD_EXPECT_OOM,
         "what is expected is known");
    find(w, !gmd_op_has(r->op, GMD_FIELD_FRACTION) || (r->fraction >= 0 && r->fraction <= 1),
         "a fraction is from 0 to 1");
    find(w, !gmd_op_has(r->op, GMD_FIELD_COUNT) || r->count, "calls that fail count from 1");
    find(w, !gmd_op_has(r->op, GMD_FIELD_ERROR) || r->error, "errors count from 1");
    find(w, !gmd_op_has(r->op, GMD_FIELD_EVERY) || r->every_later <= 1,
         "later calls fail, or do not");
    find(w, !gmd_op_has(r->op, GMD_FIELD_POOL_OPTIONS) || r->pool_options < GMD_POOL_OPTION_SETS,
         "options of pools are known");
}

/* --- its place in the sequence ----------------------------------------------------------- */

static void follow_block(walk *w, const gmd_request *r)
{
    uint8_t *device = &w->devices[r->block];
    if (gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
        find(w, !*device, "a live block is not allocated again");
        *device = r->expect == GMD_EXPECT_OOM ? 0 : (uint8_t)(r->device + 1);
        return;
    }
    find(w, *device, "only live blocks are used and freed");
    find(w, *device == r->device + 1, "a request on a block has the block's device");
    if (gmd_op_is(r->op, GMD_IS_FREE)) {
        *device = 0;
    }
}

static void follow(walk *w, const gmd_request *r)
{
    if (gmd_op_has_block(r->op)) {
        follow_block(w, r);
    } else if (gmd_op_is_on_pool(r->op)) {
        find(w, !gmd_pool_state_note(&w->pools, r), "requests on pools come in order");
    }
}

/* --- all --------------------------------------------------------------------------------- */

static const char *lists_violation(const gmd_trace *t)
{
    if (t->count > t->capacity || t->blocks.count > t->blocks.capacity ||
        t->streams.count > t->streams.capacity || t->threads.count > t->threads.capacity ||
        t->functions.count > t->functions.capacity || t->pools.count > t->pools.capacity) {
        return "no list is longer than its room";
    }
    if (!t->streams.count || !t->threads.count) {
        return "the default stream and the main thread have entries";
    }
    if (t->streams.count > GMD_MAX_STREAMS || t->threads.count > GMD_MAX_THREADS ||
        t->pools.count > GMD_MAX_POOLS || t->conditions.device_count > GMD_MAX_DEVICES) {
        return "a trace has no more streams, threads, pools and devices than are possible";
    }
    return NULL;
}

static void walk_requests(walk *w)
{
    for (size_t i = 0; i < w->trace->count && !w->violation; i++) {
        const gmd_request *r = &w->trace->requests[i];
        find(w, r->op < GMD_OP_COUNT, "each request is of a known kind");
        if (!w->violation) {
            check_names(w, r);
            check_values(w, r);
        }
        if (!w->violation) {
            follow(w, r);
        }
    }
}

/* Not by malloc: tests that refuse memory count what is asked for. Without it nothing is checked.
 */
static void walk_with_many_blocks(walk *w)
{
    size_t bytes = w->trace->blocks.count;
    void *devices = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (devices != MAP_FAILED) {
        w->devices = devices;
        walk_requests(w);
        munmap(devices, bytes);
    }
}

const char *gmd_trace_violation(const gmd_trace *t)
{
    uint8_t few[FEW_BLOCKS];
    walk w = {.trace = t, .violation = lists_violation(t)};
    if (t->blocks.count > FEW_BLOCKS) {
        walk_with_many_blocks(&w);
    } else {
        memset(few, 0, t->blocks.count);
        w.devices = few;
        walk_requests(&w);
    }
    return w.violation;
}
