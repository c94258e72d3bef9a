/* All sequences up to a length: each up to renaming once and none left out, a defect found at the
 * length that it needs and not below, and nothing found where there is nothing. */
#include "fuzz_test.h"

#include "exhaustive.h"

#define LIST_MAX 200000

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
static void the_first_lengths_are_as_counted_by_hand(void **state)
{
    (void)state;
    const gmd_alphabet a = alphabet_of(4, 2, 0);
    assert_int_equal(count_of(&a, 1), 5);
    assert_int_equal(count_of(&a, 2), 4 * 15 + 5);
    assert_int_equal(gmd_sequences_unreduced(&a, 1), 13); /* 8 allocs, 2 waits, 2 syncs, 1 */
}

/* First: as above, or a pool is begun, for all or for s1. After an alloc it can be begun for s2,
 * too: 18; after empty_cache: 7. While it is open for all: 4 allocs, its end, empty_cache; for s1:
 * 8 allocs, s2 waits for s1, sync s1, its end, empty_cache. */
static void the_first_lengths_with_pools_are_as_counted_by_hand(void **state)
{
    (void)state;
    const gmd_alphabet a = alphabet_of(4, 2, 2);
    assert_int_equal(count_of(&a, 1), 7);
    assert_int_equal(count_of(&a, 2), 4 * 18 + 7 + 6 + 12);
    assert_int_equal(gmd_sequences_unreduced(&a, 1), 13 + 2 * 3);
}

static void nothing_is_listed_twice(void **state)
{
    (void)state;
    const gmd_alphabet a = alphabet_of(4, 2, 2);
    list l = list_of(&a, 4);
    assert_int_equal(count_different(&l), l.count);
    free(l.keys);
}

/* A request as a number that orders as the listing's codes do: by kind, block (or pool), stream. */
typedef struct plain {
    unsigned kind, block, size, stream, other;
} plain;

enum { P_ALLOC, P_FREE, P_USE, P_RECORD, P_WAIT, P_SYNC, P_EMPTY, P_BEGIN, P_END, P_RELEASE };

static uint64_t number_of(plain p)
{
    return ((p.kind * 4 + p.block) * 4 + p.size) * 16 + p.stream * 4 + p.other;
}

/* The smallest of all forms that one sequence can have; 0: it says the same twice. */
static uint64_t form_of(const plain *given, unsigned length, bool swaps)
{
    uint64_t numbers[4], form = 1;
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
        form = form << 12 | numbers[i];
    }
    return form;
}

/* Every request of the alphabet: 2 streams, at most 4 blocks. */
static unsigned all_requests(unsigned sizes, unsigned pools, plain *out)
{
    unsigned n = 0;
    for (unsigned s = 1; s <= 2; s++) {
        out[n++] = (plain){P_SYNC, 0, 0, s, 0};
        out[n++] = (plain){P_WAIT, 0, 0, s, 3 - s};
        for (unsigned i = 0; i < sizes; i++) {
            out[n++] = (plain){P_ALLOC, 0, i, s, 0};
        }
        for (unsigned b = 0; b < 4; b++) {
            out[n++] = (plain){P_USE, b, 0, s, 0};
            out[n++] = (plain){P_RECORD, b, 0, s, 0};
        }
    }
    for (unsigned b = 0; b < 4; b++) {
        out[n++] = (plain){P_FREE, b, 0, 0, 0};
    }
    for (unsigned p = 0; p < pools; p++) {
        for (unsigned s = 0; s <= 2; s++) { /* 0: all */
            out[n++] = (plain){P_BEGIN, p, 0, s, 0};
        }
        out[n++] = (plain){P_END, p, 0, 0, 0};
        out[n++] = (plain){P_RELEASE, p, 0, 0, 0};
    }
    out[n++] = (plain){P_EMPTY, 0, 0, 0, 0};
    return n;
}

/* Whether each request on a pool can be made where it stands; if so, each pool's name becomes a
 * number: the how-many'th pool it is that is made. */
static bool number_pools(plain *q, unsigned length)
{
    unsigned holders[2] = {0}, number[2] = {0}, made = 0, open = 0;
    for (unsigned i = 0; i < length; i++) {
        plain *p = &q[i];
        if (p->kind < P_BEGIN) {
            continue;
        }
        unsigned name = p->block, is_open = open == name + 1;
        if (p->kind == P_BEGIN ? open : p->kind == P_END ? !is_open : holders[name] <= is_open) {
            return false;
        }
        if (p->kind == P_BEGIN) {
            number[name] = holders[name]++ ? number[name] : made++;
            open = name + 1;
        } else if (p->kind == P_END) {
            open = 0;
        } else {
            holders[name]--;
        }
        p->block = number[name];
    }
    return true;
}

static bool is_valid(const plain *q, unsigned length)
{
    unsigned owners[4] = {0}, blocks = 0, used = 0;
    for (unsigned i = 0; i < length; i++) {
        plain p = q[i];
        bool is_of_block = p.kind == P_FREE || p.kind == P_USE || p.kind == P_RECORD;
        unsigned seen = p.kind == P_WAIT ? p.other : p.stream;
        if ((is_of_block && (p.block >= blocks || !owners[p.block])) ||
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

static void keep_form(list *forms, plain *q, unsigned length)
{
    if (is_valid(q, length) && number_pools(q, length)) {
        uint64_t one = form_of(q, length, false), other = form_of(q, length, true);
        if (one) {
            assert_true(forms->count < LIST_MAX);
            forms->keys[forms->count++] = one < other ? one : other;
        }
    }
}

static void expect_one_of_each_class(unsigned sizes, unsigned pools, unsigned length)
{
    plain requests[64], q[4];
    unsigned n = all_requests(sizes, pools, requests), sequences = 1;
    list forms = {.keys = calloc(LIST_MAX, sizeof *forms.keys)};
    assert_non_null(forms.keys);
    for (unsigned i = 0; i < length; i++) {
        sequences *= n;
    }
    for (unsigned at = 0; at < sequences; at++) {
        for (unsigned i = 0, rest = at; i < length; i++, rest /= n) {
            q[i] = requests[rest % n];
        }
        keep_form(&forms, q, length);
    }
    const gmd_alphabet a = alphabet_of(sizes, 2, pools);
    assert_int_equal(count_of(&a, length), count_different(&forms));
    free(forms.keys);
}

static void the_list_has_one_of_each_class_of_all_sequences(void **state)
{
    (void)state;
    expect_one_of_each_class(2, 0, 3);
}

/* Of four requests, so that a pool can be gone and its name be another's. */
static void with_pools_the_list_has_one_of_each_class_too(void **state)
{
    (void)state;
    expect_one_of_each_class(1, 2, 4);
}

/* --- what is found ------------------------------------------------------------------------------
 */

/* What is looked through: the settings, and with which alphabet. */
typedef struct scope {
    const char *conf;
    uint32_t depth;
    bool with_pools, is_eager; /* under that schedule only */
} scope;

static gmd_exhaustive_result look(const char *allocator, scope in, gmd_findings *findings)
{
    static const gmd_schedule eager = {.kind = GMD_SCHEDULE_EAGER};
    gmd_run_options run = options_for(allocator);
    gmd_exhaustive_result result;
    gmd_error error = {""};
    run.capacity_bytes = 32 * GMD_MIB;
    run.conf = in.conf;
    run.schedule = in.is_eager ? &eager : NULL;
    const gmd_exhaustive_options options = {
        .run = &run, .depth = in.depth, .with_pools = in.with_pools};
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
    assert_string_equal(findings.items[0].cause.oracle, oracle);
    gmd_findings_free(&findings);
}

static void a_defect_is_found_at_the_length_that_it_needs_and_not_below(void **state)
{
    (void)state;
    const scope three = {.conf = "defect:peak_not_kept", .depth = 3};
    const scope two = {.conf = "defect:pending_kept", .depth = 2};
    expect_needs(GMD_TEST_CACHING_POOL, three, "accounting");
    expect_needs(GMD_TEST_CACHING_POOL, two, "accounting");
}

static void a_defect_of_private_pools_is_found_likewise(void **state)
{
    (void)state;
    const scope lost = {.conf = "defect:pytorch145168", .depth = 2, .with_pools = true};
    expect_needs(GMD_TEST_CACHING_POOL, lost, "leak");
#ifndef GMD_TEST_SANITIZED /* of four requests there are 40,000 sequences */
    const scope refused = {
        .conf = "defect:pytorch175015", .depth = 4, .with_pools = true, .is_eager = true};
    expect_needs(GMD_TEST_CACHING_POOL, refused, "oom_retry");
#endif
}

static void expect_nothing_in_the_reference(bool with_pools)
{
    gmd_findings findings = {0};
#ifdef GMD_TEST_SANITIZED
    const scope in = {.depth = 3, .with_pools = with_pools};
#else
    const scope in = {.depth = 4, .with_pools = with_pools};
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

static void in_the_reference_there_is_nothing_to_a_depth_of_four(void **state)
{
    (void)state;
    expect_nothing_in_the_reference(false);
}

static void nor_with_private_pools(void **state)
{
    (void)state;
    expect_nothing_in_the_reference(true);
}

static void an_allocator_without_pools_gets_the_alphabet_without_them(void **state)
{
    (void)state;
    gmd_findings findings = {0};
    const scope with = {.depth = 1, .with_pools = true}, without = {.depth = 1};
    assert_int_equal(look("cudamalloc", with, &findings).runs,
                     look("cudamalloc", without, &findings).runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_lengths_are_as_counted_by_hand),
        cmocka_unit_test(the_first_lengths_with_pools_are_as_counted_by_hand),
        cmocka_unit_test(nothing_is_listed_twice),
        cmocka_unit_test(the_list_has_one_of_each_class_of_all_sequences),
        cmocka_unit_test(with_pools_the_list_has_one_of_each_class_too),
        cmocka_unit_test(a_defect_is_found_at_the_length_that_it_needs_and_not_below),
        cmocka_unit_test(a_defect_of_private_pools_is_found_likewise),
        cmocka_unit_test(in_the_reference_there_is_nothing_to_a_depth_of_four),
        cmocka_unit_test(nor_with_private_pools),
        cmocka_unit_test(an_allocator_without_pools_gets_the_alphabet_without_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
