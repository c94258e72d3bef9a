/* same_answers FIRST_SEED COUNT REQUESTS [CONF] - the reference allocator, with torch's quirks on,
 * against PyTorch's own library: random requests under random settings on the simulated device,
 * where both must give every block the same address, refuse the same requests, and count the same.
 *
 * Exit status: 0 the same, 1 different (the trace is written), 77 no PyTorch to compare with. */
#include "gmd_driver.h"
#include "gmd_quirks.h"
#include "gmd_random.h"
#include "gmd_session.h"
#include "gmd_session_state.h"
#include "gmd_size.h"
#include "gmd_torch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STREAMS 5
#define LIVE    400

typedef struct answer {
    uint64_t address; /* 0: refused, or no allocation */
    gmd_stats stats;
} answer;

typedef struct side { /* what one allocator answered; shared with the child that drives it */
    answer *answers;
    size_t count;
} side;

static uint64_t random_state;

static uint64_t next_random(void)
{
    return gmd_random_mix(random_state += GMD_HASH_MULTIPLIER);
}

static uint64_t below(uint64_t bound)
{
    return next_random() % bound;
}

/* --- what is asked ----------------------------------------------------------------------- */

static const char *const confs[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:20",
    "max_split_size_mb:64,garbage_collection_threshold:0.8",
    "garbage_collection_threshold:0.3",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:4,16:2,64:1,>:2]",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "max_split_size_mb:30,max_non_split_rounding_mb:40",
    "large_segment_size_mb:64",
    "expandable_segments:True,large_segment_size_mb:32",
    "expandable_segments:True,roundup_power2_divisions:8",
    "expandable_segments:True,max_split_size_mb:40",
    "expandable_segments:True,garbage_collection_threshold:0.6",
    "max_split_size_mb:100,garbage_collection_threshold:0.5,roundup_power2_divisions:2",
    "per_process_memory_fraction:0.5",
};

static uint64_t draw_size(unsigned profile)
{
    static const uint64_t edges[] = {512,          GMD_MIB,      2 * GMD_MIB,  10 * GMD_MIB,
                                     20 * GMD_MIB, 32 * GMD_MIB, 64 * GMD_MIB, 128 * GMD_MIB};
    static const int64_t beside[] = {-513, -512, -511, -1, 0, 1, 511, 512, 513};
    uint64_t kind = below(100);
    switch (profile) {
    case 0: /* small */
        return 1 + below(kind < 20 ? 2 * GMD_MIB : 64 * GMD_KIB);
    case 1: /* large */
        return 1 + below(kind < 60 ? 200 * GMD_MIB : 4 * GMD_MIB);
    case 2: { /* on the edges */
        int64_t size = (int64_t)edges[below(8)] + beside[below(9)];
        return size > 0 ? (uint64_t)size : 1;
    }
    default:
        return 1 + below(kind < 45   ? 8 * GMD_KIB
                         : kind < 70 ? GMD_MIB
                         : kind < 92 ? 12 * GMD_MIB
                                     : 80 * GMD_MIB);
    }
}

typedef struct generator {
    gmd_trace *trace;
    uint32_t live[LIVE], live_count, wanted;
    unsigned profile;
    bool uses, uses_are_short;
} generator;

static void add(generator *g, const gmd_request *r)
{
    gmd_error error;
    if (gmd_trace_append(g->trace, r, &error) != GMD_OK) {
        fprintf(stderr, "same_answers: %s\n", error.text);
        exit(3);
    }
}

static uint32_t add_block(generator *g)
{
    gmd_error error;
    uint32_t block = 0;
    if (gmd_names_add(&g->trace->blocks, NULL, &block, &error) != GMD_OK) {
        exit(3);
    }
    return block;
}

static void add_allocation(generator *g)
{
    gmd_request r = {.op = GMD_OP_ALLOC,
                     .block = add_block(g),
                     .stream = (uint32_t)below(STREAMS),
                     .bytes = draw_size(g->profile)};
    add(g, &r);
    g->live[g->live_count++] = r.block;
}

static void add_free(generator *g)
{
    uint32_t which = (uint32_t)below(g->live_count);
    add(g, &(gmd_request){.op = GMD_OP_FREE, .block = g->live[which]});
    g->live[which] = g->live[--g->live_count];
}

static void add_other(generator *g)
{
    uint32_t block = g->live_count ? g->live[below(g->live_count)] : UINT32_MAX;
    uint32_t stream = (uint32_t)below(STREAMS);
    switch (below(g->uses ? 8 : 2)) {
    case 0:
        if (below(20) == 0) {
            add(g, &(gmd_request){.op = GMD_OP_EMPTY_CACHE});
        }
        break;
    case 1:
        if (below(100) == 0) {
            add(g, &(gmd_request){.op = GMD_OP_FRACTION, .fraction = 0.3 + 0.1 * (double)below(8)});
        }
        break;
    case 2:
        add(g, &(gmd_request){.op = GMD_OP_ADVANCE, .duration_ns = 1 + below(200000)});
        break;
    case 3:
        if (below(10) == 0) {
            add(g, &(gmd_request){.op = GMD_OP_SYNC, .stream = stream});
        }
        break;
    default:
        if (block != UINT32_MAX) {
            add(g, &(gmd_request){.op = GMD_OP_USE,
                                  .block = block,
                                  .stream = stream,
                                  .duration_ns = g->uses_are_short ? 1 : 1 + below(300000)});
            add(g, &(gmd_request){.op = GMD_OP_RECORD, .block = block, .stream = stream});
            if (g->uses_are_short) {
                add(g, &(gmd_request){.op = GMD_OP_SYNC, .stream = stream});
            }
        }
    }
}

/* Before it unmaps pages torch waits for their stream, the reference for the device (a call with a
 * stream that was destroyed crashes): what else is queued is done sooner. `uses_are_short`: nothing
 * is. */
static void generate(gmd_trace *trace, size_t requests, bool uses_are_short)
{
    gmd_error error;
    generator g = {.trace = trace,
                   .wanted = 100,
                   .profile = (unsigned)below(5),
                   .uses = below(2),
                   .uses_are_short = uses_are_short};
    gmd_trace_init(trace);
    for (uint32_t s = 1; s < STREAMS; s++) {
        uint32_t index;
        if (gmd_names_add(&trace->streams, NULL, &index, &error) != GMD_OK) {
            exit(3);
        }
    }
    while (trace->count < requests) {
        if (below(500) == 0) {
            g.wanted = 10 + (uint32_t)below(LIVE - 20);
        }
        if (below(4) == 0) {
            add_other(&g);
        } else if (g.live_count && (g.live_count > g.wanted || below(100) < 46)) {
            add_free(&g);
        } else if (g.live_count < LIVE) {
            add_allocation(&g);
        }
    }
}

/* --- what is answered -------------------------------------------------------------------- */

static gmd_status play(void *context, gmd_session *session, gmd_error *error)
{
    (void)error;
    side *s = context;
    const gmd_trace *trace = session->workload->trace;
    const gmd_subject *subject = gmd_session_subject(session);
    for (size_t i = 0; subject->set_quirk && i < GMD_QUIRK_KINDS; i++) {
        subject->set_quirk(quirk_kinds[i].name, 1);
    }
    for (size_t i = 0; i < trace->count; i++) {
        const gmd_request *r = &trace->requests[i];
        if (gmd_session_request(session, r) == GMD_STOP) {
            break;
        }
        answer *a = &s->answers[i];
        if (r->op == GMD_OP_ALLOC) {
            a->address = session_address(session, r->block);
        }
        a->stats.struct_size = sizeof a->stats;
        subject->get_stats(0, &a->stats);
        s->answers[trace->count].address = i + 1;
    }
    return GMD_OK;
}

enum { NESTED_POOLS = 3 };

/* Pools one within the other that all streams' requests may go to: torch 2.11 takes the innermost.
 * Traces have one open pool at a time, so the allocator itself is asked. Which pool a block is from
 * is seen by its segment. */
static gmd_status play_nested_pools(void *context, gmd_session *session, gmd_error *error)
{
    side *s = context;
    const gmd_subject *subject = gmd_session_subject(session);
    uint64_t done = 0;
    (void)error;
    for (uint64_t level = 1; level <= NESTED_POOLS; level++) {
        const uint64_t id[2] = {0, level};
        bool is_begun = subject->begin_pool(0, id, NULL, NULL) == 0;
        s->answers[++done].address = is_begun ? (uintptr_t)subject->malloc(512, 0, NULL) : 0;
    }
    for (uint64_t level = NESTED_POOLS; level > 0; level--) {
        const uint64_t id[2] = {0, level};
        void *ended = NULL;
        uint64_t address = (uintptr_t)subject->malloc(512, 0, NULL);
        s->answers[++done].address = subject->end_pool(0, id, &ended) == 0 ? address : 0;
    }
    s->answers[0].address = done;
    return GMD_OK;
}

typedef gmd_status play_fn(void *context, gmd_session *session, gmd_error *error);

static size_t run(const char *allocator, const char *adapter, const gmd_trace *trace,
                  const char *conf, uint64_t capacity, play_fn *body, side *s)
{
    static gmd_outcome outcome;
    gmd_error error = {""};
    gmd_run_options options = {.subject.allocator = allocator,
                               .subject.lib_directory = GMD_TEST_LIB_DIR,
                               .subject.torch_adapter = adapter,
                               .conditions.conf = conf,
                               .conditions.device_count = 1,
                               .conditions.capacity_bytes = capacity,
                               .process.call_budget_s = 20,
                               .judging.is_compared = true,
                               .judging.oracles_off = true};
    gmd_workload workload = {
        .name = "same_answers", .kind = "trace", .trace = trace, .body = body, .context = s};
    memset(s->answers, 0, (trace->count + 1) * sizeof *s->answers);
    gmd_status status = gmd_run_isolated(&options, &workload, &outcome, &error);
    if (status != GMD_OK || outcome.verdict != GMD_PASS) {
        fprintf(stderr, "same_answers: %s: %s%s%s\n", allocator, error.text, outcome.error,
                outcome.violation_count ? outcome.violations[0].message : "");
    }
    return s->answers[trace->count].address;
}

static void write_case(const gmd_trace *trace, uint64_t seed)
{
    char path[64];
    gmd_error error;
    snprintf(path, sizeof path, "different-%" PRIu64 ".gmd", seed);
    FILE *out = fopen(path, "we");
    if (out && gmd_trace_write(trace, out, &error) == GMD_OK) {
        fprintf(stderr, "  trace: %s\n", path);
    }
    if (out) {
        fclose(out);
    }
}

static bool is_same(const answer *a, const answer *b)
{
    return a->address == b->address && memcmp(&a->stats, &b->stats, sizeof a->stats) == 0;
}

static void print_answer(const char *name, const answer *a)
{
    fprintf(stderr,
            "  %-9s 0x%" PRIx64 "; allocated %" PRIu64 " (peak %" PRIu64 "), reserved %" PRIu64
            " (peak %" PRIu64 "), active %" PRIu64 " (peak %" PRIu64 "), inactive split %" PRIu64
            ", requested %" PRIu64 ", %" PRIu64 " blocks, %" PRIu64 " segments, %" PRIu64
            " retries, %" PRIu64 " refused\n",
            name, a->address, a->stats.allocated_bytes, a->stats.allocated_bytes_peak,
            a->stats.reserved_bytes, a->stats.reserved_bytes_peak, a->stats.active_bytes,
            a->stats.active_bytes_peak, a->stats.inactive_split_bytes, a->stats.requested_bytes,
            a->stats.allocation_count, a->stats.segment_count, a->stats.num_alloc_retries,
            a->stats.num_ooms);
}

static bool compare(const gmd_trace *trace, uint64_t seed, const char *conf, const side *ours,
                    const side *torch)
{
    size_t done = ours->answers[trace->count].address,
           theirs = torch->answers[trace->count].address;
    for (size_t i = 0; i < trace->count && i < done && i < theirs; i++) {
        if (!is_same(&ours->answers[i], &torch->answers[i])) {
            char text[160];
            gmd_request_text(trace, &trace->requests[i], text, sizeof text);
            fprintf(stderr, "seed %" PRIu64 ", conf '%s': request %zu differs: %s\n", seed, conf, i,
                    text);
            print_answer("reference", &ours->answers[i]);
            print_answer("torch", &torch->answers[i]);
            return false;
        }
    }
    if (done != theirs || done != trace->count) {
        fprintf(stderr,
                "seed %" PRIu64 ", conf '%s': stopped after %zu (reference) and %zu (torch)\n",
                seed, conf, done, theirs);
        return false;
    }
    return true;
}

/* One trace through both; false: they differ, and it is written. */
static bool answers_are_same(const gmd_trace *trace, uint64_t seed, const char *conf,
                             uint64_t capacity, const char *adapter, side *ours, side *torch)
{
    run("reference", NULL, trace, conf, capacity, play, ours);
    run("torch", adapter, trace, conf, capacity, play, torch);
    bool is_same = compare(trace, seed, conf, ours, torch);
    if (!is_same) {
        write_case(trace, seed);
    }
    return is_same;
}

/* `ours` and `torch` have room for them. */
static bool nested_pools_are_same(const char *adapter, side *ours, side *torch)
{
    const gmd_trace none = {0};
    side *sides[] = {ours, torch};
    for (size_t i = 0; i < 2; i++) {
        memset(sides[i]->answers, 0, ((size_t)2 * NESTED_POOLS + 1) * sizeof *sides[i]->answers);
        run(i ? "torch" : "reference", i ? adapter : NULL, &none, "", GMD_GIB, play_nested_pools,
            sides[i]);
    }
    bool is_same = ours->answers[0].address == (uint64_t)2 * NESTED_POOLS;
    for (size_t i = 0; i <= (size_t)2 * NESTED_POOLS; i++) {
        uint64_t a = ours->answers[i].address, b = torch->answers[i].address;
        is_same = is_same && a && a == b;
        fprintf(a == b ? stdout : stderr, "nested pools, %zu: 0x%" PRIx64 " 0x%" PRIx64 "\n", i, a,
                b);
    }
    return is_same;
}

/* What a held pool has free stays with it when the cache is given back, whoever captures nothing
 * into it, and goes with the last hold. */
static const char held_pool[] = "gmd-trace 1\nbegin_pool p s1\nalloc a 4MiB s1\nalloc b 512 s1\n"
                                "end_pool p\nfree a\nfree b\nempty_cache\nalloc c 4MiB s1\n"
                                "begin_pool p s1\nalloc d 4MiB s1\nend_pool p\nfree d\n"
                                "empty_cache\nrelease_pool p\nempty_cache\nrelease_pool p\n"
                                "empty_cache\nalloc e 4MiB s1\n";

enum { FIXED_REQUESTS = 32 }; /* room for those of the above */

static bool held_pools_are_same(const char *adapter, side *ours, side *torch)
{
    gmd_trace trace;
    gmd_error error;
    if (gmd_trace_parse(&trace, held_pool, sizeof held_pool - 1, "held pool", &error) != GMD_OK) {
        fprintf(stderr, "same_answers: %s\n", error.text);
        exit(3);
    }
    bool is_same = answers_are_same(&trace, 0, "", GMD_GIB, adapter, ours, torch);
    fprintf(is_same ? stdout : stderr, "held pool: %s\n", is_same ? "the same" : "different");
    gmd_trace_free(&trace);
    return is_same;
}

static side new_side(size_t requests)
{
    size_t bytes = (requests + 2) * sizeof(answer);
    answer *answers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answers == MAP_FAILED) {
        perror("same_answers: mmap");
        exit(3);
    }
    return (side){answers, requests};
}

int main(int argc, char **argv)
{
    gmd_error error;
    char adapter[PATH_MAX];
    gmd_torch found;
    if (argc < 4 || !getenv("GMD_TORCH_DIR")) {
        fprintf(stderr, "skipped: GMD_TORCH_DIR does not name PyTorch\n");
        return 77;
    }
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    size_t requests = strtoull(argv[3], NULL, 10);
    requests = requests < FIXED_REQUESTS ? FIXED_REQUESTS : requests;
    if (gmd_torch_find(&found, NULL, &error) != GMD_OK ||
        gmd_torch_adapter(&found, GMD_TEST_LIB_DIR, false, adapter, &error) != GMD_OK) {
        fprintf(stderr, "same_answers: %s\n", error.text);
        return 3;
    }
    side ours = new_side(requests), torch = new_side(requests);
    int different = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        random_state = seed;
        const char *conf = confs[below(sizeof confs / sizeof *confs)];
        conf = argc > 4 ? argv[4] : conf;
        uint64_t capacity = (256 + 128 * below(30)) * GMD_MIB;
        gmd_trace trace = {0};
        generate(&trace, requests, strstr(conf, "expandable_segments:True"));
        different += !answers_are_same(&trace, seed, conf, capacity, adapter, &ours, &torch);
        gmd_trace_free(&trace);
    }
    different += !nested_pools_are_same(adapter, &ours, &torch);
    different += !held_pools_are_same(adapter, &ours, &torch);
    printf("%" PRIu64 " seeds from %" PRIu64
           " on, %zu requests each, nested and held pools: %d different\n",
           count, first, requests, different);
    return different ? 1 : 0;
}
