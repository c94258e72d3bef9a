#define _GNU_SOURCE /* mremap */
#include "taken.h"

#include "gmd_known.h"
#include "gmd_min.h"
#include "gmd_pool_state.h"
#include "gmd_snapshot.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* --- values ------------------------------------------------------------------------------ */

#define TERMINATE(text) ((text)[sizeof(text) - 1] = '\0')

/* A byte other than 0 and 1 is no bool, and must not even be read as one. */
static void mend_bool(bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, sizeof byte);
    *value = byte != 0;
}

/* Blocks of a live scenario are numbered in the order of their allocation: none is above the number
 * of requests. */
static bool is_sound(const gmd_request *r, size_t block_count)
{
    return r->op < GMD_OP_COUNT && r->block < block_count && r->device < GMD_MAX_DEVICES &&
           r->thread < GMD_MAX_THREADS &&
           (r->stream < GMD_MAX_STREAMS || r->stream == GMD_ALL_STREAMS) &&
           (!gmd_op_has(r->op, GMD_FIELD_OTHER_STREAM) || r->other_stream < GMD_MAX_STREAMS) &&
           (!gmd_op_is_on_pool(r->op) || r->pool < GMD_MAX_POOLS) &&
           (r->op != GMD_OP_ALLOC || r->expect <= GMD_EXPECT_OOM);
}

/* --- the outcome ------------------------------------------------------------------------- */

static bool has_sound_numbers(const gmd_outcome *o)
{
    const known_context *context = &o->known_context;
    return o->violation_count <= GMD_VIOLATION_MAX && o->oracle_count <= GMD_ORACLE_MAX &&
           o->phase_count <= GMD_PHASE_MAX && o->note_count <= GMD_NOTE_MAX &&
           o->bound_count <= GMD_BOUND_MAX &&
           o->check.quirk_count <= sizeof o->check.quirks / sizeof *o->check.quirks &&
           context->fault_count <= sizeof context->faults / sizeof *context->faults &&
           (unsigned)o->verdict <= GMD_ERROR && (unsigned)o->error_status <= GMD_FAILED &&
           o->seconds >= 0 && o->seconds < 1e9;
}

/* A violation is of the oracle that its kind names. */
static bool is_sound_violation(gmd_violation *v)
{
    TERMINATE(v->oracle);
    TERMINATE(v->message);
    mend_bool(&v->is_at_end);
    v->case_path[0] = '\0'; /* the parent's to fill in */
    gmd_identity_mend(&v->identity);
    const gmd_kind_entry *kind = gmd_kind_find(v->identity.kind);
    return kind && strcmp(kind->oracle, v->oracle) == 0;
}

static bool is_sound_oracle(gmd_oracle_result *result)
{
    TERMINATE(result->name);
    TERMINATE(result->reason);
    bool is_time = result->seconds >= 0 && result->seconds < 1e9; /* no NaN */
    result->seconds = is_time ? result->seconds : 0;
    return (unsigned)result->fate <= GMD_ORACLE_SKIPPED && gmd_oracle_is_named(result->name);
}

static bool mend_lists(gmd_outcome *o)
{
    bool is_sound = true;
    for (uint32_t i = 0; i < o->violation_count && is_sound; i++) {
        is_sound = is_sound_violation(&o->violations[i]);
    }
    for (uint32_t i = 0; i < o->oracle_count && is_sound; i++) {
        is_sound = is_sound_oracle(&o->oracles[i]);
    }
    for (uint32_t i = 0; i < o->phase_count; i++) {
        TERMINATE(o->phases[i].label);
    }
    for (uint32_t i = 0; i < o->bound_count; i++) {
        mend_bool(&o->bounds[i].is_reserved);
        mend_bool(&o->bounds[i].leaks);
        mend_bool(&o->bounds[i].is_told_only);
    }
    for (uint32_t i = 0; i < o->note_count; i++) {
        TERMINATE(o->notes[i]);
    }
    return is_sound;
}

static void mend_check(gmd_check *check)
{
    bool *const flags[] = {&check->present,           &check->exact,
                           &check->is_cut_off,        &check->first_difference.present,
                           &check->end_state_checked, &check->statistics_checked,
                           &check->limit_inferred};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        mend_bool(flags[i]);
    }
    TERMINATE(check->first_difference.what);
    TERMINATE(check->first_difference.expected);
    TERMINATE(check->first_difference.got);
    TERMINATE(check->first_difference.text);
    for (uint32_t i = 0; i < check->quirk_count; i++) {
        TERMINATE(check->quirks[i].name);
    }
}

static void mend_context(known_context *context)
{
    bool *const flags[] = {&context->has_destroyed,  &context->has_second_device,
                           &context->has_begun_pool, &context->has_captured,
                           &context->has_left_error, &context->is_spoilt};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        mend_bool(flags[i]);
    }
    TERMINATE(context->conf);
    for (uint32_t i = 0; i < context->fault_count; i++) {
        TERMINATE(context->faults[i]);
    }
}

/* All but the lists. */
static void mend_values(gmd_outcome *o)
{
    TERMINATE(o->name);
    TERMINATE(o->path);
    TERMINATE(o->kind);
    TERMINATE(o->variant);
    TERMINATE(o->placement);
    TERMINATE(o->error);
    mend_bool(&o->has_stats);
    mend_bool(&o->has_pools);
    mend_bool(&o->has_checkpoints);
    mend_bool(&o->has_pool_options);
    o->is_cut_off = false; /* the parent's to fill in */
    mend_check(&o->check);
    mend_context(&o->known_context);
}

void copy_lists(gmd_outcome *to, const gmd_outcome *from)
{
    memcpy(to->violations, from->violations, to->violation_count * sizeof *to->violations);
    memcpy(to->oracles, from->oracles, to->oracle_count * sizeof *to->oracles);
    memcpy(to->phases, from->phases, to->phase_count * sizeof *to->phases);
    memcpy(to->bounds, from->bounds, to->bound_count * sizeof *to->bounds);
    memcpy(to->notes, from->notes, to->note_count * sizeof *to->notes);
}

bool take_outcome(gmd_outcome *taken, const shared_run *shared)
{
    memcpy(taken, &shared->outcome, offsetof(gmd_outcome, violations));
    if (shared->first_guard != GMD_SHARED_GUARD || shared->last_guard != GMD_SHARED_GUARD ||
        !has_sound_numbers(taken)) {
        return false;
    }
    copy_lists(taken, &shared->outcome);
    mend_values(taken); /* where only texts were written over, they are at least well formed */
    return mend_lists(taken);
}

/* --- the run ----------------------------------------------------------------------------- */

static void take_thrown(taken_run *taken, const gmd_thrown_list *thrown)
{
    size_t told = 0;
    while (told < GMD_THROWN_MAX && !atomic_load(&thrown->list[told].is_told)) {
        told++;
    }
    taken->has_thrown = told < GMD_THROWN_MAX;
    if (taken->has_thrown) {
        taken->thrown_is_bad_alloc = thrown->list[told].is_bad_alloc;
        memcpy(taken->thrown_type, thrown->list[told].type, sizeof taken->thrown_type);
        memcpy(taken->thrown_what, thrown->list[told].what, sizeof taken->thrown_what);
        TERMINATE(taken->thrown_type);
        TERMINATE(taken->thrown_what);
    }
}

static void take_place(taken_run *taken, const shared_run *shared)
{
    taken->stage = atomic_load(&shared->stage);
    taken->is_finished = atomic_load(&shared->is_finished);
    taken->current = shared->current;
    taken->current_index = shared->current_index;
    taken->is_in_request =
        atomic_load(&shared->is_in_request) && is_sound(&taken->current, SIZE_MAX);
    memcpy(taken->place, shared->place, sizeof taken->place);
    TERMINATE(taken->place);
    take_thrown(taken, &shared->thrown);
    taken->wrong_free = shared->wrong_free;
    taken->is_freeing_wrongly = atomic_load(&shared->is_freeing_wrongly) &&
                                (unsigned)taken->wrong_free.kind < GMD_FREED_KINDS;
}

bool take_run(taken_run *taken, const shared_run *shared)
{
    taken->request_count = shared->request_count;
    taken->requests = shared->requests;
    take_place(taken, shared);
    return taken->request_count <= GMD_RECORDED_REQUEST_MAX &&
           take_outcome(&taken->outcome, shared);
}

bool take_request(const taken_run *taken, size_t index, gmd_request *out)
{
    *out = taken->requests[index];
    return is_sound(out, taken->request_count);
}

/* --- what is kept beside it --------------------------------------------------------------------
 */

/* A part of a mapping that has been written to. */
typedef struct used_part {
    size_t offset, size;
} used_part;

/* Puts a copy in the place of memory that processes share. Without memory for it the shared one
 * stays. */
static void make_private(void *memory, size_t size, const used_part *parts, size_t count)
{
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(copy + parts[i].offset, (const char *)memory + parts[i].offset, parts[i].size);
    }
    if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == MAP_FAILED) {
        munmap(copy, size);
    }
}

static bool is_sound_entry(const gmd_timeline_entry *entry)
{
    return entry->op < GMD_OP_COUNT && entry->device < GMD_MAX_DEVICES &&
           entry->block < GMD_RECORDED_REQUEST_MAX;
}

void take_timeline(gmd_timeline *timeline)
{
    if (!timeline) {
        return;
    }
    uint64_t count = gmd_min(timeline->count, GMD_TIMELINE_MAX), sound = 0;
    const used_part used = {0, offsetof(gmd_timeline, entries) + count * sizeof *timeline->entries};
    make_private(timeline, sizeof *timeline, &used, 1);
    while (sound < count && is_sound_entry(&timeline->entries[sound])) {
        sound++;
    }
    timeline->dropped += count - sound;
    timeline->count = sound;
}

/* One that cannot have been is as one that was never finished. */
static void mend_event(gmd_journal_event *event)
{
    TERMINATE(event->name);
    event->action = event->action <= GMD_ACTION_OTHER + 1 ? event->action : 0;
    event->device %= GMD_MAX_DEVICES;
}

void take_journal(gmd_journal *journal)
{
    if (!journal) {
        return;
    }
    uint64_t events = gmd_min(journal->count, GMD_JOURNAL_EVENT_MAX);
    uint64_t blocks = gmd_min(journal->block_count, GMD_JOURNAL_BLOCK_MAX);
    const used_part used[] = {
        {0, offsetof(gmd_journal, blocks) + blocks * sizeof *journal->blocks},
        {offsetof(gmd_journal, events), events * sizeof *journal->events},
    };
    make_private(journal, sizeof *journal, used, sizeof used / sizeof *used);
    journal->count = events;
    journal->block_count = blocks;
    TERMINATE(journal->conf);
    for (uint64_t i = 0; i < events; i++) {
        mend_event(&journal->events[i]);
    }
}
