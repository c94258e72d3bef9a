/* The oracles that judge refusals and bounds: oom_retry, peak_bound. */
#include "oracle_test.h"

#include "gmd_size.h"

#include <string.h>

/* --- oom_retry --------------------------------------------------------------------------- */

/* 1000 B were refused for good; all in order. */
typedef struct refused {
    gmd_request request;
    gmd_refusal refusal;
    gmd_view view;
} refused;

static void refuse(refused *r)
{
    *r = (refused){.request = {.op = GMD_OP_ALLOC, .bytes = 1000, .stream = 1},
                   .refusal = {.at_once = GMD_REFUSED,
                               .when_idle = GMD_REFUSED,
                               .when_emptied = GMD_REFUSED,
                               .when_all_is_free = GMD_REFUSED,
                               .held_idle = 4096,
                               .held_emptied = 4096,
                               .room = 512}};
    r->view = (gmd_view){.request = &r->request,
                         .out_of_memory = true,
                         .limits.bytes = 8192,
                         .limits.device_request = GMD_STAT_UNKNOWN,
                         .limits.room = 512,
                         .refusal = &r->refusal};
}

static gmd_judge judged(const refused *r, uint64_t served_before)
{
    gmd_judge judge = {0};
    void *oracle = oracle_oom_retry.create();
    gmd_live_block earlier = {.bytes = served_before};
    gmd_view view = r->view;
    view.block = &earlier;
    if (served_before) {
        oracle_oom_retry.after_alloc(oracle, &view, &judge);
    }
    oracle_oom_retry.after_request(oracle, &r->view, &judge);
    oracle_oom_retry.after_refusal(oracle, &r->view, &judge);
    oracle_oom_retry.destroy(oracle);
    return judge;
}

static int judge_refusal(const refused *r, uint64_t served_before, const char *part)
{
    gmd_judge judge = judged(r, served_before);
    if (part && !strstr(judge.first, part)) {
        fail_msg("'%s' does not contain '%s'", judge.first, part);
    }
    return judge.count;
}

TEST(a_refusal_that_stays_one_is_true)
{
    refused r;
    refuse(&r);
    assert_int_equal(judge_refusal(&r, 999, NULL), 0);
}

/* 1000 B on a device of 140 GiB, all of it free, before anything was served. */
static void refuse_on_a_large_device(refused *r)
{
    refuse(r);
    r->view.limits.bytes = UINT64_MAX;
    r->view.limits.device_bytes = r->view.limits.room = 140 * GMD_GIB;
    r->view.refusal = NULL;
}

static int judge_first(const refused *r, const refused *before)
{
    gmd_judge judge = {0};
    void *oracle = oracle_oom_retry.create();
    if (before) {
        oracle_oom_retry.after_request(oracle, &before->view, &judge);
    }
    oracle_oom_retry.after_request(oracle, &r->view, &judge);
    oracle_oom_retry.destroy(oracle);
    return judge.count;
}

TEST(whoever_never_serves_a_little_of_a_large_device_refuses_falsely)
{
    refused r;
    refuse_on_a_large_device(&r);
    assert_int_equal(judge_first(&r, NULL), 1);
}

TEST(a_start_that_took_most_of_the_device_excuses)
{
    refused r;
    refuse_on_a_large_device(&r);
    r.view.limits.room = 10 * GMD_GIB;
    assert_int_equal(judge_first(&r, NULL), 0);
}

TEST(a_start_that_a_fault_hit_excuses)
{
    refused hit, r;
    refuse_on_a_large_device(&hit);
    hit.view.faults.hit = 1;
    refuse_on_a_large_device(&r);
    assert_int_equal(judge_first(&r, &hit), 0);
}

TEST(a_limit_or_a_small_device_excuses)
{
    refused limited, small;
    refuse_on_a_large_device(&limited);
    limited.view.limits.bytes = 70 * GMD_GIB;
    refuse_on_a_large_device(&small);
    small.view.limits.device_bytes = small.view.limits.room = GMD_GIB;
    assert_int_equal(judge_first(&limited, NULL) + judge_first(&small, NULL), 0);
}

TEST(a_refusal_that_is_served_at_once_is_false)
{
    refused r;
    refuse(&r);
    r.refusal = (gmd_refusal){.at_once = GMD_SERVED_NOW};
    assert_int_equal(judge_refusal(&r, 0, "with nothing freed"), 1);
}

TEST(a_planted_fault_excuses_the_refusal_itself)
{
    refused r;
    refuse(&r);
    r.view.faults.hit = 1;
    r.refusal = (gmd_refusal){.at_once = GMD_SERVED_NOW};
    assert_int_equal(judge_refusal(&r, 0, NULL), 0);
}

TEST(a_planted_fault_does_not_excuse_what_it_leaves_behind)
{
    refused r;
    refuse(&r);
    r.view.faults.hit = 1;
    r.refusal.room = 4096;
    assert_int_equal(judge_refusal(&r, 1000, "1000 B were served before"), 1);
}

TEST(waiting_must_not_help)
{
    refused r;
    refuse(&r);
    r.refusal = (gmd_refusal){.at_once = GMD_REFUSED, .when_idle = GMD_SERVED_NOW};
    assert_int_equal(judge_refusal(&r, 0, "once all streams are idle"), 1);
}

TEST(emptying_the_cache_must_not_help)
{
    refused r;
    refuse(&r);
    r.refusal = (gmd_refusal){
        .at_once = GMD_REFUSED, .when_idle = GMD_REFUSED, .when_emptied = GMD_SERVED_NOW};
    assert_int_equal(judge_refusal(&r, 0, "once the cache is emptied"), 1);
}

/* --- what a cache that may stay does not excuse: although=... ----------------------------- */

static void serve_when_emptied(refused *r, uint64_t room, uint64_t taken)
{
    refuse(r);
    r->refusal = (gmd_refusal){.at_once = GMD_REFUSED,
                               .when_idle = GMD_REFUSED,
                               .when_emptied = GMD_SERVED_NOW,
                               .room_idle = room,
                               .taken = taken};
}

static const char *although(const gmd_judge *judge)
{
    const char *value = gmd_identity_party(&judge->identity, "although");
    assert_int_equal(judge->count, 1);
    return value ? value : "";
}

static void expect_although(uint64_t room, uint64_t taken, const char *wanted)
{
    refused r;
    serve_when_emptied(&r, room, taken);
    gmd_judge judge = judged(&r, 0);
    assert_string_equal(although(&judge), wanted);
}

TEST(room_for_what_the_request_takes_is_told)
{
    expect_although(2048, 2048, "room");
    expect_although(2047, 2048, "");             /* its segment did not fit */
    expect_although(8192, 999, "");              /* it came out of what stayed */
    expect_although(GMD_STAT_UNKNOWN, 2048, ""); /* a real device */
    expect_although(8192, GMD_STAT_UNKNOWN, "");
}

/* A block of 1000 B is allocated on stream 1 and freed there; then a request that is refused. */
typedef struct past {
    gmd_live_block other, block, later; /* allocated before it, it, after it; 0 B: not */
    gmd_request free, last;             /* the last one before the refusal */
    gmd_device_call call;               /* in that; 0 B: none */
} past;

static past freed_on_stream_1(void)
{
    return (past){.block = {.address = 4096, .bytes = 1000, .stream = 1, .born = 1},
                  .free = {.op = GMD_OP_FREE},
                  .last = {.op = GMD_OP_USE}};
}

static void allocate(void *oracle, const gmd_live_block *block)
{
    gmd_judge judge = {0};
    gmd_request alloc = {.op = GMD_OP_ALLOC};
    gmd_view view = {.request = &alloc, .block = block, .limits.bytes = UINT64_MAX};
    if (block->bytes) {
        oracle_oom_retry.after_request(oracle, &view, &judge);
    }
}

static void release(void *oracle, const gmd_live_block *block, const gmd_request *request)
{
    gmd_judge judge = {0};
    gmd_view view = {.request = request, .block = block, .limits.bytes = UINT64_MAX};
    if (block->bytes) {
        oracle_oom_retry.before_free(oracle, &view, &judge);
        oracle_oom_retry.after_request(oracle, &view, &judge);
    }
}

static const char *although_after(const past *p, bool frees_all)
{
    static gmd_judge judge;
    judge = (gmd_judge){0};
    refused r;
    void *oracle = oracle_oom_retry.create();
    serve_when_emptied(&r, 0, 2048);
    allocate(oracle, &p->other);
    allocate(oracle, &p->block);
    release(oracle, &p->block, &p->free);
    allocate(oracle, &p->later);
    if (frees_all) {
        release(oracle, &p->other, &p->free);
        release(oracle, &p->later, &p->free);
    }
    gmd_view view = {.request = &p->last,
                     .calls = {.list = &p->call, .count = p->call.size > 0},
                     .limits = r.view.limits};
    oracle_oom_retry.after_request(oracle, &view, &judge);
    oracle_oom_retry.after_request(oracle, &r.view, &judge);
    oracle_oom_retry.after_refusal(oracle, &r.view, &judge);
    oracle_oom_retry.destroy(oracle);
    return although(&judge);
}

TEST(a_freed_block_of_the_stream_and_size_is_told)
{
    past p = freed_on_stream_1();
    assert_string_equal(although_after(&p, true), "own_block");
    p.other = (gmd_live_block){.bytes = 1, .stream = 2, .born = 0};
    p.later = (gmd_live_block){.address = 8192, .bytes = 64, .stream = 1, .born = 3};
    assert_string_equal(although_after(&p, true), "own_block");
}

TEST(one_that_the_allocator_may_not_have_at_hand_is_not)
{
    past p[8];
    for (size_t i = 0; i < 8; i++) {
        p[i] = freed_on_stream_1();
    }
    p[0].block.bytes = 1001;
    p[1].block.stream = 2;
    p[2].free.thread = 1;
    p[3].call = (gmd_device_call){.is_free = true, .address = 0, .size = 8192};
    p[4].last.op = GMD_OP_EMPTY_CACHE;
    p[5].later = (gmd_live_block){.address = 4500, .bytes = 64, .stream = 1, .born = 3};
    p[6].later = (gmd_live_block){.address = 64, .bytes = 64, .stream = 2, .born = 3};
    p[7].other = (gmd_live_block){.bytes = 1, .stream = 1, .born = 0}; /* perhaps another pool's */
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(although_after(&p[i], true), "");
    }
}

TEST(what_is_still_live_on_the_stream_may_be_in_its_way)
{
    past p = freed_on_stream_1();
    p.later = (gmd_live_block){.address = 8192, .bytes = 64, .stream = 1, .born = 3};
    assert_string_equal(although_after(&p, false), "");
}

TEST(emptying_it_with_the_open_pool_closed_must_not_help)
{
    refused r;
    refuse(&r);
    r.refusal.when_reopened = GMD_SERVED_NOW;
    assert_int_equal(judge_refusal(&r, 0, "does not get memory back while a pool is open"), 1);
}

TEST(the_cache_must_be_given_back_before_the_refusal)
{
    refused r;
    refuse(&r);
    r.refusal.held_emptied = 2048;
    assert_int_equal(judge_refusal(&r, 0, "a cache of 2048 B"), 1);
    r.request.bytes = 8192 - 2048 + 1; /* does not fit beside what stays: nothing would be won */
    assert_int_equal(judge_refusal(&r, 0, NULL), 0);
}

TEST(a_cache_may_stay_where_what_the_request_takes_does_not_fit_beside_the_rest)
{
    refused r;
    refuse(&r);
    r.refusal.held_emptied = 2048;
    r.view.limits.device_request = 8192 - 2048;
    assert_int_equal(judge_refusal(&r, 0, "a cache of 2048 B"), 1);
    r.view.limits.device_request++;
    assert_int_equal(judge_refusal(&r, 0, NULL), 0);
}

/* What a size alone does not decide may be the allocator's policy. */
static const char how_to_state_it[] = "let it export gmd_device_request";

TEST(a_refusal_that_may_be_a_policy_says_how_to_state_it)
{
    refused r;
    refuse(&r);
    r.refusal.room = 4096;
    assert_int_equal(judge_refusal(&r, 1000, how_to_state_it), 1);
    refuse(&r);
    r.refusal.held_emptied = 2048;
    assert_int_equal(judge_refusal(&r, 0, how_to_state_it), 1);
}

static void expect_no_policy(const refused *r)
{
    gmd_judge judge = judged(r, 0);
    assert_int_equal(judge.count, 1);
    assert_null(strstr(judge.first, how_to_state_it));
}

TEST(a_refusal_that_is_no_policy_does_not_speak_of_one)
{
    refused r;
    refuse(&r);
    r.refusal = (gmd_refusal){.at_once = GMD_SERVED_NOW};
    expect_no_policy(&r);
    refuse(&r); /* it has stated what it takes */
    r.refusal.held_emptied = 2048;
    r.view.limits.device_request = 1000;
    expect_no_policy(&r);
}

TEST(what_fitted_once_must_fit_when_all_is_free)
{
    refused r;
    refuse(&r);
    r.refusal.room = 4096;
    assert_int_equal(judge_refusal(&r, 1000, "with everything freed"), 1);
}

TEST(what_fitted_before_the_budget_may_not_fit_now)
{
    refused r;
    refuse(&r); /* with room for 512 B */
    assert_int_equal(judge_refusal(&r, 1000, NULL), 0);
}

TEST(what_the_allocator_took_at_its_start_must_serve_again)
{
    refused r;
    refuse(&r);
    r.refusal.room = 0;
    r.refusal.held_free = r.refusal.held_at_start = 2000;
    assert_int_equal(judge_refusal(&r, 1000, "1000 B were served before"), 1);
    r.refusal.held_free = r.refusal.held_at_start = 999;
    assert_int_equal(judge_refusal(&r, 1000, NULL), 0);
}

TEST(with_all_free_nothing_may_be_held)
{
    refused r;
    refuse(&r);
    r.refusal.when_all_is_free = GMD_SERVED_NOW;
    r.refusal.held_free = 300;
    r.refusal.held_at_start = 100;
    assert_int_equal(judge_refusal(&r, 0, "still holds 200 B"), 1);
    r.refusal.held_at_start = 300;
    assert_int_equal(judge_refusal(&r, 0, NULL), 0);
}

TEST(a_smaller_request_may_need_more_of_the_device)
{
    refused r;
    refuse(&r);
    r.view.limits.device_request = 2000;
    assert_int_equal(judge_refusal(&r, 1500, NULL), 0);
}

TEST(room_on_the_device_makes_a_refusal_false)
{
    refused r;
    refuse(&r);
    r.view.limits.device_request = 512;
    r.refusal.room = 511;
    assert_int_equal(judge_refusal(&r, 0, "leave 512 B"), 1);
    r.view.limits.room = 511;
    assert_int_equal(judge_refusal(&r, 0, NULL), 0);
    r.refusal.room = 512;
    assert_int_equal(judge_refusal(&r, 0, "with everything freed"), 1);
}

TEST(a_crash_or_another_failure_when_asked_again_is_found)
{
    refused r;
    refuse(&r);
    r.refusal.died_of_signal = 6;
    assert_int_equal(judge_refusal(&r, 0, "crashed (signal 6)"), 1);
    refuse(&r);
    strcpy(r.refusal.error, "INTERNAL ASSERT");
    assert_int_equal(judge_refusal(&r, 0, "INTERNAL ASSERT"), 1);
}

/* --- peak_bound -------------------------------------------------------------------------- */

typedef struct bound {
    gmd_stats before, now;
    gmd_device_figures untouched, figures;
    gmd_view view;
} bound;

static void open_bound(bound *b, uint64_t limit)
{
    *b = (bound){.now = {.reserved_bytes = 100, .reserved_bytes_peak = 100}};
    b->view = (gmd_view){.limits.bytes = limit,
                         .limits.device_bytes = 1000,
                         .stats.now = &b->now,
                         .stats.before = &b->before,
                         .figures.now = &b->figures,
                         .figures.untouched = &b->untouched};
}

static int bound_violations(const bound *b)
{
    gmd_judge judge = {0};
    oracle_peak_bound.after_request(NULL, &b->view, &judge);
    return judge.count;
}

TEST(reserved_may_reach_the_limit_and_not_pass_it)
{
    bound b;
    open_bound(&b, 100);
    assert_int_equal(bound_violations(&b), 0);
    b.view.limits.bytes = 99;
    assert_int_equal(bound_violations(&b), 1);
}

TEST(a_peak_within_a_request_counts)
{
    bound b;
    open_bound(&b, 100);
    b.now.reserved_bytes_peak = 101;
    assert_int_equal(bound_violations(&b), 1);
}

TEST(what_was_held_before_the_limit_may_stay)
{
    bound b;
    open_bound(&b, 50);
    b.before = b.now;
    assert_int_equal(bound_violations(&b), 0);
}

TEST(a_scenario_may_reach_its_stated_bound_and_not_pass_it)
{
    bound b;
    gmd_stated_bound stated = {.bytes = 70, .peak = 70};
    open_bound(&b, 1000);
    b.view.bounds.list = &stated;
    b.view.bounds.count = 1;
    assert_int_equal(bound_violations(&b), 0);
    stated.peak = 71;
    assert_int_equal(bound_violations(&b), 1);
}

TEST(a_variant_that_leaks_on_purpose_may_pass_its_bound)
{
    bound b;
    gmd_stated_bound stated = {.bytes = 70, .peak = 71, .leaks = true};
    open_bound(&b, 1000);
    b.view.bounds.list = &stated;
    b.view.bounds.count = 1;
    assert_int_equal(bound_violations(&b), 0);
}

TEST(a_bound_that_is_only_told_is_not_judged)
{
    bound b;
    gmd_stated_bound stated = {.bytes = 70, .peak = 71, .is_told_only = true};
    open_bound(&b, 1000);
    b.view.bounds.list = &stated;
    b.view.bounds.count = 1;
    assert_int_equal(bound_violations(&b), 0);
}

TEST(what_the_device_handed_out_is_judged_as_well)
{
    bound b;
    open_bound(&b, 100);
    gmd_device_call call = {.is_mapping = true, .size = 41};
    b.figures.allocated_bytes = 60;
    b.figures.mapped_bytes = 41;
    b.view.calls.list = &call;
    b.view.calls.count = 1;
    assert_int_equal(bound_violations(&b), 1);
}

TEST(what_other_requests_took_is_not_this_ones)
{
    bound b;
    open_bound(&b, 100);
    b.figures.allocated_bytes = 101;
    assert_int_equal(bound_violations(&b), 0);
}

TEST(what_is_given_back_within_the_request_counts)
{
    bound b;
    open_bound(&b, 100);
    gmd_device_call calls[] = {{.size = 101}, {.is_free = true, .size = 101}};
    b.view.calls.list = calls;
    b.view.calls.count = 2;
    assert_int_equal(bound_violations(&b), 1);
    calls[0].device = calls[1].device = 1;
    assert_int_equal(bound_violations(&b), 0);
}

TEST(the_device_is_a_bound_where_no_limit_was_set)
{
    bound b;
    open_bound(&b, UINT64_MAX);
    b.now.reserved_bytes = b.now.reserved_bytes_peak = 1001;
    assert_int_equal(bound_violations(&b), 1);
}
