#include "second_opinion.h"

#include "case.h"
#include "gmd_play.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool asks_for_one(const gmd_run_options *options, const gmd_outcome *o)
{
    static const char *const oracles[] = {"stream_order", "data", "backing"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof oracles / sizeof *oracles && o->violation_count; i++) {
        is_one = is_one || strcmp(o->violations[0].oracle, oracles[i]) == 0;
    }
    return options->device.kind == GMD_DEVICE_CUDA && o->verdict == GMD_FAIL && is_one;
}

static void tell(const gmd_outcome *seen, gmd_status status, const gmd_error *error, char *text,
                 size_t size)
{
    const char *on = "the same case on the simulated device";
    if (status != GMD_OK || seen->verdict == GMD_ERROR) {
        snprintf(text, size, "%s could not be run: %s", on,
                 status != GMD_OK ? error->text : seen->error);
    } else if (seen->violation_count) {
        const gmd_violation *v = &seen->violations[0];
        snprintf(text, size, "%s: %s, request %" PRIu64 ": %s", on, v->oracle, v->request,
                 v->message);
    } else {
        snprintf(text, size,
                 "%s passes: each use of the memory runs before the next owner's in every schedule "
                 "there",
                 on);
    }
}

void ask_second_opinion(const gmd_run_options *options, const gmd_workload *workload,
                        taken_run *on_device, run_fn *run)
{
    gmd_outcome *o = &on_device->outcome;
    if (!asks_for_one(options, o) || o->note_count == GMD_NOTE_MAX) {
        return;
    }
    gmd_trace cut;
    gmd_error error = {""};
    gmd_outcome *seen = calloc(1, sizeof *seen);
    gmd_status status = case_cut(options, workload, on_device, &cut, &error);
    if (seen && status == GMD_OK) {
        gmd_run_options there = *options;
        there.device.kind = GMD_DEVICE_SIM;
        there.cases.directory = NULL;
        there.process.shows_progress = false;
        there.recording.timeline = NULL; /* they are of the run that is asked about */
        there.recording.journal = NULL;
        gmd_workload same = {
            .name = workload->name, .kind = "trace", .trace = &cut, .body = gmd_play_trace};
        status = run(&there, &same, seen, &error);
    }
    if (seen) {
        tell(seen, status, &error, o->notes[o->note_count], sizeof o->notes[0]);
        o->note_count++;
    }
    gmd_trace_free(&cut);
    free(seen);
}
