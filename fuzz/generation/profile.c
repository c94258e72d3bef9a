/* profile.c - what kinds of sequences a campaign makes. */
#include "gmd_generate.h"

#include "gmd_size.h"

#include <stdio.h>
#include <string.h>

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

/* Sizes at which caching allocators change their ways: rounding, small and large pools, segment
 * sizes, pages. */
static const uint64_t boundaries[] = {512, 1 * GMD_MIB, 2 * GMD_MIB, 10 * GMD_MIB, 20 * GMD_MIB};

static uint64_t draw_size(gmd_random *r, uint64_t capacity)
{
    static const int64_t steps[] = {-512, -1, 0, 0, 0, 1, 512};
    switch (gmd_random_below(r, 4)) {
    case 0:
        return 512 * (1 + gmd_random_below(r, 16));
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
    p->capacity_bytes = space->capacity_bytes ? space->capacity_bytes
                                              : capacities[gmd_random_below(r, count)] * GMD_MIB;
    bool has_fraction = space->has_fraction && gmd_random_chance(r, 50);
    double fraction = fractions[gmd_random_below(r, sizeof fractions / sizeof *fractions)];
    p->fraction = has_fraction ? fraction : 1;
    if (space->fraction > 0) {
        p->fraction = space->fraction;
    }
    p->palette_count = 1 + (uint32_t)gmd_random_below(r, GMD_PALETTE_MAX);
    for (uint32_t i = 0; i < p->palette_count; i++) {
        p->palette[i] = draw_size(r, (uint64_t)(p->fraction * (double)p->capacity_bytes));
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

/* Most sequences leave out most kinds of requests: those that are left come close together. */
static void draw_weights(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    static const uint16_t usual[GMD_OP_BUDGET + 1] = {
        [GMD_OP_ALLOC] = 400,  [GMD_OP_FREE] = 300,       [GMD_OP_USE] = 120,
        [GMD_OP_RECORD] = 60,  [GMD_OP_WAIT] = 20,        [GMD_OP_SYNC] = 10,
        [GMD_OP_ADVANCE] = 20, [GMD_OP_EMPTY_CACHE] = 10, [GMD_OP_FRACTION] = 2,
        [GMD_OP_FAULT] = 10,   [GMD_OP_DEVICE] = 10,      [GMD_OP_DESTROY] = 3,
        [GMD_OP_BUDGET] = 5};
    for (int op = 0; op <= GMD_OP_BUDGET; op++) {
        bool is_basic = op <= GMD_OP_FREE;
        p->weights[op] = is_basic || gmd_random_chance(r, 60) ? usual[op] : 0;
    }
    if (!space->has_record_stream || p->stream_count == 1) {
        p->weights[GMD_OP_RECORD] = 0;
    }
    if (p->stream_count == 1) {
        p->weights[GMD_OP_WAIT] = p->weights[GMD_OP_DESTROY] = 0;
    }
    if (!space->has_fraction || gmd_random_chance(r, 80)) {
        p->weights[GMD_OP_FRACTION] = 0;
    }
    if (!space->fault_target_count || gmd_random_chance(r, 80)) {
        p->weights[GMD_OP_FAULT] = 0;
    }
    if (!space->has_budgets || gmd_random_chance(r, 80)) {
        p->weights[GMD_OP_BUDGET] = 0;
    }
    if (gmd_random_chance(r, 70)) {
        p->weights[GMD_OP_DESTROY] = 0;
    }
    if (p->device_count == 1) {
        p->weights[GMD_OP_DEVICE] = 0;
    }
}

/* An allocator without pools gets the sequences that it got before there were any. */
static void draw_pools(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    if (space->has_pools && gmd_random_chance(r, 40)) {
        p->weights[GMD_OP_BEGIN_POOL] = p->weights[GMD_OP_END_POOL] = 30;
        p->weights[GMD_OP_RELEASE_POOL] = 20;
    }
}

/* Likewise; and so do sequences without captures. Ends are rarer than begins would need: a capture
 * is to have some requests in it. */
static void draw_captures(gmd_profile *p, const gmd_profile_space *space, gmd_random *r)
{
    if (space->has_pools && space->has_captures && p->stream_count > 1 && !p->interleaves &&
        gmd_random_chance(r, 30)) {
        p->weights[GMD_OP_BEGIN_CAPTURE] = 40;
        p->weights[GMD_OP_END_CAPTURE] = 60;
        p->weights[GMD_OP_LAUNCH] = 20;
        p->weights[GMD_OP_RELEASE_POOL] = 20;
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
    *p = (gmd_profile){.schedule_seed = gmd_random_below(&r, 1000000)};
    p->request_count = lengths[gmd_random_below(&r, sizeof lengths / sizeof *lengths)];
    bool has_devices =
        space->device_max > 1 && (gmd_random_chance(&r, 25) || space->has_devices_only);
    p->device_count = has_devices ? 2 + (uint32_t)gmd_random_below(&r, space->device_max - 1) : 1;
    p->stream_count = 1 + (uint32_t)gmd_random_below(&r, 4);
    bool has_threads =
        (!gmd_random_chance(&r, 75) || space->has_threads_only) && !space->has_one_thread;
    p->thread_count = has_threads ? 2 + (uint32_t)gmd_random_below(&r, 2) : 1;
    p->interleaves = space->has_interleaving && has_threads &&
                     (gmd_random_chance(&r, 70) || space->has_threads_only);
    p->live_max = 2 + (uint32_t)gmd_random_below(&r, gmd_random_chance(&r, 70) ? 12 : 50);
    draw_memory(p, space, &r);
    p->schedule = draw_schedule(space, &r);
    size_t conf = gmd_random_below(&r, space->conf_count + 2);
    conf = space->conf_is_fixed ? 0 : conf;
    if (conf < space->conf_count) {
        snprintf(p->conf, sizeof p->conf, "%s", space->confs[conf]);
    }
    draw_weights(p, space, &r);
    draw_pools(p, space, &r);
    draw_captures(p, space, &r);
    leave_out(p, space);
}

/* --- leaving out ------------------------------------------------------------------------- */

const char gmd_profile_left_out_names[] = "fault, budget, fraction, record, wait, sync, "
                                          "empty_cache, destroy, pools, captures, threads, "
                                          "devices, settings, huge";

static bool leave_out_one(gmd_profile_space *space, const char *name)
{
    static const struct {
        const char *name;
        gmd_op op;
    } ops[] = {{"fault", GMD_OP_FAULT},       {"budget", GMD_OP_BUDGET},
               {"fraction", GMD_OP_FRACTION}, {"record", GMD_OP_RECORD},
               {"wait", GMD_OP_WAIT},         {"sync", GMD_OP_SYNC},
               {"destroy", GMD_OP_DESTROY},   {"empty_cache", GMD_OP_EMPTY_CACHE}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(name, ops[i].name) == 0) {
            space->without_ops |= 1u << ops[i].op;
            space->has_fraction = space->has_fraction && ops[i].op != GMD_OP_FRACTION;
            space->has_record_stream = space->has_record_stream && ops[i].op != GMD_OP_RECORD;
            space->has_faults = space->has_faults && ops[i].op != GMD_OP_FAULT;
            return true;
        }
    }
    bool is_huge = strcmp(name, "huge") == 0, is_threads = strcmp(name, "threads") == 0;
    bool is_pools = strcmp(name, "pools") == 0, is_captures = strcmp(name, "captures") == 0;
    space->has_pools = space->has_pools && !is_pools;
    space->has_captures = space->has_captures && !is_captures;
    bool is_devices = strcmp(name, "devices") == 0, is_settings = strcmp(name, "settings") == 0;
    space->has_no_huge_sizes = space->has_no_huge_sizes || is_huge;
    space->has_one_thread = space->has_one_thread || is_threads;
    space->device_max = is_devices ? 1 : space->device_max;
    space->conf_count = is_settings && !space->conf_is_fixed ? 0 : space->conf_count;
    return is_pools || is_captures || is_huge || is_threads || is_devices || is_settings;
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
