#include "abilities.h"

#include "gmd_promises.h"
#include "gmd_session.h"

#include <string.h>
#include <sys/mman.h>

static const char first_text[] = "gmd-trace 1\n"
                                 "alloc a 1000 s1\n"
                                 "use a s1\n"
                                 "free a\n"
                                 "alloc b 4MiB s1\n"
                                 "free b\n"
                                 "alloc c 4MiB s1\n"
                                 "use c s2 10ms\n"
                                 "record c s2\n"
                                 "free c\n";

typedef struct looking {
    first_look *found; /* shared with the process that looks */
    unsigned promises; /* the user's */
} looking;

/* After the free of a block that another stream is at work on. */
static bool waits_unjudged(const gmd_subject *subject, unsigned promises)
{
    gmd_stats stats;
    memset(&stats, 0xff, sizeof stats); /* GMD_STAT_UNKNOWN */
    stats.struct_size = sizeof stats;
    bool is_told = subject->get_stats && subject->get_stats(0, &stats) == 0 &&
                   stats.active_bytes != GMD_STAT_UNKNOWN &&
                   stats.allocated_bytes != GMD_STAT_UNKNOWN;
    promises |= subject->promises ? subject->promises() : 0;
    return is_told && stats.active_bytes > stats.allocated_bytes &&
           !(promises_all(promises) & GMD_PROMISE_PROMPT);
}

static gmd_status look_and_play(void *context, gmd_session *session, gmd_error *error)
{
    const looking *l = context;
    const gmd_subject *subject = gmd_session_subject(session);
    l->found->abilities = gmd_subject_abilities(subject);
    gmd_status status = gmd_play_trace(NULL, session, error);
    l->found->waits_unjudged = status == GMD_OK && waits_unjudged(subject, l->promises);
    return status;
}

gmd_status abilities_find(first_look *look, const gmd_run_options *run, gmd_outcome *outcome,
                          gmd_error *error)
{
    gmd_trace trace;
    gmd_status status =
        gmd_trace_parse(&trace, first_text, sizeof first_text - 1, "first requests", error);
    if (status != GMD_OK) {
        return status;
    }
    unsigned char flags[sizeof *look];
    first_look *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        gmd_trace_free(&trace);
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with a child process");
    }
    looking l = {.found = shared, .promises = run->subject.promises};
    gmd_workload workload = {.name = "first requests",
                             .kind = "trace",
                             .trace = &trace,
                             .body = look_and_play,
                             .context = &l};
    gmd_run_options plain = *run;
    plain.cases.directory = NULL;
    status = gmd_run_isolated(&plain, &workload, outcome, error);
    if (status == GMD_OK && outcome->verdict == GMD_ERROR) {
        status = gmd_fail(error, outcome->error_status, "%s", outcome->error);
    }
    memcpy(flags, shared, sizeof flags);
    for (size_t i = 0; i < sizeof flags; i++) { /* what the allocator wrote there is no bool */
        flags[i] = flags[i] != 0;
    }
    memcpy(look, flags, sizeof flags);
    munmap(shared, sizeof *shared);
    gmd_trace_free(&trace);
    return status;
}

const char *abilities_lacking(const gmd_abilities *a, const gmd_trace *trace)
{
    const struct {
        uint32_t need; /* what gmd_request_table.h calls it */
        bool is_met;
        const char *reason;
    } abilities[] = {
        {GMD_NEEDS_RECORD_STREAM, a->record_stream,
         "needs gmd_record_stream, which the allocator does not export"},
        {GMD_NEEDS_FRACTION, a->set_memory_fraction,
         "needs gmd_set_memory_fraction, which the allocator does not export"},
        {GMD_NEEDS_EMPTY_CACHE, a->empty_cache,
         "needs gmd_empty_cache, which the allocator does not export"},
        {GMD_NEEDS_POOLS, a->begin_pool,
         "needs gmd_begin_pool, gmd_end_pool and gmd_release_pool, which the allocator does not "
         "export"},
        {GMD_NEEDS_CHECKPOINTS, a->checkpoint_pool,
         "needs gmd_checkpoint_pool, gmd_restore_pool and gmd_drop_checkpoint, which the allocator "
         "does not export"},
    };
    for (size_t i = 0; i < trace->count; i++) {
        const gmd_request *r = &trace->requests[i];
        if (gmd_op_has(r->op, GMD_FIELD_POOL_OPTIONS) && r->pool_options &&
            !(a->set_pool_option && a->set_pool_memory)) {
            return "needs gmd_set_pool_option and gmd_set_pool_memory, which the allocator does "
                   "not export";
        }
        for (size_t k = 0; k < sizeof abilities / sizeof *abilities; k++) {
            if (!abilities[k].is_met && gmd_op_needs(r->op, abilities[k].need)) {
                return abilities[k].reason;
            }
        }
    }
    return NULL;
}
