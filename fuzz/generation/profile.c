/* profile.c - what kinds of sequences a campaign makes. */
#include "gmd_profile.h"

#include "gmd_random.h"
#include "gmd_size.h"

#include <stdio.h>
#include <string.h>

#define RACE_DRAWS        1 /* among those of one seed */
#define RACE_EMPTY_WEIGHT 20
#define OPTION_DRAWS      3
#define CHECKPOINT_DRAWS  2

const char *const gmd_profile_confs[] = {
    "expandable_segments:True",
    "max_split_size_mb:20",
    "garbage_collection_threshold:0.6",
    "roundup_power2_divisions:4",
    "max_split_size_mb:32,garbage_collection_threshold:0.8",
    "expandable_segments:True,max_split_size_mb:20",
    "expandable_segments:True,garbage_collection_threshold:0.6",
};
const size_t gmd_profile_conf_count = sizeof gmd_profile_confs / sizeof *gmd_profile_confs;

/* Sizes at which caching allocators change what they do: rounding, small and large pools, segment
 * sizes, pages. */
static const uint64_t boundaries[] = {512, 1 * GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};

static uint64_t draw_size(gmd_random *r, uint64_t capacity)
{
    static const int64_t steps[] = {-512, -1, 0, 0, 0, 1, 512};
    switch (gmd_random_below(r, 4)) {
    case 0: /* 512 B to 8 KiB, and, in steps of two, up to 512 KiB */
        return gmd_random_chance(r, 30) ? UINT64_C(16384) << gmd_random_below(r, 6)
                                        : 512 * (1 + gmd_random_below(r, 16));
    case 1:
        return (1 + gmd_random_below(r, 40)) * GMD_MIB;
    case 2: /* a part of the memory */
        return capacity / (1 + gmd_random_below(r, 8));
    default:
        return boundaries[gmd_random_below(r, sizeof boundaries / sizeof *boundaries)] +
               (uint64_t)steps[gmd_random_below(r, sizeof steps / sizeof *steps)];
    }
}

static void draw_memory(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    static const uint64_t capacities[] = {16, 32, 40, 64, 64, 100, 128, 256, 1024};
    static const double fractions[] = {0.25, 0.5, 0.5, 0.75, 0.9};
    size_t count = sizeof capacities / sizeof *capacities;
    p->conditions.capacity_bytes = space->capacity_bytes
                                       ? space->capacity_bytes
                                       : capacities[gmd_random_below(r, count)] * GMD_MIB;
    bool has_fraction = space->has_fraction && gmd_random_chance(r, 50);
    double fraction = fractions[gmd_random_below(r, sizeof fractions / sizeof *fractions)];
    p->fraction = has_fraction ? fraction : 1;
    if (space->fraction > 0) {
        p->fraction = space->fraction;
    }
    p->palette_count = 1 + (uint32_t)gmd_random_below(r, GMD_PALETTE_MAX);
    for (uint32_t i = 0; i < p->palette_count; i++) {
        p->palette[i] =
            draw_size(r, (uint64_t)(p->fraction * (double)p->conditions.capacity_bytes));
    }
    p->palette_percent = (uint8_t)(30 + gmd_random_below(r, 60));
    p->cap_percent = (uint8_t)gmd_random_below(r, 40);
    p->has_huge_sizes = gmd_random_chance(r, 10);
}

static gmd_schedule_kind draw_schedule(const gmd_profile_space *space, gmd_random *r)
{
    uint64_t choice = gmd_random_below(r, space->has_seeded_schedules ? 10 : 7);
    if (space->schedule && space->schedule->kind != GMD_SCHEDULE_UNSTATED) {
        return space->schedule->kind;
    }
    return choice < 3   ? GMD_SCHEDULE_TIMED
           : choice < 6 ? GMD_SCHEDULE_LAZY
           : choice < 7 ? GMD_SCHEDULE_EAGER
                        : GMD_SCHEDULE_SEEDED;
}

uint32_t gmd_profile_needs_met(const gmd_profile *p, const gmd_profile_space *space)
{
    bool has_captures = space->has_pools && space->has_captures && !p->interleaves;
    return GMD_NEEDS_EMPTY_CACHE | (space->has_record_stream ? GMD_NEEDS_RECORD_STREAM : 0) |
           (space->has_fraction ? GMD_NEEDS_FRACTION : 0) |
           (space->has_pools ? GMD_NEEDS_POOLS : 0) |
           (space->has_pools && space->has_checkpoints && !p->interleaves ? GMD_NEEDS_CHECKPOINTS
                                                                          : 0) |
           (has_captures ? GMD_NEEDS_CAPTURES : 0) |
           (space->fault_target_count ? GMD_NEEDS_FAULTS : 0) |
           (space->has_budgets ? GMD_NEEDS_BUDGETS : 0) |
           (p->stream_count > 1 ? GMD_NEEDS_STREAMS : 0) |
           (p->conditions.device_count > 1 ? GMD_NEEDS_DEVICES : 0);
}

/* Most sequences leave out most kinds of requests: those that are left come close together. What
 * needs pools has a draw of its own. */
static void draw_weights(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    uint32_t missing = ~gmd_profile_needs_met(p, space);
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        const gmd_request_row *row = &gmd_request_rows[op];
        bool is_basic = gmd_op_has(op, GMD_FIELD_NEW_BLOCK) || gmd_op_is(op, GMD_IS_FREE);
        if (!gmd_op_is_on_pool(op)) {
            p->weights[op] = is_basic || gmd_random_chance(r, 60) ? row->weight : 0;
        }
    }
    /* First what the allocator or the device may not have, for which nothing is then drawn. */
    const uint32_t abilities = GMD_NEEDS_FRACTION | GMD_NEEDS_FAULTS | GMD_NEEDS_BUDGETS;
    for (int is_of_program = 0; is_of_program < 2; is_of_program++) {
        for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
            const gmd_request_row *row = &gmd_request_rows[op];
            bool is_next = is_of_program == !(row->needs & abilities) && !gmd_op_is_on_pool(op);
            bool cannot_be = row->needs & missing;
            bool is_drawn = row->rarity && (is_of_program || !cannot_be);
            if (is_next && ((is_drawn && gmd_random_chance(r, row->rarity)) || cannot_be)) {
                p->weights[op] = 0;
            }
        }
    }
}

/* The kinds that name a pool, those of captures or the others. Who captures releases pools, too. */
static void take_weights(gmd_profile *p, bool of_captures)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        const gmd_request_row *row = &gmd_request_rows[op];
        bool is_release = row->pool_step == GMD_POOL_STEP_RELEASE;
        if (gmd_op_is_on_pool(op) && !gmd_op_needs(op, GMD_NEEDS_CHECKPOINTS) &&
            (gmd_op_is_of_capture(op) == of_captures || is_release)) {
            p->weights[op] = row->weight;
        }
    }
}

/* By a seed of its own, so that the other choices are what they were before there were any. */
static void draw_checkpoints(gmd_profile *p, const gmd_profile_space *space, uint64_t seed)
{
    gmd_random r = {gmd_random_derive(seed, CHECKPOINT_DRAWS)};
    bool has_pools = p->weights[GMD_OP_RELEASE_POOL];
    bool can_be = !(GMD_NEEDS_CHECKPOINTS & ~gmd_profile_needs_met(p, space));
    for (uint32_t op = 0; has_pools && can_be && op < GMD_OP_COUNT; op++) {
        if (gmd_op_needs(op, GMD_NEEDS_CHECKPOINTS)) {
            p->weights[op] = gmd_random_chance(&r, 50) ? gmd_request_rows[op].weight : 0;
        }
    }
}

/* Likewise: which options its pools may have. */
static void draw_pool_options(gmd_profile *p, const gmd_profile_space *space, uint64_t seed)
{
    gmd_random r = {gmd_random_derive(seed, OPTION_DRAWS)};
    bool can_be = space->has_pools && space->has_pool_options && !p->interleaves;
    uint64_t set = gmd_random_below(&r, GMD_POOL_OPTION_SETS);
    p->pool_options = can_be && gmd_random_chance(&r, 50) ? (uint8_t)set : 0;
}

/* An allocator without pools gets the sequences that it got before there were any. */
static void draw_pools(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    if (space->has_pools && gmd_random_chance(r, 40)) {
        take_weights(p, false);
    }
}

/* Likewise; and so do sequences without captures. Ends are rarer than begins would need: a capture
 * is to have some requests in it. */
static void draw_captures(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    const uint32_t needs = GMD_NEEDS_CAPTURES | GMD_NEEDS_STREAMS;
    if (!(needs & ~gmd_profile_needs_met(p, space)) && gmd_random_chance(r, 30)) {
        take_weights(p, true);
    }
}

/* After all choices: what is left out changes none of the others. */
static void leave_out(gmd_profile *p, const gmd_profile_space *space)
{
    for (int op = 0; op < GMD_OP_COUNT; op++) {
        p->weights[op] = space->without_ops >> op & 1 ? 0 : p->weights[op];
    }
    p->has_huge_sizes = p->has_huge_sizes && !space->has_no_huge_sizes;
}

void gmd_profile_draw(gmd_profile *p, const gmd_profile_space *space, uint64_t seed)
{
    static const uint32_t lengths[] = {20, 50, 100, 200, 400};
    gmd_random r = {seed};
    *p = (gmd_profile){.conditions.schedule.seed = gmd_random_below(&r, 1000000)};
    p->request_count = lengths[gmd_random_below(&r, sizeof lengths / sizeof *lengths)];
    bool has_devices =
        space->device_max > 1 && (gmd_random_chance(&r, 25) || space->has_devices_only);
    p->conditions.device_count =
        has_devices ? 2 + (uint32_t)gmd_random_below(&r, space->device_max - 1) : 1;
    p->stream_count = 1 + (uint32_t)gmd_random_below(&r, 4);
    bool has_threads =
        (!gmd_random_chance(&r, 75) || space->has_threads_only) && !space->has_one_thread;
    p->thread_count = has_threads ? 2 + (uint32_t)gmd_random_below(&r, 2) : 1;
    p->interleaves = space->has_interleaving && has_threads &&
                     (gmd_random_chance(&r, 70) || space->has_threads_only);
    p->live_max = 2 + (uint32_t)gmd_random_below(&r, gmd_random_chance(&r, 70) ? 12 : 50);
    draw_memory(p, space, &r);
    p->conditions.schedule.kind = draw_schedule(space, &r);
    size_t conf = gmd_random_below(&r, space->conf_count + 2);
    conf = space->conf_is_fixed ? 0 : conf;
    if (conf < space->conf_count) {
        p->conditions.conf = *space->confs[conf] ? space->confs[conf] : NULL;
    }
    draw_weights(p, space, &r);
    draw_pools(p, space, &r);
    draw_captures(p, space, &r);
    draw_checkpoints(p, space, seed);
    draw_pool_options(p, space, seed);
    p->conditions.reuses_handles = space->has_reused_handles && gmd_random_chance(&r, 40);
    p->conditions.moves_clock = space->has_moved_clock && gmd_random_chance(&r, 30);
    leave_out(p, space);
}

/* --- many of one kind ------------------------------------------------------------------------ */

#define MANY_REQUESTS  40 /* beside the many */
#define TURNS_REQUESTS 16
/* Room for many blocks; not more, since expandable segments reserve addresses for all of it for
 * each stream. */
#define MANY_CAPACITY   (8 * GMD_GIB)
#define BLOCKS_CAPACITY (32 * GMD_GIB)

static bool has_many(const gmd_profile_space *space, gmd_many many)
{
    switch (many) {
    case GMD_MANY_NOTHING:
    case GMD_MANY_KINDS:
        return false;
    case GMD_MANY_RECORDS:
        return space->has_record_stream;
    case GMD_MANY_DEVICES:
        return space->many_device_max > 8;
    case GMD_MANY_THREADS:
        return !space->has_one_thread;
    case GMD_MANY_POOLS:
        return space->has_pools;
    case GMD_MANY_CAPTURES:
        return space->has_pools && space->has_captures;
    case GMD_MANY_STREAMS:
    case GMD_MANY_BLOCKS:
    case GMD_MANY_OPERATIONS:
    case GMD_MANY_TURNS:
        break;
    }
    return true;
}

/* Mostly few streams, which meet; one thread, or so many that they need tables. */
static void take_places_of_turns(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    static const uint32_t streams[] = {2, 3, 3, 4, 4, 4, 6, 9, 17, 40};
    p->request_count = 1 + (uint32_t)gmd_random_below(r, TURNS_REQUESTS);
    p->stream_count = streams[gmd_random_below(r, sizeof streams / sizeof *streams)];
    if (!space->has_one_thread && gmd_random_chance(r, 25)) {
        p->thread_count = 2 + (uint32_t)gmd_random_below(r, gmd_random_chance(r, 60) ? 4 : 24);
    }
    if (space->device_max > 1 && gmd_random_chance(r, 15)) {
        p->conditions.device_count = 2 + (uint32_t)gmd_random_below(r, space->device_max - 1);
    }
}

/* As many as there are tables of, and some more. */
static void take_places(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    if (p->many == GMD_MANY_RECORDS || p->many == GMD_MANY_STREAMS) {
        p->stream_count = 340;
        p->weights[GMD_OP_RECORD] = gmd_request_rows[GMD_OP_RECORD].weight;
    } else if (p->many == GMD_MANY_DEVICES) {
        uint32_t most = space->many_device_max;
        p->conditions.device_count = most - (uint32_t)gmd_random_below(r, most - 8);
        p->weights[GMD_OP_DEVICE] = gmd_request_rows[GMD_OP_DEVICE].weight;
    } else if (p->many == GMD_MANY_THREADS) {
        p->thread_count = 2 + (4U << gmd_random_below(r, 4)) + (uint32_t)gmd_random_below(r, 4);
        p->interleaves = space->has_interleaving && gmd_random_chance(r, 25);
        p->stream_count += p->stream_count == 1;
        p->weights[GMD_OP_RECORD] =
            space->has_record_stream ? gmd_request_rows[GMD_OP_RECORD].weight : 0;
    } else if (p->many == GMD_MANY_CAPTURES) {
        p->stream_count += p->stream_count == 1;
    } else if (p->many == GMD_MANY_TURNS) {
        take_places_of_turns(p, space, r);
    }
}

bool gmd_profile_take_many(gmd_profile *p, const gmd_profile_space *space, gmd_many many,
                           uint64_t seed)
{
    gmd_random r = {gmd_random_derive(seed, many)};
    if (space->has_no_counts || !has_many(space, many)) {
        return false;
    }
    p->many = many;
    p->request_count = 1 + (uint32_t)gmd_random_below(&r, MANY_REQUESTS);
    p->thread_count = 1;
    p->interleaves = false;
    p->conditions.device_count = 1;
    /* Few refusals: what fails for want of memory hides what fails for want of room in a table. */
    p->weights[GMD_OP_FAULT] = p->weights[GMD_OP_BUDGET] = p->weights[GMD_OP_FRACTION] = 0;
    p->fraction = space->fraction > 0 ? space->fraction : 1;
    p->cap_percent = 0;
    p->has_huge_sizes = false;
    bool keeps_capacity = many == GMD_MANY_TURNS && gmd_random_chance(&r, 30);
    if (!space->capacity_bytes && !keeps_capacity) {
        p->conditions.capacity_bytes = many == GMD_MANY_BLOCKS ? BLOCKS_CAPACITY : MANY_CAPACITY;
    }
    take_places(p, space, &r);
    leave_out(p, space);
    return true;
}

/* What all threads wait for keeps them apart, and so does what is no call of the allocator. */
static void leave_out_of_race(gmd_profile *p, bool only_basic)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        bool is_basic = gmd_op_has(op, GMD_FIELD_NEW_BLOCK) || gmd_op_is(op, GMD_IS_FREE);
        bool is_left_out = only_basic ? !is_basic : gmd_op_is(op, GMD_IS_FOR_ALL);
        p->weights[op] = is_left_out ? 0 : p->weights[op];
    }
}

bool gmd_profile_race(gmd_profile *p, const gmd_profile_space *space, uint64_t seed)
{
    static const uint32_t lengths[] = {12, 20, 20, 40, 80};
    gmd_random r = {gmd_random_derive(seed, RACE_DRAWS)};
    if (!space->has_interleaving || space->has_one_thread) {
        return false;
    }
    p->interleaves = true;
    p->thread_count = 2 + (uint32_t)gmd_random_chance(&r, 25);
    p->request_count = lengths[gmd_random_below(&r, sizeof lengths / sizeof *lengths)];
    p->stream_count = 1 + (uint32_t)gmd_random_chance(&r, 40);
    p->live_max = 3 + (uint32_t)gmd_random_below(&r, 10);
    p->palette_count = 1 + (uint32_t)gmd_random_chance(&r, 20);
    p->palette_percent = 100;
    if (gmd_random_chance(&r, 75)) { /* of these an allocator keeps lists */
        p->palette[0] = 512 * (1 + gmd_random_below(&r, 16));
    }
    leave_out_of_race(p, gmd_random_chance(&r, 50));
    if (gmd_random_chance(&r, 40) && !(space->without_ops >> GMD_OP_EMPTY_CACHE & 1)) {
        /* Memory that goes back under another thread's hands is what versions are for. */
        p->weights[GMD_OP_EMPTY_CACHE] = RACE_EMPTY_WEIGHT;
        p->stream_count = 2;
    }
    return true;
}

/* --- leaving out ------------------------------------------------------------------------- */

const char gmd_profile_left_out_names[] =
    "fault, budget, fraction, record, wait, sync, "
    "empty_cache, destroy, leave_error, pools, captures, "
    "checkpoints, pool_options, threads, devices, settings, huge, counts";

/* False: it is no kind of request that can be left out. */
static bool leave_out_op(gmd_profile_space *space, const char *word)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        if (gmd_op_is(op, GMD_IS_OPTIONAL) && strcmp(word, gmd_request_rows[op].word) == 0) {
            space->without_ops |= 1u << op;
            space->has_fraction = space->has_fraction && !gmd_op_needs(op, GMD_NEEDS_FRACTION);
            space->has_record_stream =
                space->has_record_stream && !gmd_op_needs(op, GMD_NEEDS_RECORD_STREAM);
            space->has_faults = space->has_faults && !gmd_op_needs(op, GMD_NEEDS_FAULTS);
            return true;
        }
    }
    return false;
}

static bool leave_out_one(gmd_profile_space *space, const char *name)
{
    if (leave_out_op(space, name)) {
        return true;
    }
    bool is_huge = strcmp(name, "huge") == 0, is_threads = strcmp(name, "threads") == 0;
    bool is_counts = strcmp(name, "counts") == 0;
    bool is_pools = strcmp(name, "pools") == 0, is_captures = strcmp(name, "captures") == 0;
    space->has_pools = space->has_pools && !is_pools;
    space->has_captures = space->has_captures && !is_captures;
    bool is_checkpoints = strcmp(name, "checkpoints") == 0;
    space->has_checkpoints = space->has_checkpoints && !is_checkpoints;
    bool is_options = strcmp(name, "pool_options") == 0;
    space->has_pool_options = space->has_pool_options && !is_options;
    bool is_devices = strcmp(name, "devices") == 0, is_settings = strcmp(name, "settings") == 0;
    space->has_no_huge_sizes = space->has_no_huge_sizes || is_huge;
    space->has_one_thread = space->has_one_thread || is_threads;
    space->device_max = is_devices ? 1 : space->device_max;
    space->many_device_max = is_devices ? 0 : space->many_device_max;
    space->has_no_counts = space->has_no_counts || is_counts;
    space->conf_count = is_settings && !space->conf_is_fixed ? 0 : space->conf_count;
    return is_pools || is_captures || is_checkpoints || is_options || is_huge || is_threads ||
           is_devices || is_settings || is_counts;
}

bool gmd_profile_leave_out(gmd_profile_space *space, const char *list, char unknown[32])
{
    while (*list) {
        size_t length = strcspn(list, ",");
        snprintf(unknown, 32, "%.*s", (int)length, list);
        if (!leave_out_one(space, unknown)) {
            return false;
        }
        list += length + (list[length] == ',');
    }
    return true;
}
