/* misuse: what a free that must not be made may change, which is nothing. */
#include "oracle_test.h"

#include <string.h>

typedef struct situation {
    gmd_stats before, now;
    gmd_thread_state thread_before, thread_now;
    gmd_wrong_free made;
    gmd_misuse passed_on;
    gmd_view view;
    gmd_judge judge;
    bool is_backed;
} situation;

static bool is_backed(const void *context, uint64_t address, uint64_t size, int device,
                      uint64_t *bad)
{
    (void)size;
    (void)device;
    *bad = address;
    return ((const situation *)context)->is_backed;
}

static void set_up_situation(situation *s)
{
    *s = (situation){.is_backed = true, .made = {.kind = GMD_FREED_TWICE, .address = 0x5000}};
    s->before = s->now = (gmd_stats){.allocated_bytes = 1024,
                                     .active_bytes = 2048,
                                     .reserved_bytes = 4096,
                                     .allocation_count = 2};
    s->view = (gmd_view){.ask.context = s,
                         .allocator.promises = GMD_PROMISE_MISUSE,
                         .ask.is_backed = is_backed,
                         .stats.now = &s->now,
                         .stats.before = &s->before,
                         .thread.before = &s->thread_before,
                         .thread.after = &s->thread_now,
                         .calls.misuses = &s->passed_on,
                         .wrong_free = &s->made};
}

static void judge(situation *s, const char *expected)
{
    oracle_misuse.after_wrong_free(NULL, &s->view, &s->judge);
    assert_int_equal(s->judge.count, *expected ? 1 : 0);
    if (!strstr(s->judge.first, expected)) {
        fail_msg("'%s' does not contain '%s'", s->judge.first, expected);
    }
}

#define SITUATION                                                                                  \
    situation s;                                                                                   \
    (void)state;                                                                                   \
    set_up_situation(&s)

TEST(a_free_that_changes_nothing_is_right)
{
    SITUATION;
    judge(&s, "");
}

TEST(pending_memory_may_become_free_meanwhile)
{
    SITUATION;
    s.now.active_bytes = 1024;
    s.now.reserved_bytes = 2048;
    judge(&s, "");
}

TEST(less_allocated_memory_is_found)
{
    SITUATION;
    s.now.allocated_bytes = 512;
    judge(&s, "allocated_bytes went from 1024 to 512");
}

TEST(another_block_count_is_found)
{
    SITUATION;
    s.now.allocation_count = 1;
    judge(&s, "allocation_count went from 2 to 1");
}

TEST(more_active_memory_is_found)
{
    SITUATION;
    s.now.active_bytes = 4096;
    judge(&s, "active_bytes went from 2048 to 4096");
}

TEST(unknown_figures_are_not_compared)
{
    SITUATION;
    memset(&s.before, 0xff, sizeof s.before);
    judge(&s, "");
}

TEST(a_block_that_loses_its_memory_is_found)
{
    SITUATION;
    s.is_backed = false;
    s.made = (gmd_wrong_free){.kind = GMD_FREED_INSIDE,
                              .address = 0x5200,
                              .block = {.address = 0x5000, .bytes = 4096, .born = 7}};
    judge(&s, "took its memory away at 0x5000");
}

TEST(another_librarys_memory_that_is_given_back_is_found)
{
    SITUATION;
    s.made = (gmd_wrong_free){.kind = GMD_FREED_ANOTHER,
                              .address = 0x5000,
                              .block = {.address = 0x5000, .bytes = 4096, .born = 7},
                              .took_anothers = true};
    judge(&s, "whose memory is another library's now, after request 0 gave that library's memory "
              "back");
}

TEST(a_free_in_memory_that_went_back_names_its_block)
{
    SITUATION;
    s.made = (gmd_wrong_free){.kind = GMD_FREED_STALE,
                              .address = 0x5000,
                              .block = {.address = 0x5000, .bytes = 4096, .born = 7}};
    s.now.allocated_bytes = 0;
    judge(&s, "the free of the block of 4096 B at 0x5000, whose memory went back to the device,");
}

TEST(a_cuda_error_that_is_left_is_found)
{
    SITUATION;
    s.thread_now.last_error = 1;
    judge(&s, "left the thread with device 0 and CUDA error 1");
}

TEST(a_call_that_cuda_forbids_is_found)
{
    SITUATION;
    s.passed_on = (gmd_misuse){.function = "cudaFree", .sentence = "a double free"};
    s.view.calls.misuse_count = 1;
    judge(&s, "was passed on: cudaFree");
}

TEST(a_second_free_names_its_block)
{
    SITUATION;
    s.made.block = (gmd_live_block){.address = 0x5000, .bytes = 4096, .born = 7};
    s.now.allocation_count = 1;
    judge(&s, "the second free of the block of 4096 B at 0x5000 after request 0 was");
}

TEST(without_the_promise_it_does_not_judge)
{
    SITUATION;
    assert_null(oracle_misuse.blind_spot(&s.view));
    s.view.allocator.promises = ~(unsigned)GMD_PROMISE_MISUSE;
    assert_non_null(oracle_misuse.blind_spot(&s.view));
}
