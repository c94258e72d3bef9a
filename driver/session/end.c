#include "gmd_end.h"

#include "canaries.h"
#include "clean_up.h"
#include "contract_duties.h"
#include "frames.h"
#include "gmd_assert.h"
#include "gmd_clock.h"
#include "gmd_hash.h"
#include "gmd_log.h"
#include "graphs.h"
#include "journal_writer.h"
#include "notes.h"
#include "pools.h"
#include "rounds.h"
#include "sync.h"
#include "validity.h"
#include "view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void judge_the_end(gmd_session *s)
{
    s->view.request = NULL;
    s->view.request_index = s->request_index;
    for (int device = 0; device < s->device_count; device++) {
        view_device(s, device);
        view_refresh(s);
        view_judge(s);
        s->view.pools.source = NULL; /* of all devices; told once */
    }
}

enum { NOTED_LOSS = 64 << 20 };

/* Other processes use a real device, too: what is no verdict may still be news. */
static void note_free_memory(gmd_session *s)
{
    size_t now = 0, total;
    if (!s->runtime.sim && s->runtime.cudaSetDevice(0) == cudaSuccess &&
        s->runtime.cudaMemGetInfo(&now, &total) == cudaSuccess &&
        now + NOTED_LOSS <= s->figures.free_at_start) {
        session_note(s,
                     "device 0 has %" PRIu64 " B less free memory than before the allocator "
                     "was loaded, with everything freed; other processes may have it",
                     s->figures.free_at_start - now);
    }
}

static void judge_what_is_left(gmd_session *s)
{
    s->view.request = NULL;
    s->view.request_index = s->request_index;
    for (int device = 0; device < s->device_count; device++) {
        view_device(s, device);
        view_refresh(s);
        judge_ask(&s->judge, GMD_HOOK_WHEN_OVER, &s->view);
    }
    s->is_over = s->is_over || s->shared->outcome.violation_count > 0;
}

#define UNFIRED_NOTES 3

/* A fault that hits nothing tests nothing: who wrote it should know. */
static void note_unfired_faults(gmd_session *s)
{
    gmd_outcome *o = &s->shared->outcome;
    o->faults_planted = s->faults.count;
    o->faults_unfired = 0;
    for (uint32_t i = 0; i < s->faults.count; i++) {
        const planted_fault *f = &s->faults.planted[i];
        if (!fault_is_unfired(f, &s->runtime)) {
            continue;
        }
        if (o->faults_unfired++ < UNFIRED_NOTES) {
            uint64_t calls = s->runtime.sim->gmd_sim_call_count(f->function) - f->calls_then;
            session_note(s,
                         "the fault of request %" PRIu64 " never fired: the allocator called "
                         "%s %" PRIu64 " times after it, and call %u was to fail",
                         f->request, f->function, calls, f->nth);
        }
    }
    if (o->faults_unfired > UNFIRED_NOTES) {
        session_note(s, "%u faults in all never fired", o->faults_unfired);
    }
}

static void empty_cache(gmd_session *s)
{
    call_frame frame;
    enter_allocator(s, "gmd_empty_cache", &frame);
    s->subject.empty_cache();
    leave_allocator(s, &frame);
}

static bool holds_more_than_at_start(gmd_session *s)
{
    bool holds = false;
    for (int device = 0; device < s->device_count && !holds; device++) {
        view_device(s, device);
        view_refresh(s);
        holds = figures_hold_more_than_at_start(&s->figures, device);
    }
    return holds;
}

/* An allocator may give memory back lazily: what the first emptying marks goes with the second. */
static void empty_all(gmd_session *s)
{
    empty_cache(s);
    if (!s->is_over && holds_more_than_at_start(s)) {
        empty_cache(s);
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = gmd_hash_add(hash, value);
    return hash ^ hash >> 32;
}

/* Addresses never come again on an ascending device: of a block counts where it lies in its
 * allocation. */
static uint64_t hash_blocks(const gmd_session *s, uint64_t hash)
{
    const session_block *block = NULL;
    for (uint32_t id = 0; (block = live_blocks_next(&s->blocks, &id)) != NULL;) {
        const gmd_live_block *b = &block->live;
        gmd_device_range range = {0};
        if (s->view.ask.find_range &&
            s->view.ask.find_range(s->view.ask.context, b->address, &range)) {
            hash = mix(hash, b->bytes);
            hash = mix(hash, b->stream);
            hash = mix(hash, b->address - range.address);
            hash = mix(hash, range.size);
        }
    }
    return hash;
}

static uint64_t hash_state(const gmd_session *s)
{
    const gmd_stats *f = &s->figures.stats[0];
    uint64_t hash = hash_blocks(s, 1);
    if (s->figures.has_stats) {
        const uint64_t figures[] = {f->allocated_bytes,      f->reserved_bytes,  f->active_bytes,
                                    f->inactive_split_bytes, f->requested_bytes, f->segment_count};
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            hash = mix(hash, figures[i]);
        }
    }
    return hash ? hash : 1;
}

static bool has_live_blocks(const gmd_session *s)
{
    bool found = false;
    for (int device = 0; device < s->device_count; device++) {
        found = found || s->blocks.count[device] || s->blocks.bytes[device];
    }
    return found;
}

void session_finish(gmd_session *session)
{
    GMD_ASSERT_VALID(session_state_violation(session));
    gmd_outcome *o = &session->shared->outcome;
    if (session->persistent.is_on) {
        session->persistent.state_hash = session->persistent.ends_here ? 0 : hash_state(session);
    }
    o->has_stats = session->figures.has_stats;
    o->has_pools = session->subject.begin_pool != NULL;
    o->has_checkpoints = session->subject.checkpoint_pool != NULL;
    o->has_pool_options = session->subject.set_pool_option && session->subject.set_pool_memory;
    o->stats = session->figures.stats[0];
    o->device_calls = session->calls.memory_calls;
    note_unfired_faults(session);
    session_note_left_out(session);
    journal_writer_end(session);
    if (session->is_over) {
        return; /* after a violation the rest would only be its consequences */
    }
    view_begin(session);
    judge_what_is_left(session);
    if (session->is_over) {
        return;
    }
    atomic_store(&session->shared->stage, GMD_STAGE_CLEAN_UP);
    holds_release(session->holds);
    if (session->runtime.sim) {
        session->runtime.sim->gmd_sim_clear_faults(); /* what was not hit is not the clean-up's */
    }
    session_end_pools(session); /* as a program leaves a scope before what it made there goes */
    free_everything(session);
    GMD_ASSERT(session->is_over || !has_live_blocks(session),
               "nothing is live when everything is freed");
    session_release_pools(session);
    gmd_error error = {""};
    for (int device = 0; device < session->device_count && !session->is_over; device++) {
        gmd_status status = session_sync(session, device, GMD_ALL_STREAMS, &error);
        if (status != GMD_OK) {
            session_stop(session, status, &error);
        }
    }
    view_begin(session);
    if (session->subject.empty_cache) {
        empty_all(session);
    }
    if (!session->is_over) {
        judge_the_end(session);
        session_forget_canaries(session);
        note_free_memory(session);
    }
    if (!session->is_over && !o->violation_count) { /* leak describes a leak better */
        session_repeat(session);
    }
}

void session_end_process(gmd_session *s)
{
    shared_run *shared = s->shared;
    s->is_over = true;
    shared->outcome.seconds = gmd_clock_s() - s->start_s;
    session_finish(s);
    if (s->persistent.is_in_process) {
        outcome_tell(&shared->outcome);
        abort();
    }
    atomic_store(&shared->stage, GMD_STAGE_UNLOADING);
    atomic_store(&shared->is_finished, 1);
    fflush(NULL);
    _exit(EXIT_SUCCESS);
}

/* The thread is in the middle of the allocator under test, and cannot be brought out of it. */
void session_end_stuck(void *context, const char *what, const char *lock)
{
    gmd_session *s = context;
    char sentence[400], request[100] = "";
    const gmd_trace *trace = s->workload->trace;
    if (trace && s->view.request) {
        gmd_request_text(trace, s->view.request, request, sizeof request);
    }
    snprintf(sentence, sizeof sentence,
             "deadlock: %s waits for %s, and no other thread is there that could end the wait",
             *request ? request : "a call", what);
    session_violation(s, GMD_KIND(progress, deadlock),
                      GMD_PARTIES({"lock", lock}, {"wait", *lock ? NULL : "alone"}),
                      s->request_index, sentence);
    session_end_process(s);
}

void session_close(gmd_session *session)
{
    GMD_LOG(SESSION, "closed after %" PRIu64 " requests", session->request_index);
    if (session->runtime.sim) {
        session->runtime.sim->gmd_sim_observe(NULL, NULL);
    }
    threads_join(&session->threads);
    judge_close(&session->judge);
    holds_close(session->holds);
    if (session->canaries.table) {
        session->runtime.cudaDeviceSynchronize();
    }
    session_close_canaries(session);
    journal_writer_close(session);
    captures_forget(&session->captures); /* the device is about to be reset */
    streams_close(&session->streams);
    live_blocks_free(&session->blocks);
    uses_free(&session->uses);
    mute_close(&session->muting.mute);
    call_list_free(&session->calls);
}
