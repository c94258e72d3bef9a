#include "gmd_space.h"

#include "gmd_assert.h"
#include "gmd_interleaving.h"
#include "gmd_pool_state.h"
#include "gmd_text.h"
#include "gmd_trace_validity.h"

#include <stdlib.h>
#include <string.h>

/* Allocators differ in what they take a fraction of 0 for: no memory at all, or no limit. */
#define FRACTION_MIN   (1.0 / 1024)
#define CAPACITY_MIN   ((uint64_t)1 << 20)
#define CAPACITY_MAX   ((uint64_t)1 << 40)
#define CAPACITY_USUAL ((uint64_t)64 << 20)

enum { REQUESTS_MAX = 1024 }; /* longer inputs of other sources cost more than they show */

static bool is_fault_allowed(const gmd_profile_space *space, const gmd_trace *t,
                             const gmd_request *r)
{
    const char *name = r->function < t->functions.count ? t->functions.items[r->function] : NULL;
    for (uint32_t i = 0; i < space->fault_target_count && name; i++) {
        const gmd_fault_target *target = &space->fault_targets[i];
        if (strcmp(target->function, name) == 0 && target->error == r->error) {
            return true;
        }
    }
    return false;
}

/* Which needs can be met, whatever the threads do. */
static uint32_t needs_met(const gmd_profile_space *space, const gmd_trace *t)
{
    bool is_interleaved =
        t->conditions.interleave.kind != GMD_SCHEDULE_UNSTATED && space->has_interleaving;
    const gmd_profile any = {.stream_count = UINT32_MAX,
                             .conditions.device_count = UINT32_MAX,
                             .interleaves = is_interleaved};
    return gmd_profile_needs_met(&any, space);
}

static bool is_allowed(const gmd_profile_space *space, const gmd_trace *t, uint32_t met,
                       const gmd_request *r)
{
    const uint64_t huge = UINT64_MAX / 2;
    if (space->without_ops >> r->op & 1 || gmd_request_rows[r->op].needs & ~met) {
        return false;
    }
    if (gmd_op_has(r->op, GMD_FIELD_FRACTION)) {
        return !(space->fraction > 0) && r->fraction >= FRACTION_MIN;
    }
    if (gmd_op_has(r->op, GMD_FIELD_FUNCTION)) {
        return space->has_faults && is_fault_allowed(space, t, r);
    }
    return !gmd_op_has(r->op, GMD_FIELD_BYTES) || !space->has_no_huge_sizes || r->bytes < huge;
}

static void fit_interleaving(const gmd_profile_space *space, gmd_trace *t)
{
    uint64_t seed = t->conditions.interleave.seed;
    for (size_t i = 0; i < t->conditions.interleave.choice_count; i++) {
        seed = seed * 31 + t->conditions.interleave.choices[i];
    }
    bool is_wanted = t->conditions.interleave.kind != GMD_SCHEDULE_UNSTATED &&
                     space->has_interleaving && !space->has_one_thread && t->threads.count > 1;
    gmd_schedule_free(&t->conditions.interleave);
    t->conditions.interleave = (gmd_schedule){0};
    if (is_wanted) {
        t->conditions.interleave = gmd_interleaving_of(seed % 1000000);
    }
}

/* Without captures not every pool is begun that is released, and of fewer devices one may have
 * several open: what a reader of the text would refuse goes. */
static void keep_in_order(gmd_trace *t)
{
    gmd_pool_state state;
    size_t kept = 0;
    memset(&state, 0, sizeof state);
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        if (!gmd_op_is_on_pool(r->op) || !gmd_pool_state_note(&state, r)) {
            t->requests[kept++] = *r;
        }
    }
    t->count = kept;
}

/* What was to be refused may be served now: its block is not one that a later request allocates
 * under the same name. False: no host memory. */
static bool forget_expectation(gmd_trace *t, gmd_request *r)
{
    bool was_to_be_refused = r->expect == GMD_EXPECT_OOM;
    r->expect = GMD_EXPECT_ANY;
    return !was_to_be_refused || gmd_names_add(&t->blocks, NULL, &r->block, NULL) == GMD_OK;
}

/* Where an allocation is left out, so is what is done to its block. */
static bool is_kept(const gmd_profile_space *space, gmd_trace *t, uint32_t met, bool *is_missing,
                    gmd_request *r)
{
    if (gmd_op_has(r->op, GMD_FIELD_BLOCK) && is_missing[r->block]) {
        return false;
    }
    uint32_t block = r->block;
    bool is_one = is_allowed(space, t, met, r) &&
                  (!gmd_op_has(r->op, GMD_FIELD_EXPECT) || forget_expectation(t, r));
    if (gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
        is_missing[block] = !is_one;
    }
    return is_one;
}

void gmd_space_fit(const gmd_profile_space *space, gmd_trace *t)
{
    size_t kept = 0;
    uint32_t met = needs_met(space, t);
    bool *is_missing = calloc((size_t)t->blocks.count + 1, sizeof *is_missing);
    for (size_t i = 0; is_missing && i < t->count && kept < REQUESTS_MAX; i++) {
        gmd_request r = t->requests[i];
        r.thread = space->has_one_thread ? 0 : r.thread;
        if (is_kept(space, t, met, is_missing, &r)) {
            t->requests[kept++] = r;
        }
    }
    free(is_missing);
    t->count = kept; /* none without host memory */
    if (t->pools.count) {
        keep_in_order(t);
    }
    fit_interleaving(space, t);
    GMD_ASSERT_VALID(gmd_trace_violation(t));
}

static bool is_taken(const gmd_profile_space *space, const char *conf)
{
    for (size_t i = 0; i < space->conf_count; i++) {
        if (strcmp(space->confs[i], conf) == 0) {
            return true;
        }
    }
    return false;
}

static void fit_schedule(const gmd_profile_space *space, gmd_schedule *schedule)
{
    const gmd_schedule *fixed = space->schedule;
    bool is_fixed = fixed && fixed->kind != GMD_SCHEDULE_UNSTATED;
    if (is_fixed && schedule->kind != fixed->kind) {
        gmd_schedule_free(schedule);
        *schedule = (gmd_schedule){.kind = fixed->kind, .seed = fixed->seed};
    }
    if (schedule->kind == GMD_SCHEDULE_SEEDED && !space->has_seeded_schedules) {
        schedule->kind = GMD_SCHEDULE_TIMED;
    }
}

gmd_status gmd_space_fit_header(const gmd_profile_space *space, gmd_conditions *header,
                                gmd_error *error)
{
    uint32_t most = space->device_max ? space->device_max : 1;
    header->reuses_handles = header->reuses_handles && space->has_reused_handles;
    header->moves_clock = header->moves_clock && space->has_moved_clock;
    uint32_t devices = header->device_count ? header->device_count : 1;
    header->device_count = devices < most ? devices : most;
    if (space->capacity_bytes) {
        header->capacity_bytes = space->capacity_bytes;
    } else if (header->capacity_bytes < CAPACITY_MIN || header->capacity_bytes > CAPACITY_MAX) {
        header->capacity_bytes = CAPACITY_USUAL;
    }
    fit_schedule(space, &header->schedule);
    if (space->conf_is_fixed) {
        return gmd_conditions_set_conf(header, space->confs[0], error);
    }
    return header->conf && !is_taken(space, header->conf)
               ? gmd_conditions_set_conf(header, NULL, error)
               : GMD_OK;
}

/* The campaign's limit, where it has one, comes first and stays. */
static gmd_status put_fraction(const gmd_profile_space *space, gmd_trace *t, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t devices = t->conditions.device_count ? t->conditions.device_count : 1;
    for (uint32_t i = 0; i < devices && space->fraction > 0 && status == GMD_OK; i++) {
        gmd_request r = {.op = GMD_OP_FRACTION, .device = (uint8_t)i, .fraction = space->fraction};
        status = gmd_trace_append(t, &r, error);
        if (status == GMD_OK) {
            memmove(&t->requests[1], &t->requests[0], (t->count - 1) * sizeof r);
            t->requests[0] = r;
        }
    }
    return status;
}

gmd_status gmd_space_take_header(const gmd_profile_space *space, gmd_trace *t,
                                 const gmd_conditions *header, gmd_error *error)
{
    gmd_conditions taken = *header; /* a view */
    taken.interleave = t->conditions.interleave;
    gmd_status status = gmd_conditions_copy(&taken, &taken, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_conditions_free(&t->conditions);
    t->conditions = taken;
    uint8_t devices = (uint8_t)(taken.device_count ? taken.device_count : 1);
    for (size_t i = 0; i < t->count; i++) {
        t->requests[i].device = (uint8_t)(t->requests[i].device % devices);
    }
    if (t->pools.count) {
        keep_in_order(t);
    }
    status = put_fraction(space, t, error);
    GMD_ASSERT_VALID(status == GMD_OK ? gmd_trace_violation(t) : NULL);
    return status;
}
