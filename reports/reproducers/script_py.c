/* A case as a Python script for PyTorch's own allocator: the parts of script.py.in that it needs,
 * then a line for each request. */
#include "fragments.h"
#include "reproducer.h"

#include "gmd_pool_state.h"

#include "script.py.in.h"

#include <inttypes.h>
#include <string.h>

#define POOL_STREAMS 32 /* PyTorch makes no more of one priority, and then gives them again */

/* --- whether it fits --------------------------------------------------------------------- */

static const char *misfit(const gmd_request *r)
{
    return r->op == GMD_OP_FAULT || r->op == GMD_OP_BUDGET
               ? "only the simulated device makes calls fail on purpose"
           : r->op == GMD_OP_DESTROY ? "PyTorch's streams are never destroyed"
           : r->device               ? "it needs several devices"
           : r->thread               ? "it needs several threads"
           : r->op == GMD_OP_ALLOC && r->bytes > INT64_MAX
               ? "Python asks PyTorch for no more than 2^63 - 1 bytes"
               : NULL;
}

/* torch.cuda.use_mem_pool takes what a thread asks for on any stream. */
static bool has_pool_beside_others(const gmd_trace *t)
{
    uint32_t only = GMD_ALL_STREAMS;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (r->op == GMD_OP_BEGIN_POOL) {
            only = r->stream;
        } else if (r->op == GMD_OP_END_POOL) {
            only = GMD_ALL_STREAMS;
        } else if (r->op == GMD_OP_ALLOC && only != GMD_ALL_STREAMS && r->stream != only) {
            return true;
        }
    }
    return false;
}

/* Streams have numbers from 0 on, named or not. */
static uint32_t count_streams(const gmd_trace *t)
{
    uint32_t count = t->streams.count;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        bool names_stream = gmd_request_names_stream(r) && r->stream != GMD_ALL_STREAMS;
        uint32_t last = names_stream ? r->stream : 0;
        last = r->op == GMD_OP_WAIT && r->other_stream > last ? r->other_stream : last;
        count = last >= count ? last + 1 : count;
    }
    return count;
}

bool gmd_reproducer_fits_python(const gmd_reproducer *reproducer, char *reason, size_t size)
{
    const gmd_trace *t = reproducer->trace;
    const char *why = NULL;
    if (!reproducer->allocator || strcmp(reproducer->allocator, "torch") != 0) {
        why = "it is for PyTorch's own allocator (--allocator torch)";
    } else if (t->conditions.device_count > 1) {
        why = "it needs several devices";
    } else if (count_streams(t) > POOL_STREAMS + 1) {
        why = "PyTorch makes at most 32 streams";
    }
    for (size_t i = 0; i < t->count && !why; i++) {
        why = misfit(&t->requests[i]);
    }
    if (!why && has_pool_beside_others(t)) {
        why = "while its private pool takes one stream's requests, others' go elsewhere; "
              "torch.cuda.use_mem_pool takes all";
    }
    if (why) {
        snprintf(reason, size, "%s", why);
    }
    return !why;
}

/* --- the script -------------------------------------------------------------------------- */

/* `names` may have fewer than the trace uses: generated ones have none. */
static const char *name_of(const gmd_names *names, uint32_t index, char prefix, char text[160])
{
    const char *given = index < names->count ? names->items[index] : NULL;
    if (given) {
        snprintf(text, 160, "%s", given);
    } else {
        snprintf(text, 160, "%c%" PRIu32, prefix, index);
    }
    return text;
}

static const char *stream_name(const gmd_trace *t, uint32_t stream, char text[160])
{
    static const gmd_names none;
    return name_of(stream ? &t->streams : &none, stream, 's', text);
}

static const char *block_name(const gmd_trace *t, uint32_t block, char text[160])
{
    return name_of(&t->blocks, block, 'b', text);
}

static const char *pool_name(const gmd_trace *t, uint32_t pool, char text[160])
{
    return name_of(&t->pools, pool, 'p', text);
}

/* A Python string; what could end it or the line does not stay as it is. */
static void put_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fputc('\\', out);
        }
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
    }
    fputc('"', out);
}

static bool is_last_alloc(const gmd_trace *t, size_t index)
{
    for (size_t i = index + 1; i < t->count; i++) {
        if (t->requests[i].op == GMD_OP_ALLOC) {
            return false;
        }
    }
    return true;
}

static bool checks(const gmd_reproducer *r, const char *oracle)
{
    return !r->oracle || strcmp(r->oracle, oracle) == 0;
}

static void put_alloc(const gmd_reproducer *reproducer, size_t index, FILE *out)
{
    const gmd_trace *t = reproducer->trace;
    const gmd_request *r = &t->requests[index];
    char block[160], stream[160];
    fprintf(out, "alloc(\"%s\", %" PRIu64 ", \"%s\"", block_name(t, r->block, block), r->bytes,
            stream_name(t, r->stream, stream));
    if (r->expect != GMD_EXPECT_ANY && checks(reproducer, "expect")) {
        fprintf(out, ", expect=\"%s\"", r->expect == GMD_EXPECT_OOM ? "oom" : "alloc");
    }
    fprintf(out, "%s)\n",
            checks(reproducer, "oom_retry") && is_last_alloc(t, index) ? ", is_last=True" : "");
}

static void put_on_pool(const gmd_trace *t, const gmd_request *r, FILE *out)
{
    char pool[160];
    fprintf(out, "%s_pool(\"%s\")\n",
            r->op == GMD_OP_BEGIN_POOL ? "begin"
            : r->op == GMD_OP_END_POOL ? "end"
                                       : "release",
            pool_name(t, r->pool, pool));
}

/* Requests outside of captures need a torch.cuda.MemPool, whose id captures then share. */
static bool is_begun_without_capture(const gmd_trace *t, uint32_t pool)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->requests[i].op == GMD_OP_BEGIN_POOL && t->requests[i].pool == pool) {
            return true;
        }
    }
    return false;
}

static void put_of_capture(const gmd_trace *t, const gmd_request *r, FILE *out)
{
    char pool[160], stream[160];
    pool_name(t, r->pool, pool);
    if (r->op == GMD_OP_END_CAPTURE) {
        fprintf(out, "end_capture(\"%s\")\n", pool);
        return;
    }
    bool begins = r->op == GMD_OP_BEGIN_CAPTURE;
    fprintf(out, "%s(\"%s\", \"%s\"%s)\n", begins ? "begin_capture" : "launch", pool,
            stream_name(t, r->stream, stream),
            begins && is_begun_without_capture(t, r->pool) ? ", is_mem_pool=True" : "");
}

static void put_request(const gmd_reproducer *reproducer, size_t index, FILE *out)
{
    const gmd_trace *t = reproducer->trace;
    const gmd_request *r = &t->requests[index];
    char block[160], stream[160], other[160];
    switch (r->op) {
    case GMD_OP_ALLOC:
        put_alloc(reproducer, index, out);
        break;
    case GMD_OP_FREE:
        fprintf(out, "free(\"%s\")\n", block_name(t, r->block, block));
        break;
    case GMD_OP_USE:
        fprintf(out, "use(\"%s\", \"%s\", %.17g)\n", block_name(t, r->block, block),
                stream_name(t, r->stream, stream), (double)r->duration_ns * 1e-3);
        break;
    case GMD_OP_RECORD:
        fprintf(out, "record(\"%s\", \"%s\")\n", block_name(t, r->block, block),
                stream_name(t, r->stream, stream));
        break;
    case GMD_OP_WAIT:
        fprintf(out, "wait(\"%s\", \"%s\")\n", stream_name(t, r->stream, stream),
                stream_name(t, r->other_stream, other));
        break;
    case GMD_OP_SYNC:
        if (r->stream == GMD_ALL_STREAMS) {
            fprintf(out, "sync()\n");
        } else {
            fprintf(out, "sync(\"%s\")\n", stream_name(t, r->stream, stream));
        }
        break;
    case GMD_OP_ADVANCE:
        fprintf(out, "advance(%.17g)\n", (double)r->duration_ns * 1e-3);
        break;
    case GMD_OP_FRACTION:
        fprintf(out, "fraction(%.17g)\n", r->fraction);
        break;
    case GMD_OP_EMPTY_CACHE:
        fprintf(out, "empty_cache()\n");
        break;
    case GMD_OP_BEGIN_POOL:
    case GMD_OP_END_POOL:
    case GMD_OP_RELEASE_POOL:
        put_on_pool(t, r, out);
        break;
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_END_CAPTURE:
    case GMD_OP_LAUNCH:
        put_of_capture(t, r, out);
        break;
    default: /* device 0 becomes the current one, which it is */
        break;
    }
}

static void put_comment(const gmd_reproducer *r, FILE *out)
{
    fprintf(out, "# Shows a defect of PyTorch's CUDA caching allocator, by itself.\n");
    put_findings(r, "# ", out);
    fprintf(out, "# Run: python3 %s        (needs a GPU)\n", r->name);
    fprintf(
        out,
        "# Exit status: 0 nothing shown, 1 shown, 2 it could not run; a crash shows it, too.\n");
}

/* --- what the script is made of ---------------------------------------------------------- */

typedef struct contents {
    bool captures, pools, works, limits, is_huge, expects;
} contents;

static contents contents_of(const gmd_reproducer *reproducer)
{
    const gmd_trace *t = reproducer->trace;
    contents c = {.limits = t->conditions.capacity_bytes != 0 || checks(reproducer, "peak_bound")};
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        c.captures = c.captures || gmd_op_is_of_capture(r->op);
        c.pools = c.pools || r->op == GMD_OP_BEGIN_POOL;
        c.expects = c.expects || (r->op == GMD_OP_ALLOC && r->expect != GMD_EXPECT_ANY);
        c.works = c.works || r->op == GMD_OP_USE;
        c.limits = c.limits || r->op == GMD_OP_FRACTION;
        c.is_huge = c.is_huge || (r->op == GMD_OP_ALLOC && r->bytes >= UINT64_C(1) << 62);
    }
    return c;
}

static void choose_flags(const gmd_reproducer *r, const contents *c, fragment_choice *choice)
{
    static const char *const oracles[] = {"accounting",   "alignment",    "backing", "expect",
                                          "leak",         "oom_retry",    "overlap", "peak_bound",
                                          "private_pool", "stream_order", "size"};
    gmd_schedule_kind schedule = r->trace->conditions.schedule.kind;
    for (size_t i = 0; i < sizeof oracles / sizeof *oracles; i++) {
        fragment_flag(choice, oracles[i], checks(r, oracles[i]));
    }
    fragment_flag(choice, "captures", c->captures);
    fragment_flag(choice, "pools", c->pools);
    fragment_flag(choice, "pooled", c->captures || c->pools);
    fragment_flag(choice, "held", c->works && schedule != GMD_SCHEDULE_EAGER);
    fragment_flag(choice, "eager", schedule == GMD_SCHEDULE_EAGER);
    fragment_flag(choice, "moves", c->works && schedule != GMD_SCHEDULE_LAZY);
    fragment_flag(choice, "huge", c->is_huge);
    fragment_flag(choice, "works", c->works || c->captures);
    fragment_flag(choice, "tries", checks(r, "progress") || c->is_huge);
    fragment_flag(choice, "expects", c->expects && checks(r, "expect"));
}

static void put_parameters(const gmd_reproducer *r, const contents *c, FILE *out)
{
    const gmd_trace *t = r->trace;
    fprintf(out, "import os\n\nos.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = ");
    put_string(t->conditions.conf ? t->conditions.conf : "", out);
    fprintf(out, "  # before torch is imported\nORACLE = ");
    put_string(r->oracle ? r->oracle : "", out);
    if (c->limits) {
        fprintf(out, "\nLIMIT = %" PRIu64 "  # bytes of the case's device; 0: as it is",
                t->conditions.capacity_bytes);
    }
    if (c->works && t->conditions.schedule.kind != GMD_SCHEDULE_LAZY) {
        fprintf(out, "\nSCHEDULE = \"%s\"",
                t->conditions.schedule.kind == GMD_SCHEDULE_EAGER ? "eager" : "timed");
    }
    fputc('\n', out);
}

/* What comes before the first request. */
static void put_set_up(const gmd_reproducer *r, const contents *c, FILE *out)
{
    const gmd_trace *t = r->trace;
    char stream[160];
    fprintf(out, "\n\n");
    if (c->works && t->conditions.schedule.kind != GMD_SCHEDULE_EAGER) {
        fprintf(out, "cycles_per_ms = measure_clock()\n");
    }
    fprintf(out, "torch.empty(1, dtype=torch.uint8, device=\"cuda:0\").fill_(1)\n");
    fprintf(out, "streams = {\"s0\": torch.cuda.default_stream()");
    for (uint32_t s = 1; s < count_streams(t); s++) {
        fprintf(out, ", \"%s\": torch.cuda.Stream()", stream_name(t, s, stream));
    }
    fprintf(out, "}\n");
    fputs(c->captures ? "own_graph = make_own_graph()\n" : "", out);
    fprintf(out, "torch.cuda.synchronize()\ntorch.cuda.empty_cache()\n");
    if (c->limits || checks(r, "leak") || checks(r, "accounting")) {
        fprintf(out, "own = figures()  # what PyTorch has for itself\n");
    }
    if (c->limits) {
        fprintf(out, "total_bytes = torch.cuda.get_device_properties(0).total_memory\n"
                     "limit_bytes, held_at_limit = total_bytes, 0\n"
                     "if LIMIT and LIMIT < total_bytes:\n    fraction(1.0)\n"
                     "torch.cuda.reset_peak_memory_stats(0)\n");
    }
    fputc('\n', out);
}

gmd_status gmd_reproducer_write_python(const gmd_reproducer *reproducer, FILE *out,
                                       gmd_error *error)
{
    char reason[200], *body = NULL;
    size_t size;
    const gmd_trace *t = reproducer->trace;
    if (!gmd_reproducer_fits_python(reproducer, reason, sizeof reason)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: no Python script: %s", reproducer->name, reason);
    }
    contents has = contents_of(reproducer);
    fragment_choice choice = {.flag_count = 0};
    choose_flags(reproducer, &has, &choice);
    FILE *memory = open_memstream(&body, &size);
    if (memory) {
        put_set_up(reproducer, &has, memory);
        for (size_t i = 0; i < t->count; i++) {
            put_request(reproducer, i, memory);
        }
        fprintf(memory, "finish()\nprint(\"nothing shown\")\n");
    }
    bool is_put = memory && fclose(memory) == 0;
    if (is_put) {
        put_comment(reproducer, out);
        put_parameters(reproducer, &has, out);
        is_put = fragments_write(script_text, "#", &choice, body, out);
        fputs(body, out);
    }
    free(body);
    if (!is_put) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a script");
    }
    return fflush(out) || ferror(out)
               ? gmd_fail(error, GMD_FAILED, "%s: cannot be written", reproducer->name)
               : GMD_OK;
}
