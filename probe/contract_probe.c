#include "gmd_contract_probe.h"

#include "trials.h"

#include "gmd_abi.h"
#include "gmd_fault_sweep.h"
#include "gmd_findings.h"
#include "gmd_generate.h"
#include "gmd_promises.h"
#include "gmd_random.h"
#include "gmd_search.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANDOM_TRIALS 48 /* for each promise */
#define SWEEP_RUNS    120
/* Sizes are found out to so small a part: what is larger by less is refused, too. */
#define SIZE_PARTS 256

typedef struct probing {
    const gmd_run_options *given;
    gmd_contract_probe *result;
    gmd_known defects;          /* what is none of the contract */
    gmd_contract contract;      /* under trial */
    unsigned promises;          /* likewise */
    char seen[GMD_PROBE_TEXT];  /* the latest finding; empty: none */
    gmd_identity seen_identity; /* of that */
    const char *unseen;         /* an oracle that must have judged; NULL: any will do */
    char blind[GMD_PROBE_TEXT]; /* why it could not */
    gmd_status status;
    gmd_error *error;
} probing;

/* --- runs -------------------------------------------------------------------------------- */

/* A runner under the terms and promises that are tried now. `known` holds until it is closed. */
typedef struct trial_runner {
    gmd_run_options options;
    gmd_known excused; /* by the contract */
    gmd_known known;   /* all lists in one: the entries are theirs */
    gmd_runner runner;
} trial_runner;

static void open_runner(probing *p, trial_runner *r)
{
    const char *line;
    *r = (trial_runner){.options = *p->given};
    for (uint32_t i = 0; p->status == GMD_OK && (line = gmd_contract_known(&p->contract, i)); i++) {
        p->status = known_add(&r->excused, line, "contract", p->error);
    }
    const gmd_known *const lists[] = {p->given->judging.known, &p->defects, &r->excused};
    if (p->status == GMD_OK && !gmd_known_join(lists, sizeof lists / sizeof *lists, &r->known)) {
        p->status = gmd_fail(p->error, GMD_NO_MEMORY, "no host memory for known defects");
    }
    r->options.judging.known = &r->known;
    r->options.judging.contract = &p->contract;
    r->options.subject.promises =
        p->given->subject.promises | p->promises | gmd_contract_promises(&p->contract);
    gmd_options_leave_to_traces(&r->options);
    r->options.conditions.conf = p->given->conditions.conf;
    r->options.cases.directory = NULL;
    r->options.process.shows_progress = false;
    gmd_runner_init(&r->runner, &r->options);
}

static void close_runner(probing *p, trial_runner *r)
{
    p->result->runs += r->runner.runs;
    gmd_runner_close(&r->runner);
    free(r->known.entries);
    gmd_known_free(&r->excused);
}

static void note_violation(probing *p, const gmd_trace *trace, const gmd_violation *v)
{
    char request[80] = "", kind[GMD_IDENTITY_TEXT];
    gmd_identity_print(&v->identity, kind);
    if (!v->is_at_end && v->request < trace->count) {
        gmd_request_text(trace, &trace->requests[v->request], request, sizeof request);
    }
    snprintf(p->seen, sizeof p->seen, "%.140s, %s%s", kind, v->is_at_end ? "at the end" : "in ",
             request);
    p->seen_identity = v->identity;
}

static void note_blindness(probing *p, const gmd_outcome *o)
{
    for (uint32_t i = 0; p->unseen && i < o->oracle_count; i++) {
        const gmd_oracle_result *oracle = &o->oracles[i];
        if (strcmp(oracle->name, p->unseen) == 0 && oracle->fate == GMD_ORACLE_SKIPPED) {
            snprintf(p->blind, sizeof p->blind, "%s", oracle->reason);
        }
    }
}

/* False: it shows something, or gmd has failed. */
static bool is_clean(probing *p, trial_runner *r, const gmd_trace *trace)
{
    const gmd_outcome *o;
    gmd_error error = {""};
    gmd_status status = gmd_runner_run(&r->runner, trace, &o, &error);
    if (status == GMD_OK && !o->violation_count && o->verdict == GMD_ERROR) {
        status = gmd_fail(&error, o->error_status, "%s", o->error);
    }
    if (status != GMD_OK) {
        p->status = gmd_fail(p->error, status, "%s", error.text);
        return false;
    }
    note_blindness(p, o);
    if (!o->violation_count) {
        return true;
    }
    note_violation(p, trace, &o->violations[0]);
    return false;
}

static bool parse(probing *p, const char *text, gmd_trace *trace)
{
    char whole[2000];
    int length = snprintf(whole, sizeof whole, "gmd-trace 1\n%s", text);
    gmd_status status = gmd_trace_parse(trace, whole, (size_t)length, "a trial", p->error);
    p->status = status == GMD_OK ? p->status : status;
    return status == GMD_OK;
}

/* Under each schedule, and in each order of its threads. */
static bool is_trial_clean(probing *p, trial_runner *r, const trial *t)
{
    static const gmd_schedule schedules[] = {{.kind = GMD_SCHEDULE_TIMED},
                                             {.kind = GMD_SCHEDULE_LAZY},
                                             {.kind = GMD_SCHEDULE_EAGER},
                                             {.kind = GMD_SCHEDULE_SEEDED, .seed = 1}};
    gmd_trace trace;
    if (!parse(p, t->text, &trace)) {
        return false;
    }
    bool clean = true;
    for (size_t i = 0; clean && i < sizeof schedules / sizeof *schedules; i++) {
        trace.conditions.schedule = schedules[i];
        clean = is_clean(p, r, &trace);
    }
    for (uint64_t i = 0; clean && i < t->orders; i++) {
        trace.conditions.interleave = (gmd_schedule){.kind = GMD_SCHEDULE_SEEDED, .seed = i};
        clean = is_clean(p, r, &trace);
    }
    gmd_trace_free(&trace);
    return clean;
}

/* --- defects ----------------------------------------------------------------------------- */

/* The latest finding is none of a contract: a defect, most likely. It counts no further. False:
 * there are too many. */
static bool take_for_defect(probing *p)
{
    char line[GMD_IDENTITY_TEXT];
    gmd_contract_probe *result = p->result;
    if (result->defect_count == GMD_PROBE_DEFECTS) {
        return false;
    }
    gmd_identity_known_line(&p->seen_identity, line);
    snprintf(result->defects[result->defect_count++], GMD_PROBE_TEXT, "%s", p->seen);
    p->seen[0] = '\0';
    p->status = known_add(&p->defects, line, "defects", p->error);
    return p->status == GMD_OK;
}

/* --- plain requests ---------------------------------------------------------------------- */

static void try_plain(probing *p)
{
    for (size_t i = 0; i < trial_count && p->status == GMD_OK;) {
        if (trials[i].clause != GMD_CLAUSE_COUNT) {
            i++;
            continue;
        }
        trial_runner r;
        open_runner(p, &r);
        bool clean = is_trial_clean(p, &r, &trials[i]);
        close_runner(p, &r);
        if (!clean && p->status == GMD_OK && !take_for_defect(p) && p->status == GMD_OK) {
            p->status = gmd_fail(p->error, GMD_BAD_INPUT,
                                 "plain requests show too many defects: there is no contract to "
                                 "find out; see gmd gate");
        }
        i += clean;
    }
}

/* --- calls that fail --------------------------------------------------------------------- */

typedef struct sweeping {
    probing *p;
    bool is_clean;
} sweeping;

static bool stop_at(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    sweeping *s = context;
    note_violation(s->p, trace, violation);
    s->is_clean = false;
    return false;
}

/* An allocator may refuse all that comes after a call that needs no memory: as in the gate. */
static bool stop_at_hang(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    return gmd_is_without_end(violation) ? stop_at(context, trace, violation) : true;
}

static bool is_sweep_clean(probing *p, trial_runner *r)
{
    gmd_trace trace;
    if (!parse(p, failing_trial, &trace)) {
        return false;
    }
    sweeping s = {p, true};
    for (int others = 0; others < 2 && s.is_clean && p->status == GMD_OK; others++) {
        gmd_sweep_result result = {0};
        const gmd_sweep_options options = {.memory_only = !others,
                                           .others_only = others,
                                           .runs = SWEEP_RUNS,
                                           .found = others ? stop_at_hang : stop_at,
                                           .context = &s};
        p->status = gmd_sweep(&trace, &r->runner, &options, &result, p->error);
        if (p->status == GMD_OK && result.case_fails) {
            stop_at(&s, &trace, &result.violation);
        }
    }
    gmd_trace_free(&trace);
    return s.is_clean && p->status == GMD_OK;
}

/* --- a clause ---------------------------------------------------------------------------- */

static bool is_term_clean(probing *p, gmd_clause clause)
{
    trial_runner r;
    open_runner(p, &r);
    bool clean = p->status == GMD_OK;
    for (size_t i = 0; clean && i < trial_count; i++) {
        clean = trials[i].clause != clause || is_trial_clean(p, &r, &trials[i]);
    }
    clean = clean && (clause != GMD_CLAUSE_FAILING_CALLS || is_sweep_clean(p, &r));
    close_runner(p, &r);
    return clean;
}

/* From the strictest term on; what the first one showed is why it is not that. False: each shows
 * something. */
static bool try_terms(probing *p, gmd_clause clause)
{
    const gmd_clause_row *row = &gmd_clause_rows[clause];
    bool clean = false;
    p->result->found[clause][0] = '\0';
    uint8_t term = 0;
    for (; !clean && term < GMD_TERMS_MAX && row->terms[term].name && p->status == GMD_OK; term++) {
        p->contract.terms[clause] = term;
        p->seen[0] = '\0';
        clean = is_term_clean(p, clause);
        if (!clean && !p->result->found[clause][0]) {
            snprintf(p->result->found[clause], GMD_PROBE_TEXT, "%s", p->seen);
        }
    }
    return clean;
}

/* What even the last term shows has another reason than the contract. */
static void try_clause(probing *p, gmd_clause clause)
{
    bool clean = try_terms(p, clause);
    while (!clean && p->status == GMD_OK && take_for_defect(p)) {
        clean = try_terms(p, clause);
    }
    if (!clean) {
        p->contract.terms[clause] = 0;
        p->result->is_open[clause] = true;
    }
}

/* --- the largest size -------------------------------------------------------------------- */

static bool is_size_clean(probing *p, trial_runner *r, uint64_t bytes)
{
    char text[200];
    gmd_trace trace;
    snprintf(text, sizeof text,
             "capacity 140GiB\nalloc a 1000 s1\nalloc b %" PRIu64 " s1\nfree b\nfree a\n", bytes);
    if (!parse(p, text, &trace)) {
        return false;
    }
    bool clean = is_clean(p, r, &trace);
    gmd_trace_free(&trace);
    return clean;
}

static void try_sizes(probing *p)
{
    /* Products of the second by 8 wrap to what is larger still. */
    static const uint64_t ends[] = {UINT64_MAX / 2 + 2,
                                    UINT64_C(0x9fffffffffffffff),
                                    UINT64_MAX - (64 * GMD_MIB),
                                    UINT64_MAX - (2 * GMD_MIB),
                                    UINT64_MAX - 4096,
                                    UINT64_MAX - 511,
                                    UINT64_MAX - 255,
                                    UINT64_MAX};
    trial_runner r;
    uint64_t good = GMD_MIB, bad = 0;
    open_runner(p, &r);
    p->seen[0] = '\0';
    for (int i = 21; i < 64 && !bad && p->status == GMD_OK; i++) {
        uint64_t bytes = UINT64_C(1) << i;
        bool clean = is_size_clean(p, &r, bytes);
        good = clean ? bytes : good;
        bad = clean ? 0 : bytes;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !bad && p->status == GMD_OK; i++) {
        bool clean = is_size_clean(p, &r, ends[i]);
        good = clean ? ends[i] : good;
        bad = clean ? 0 : ends[i];
    }
    char first[GMD_PROBE_TEXT];
    snprintf(first, sizeof first, "%s", p->seen);
    while (bad && bad - good > good / SIZE_PARTS && p->status == GMD_OK) {
        uint64_t middle = good + (bad - good) / 2;
        bool clean = is_size_clean(p, &r, middle);
        good = clean ? middle : good;
        bad = clean ? bad : middle;
    }
    close_runner(p, &r);
    if (bad) {
        p->contract.largest = good;
        snprintf(p->result->found[GMD_CLAUSE_LARGEST], GMD_PROBE_TEXT, "%s", first);
    }
}

/* --- promises ---------------------------------------------------------------------------- */

static bool are_random_clean(probing *p, trial_runner *r, const gmd_profile_space *space)
{
    bool clean = true;
    for (uint64_t i = 0; clean && i < RANDOM_TRIALS && p->status == GMD_OK; i++) {
        gmd_profile profile;
        gmd_trace trace;
        uint64_t seed = gmd_random_derive(p->given->seed, i);
        gmd_profile_draw(&profile, space, seed);
        profile.has_huge_sizes = false;
        gmd_trace_init(&trace);
        p->status = gmd_generate(&profile, space, seed, &trace, p->error);
        clean = p->status == GMD_OK && is_clean(p, r, &trace);
        gmd_trace_free(&trace);
    }
    return clean;
}

static void try_promise(probing *p, unsigned promise, const gmd_profile_space *space,
                        gmd_tried_promise *tried)
{
    trial_runner r;
    p->promises = promise;
    p->seen[0] = p->blind[0] = '\0';
    p->unseen = gmd_promise_oracle(promise);
    open_runner(p, &r);
    if (p->status == GMD_OK) { /* some oracles need second runs */
        p->status = gmd_runner_isolate(&r.runner, true, p->error);
    }
    bool clean = p->status == GMD_OK;
    for (size_t i = 0; clean && i < trial_count; i++) {
        bool is_short = trials[i].clause != GMD_CLAUSE_THREADS;
        clean = !is_short || is_trial_clean(p, &r, &trials[i]);
    }
    clean = clean && are_random_clean(p, &r, space);
    close_runner(p, &r);
    p->promises = 0;
    p->unseen = NULL;
    tried->fate = !clean ? GMD_PROMISE_BROKEN : p->blind[0] ? GMD_PROMISE_UNSEEN : GMD_PROMISE_KEPT;
    snprintf(tried->why_not, sizeof tried->why_not, "%s", clean ? p->blind : p->seen);
}

static void try_promises(probing *p)
{
    gmd_profile_space space = {.device_max = 1, .has_record_stream = true};
    char without[GMD_CONTRACT_WITHOUT], unknown[32];
    unsigned promise;
    uint32_t count = 0;
    space.has_one_thread = true;
    gmd_profile_leave_out(&space, "leave_error", unknown);
    gmd_profile_leave_out(&space, gmd_contract_without(&p->contract, without), unknown);
    for (uint32_t i = 0; count < GMD_PROBE_PROMISES - 1 && p->status == GMD_OK; i++) {
        const char *name = gmd_promise_at(i, &promise);
        if (!name) {
            break;
        }
        if (promise != GMD_PROMISE_THROWS) { /* that is a term of out_of_memory */
            gmd_tried_promise *tried = &p->result->promises[count++];
            tried->name = name;
            try_promise(p, promise, &space, tried);
        }
    }
}

/* --- all of it --------------------------------------------------------------------------- */

gmd_status gmd_contract_probe_run(const gmd_run_options *run, gmd_contract_probe *probe,
                                  gmd_error *error)
{
    static const gmd_clause order[] = {
        GMD_CLAUSE_OUT_OF_MEMORY, GMD_CLAUSE_LARGEST,       GMD_CLAUSE_POOL,
        GMD_CLAUSE_PRESSURE,      GMD_CLAUSE_ZERO_BYTES,    GMD_CLAUSE_STREAMS,
        GMD_CLAUSE_OTHER_STREAMS, GMD_CLAUSE_DEVICES,       GMD_CLAUSE_PENDING_ERRORS,
        GMD_CLAUSE_THREADS,       GMD_CLAUSE_FAILING_CALLS,
    };
    *probe = (gmd_contract_probe){.runs = 0};
    probing p = {.given = run, .result = probe, .error = error, .status = GMD_OK};
    gmd_contract_init(&p.contract);
    try_clause(
        &p, GMD_CLAUSE_ALIGNMENT); /* plain requests show it, too, and would take it for a defect */
    if (p.status == GMD_OK) {
        try_plain(&p);
    }
    for (size_t i = 0; i < sizeof order / sizeof *order && p.status == GMD_OK; i++) {
        if (order[i] == GMD_CLAUSE_LARGEST) {
            try_sizes(&p);
        } else {
            try_clause(&p, order[i]);
        }
    }
    if (p.status == GMD_OK) {
        try_promises(&p);
    }
    probe->contract = p.contract;
    gmd_known_free(&p.defects);
    return p.status;
}
