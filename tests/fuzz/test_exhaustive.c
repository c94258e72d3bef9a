/* All sequences up to a length: each up to renaming once and none left out, a defect found at the
 * length that it needs and not below, and nothing found where there is nothing. */
#include "fuzz_test.h"

#include "gmd_exhaustive.h"
#include "gmd_pool_state.h"

#define LIST_MAX   400000
#define LENGTH_MAX 6 /* of the sequences that are listed without any symmetry */

/* --- the list, against one made without any symmetry --------------------------------------------
 */

typedef struct list {
    uint64_t *keys;
    size_t count;
} list;

static bool keep(void *context, const gmd_sequence *sequence)
{
    list *l = context;
    assert_true(l->count < LIST_MAX);
    l->keys[l->count++] = gmd_sequence_key(sequence);
    return true;
}

static list list_of(const gmd_alphabet *alphabet, uint32_t length)
{
    list l = {.keys = calloc(LIST_MAX, sizeof *l.keys)};
    const gmd_sequence_visitor visitor = {.visit = keep, .context = &l};
    assert_non_null(l.keys);
    assert_true(gmd_sequences_each(alphabet, length, &visitor));
    return l;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t count_different(list *l)
{
    size_t different = 0;
    qsort(l->keys, l->count, sizeof *l->keys, compare_keys);
    for (size_t i = 0; i < l->count; i++) {
        different += i == 0 || l->keys[i] != l->keys[i - 1];
    }
    return different;
}

static size_t count_of(const gmd_alphabet *alphabet, uint32_t length)
{
    list l = list_of(alphabet, length);
    size_t count = l.count;
    free(l.keys);
    return count;
}

static gmd_alphabet alphabet_of(uint32_t sizes, uint32_t streams, uint32_t pools)
{
    gmd_alphabet a = {.size_count = sizes, .stream_count = streams, .pool_count = pools};
    for (uint32_t i = 0; i < sizes; i++) {
        a.sizes[i] = 512 + i;
    }
    return a;
}

/* First: 4 sizes on s1, or empty_cache. After an alloc: 8 allocs, a free, 2 uses, a record on s2,
 * s2 waits for s1, sync s1, empty_cache: 15. After empty_cache the same 5 again. */
TEST(the_first_lengths_are_as_counted_by_hand)
{
    const gmd_alphabet a = alphabet_of(4, 2, 0);
    assert_int_equal(count_of(&a, 1), 5);
    assert_int_equal(count_of(&a, 2), 4 * 15 + 5);
    assert_int_equal(gmd_sequences_unreduced(&a, 1), 13); /* 8 allocs, 2 waits, 2 syncs, 1 */
}

/* First: as above, or a pool is begun, for all or for s1. After an alloc it can be begun for s2,
 * too: 18; after empty_cache: 7. While it is open for all: 4 allocs, its end, empty_cache; for s1:
 * 8 allocs, s2 waits for s1, sync s1, its end, empty_cache. */
TEST(the_first_lengths_with_pools_are_as_counted_by_hand)
{
    const gmd_alphabet a = alphabet_of(4, 2, 2);
    assert_int_equal(count_of(&a, 1), 7);
    assert_int_equal(count_of(&a, 2), 4 * 18 + 7 + 6 + 12);
    assert_int_equal(gmd_sequences_unreduced(&a, 1), 13 + 2 * 3);
}

static gmd_alphabet with_captures(gmd_alphabet a)
{
    a.has_captures = true;
    return a;
}

/* First: as above, or s1 is captured. After an alloc s2 can be, too: 20; after empty_cache: 8.
 * While a pool is open: as above. While s1 is captured: 4 allocs on it, s2 waits for s1 and is
 * captured, sync s1, which fails, the end of the capture; no alloc on s2 and no empty_cache. */
TEST(the_first_lengths_with_captures_are_as_counted_by_hand)
{
    const gmd_alphabet a = with_captures(alphabet_of(4, 2, 2));
    assert_int_equal(count_of(&a, 1), 8);
    assert_int_equal(count_of(&a, 2), 4 * 20 + 8 + 6 + 12 + 7);
    assert_int_equal(gmd_sequences_unreduced(&a, 1), 13 + 2 * 5);
}

TEST(nothing_is_listed_twice)
{
    const gmd_alphabet a = with_captures(alphabet_of(4, 2, 2));
    list l = list_of(&a, 4);
    assert_int_equal(count_different(&l), l.count);
    free(l.keys);
}

/* A request as a number that orders as the listing's codes do: by kind, block (or pool), stream. */
typedef struct plain {
    unsigned kind, block, size, stream, other;
} plain;

enum {
    P_ALLOC,
    P_FREE,
    P_USE,
    P_RECORD,
    P_WAIT,
    P_SYNC,
    P_EMPTY,
    P_BEGIN,
    P_END,
    P_RELEASE,
    P_BEGIN_CAPTURE,
    P_END_CAPTURE,
    P_LAUNCH
};

static uint64_t number_of(plain p)
{
    return ((p.kind * 8 + p.block) * 4 + p.size) * 16 + p.stream * 4 + p.other;
}

/* A hash of the one form that uses and syncs in all their orders have; 0: it says the same twice.
 */
static uint64_t form_of(const plain *given, unsigned length, bool swaps)
{
    uint64_t numbers[LENGTH_MAX], form = 1;
    for (unsigned i = 0; i < length; i++) {
        plain p = given[i];
        p.stream = swaps && p.stream ? 3 - p.stream : p.stream;
        p.other = swaps && p.other ? 3 - p.other : p.other;
        numbers[i] = number_of(p);
    }
    for (unsigned pass = 0; pass < length; pass++) {
        for (unsigned i = 1; i < length; i++) {
            unsigned kind = given[i].kind, before = given[i - 1].kind;
            bool commute = kind == before && (kind == P_USE || kind == P_SYNC);
            if ((commute || kind == P_WAIT) && numbers[i] == numbers[i - 1]) {
                return 0;
            }
            if (commute && numbers[i] < numbers[i - 1]) {
                uint64_t swapped = numbers[i];
                numbers[i] = numbers[i - 1];
                numbers[i - 1] = swapped;
            }
        }
    }
    for (unsigned i = 0; i < length; i++) {
        form = (form ^ numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
        form ^= form >> 29;
    }
    return form;
}

/* Every request of the alphabet. Nothing is asked of a block that the last request allocates. */
static unsigned all_requests(const gmd_alphabet *a, plain *out)
{
    unsigned n = 0;
    for (unsigned s = 1; s <= a->stream_count; s++) {
        out[n++] = (plain){P_SYNC, 0, 0, s, 0};
        if (a->stream_count == 2) {
            out[n++] = (plain){P_WAIT, 0, 0, s, 3 - s};
        }
        for (unsigned i = 0; i < a->size_count; i++) {
            out[n++] = (plain){P_ALLOC, 0, i, s, 0};
        }
        for (unsigned b = 0; b + 1 < LENGTH_MAX; b++) {
            out[n++] = (plain){P_USE, b, 0, s, 0};
            out[n++] = (plain){P_RECORD, b, 0, s, 0};
        }
    }
    for (unsigned b = 0; b + 1 < LENGTH_MAX; b++) {
        out[n++] = (plain){P_FREE, b, 0, 0, 0};
    }
    for (unsigned p = 0; p < a->pool_count; p++) {
        for (unsigned s = 0; s <= a->stream_count; s++) { /* 0: all */
            out[n++] = (plain){P_BEGIN, p, 0, s, 0};
        }
        out[n++] = (plain){P_END, p, 0, 0, 0};
        out[n++] = (plain){P_RELEASE, p, 0, 0, 0};
        for (unsigned s = 1; s <= a->stream_count && a->has_captures; s++) {
            out[n++] = (plain){P_BEGIN_CAPTURE, p, 0, s, 0};
            out[n++] = (plain){P_LAUNCH, p, 0, s, 0};
        }
        if (a->has_captures) {
            out[n++] = (plain){P_END_CAPTURE, p, 0, 0, 0};
        }
    }
    out[n++] = (plain){P_EMPTY, 0, 0, 0, 0};
    return n;
}

static gmd_request request_of(const gmd_alphabet *a, plain p, unsigned new_block)
{
    static const uint8_t ops[] = {GMD_OP_ALLOC,        GMD_OP_FREE,          GMD_OP_USE,
                                  GMD_OP_RECORD,       GMD_OP_WAIT,          GMD_OP_SYNC,
                                  GMD_OP_EMPTY_CACHE,  GMD_OP_BEGIN_POOL,    GMD_OP_END_POOL,
                                  GMD_OP_RELEASE_POOL, GMD_OP_BEGIN_CAPTURE, GMD_OP_END_CAPTURE,
                                  GMD_OP_LAUNCH};
    gmd_request r = {.op = ops[p.kind], .stream = p.stream};
    if (p.kind >= P_BEGIN) {
        r.pool = p.block;
        r.stream = p.kind == P_BEGIN && !p.stream ? GMD_ALL_STREAMS : p.stream;
    } else if (p.kind == P_ALLOC) {
        r.block = new_block;
        r.bytes = a->sizes[p.size];
    } else if (p.kind == P_WAIT) {
        r.other_stream = p.other;
    } else if (p.kind <= P_RECORD) {
        r.block = p.block;
        r.duration_ns = p.kind == P_USE ? 10000 : 0;
    }
    return r;
}

/* Whether each request on a pool can be made where it stands; if so, each pool's name becomes a
 * number: the how-many'th pool it is that is made. */
static bool number_pools(const gmd_alphabet *a, plain *q, unsigned length)
{
    unsigned number[2] = {0}, made = 0;
    gmd_pool_state state;
    memset(&state, 0, sizeof state);
    for (unsigned i = 0; i < length; i++) {
        plain *p = &q[i];
        if (p->kind < P_BEGIN) {
            continue;
        }
        const gmd_request r = request_of(a, *p, 0);
        bool is_new = !state.holders[0][p->block];
        if (gmd_pool_state_note(&state, &r)) {
            return false;
        }
        number[p->block] = is_new ? made++ : number[p->block];
        p->block = number[p->block];
    }
    return true;
}

static bool is_of_block(plain p)
{
    return p.kind == P_FREE || p.kind == P_USE || p.kind == P_RECORD;
}

static bool is_valid(const plain *q, unsigned length)
{
    unsigned owners[LENGTH_MAX] = {0}, blocks = 0, used = 0;
    for (unsigned i = 0; i < length; i++) {
        plain p = q[i];
        unsigned seen = p.kind == P_WAIT ? p.other : p.stream;
        if ((is_of_block(p) && (p.block >= blocks || !owners[p.block])) ||
            ((p.kind == P_WAIT || p.kind == P_SYNC) && !(used >> seen & 1)) ||
            (p.kind == P_RECORD && owners[p.block] == p.stream)) {
            return false;
        }
        if (p.kind == P_ALLOC) {
            owners[blocks++] = p.stream;
        } else if (p.kind == P_FREE) {
            owners[p.block] = 0;
        }
        used |= 1U << p.stream;
    }
    return true;
}

/* --- what a capture leaves out, as docs/trace-format.md has it ----------------------------------
 */

typedef struct capture {
    bool is_under_way, has_failed;
    bool has[3];                /* the stream is captured */
    bool is_graphs[LENGTH_MAX]; /* the block was allocated for the graph under way */
    bool waits[LENGTH_MAX];     /* its free waits for the other stream, which nobody recorded */
    bool recorded[LENGTH_MAX];
    unsigned owners[LENGTH_MAX], blocks;
    bool is_empty[LENGTH_MAX]; /* the pool's latest graph is that of a capture that failed */
} capture;

static bool is_use_without_effect(const capture *c, plain p)
{
    bool is_captured = c->has[p.stream];
    if (is_captured) {
        return c->has_failed || !c->is_graphs[p.block];
    }
    return c->is_graphs[p.block] || c->has[c->owners[p.block]];
}

static bool is_without_effect(const capture *c, plain p)
{
    if (!c->is_under_way) {
        return p.kind == P_LAUNCH && c->is_empty[p.block];
    }
    switch (p.kind) {
    case P_ALLOC:
        return !c->has[p.stream];
    case P_SYNC:
        return !c->has[p.stream] || c->has_failed;
    case P_EMPTY:
        return true;
    case P_WAIT:
        return (c->has[p.stream] && !c->has[p.other]) || (c->has[p.other] && c->has_failed);
    case P_USE:
        return is_use_without_effect(c, p);
    case P_FREE:
        return c->waits[p.block] && !(c->is_graphs[p.block] && c->has[1] && c->has[2]);
    default:
        return false;
    }
}

static void note_effect(capture *c, plain p)
{
    unsigned b = p.block;
    if (p.kind == P_ALLOC) {
        c->is_graphs[c->blocks] = c->is_under_way;
        c->owners[c->blocks++] = p.stream;
    } else if (p.kind == P_USE) {
        c->waits[b] = c->waits[b] || (p.stream != c->owners[b] && !c->recorded[b]);
    } else if (p.kind == P_RECORD) {
        c->recorded[b] = true;
        c->waits[b] = false;
    } else if (p.kind == P_WAIT && c->has[p.other]) {
        c->has[p.stream] = true;
    } else if (p.kind == P_SYNC) {
        c->has_failed = c->is_under_way;
    } else if (p.kind == P_BEGIN_CAPTURE) {
        c->is_under_way = c->has[p.stream] = true;
    } else if (p.kind == P_END_CAPTURE) {
        c->is_empty[b] = c->has_failed;
        c->is_under_way = c->has_failed = c->has[1] = c->has[2] = false;
        memset(c->is_graphs, 0, sizeof c->is_graphs);
    }
}

/* The first request that does nothing; `length`: each does something. Pools have numbers. */
static unsigned find_without_effect(const plain *q, unsigned length)
{
    capture c = {0};
    for (unsigned i = 0; i < length; i++) {
        if (is_without_effect(&c, q[i])) {
            return i;
        }
        note_effect(&c, q[i]);
    }
    return length;
}

/* --- all sequences -------------------------------------------------------------------------- */

typedef struct brute {
    gmd_alphabet alphabet;
    plain requests[64], q[LENGTH_MAX];
    unsigned request_count, length;
    void (*visit)(void *context, const plain *named, const plain *numbered, unsigned length);
    void *context;
} brute;

static void extend(brute *all, unsigned length)
{
    plain numbered[LENGTH_MAX];
    memcpy(numbered, all->q, sizeof numbered);
    if (!is_valid(all->q, length) || !number_pools(&all->alphabet, numbered, length)) {
        return;
    }
    if (length == all->length) {
        all->visit(all->context, all->q, numbered, length);
        return;
    }
    for (unsigned i = 0; i < all->request_count; i++) {
        all->q[length] = all->requests[i];
        extend(all, length + 1);
    }
}

static void visit_all(const gmd_alphabet *a, unsigned length,
                      void (*visit)(void *, const plain *, const plain *, unsigned), void *context)
{
    brute all = {.alphabet = *a, .length = length, .visit = visit, .context = context};
    all.request_count = all_requests(a, all.requests);
    extend(&all, 0);
}

typedef struct classes {
    list forms;
    uint64_t sequences;
} classes;

static void keep_form(void *context, const plain *named, const plain *numbered, unsigned length)
{
    classes *c = context;
    (void)named;
    c->sequences++;
    if (find_without_effect(numbered, length) < length) {
        return;
    }
    uint64_t one = form_of(numbered, length, false), other = form_of(numbered, length, true);
    if (one) {
        assert_true(c->forms.count < LIST_MAX);
        c->forms.keys[c->forms.count++] = one < other ? one : other;
    }
}

static void expect_one_of_each_class(gmd_alphabet a, unsigned length)
{
    classes c = {.forms = {.keys = calloc(LIST_MAX, sizeof(uint64_t))}};
    assert_non_null(c.forms.keys);
    visit_all(&a, length, keep_form, &c);
    assert_int_equal(count_of(&a, length), count_different(&c.forms));
    free(c.forms.keys);
}

TEST(the_list_has_one_of_each_class_of_all_sequences)
{
    expect_one_of_each_class(alphabet_of(2, 2, 0), 3);
}

/* Four requests, so that a pool can be gone and its name be another's. */
TEST(with_pools_the_list_has_one_of_each_class_too)
{
    expect_one_of_each_class(alphabet_of(1, 2, 2), 4);
}

/* Five requests, so that a graph's block can be used on a stream that has come to the capture;
 * of six, so that a capture can fail and the next one be launched. */
TEST(so_it_has_with_captures_where_each_request_does_something)
{
    expect_one_of_each_class(with_captures(alphabet_of(1, 2, 2)), 4);
#ifndef GMD_TEST_SANITIZED
    expect_one_of_each_class(with_captures(alphabet_of(1, 2, 1)), 5);
    expect_one_of_each_class(with_captures(alphabet_of(1, 1, 1)), 6);
#endif
}

/* --- what is not listed does nothing ------------------------------------------------------------
 */

typedef struct comparison {
    gmd_alphabet alphabet;
    gmd_runner runner;
    gmd_persistent_input pair[2]; /* with the request that does nothing, and without */
    uint64_t compared;
} comparison;

/* Without q[left_out], and without what is asked for its block. */
static void set_requests(const comparison *c, gmd_trace *t, const plain *q, unsigned length,
                         unsigned left_out)
{
    unsigned blocks = 0, gone = LENGTH_MAX;
    t->count = 0;
    for (unsigned i = 0; i < length; i++) {
        if (i == left_out && q[i].kind == P_ALLOC) {
            gone = blocks;
        }
        if (i != left_out && !(is_of_block(q[i]) && q[i].block == gone)) {
            t->requests[t->count++] = request_of(&c->alphabet, q[i], blocks);
        }
        blocks += q[i].kind == P_ALLOC;
    }
}

static void compare_states(void *context, const plain *named, const plain *numbered,
                           unsigned length)
{
    comparison *c = context;
    gmd_persistent_result persistent;
    gmd_error error = {""};
    unsigned at = find_without_effect(numbered, length);
    if (at == length || form_of(numbered, length, false) > form_of(numbered, length, true)) {
        return;
    }
    set_requests(c, &c->pair[0].trace, named, length, LENGTH_MAX);
    set_requests(c, &c->pair[1].trace, named, length, at);
    demand_ok(gmd_runner_run_persistent(&c->runner, c->pair, 2, &persistent, &error), &error);
    assert_int_equal(persistent.passed, 2);
    assert_true(persistent.states[0] && persistent.states[0] == persistent.states[1]);
    c->compared++;
}

static void prepare_trace(gmd_trace *t)
{
    gmd_error error = {""};
    uint32_t index;
    gmd_trace_init(t);
    t->conditions.device_count = 1;
    t->conditions.capacity_bytes = 32 * GMD_MIB;
    for (unsigned i = 0; i < LENGTH_MAX; i++) {
        const gmd_request none = {.op = GMD_OP_EMPTY_CACHE};
        demand_ok(gmd_trace_append(t, &none, &error), &error);
        demand_ok(gmd_names_add(&t->blocks, NULL, &index, &error), &error);
    }
    for (unsigned i = 0; i < 3; i++) {
        demand_ok(gmd_names_add(&t->streams, NULL, &index, &error), &error);
        demand_ok(gmd_names_add(&t->pools, NULL, &index, &error), &error);
    }
}

/* The allocator comes to the same state, and nothing is found in either. */
TEST(what_is_not_listed_for_a_capture_does_nothing)
{
#ifdef GMD_TEST_SANITIZED
    const unsigned length = 4, least = 500;
#else
    const unsigned length = 5, least = 10000;
#endif
    gmd_run_options run = options_for(GMD_TEST_CACHING_POOL);
    comparison c = {.alphabet = with_captures(alphabet_of(1, 2, 1))};
    gmd_runner_init(&c.runner, &run);
    prepare_trace(&c.pair[0].trace);
    prepare_trace(&c.pair[1].trace);
    visit_all(&c.alphabet, length, compare_states, &c);
    assert_true(c.compared >= least);
    gmd_trace_free(&c.pair[0].trace);
    gmd_trace_free(&c.pair[1].trace);
    gmd_runner_close(&c.runner);
}

/* --- what is found ------------------------------------------------------------------------------
 */

/* What is looked through: the settings, and with which alphabet. */
typedef struct scope {
    const char *conf;
    uint32_t depth;
    bool with_pools, with_captures;
    bool is_eager;           /* under that schedule only */
    uint64_t capacity_bytes; /* 0: 32 MiB */
} scope;

static gmd_exhaustive_result look(const char *allocator, scope in, gmd_findings *findings)
{
    gmd_run_options run = options_for(allocator);
    gmd_exhaustive_result result;
    gmd_error error = {""};
    run.conditions.capacity_bytes = in.capacity_bytes ? in.capacity_bytes : 32 * GMD_MIB;
    run.conditions.conf = in.conf;
    run.conditions.schedule.kind = in.is_eager ? GMD_SCHEDULE_EAGER : GMD_SCHEDULE_UNSTATED;
    const gmd_exhaustive_options options = {.run = &run,
                                            .depth = in.depth,
                                            .with_pools = in.with_pools,
                                            .with_captures = in.with_captures};
    demand_ok(gmd_exhaustive(&options, findings, &result, &error), &error);
    assert_true(result.is_complete);
    return result;
}

static void expect_needs(const char *allocator, scope in, const char *oracle)
{
    gmd_findings findings = {.minimize_seconds = 10};
    scope before = in;
    before.depth--;
    look(allocator, before, &findings);
    assert_int_equal(findings.count, 0);
    look(allocator, in, &findings);
    assert_true(findings.count > 0);
    assert_string_equal(findings.items[0].violation.oracle, oracle);
    gmd_findings_free(&findings);
}

TEST(a_defect_is_found_at_the_length_that_it_needs_and_not_below)
{
    const scope three = {.conf = "defect:peak_not_kept", .depth = 3};
    const scope two = {.conf = "defect:pending_kept", .depth = 2};
    expect_needs(GMD_TEST_CACHING_POOL, three, "accounting");
    expect_needs(GMD_TEST_CACHING_POOL, two, "accounting");
}

TEST(a_defect_of_private_pools_is_found_likewise)
{
    const scope lost = {.conf = "defect:pytorch145168", .depth = 2, .with_pools = true};
    expect_needs(GMD_TEST_CACHING_POOL, lost, "leak");
#ifndef GMD_TEST_SANITIZED /* of four requests there are 40,000 sequences */
    const scope refused = {
        .conf = "defect:pytorch175015", .depth = 4, .with_pools = true, .is_eager = true};
    expect_needs(GMD_TEST_CACHING_POOL, refused, "oom_retry");
#endif
}

/* Segments go back only if they are larger than 32 MiB. */
TEST(a_defect_of_captures_is_found_likewise)
{
    const scope left = {
        .conf = "defect:mode_left", .depth = 1, .with_pools = true, .with_captures = true};
    const scope held = {
        .conf = "defect:pytorch190348", .depth = 3, .with_pools = true, .with_captures = true};
    expect_needs(GMD_TEST_CACHING_POOL, left, "device_state");
    expect_needs(GMD_TEST_CACHING_POOL, held, "leak");
#ifndef GMD_TEST_SANITIZED
    const scope given_back = {.conf = "defect:pytorch159594",
                              .depth = 4,
                              .with_pools = true,
                              .with_captures = true,
                              .is_eager = true,
                              .capacity_bytes = 64 * GMD_MIB};
    expect_needs(GMD_TEST_CACHING_POOL, given_back, "api_misuse");
#endif
}

/* Two defects need seven requests, of which there are too many to run them all: here that these are
 * among them, and show the defect. */
typedef struct wanted {
    gmd_alphabet alphabet;
    gmd_trace trace;
    unsigned found;
} wanted;

static bool is_beginning(void *context, const gmd_sequence *sequence)
{
    const wanted *w = context;
    gmd_request made[GMD_SEQUENCE_MAX];
    gmd_sequence_requests(&w->alphabet, sequence, made);
    for (uint32_t i = 0; i < sequence->length; i++) {
        const gmd_request *a = &made[i], *b = &w->trace.requests[i];
        if (a->op != b->op || a->block != b->block || a->bytes != b->bytes ||
            a->stream != b->stream || a->other_stream != b->other_stream || a->pool != b->pool) {
            return false;
        }
    }
    return true;
}

static bool count_wanted(void *context, const gmd_sequence *sequence)
{
    ((wanted *)context)->found += is_beginning(context, sequence);
    return true;
}

static void expect_shown_by_one_of_seven(const char *requests, const char *conf, const char *oracle)
{
    char text[512];
    snprintf(text, sizeof text, "gmd-trace 1\ncapacity 32MiB\nstreams s0 s1 s2\n%s", requests);
    wanted w = {.trace = parse_or_fail(text)};
    gmd_alphabet_for(&w.alphabet, w.trace.conditions.capacity_bytes);
    w.alphabet.pool_count = GMD_ALPHABET_POOLS;
    w.alphabet.has_captures = true;
    const gmd_sequence_visitor visitor = {
        .visit = count_wanted, .enter = is_beginning, .context = &w};
    assert_true(gmd_sequences_each(&w.alphabet, 7, &visitor));
    assert_int_equal(w.found, 1);
    gmd_run_options run = options_for(GMD_TEST_CACHING_POOL);
    const gmd_outcome *outcome;
    gmd_runner runner;
    gmd_error error = {""};
    run.conditions.conf = conf;
    gmd_runner_init(&runner, &run);
    demand_ok(gmd_runner_run(&runner, &w.trace, &outcome, &error), &error);
    assert_true(outcome->violation_count > 0);
    assert_string_equal(outcome->violations[0].oracle, oracle);
    gmd_runner_close(&runner);
    gmd_trace_free(&w.trace);
}

TEST(what_shows_other_defects_of_captures_is_among_the_longer_sequences)
{
    expect_shown_by_one_of_seven("begin_capture p0 s1\nalloc a 512 s1\nuse a s1\nfree a\n"
                                 "end_capture p0\nempty_cache\nlaunch p0 s1\n",
                                 "defect:llamacpp26771", "backing");
    expect_shown_by_one_of_seven("begin_capture p0 s1\nalloc a 512 s1\nwait s2 s1\nuse a s2\n"
                                 "record a s2\nfree a\nalloc b 512 s1\n",
                                 "defect:capture_ignores_record", "stream_order");
}

static void expect_nothing_in_the_reference(bool with_pools, bool with_captures)
{
    gmd_findings findings = {0};
#ifdef GMD_TEST_SANITIZED
    const scope in = {.depth = 3, .with_pools = with_pools, .with_captures = with_captures};
#else
    const scope in = {.depth = 4, .with_pools = with_pools, .with_captures = with_captures};
#endif
    gmd_exhaustive_result result = look("reference", in, &findings);
    assert_int_equal(findings.count, 0);
    assert_int_equal(result.unconfirmed, 0);
    assert_int_equal(result.cut, 0);
    uint64_t listed = 0;
    for (uint32_t length = 1; length <= in.depth; length++) {
        listed += count_of(&result.alphabet, length);
    }
    assert_int_equal(result.sequences, listed);
    assert_int_equal(result.runs, listed * GMD_EXHAUSTIVE_SCHEDULES);
    assert_true(result.states > 100);
}

TEST(in_the_reference_there_is_nothing_to_a_depth_of_four)
{
    expect_nothing_in_the_reference(false, false);
}

TEST(nor_with_private_pools)
{
    expect_nothing_in_the_reference(true, false);
}

TEST(nor_with_captures)
{
    expect_nothing_in_the_reference(true, true);
}

TEST(an_allocator_without_pools_gets_the_alphabet_without_them)
{
    gmd_findings findings = {0};
    const scope with = {.depth = 1, .with_pools = true, .with_captures = true};
    const scope without = {.depth = 1};
    assert_int_equal(look("cudamalloc", with, &findings).runs,
                     look("cudamalloc", without, &findings).runs);
}
