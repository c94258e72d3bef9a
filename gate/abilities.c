#include "abilities.h"

#include "gmd_session.h"

#include <string.h>
#include <sys/mman.h>

static const char first_text[] = "gmd-trace 1\n"
                                 "alloc a 1000 s1\n"
                                 "use a s1\n"
                                 "free a\n"
                                 "alloc b 4MiB s1\n"
                                 "free b\n";

static gmd_status look_and_play(void *context, gmd_session *session, gmd_error *error)
{
    *(gmd_abilities *)context = gmd_subject_abilities(gmd_session_subject(session));
    return gmd_play_trace(NULL, session, error);
}

gmd_status abilities_find(gmd_abilities *abilities, const gmd_run_options *run,
                          gmd_outcome *outcome, gmd_error *error)
{
    gmd_trace trace;
    gmd_status status =
        gmd_trace_parse(&trace, first_text, sizeof first_text - 1, "first requests", error);
    if (status != GMD_OK) {
        return status;
    }
    unsigned char flags[sizeof *abilities];
    gmd_abilities *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        gmd_trace_free(&trace);
        return gmd_fail(error, GMD_NO_MEMORY, "no memory to share with a child process");
    }
    gmd_workload workload = {.name = "first requests",
                             .kind = "trace",
                             .trace = &trace,
                             .body = look_and_play,
                             .context = shared};
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
    memcpy(abilities, flags, sizeof flags);
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
    };
    for (size_t i = 0; i < trace->count; i++) {
        for (size_t k = 0; k < sizeof abilities / sizeof *abilities; k++) {
            if (!abilities[k].is_met && gmd_op_needs(trace->requests[i].op, abilities[k].need)) {
                return abilities[k].reason;
            }
        }
    }
    return NULL;
}
