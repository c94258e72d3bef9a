/* Each corruption of a generator and of a corpus is found by the walk that is there for it.
 * White-box: the tests reach into both. */
#include "gmd_corpus.h"
#include "gmd_generate.h"
#include "gmd_test.h"

#include <stdlib.h>

/* --- a generator ------------------------------------------------------------------------- */

typedef struct fixture {
    gmd_profile profile;
    gmd_profile_space space;
    gmd_generator generator;
    gmd_trace trace;
} fixture;

/* Stopped amid a sequence, with several live blocks. */
static fixture *open_fixture(void)
{
    fixture *f = calloc(1, sizeof *f);
    gmd_profile_draw(&f->profile, &f->space, 1);
    gmd_trace_init(&f->trace);
    assert_int_equal(gmd_generator_start(&f->generator, &f->profile, &f->space, 1, &f->trace, NULL),
                     GMD_OK);
    for (int i = 0; i < 1000 && f->generator.live_count < 2; i++) {
        assert_int_equal(gmd_generator_step(&f->generator, &f->trace, NULL), GMD_OK);
    }
    assert_int_equal(f->generator.live_count, 2);
    assert_null(gmd_generator_violation(&f->generator));
    return f;
}

static void expect_found(void (*spoil)(gmd_generator *g), const char *sentence)
{
    fixture *f = open_fixture();
    spoil(&f->generator);
    const char *violation = gmd_generator_violation(&f->generator);
    gmd_trace_free(&f->trace);
    free(f);
    assert_non_null(violation);
    assert_string_equal(violation, sentence);
}

static void lose_what_was_made(gmd_generator *g)
{
    g->next_block = 0;
}

static void disorder_blocks(gmd_generator *g)
{
    g->live[1].block = g->live[0].block;
}

static void misplace_a_block(gmd_generator *g)
{
    g->live[0].stream = 1000;
}

static void miscount_bytes(gmd_generator *g)
{
    g->live_bytes[0]++;
}

static void open_a_pool_that_nobody_holds(gmd_generator *g)
{
    g->pools.open[0] = 1;
}

TEST(each_corruption_of_a_generator_is_found)
{
    expect_found(lose_what_was_made, "live blocks are among those that were made");
    expect_found(disorder_blocks, "live blocks are in the order of their allocations");
    expect_found(misplace_a_block, "a live block has a device and a stream of the profile");
    expect_found(miscount_bytes, "live bytes are the sum over live blocks");
    expect_found(open_a_pool_that_nobody_holds, "an open pool is held");
}

/* --- a corpus ---------------------------------------------------------------------------- */

static gmd_corpus corpus_of_one(void)
{
    gmd_corpus corpus = {0};
    gmd_trace trace;
    gmd_trace_init(&trace);
    assert_int_equal(gmd_corpus_add(&corpus, &trace, 1, NULL), GMD_OK);
    gmd_trace_free(&trace);
    assert_int_equal(corpus.count, 1);
    assert_null(gmd_corpus_violation(&corpus));
    return corpus;
}

/* The corpus is refused while `field` is `value`. */
#define EXPECT_FOUND(field, value, sentence)                                                       \
    do {                                                                                           \
        gmd_corpus c = corpus_of_one();                                                            \
        __typeof__(c.field) before_ = c.field;                                                     \
        c.field = value;                                                                           \
        const char *violation_ = gmd_corpus_violation(&c);                                         \
        c.field = before_;                                                                         \
        gmd_corpus_free(&c);                                                                       \
        assert_non_null(violation_);                                                               \
        assert_string_equal(violation_, sentence);                                                 \
    } while (0)

static uint64_t *place_of_known(const gmd_corpus *c)
{
    size_t at = 0;
    while (!c->known[at]) {
        at++;
    }
    return &c->known[at];
}

TEST(each_corruption_of_a_corpus_is_found)
{
    EXPECT_FOUND(known_capacity, 1000,
                 "the table of what is known has a power of two of places, and is never full");
    EXPECT_FOUND(known_count, 2, "the table counts what is known");
    EXPECT_FOUND(entries[0].size, 0, "each entry is an input");
    EXPECT_FOUND(capacity, 0, "the list of entries has room for them");
}

TEST(a_hash_that_is_not_found_any_more_is_found)
{
    gmd_corpus c = corpus_of_one();
    uint64_t *place = place_of_known(&c), hash = *place;
    *place = hash + (UINT64_C(1) << 8); /* belongs two places on */
    const char *violation = gmd_corpus_violation(&c);
    *place = hash;
    gmd_corpus_free(&c);
    assert_non_null(violation);
    assert_string_equal(violation, "what is known is found in the table");
}
