#define _GNU_SOURCE /* MAP_ANONYMOUS, gmd_clock.h */
#include "second_run.h"

#include "child.h"
#include "gmd_clock.h"
#include "gmd_judge.h"
#include "gmd_tokens.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *second_run_obstacle(const gmd_run_options *options, const gmd_workload *workload)
{
    if (options->device.kind != GMD_DEVICE_SIM) {
        return "on a real device addresses differ from run to run";
    }
    if (options->judging.is_compared) {
        return "the run is compared with a recording";
    }
    if (interleaving_of(options, workload->trace)) {
        return "threads are interleaved: what spins or blocks outside the scheduler's control may "
               "go otherwise";
    }
    return NULL;
}

static void *volatile kept_shifts[2]; /* for the life of the process */

/* Fresh memory of the heap is not zero, and nothing lies where it lay. */
void second_run_perturb(void)
{
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0x5b);
#endif
    enum { SHIFT = 3 << 20, SMALL_SHIFT = 40000 };
    kept_shifts[0] = mmap(NULL, SHIFT, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kept_shifts[1] = malloc(SMALL_SHIFT);
}

/* --- one comparison ---------------------------------------------------------------------- */

/* How the second run went. */
typedef struct comparison {
    answers_difference difference;
    char text[400]; /* what ended it before its end; empty, as the kind: nothing did */
    char kind[GMD_KIND_NAME];
} comparison;

static gmd_status compare(const gmd_run_options *options, const gmd_workload *workload,
                          run_likeness likeness, run_once_fn *run_once, comparison *out,
                          gmd_error *error)
{
    *out = (comparison){.text = ""};
    shared_run *shared = child_map_shared(options, workload, false);
    taken_run *second = calloc(1, sizeof *second);
    gmd_status status = GMD_OK;
    if (shared && second) {
        answers_begin_comparison(options->process.answers, likeness);
        status = run_once(options, workload, shared, second, error);
        out->difference = answers_take(options->process.answers, likeness);
    } else {
        status = gmd_fail(error, GMD_NO_MEMORY, "no memory to share with a child process");
    }
    if (second && status == GMD_OK && second->outcome.violation_count &&
        !out->difference.is_there) {
        const gmd_violation *v = &second->outcome.violations[0];
        snprintf(out->text, sizeof out->text, "%s: %.300s", v->oracle, v->message);
        memcpy(out->kind, v->identity.kind, sizeof out->kind);
    }
    child_unmap_shared(shared);
    free(second);
    return status;
}

static void tell(gmd_outcome *outcome, const gmd_run_options *options, const gmd_workload *workload,
                 const answers_difference *d, gmd_kind kind, const char *who)
{
    char message[600], difference[200], request[120] = "this request", at[GMD_REQUEST_TOKEN] = "";
    const gmd_trace *t = workload->trace;
    if (t && d->compared < t->count) {
        gmd_request_text(t, &t->requests[d->compared], request, sizeof request);
        gmd_request_token(request, at);
    }
    answers_describe(d, difference, sizeof difference);
    snprintf(message, sizeof message, "%s: %s gave %s: %zu requests before were answered alike",
             request, who, difference, d->compared);
    outcome_violation(outcome, options->judging.known, kind,
                      GMD_PARTIES({"what", gmd_answers_token(d)}, {"at", at}), d->compared,
                      message);
}

/* --- the two oracles --------------------------------------------------------------------- */

static gmd_oracle_result *result_of(gmd_outcome *o, const char *oracle)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (strcmp(o->oracles[i].name, oracle) == 0) {
            return &o->oracles[i];
        }
    }
    return NULL;
}

static bool is_asked(gmd_outcome *o, const char *oracle)
{
    const gmd_oracle_result *result = result_of(o, oracle);
    return result && result->fate == GMD_ORACLE_PASSED;
}

static gmd_status run_again(const gmd_run_options *options, const gmd_workload *workload,
                            taken_run *first, run_once_fn *run_once, gmd_error *error)
{
    gmd_run_options again = *options;
    comparison c;
    again.process.is_second_run = true;
    gmd_status status = compare(&again, workload, GMD_LIKE_ITSELF, run_once, &c, error);
    if (status == GMD_OK && c.difference.is_there) {
        tell(&first->outcome, options, workload, &c.difference, GMD_KIND(determinism, differs),
             "two runs of the same requests on the same device");
    } else if (status == GMD_OK && c.text[0]) {
        char message[600];
        snprintf(message, sizeof message,
                 "the first run of these requests passed, and the second ended with %s", c.text);
        outcome_violation(&first->outcome, options->judging.known,
                          GMD_KIND(determinism, failed_again), GMD_PARTIES({"verdict", c.kind}),
                          c.difference.compared, message);
    }
    return status;
}

/* A version's known deviations (docs/replay.md) are PyTorch's algorithm, too. */
static gmd_status run_reference(const gmd_run_options *options, const gmd_workload *workload,
                                taken_run *first, run_once_fn *run_once, gmd_error *error)
{
    gmd_run_options reference = *options;
    comparison c;
    reference.subject.allocator = "reference";
    reference.subject.torch_adapter = NULL;
    reference.recording.timeline = NULL; /* they are of the allocator under test */
    reference.recording.journal = NULL;
    gmd_status status = GMD_OK;
    for (int with_quirks = 0; with_quirks < 2; with_quirks++) {
        reference.subject.has_all_quirks = with_quirks;
        status = compare(&reference, workload, GMD_LIKE_PYTORCH, run_once, &c, error);
        if (status != GMD_OK || !c.difference.is_there) {
            return status;
        }
    }
    tell(&first->outcome, options, workload, &c.difference, GMD_KIND(reference, differs),
         "this allocator and the reference allocator");
    return status;
}

/* All requests are its own, and a run of its own is what it takes. */
static void note_cost(gmd_outcome *o, const char *oracle, double start)
{
    gmd_oracle_result *result = result_of(o, oracle);
    result->asked = o->requests;
    result->seconds = gmd_clock_s() - start;
}

gmd_status make_second_run(const gmd_run_options *options, const gmd_workload *workload,
                           taken_run *first, run_once_fn *run_once, gmd_error *error)
{
    gmd_outcome *o = &first->outcome;
    gmd_status status = GMD_OK;
    double start = gmd_clock_s();
    if (o->verdict == GMD_PASS && is_asked(o, "determinism")) {
        status = run_again(options, workload, first, run_once, error);
        note_cost(o, "determinism", start);
    }
    start = gmd_clock_s();
    if (status == GMD_OK && o->verdict == GMD_PASS && is_asked(o, "reference")) {
        status = run_reference(options, workload, first, run_once, error);
        note_cost(o, "reference", start);
    }
    return status;
}
