/* data: what may be in a block when it is freed. */
#include "oracle_test.h"

#include <string.h>

typedef struct situation {
    gmd_live_block block, other;
    gmd_contents contents;
    bool is_followed;
    gmd_view view;
    gmd_judge judge;
} situation;

static bool read_contents(const void *context, const gmd_live_block *block, gmd_contents *contents)
{
    const situation *s = context;
    assert_ptr_equal(block, &s->block);
    *contents = s->contents;
    return s->is_followed;
}

static void set_up_situation(situation *s)
{
    *s = (situation){.is_followed = true,
                     .block = {.address = 0x5000, .bytes = 4096, .born = 3},
                     .other = {.address = 0x9000, .bytes = 512, .born = 4},
                     .contents = {.marked_bytes = 4096}};
    s->view = (gmd_view){.ask.context = s, .ask.read_contents = read_contents, .block = &s->block};
}

static void judge(situation *s, const char *expected)
{
    oracle_data.before_free(NULL, &s->view, &s->judge);
    assert_int_equal(s->judge.count, *expected ? 1 : 0);
    if (!strstr(s->judge.first, expected)) {
        fail_msg("'%s' does not contain '%s'", s->judge.first, expected);
    }
}

#define SITUATION                                                                                  \
    situation s;                                                                                   \
    (void)state;                                                                                   \
    set_up_situation(&s)

TEST(a_block_that_holds_its_own_mark_is_right)
{
    SITUATION;
    judge(&s, "");
}

TEST(a_block_whose_work_is_all_to_come_may_hold_anything)
{
    SITUATION;
    s.contents = (gmd_contents){.other_bytes = 4096, .is_written = false};
    judge(&s, "");
}

TEST(a_block_that_is_not_followed_is_not_judged)
{
    SITUATION;
    s.is_followed = false;
    s.contents = (gmd_contents){.other_bytes = 4096, .is_written = true};
    judge(&s, "");
}

TEST(one_byte_that_somebody_wrote_is_found)
{
    SITUATION;
    s.contents = (gmd_contents){
        .marked_bytes = 4095, .other_bytes = 1, .other_address = 0x5100, .is_written = true};
    judge(&s,
          "1 B of the block of 4096 B at 0x5000 (request 3, stream 0) do not hold, from 0x5100 on");
}

TEST(the_other_block_over_the_same_memory_is_named)
{
    SITUATION;
    s.contents = (gmd_contents){
        .other_bytes = 4096, .other_address = 0x5000, .is_written = true, .other = &s.other};
    judge(&s, "live block of 512 B at 0x9000 (request 4, stream 0) wrote: both lie on the same "
              "physical memory");
}

TEST(what_work_on_a_real_device_found_in_its_block_is_told)
{
    SITUATION;
    gmd_canary_finding finding = {
        .block = s.block, .use = {.request = 7, .stream = 2}, .offset = 64, .found = 0xdead};
    s.view.canaries.finding = &finding;
    oracle_data.on_canary_finding(NULL, &s.view, &s.judge);
    assert_int_equal(s.judge.count, 1);
    assert_non_null(strstr(s.judge.first, "request 7 queued on stream 2 found 0xdead, 64 B into"));
}

TEST(what_another_block_s_work_wrote_is_the_order_s_affair)
{
    SITUATION;
    gmd_canary_finding finding = {.block = s.block, .has_other = true, .other = s.other};
    s.view.canaries.finding = &finding;
    oracle_data.on_canary_finding(NULL, &s.view, &s.judge);
    assert_int_equal(s.judge.count, 0);
}

TEST(a_device_that_cannot_be_read_is_told)
{
    SITUATION;
    assert_null(oracle_data.blind_spot(&s.view));
    s.view.ask.read_contents = NULL;
    assert_non_null(oracle_data.blind_spot(&s.view));
}
