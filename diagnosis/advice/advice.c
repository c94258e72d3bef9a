/* advice.c - a snapshot, its plan, the settings that are tried, and what is reported of them. */
#include "gmd_advice.h"
#include "gmd_memory_bound.h"

#include "job_leaks.h"
#include "one_device.h"
#include "recorded_conf.h"
#include "setting_search.h"

#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_BYTES (140 * GMD_GIB) /* where nothing says how much there is */

typedef struct adviser {
    const gmd_advice_request *request;
    gmd_advice *advice;
    gmd_diagnosis *diagnosis; /* the advice's */
    gmd_snapshot view;        /* of the device that is reported */
    gmd_facts facts;
    gmd_truth truth; /* empty: the recorder left none, or it is of another device */
    job_plan plan;
    crew crew;
    char recorded[TRIAL_CONF];
    gmd_error *error;
} adviser;

/* --- the job
 * -------------------------------------------------------------------------------------- */

/* The line that is to be left out; the last colon stands before its number. */
static gmd_status read_line(const char *text, char *file, size_t size, job_change *change,
                            gmd_error *error)
{
    const char *colon = strrchr(text, ':');
    uint64_t line = 0;
    bool is_one = colon && colon > text && (size_t)(colon - text) < size &&
                  gmd_parse_u64(colon + 1, &line) && line > 0 && line <= UINT32_MAX;
    if (!is_one) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--without-line %.200s: expected a file and a line, such as train.py:42",
                        text);
    }
    snprintf(file, size, "%.*s", (int)(colon - text), text);
    change->file = file;
    change->line = (uint32_t)line;
    return GMD_OK;
}

/* The snapshot's diagnosis has the device with the highest peak first. */
static gmd_status diagnose(adviser *a)
{
    gmd_snapshot snapshot = {0};
    gmd_status status = gmd_snapshot_read(&snapshot, a->request->path, a->error);
    if (status == GMD_OK) {
        status = gmd_diagnosis_make(a->diagnosis, &snapshot, a->request->path, a->error);
    }
    if (status == GMD_OK && a->diagnosis->device_count) {
        a->advice->device_count = (uint32_t)a->diagnosis->device_count;
        a->advice->device = a->diagnosis->devices[0].facts.recording.device;
    }
    return status;
}

static gmd_status read_parts(adviser *a)
{
    const char *path = a->request->path;
    gmd_status status = diagnose(a);
    if (status == GMD_OK) {
        status =
            one_device_make(&a->view, &a->diagnosis->snapshot, a->advice->device, path, a->error);
    }
    if (status == GMD_OK) {
        status = gmd_facts_make(&a->facts, &a->view, 0, a->error);
    }
    return status;
}

static gmd_status read_job(adviser *a)
{
    gmd_memory_bound bound;
    gmd_memory_bound_begin(&bound, a->request->max_memory);
    return gmd_memory_bound_end(&bound, a->request->path, read_parts(a), a->error);
}

/* What lies beside the snapshot under the names of the recorder's files need not be one. */
static void read_truth(adviser *a)
{
    gmd_error error = {""};
    bool is_of_device = a->advice->device_count == 1 && a->advice->device == 0;
    if (is_of_device && gmd_truth_read_beside(a->request->path, &a->truth, &error) != GMD_OK) {
        gmd_truth_free(&a->truth);
        a->truth = (gmd_truth){0};
    }
}

static gmd_status make_plan(adviser *a)
{
    char file[1000];
    job_change change = {.scale = a->request->scale};
    job_leaks leaks;
    gmd_status status = a->request->without_line ? read_line(a->request->without_line, file,
                                                             sizeof file, &change, a->error)
                                                 : GMD_OK;
    read_truth(a);
    if (status == GMD_OK) {
        status = job_leaks_list(&leaks, a->diagnosis, &change, a->error);
    }
    if (status != GMD_OK) {
        return status;
    }
    a->advice->leaks = leaks.items;
    a->advice->leak_count = leaks.count;
    return job_plan_make(&a->plan, &a->facts, &a->truth, &change, a->request->path, a->error);
}

/* --- the memory that it has
 * ------------------------------------------------------------------------ */

/* A device on which the recorded reservations of addresses lie side by side. */
static uint64_t usual_capacity(const adviser *a)
{
    uint64_t recorded = a->plan.places.most_memory;
    uint64_t needed = gmd_min(a->plan.bounds.reserved, UINT64_C(1) << 40) * 2;
    bool is_as_recorded = recorded && recorded >= a->plan.bounds.reserved && !a->advice->is_changed;
    return is_as_recorded ? recorded : gmd_max(DEVICE_BYTES, needed);
}

/* What the recorded job had: where the limit is above what there can have been, the device was
 * full. */
static trial_memory recorded_memory(const adviser *a)
{
    uint64_t capacity = usual_capacity(a), limit = a->plan.limit_bytes;
    return (trial_memory){.capacity_bytes = capacity, .limit_bytes = limit <= capacity ? limit : 0};
}

static trial_memory choose_memory(adviser *a)
{
    const gmd_advice_request *r = a->request;
    gmd_advice *advice = a->advice;
    trial_memory memory = recorded_memory(a);
    if (r->capacity_bytes) {
        memory = (trial_memory){.capacity_bytes = r->capacity_bytes,
                                .limit_bytes = gmd_min(r->limit_bytes, r->capacity_bytes)};
    } else if (r->limit_bytes) {
        memory = (trial_memory){.capacity_bytes = gmd_max(usual_capacity(a), r->limit_bytes),
                                .limit_bytes = r->limit_bytes};
    }
    advice->memory_kind = r->limit_bytes       ? GMD_MEMORY_LIMIT
                          : r->capacity_bytes  ? GMD_MEMORY_CAPACITY
                          : memory.limit_bytes ? GMD_MEMORY_RECORDED
                                               : GMD_MEMORY_DEVICE;
    advice->memory_bytes = memory.limit_bytes ? memory.limit_bytes : memory.capacity_bytes;
    return memory;
}

/* The memory of the search. It has no part of the question but whether there is a limit, without
 * which no garbage is collected: what is found to be needed does not depend on what there is. */
static trial_memory memory_of_search(const adviser *a, bool has_limit)
{
    trial_memory memory = recorded_memory(a);
    uint64_t limit = memory.limit_bytes ? memory.limit_bytes : memory.capacity_bytes;
    memory.limit_bytes = has_limit ? limit : 0;
    return memory;
}

/* --- trials
 * ---------------------------------------------------------------------------------------- */

static unsigned count_processes(const adviser *a)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return a->request->processes ? a->request->processes : cores > 1 ? (unsigned)cores : 1;
}

/* Under the settings and the limit of the recorded job, the replay must be the recording. */
static gmd_status reproduce(adviser *a)
{
    const gmd_recording *r = &a->facts.recording;
    trial t = {.memory = recorded_memory(a)};
    memcpy(t.conf, a->recorded, sizeof t.conf);
    gmd_status status = crew_run(&a->crew, &t, 1, a->error);
    if (status != GMD_OK) {
        return status;
    }
    if (t.status == GMD_BAD_INPUT) { /* of another backend, or of a later PyTorch */
        snprintf(a->advice->unknown_conf, sizeof a->advice->unknown_conf, "%s", a->recorded);
        *a->recorded = '\0';
        return GMD_OK;
    }
    a->advice->is_reproduced = t.result.peak_reserved == r->peak.amount.reserved &&
                               t.result.peak_allocated == r->peak.amount.allocated &&
                               !t.result.newly_refused && !t.result.newly_served;
    return t.status == GMD_OK ? GMD_OK : gmd_fail(a->error, t.status, "%s", t.error);
}

static gmd_status try_settings(adviser *a, setting_search *search, const trial_memory *asked)
{
    const gmd_advice_request *r = a->request;
    const char *usual[] = {a->recorded, ""};
    gmd_status status = r->conf_count ? search_given(search, r->confs, r->conf_count, a->error)
                                      : search_given(search, usual, 2, a->error);
    if (status == GMD_OK && !r->conf_count) {
        status = search_all(search, a->error);
    }
    a->advice->tried = (uint32_t)search->count;
    a->crew.most_memory = gmd_max(a->crew.most_memory, asked->capacity_bytes);
    status = status == GMD_OK ? search_settle(search, asked, r->rows, a->error) : status;
    a->advice->replays = search->replays;
    return status;
}

/* --- what is reported -------------------------------------------------------------------- */

static gmd_setting_advice setting_advice(const adviser *a, const trial *t)
{
    const trial_result *r = &t->result;
    bool is_same_job = a->advice->is_reproduced && !a->advice->is_changed &&
                       !a->advice->begins_late && !a->advice->has_private_pools;
    gmd_setting_advice s = {.is_recorded =
                                strcmp(t->conf, a->recorded) == 0 && !*a->advice->unknown_conf,
                            .fits = r->refused == 0,
                            .exact = is_same_job && !r->newly_refused && !r->newly_served,
                            .peak_allocated = r->peak_allocated,
                            .peak_reserved = r->peak_reserved,
                            .retries = r->retries,
                            .ooms = r->refused,
                            .smallest_capacity = t->smallest,
                            .device_calls = r->device_calls,
                            .device_seconds = r->device_ns * 1e-9};
    snprintf(s.conf, sizeof s.conf, "%s", t->conf);
    return s;
}

/* The settings that the job has now, and keeps where no others are worth a change. */
static void prefer_no_change(gmd_advice *advice)
{
    const gmd_setting_advice *now = gmd_advice_baseline(advice);
    if (now && !gmd_is_worth_a_change(&advice->settings[0], now)) {
        const gmd_setting_advice kept = *now;
        size_t before = (size_t)(now - advice->settings);
        memmove(advice->settings + 1, advice->settings, before * sizeof kept);
        advice->settings[0] = kept;
    }
}

static gmd_status tell(adviser *a, const setting_search *search)
{
    gmd_advice *advice = a->advice;
    advice->settings = calloc(search->count + 1, sizeof *advice->settings);
    if (!advice->settings) {
        return gmd_fail(a->error, GMD_NO_MEMORY, "no host memory for settings");
    }
    for (size_t i = 0; i < search->count; i++) {
        advice->settings[advice->count++] = setting_advice(a, &search->items[i].trial);
    }
    prefer_no_change(advice);
    return GMD_OK;
}

static void tell_of_job(adviser *a)
{
    const gmd_recording *r = &a->facts.recording;
    gmd_advice *advice = a->advice;
    advice->requests = a->plan.steps.count;
    advice->events = r->event_count;
    advice->lower_bound = a->plan.bounds.reserved;
    advice->peak_live = a->plan.bounds.live;
    advice->recorded_peak_allocated = r->peak.amount.allocated;
    advice->recorded_peak_reserved = r->peak.amount.reserved;
    advice->recorded_ooms = r->oom_count;
    advice->begins_late = r->begins_late;
    advice->is_limit_inferred = a->plan.is_limit_inferred;
    advice->has_private_pools = a->plan.has_private_pools;
    advice->left_out = a->plan.left_out;
    advice->scaled = a->plan.scaled;
}

static gmd_status advise(adviser *a)
{
    gmd_status status = read_job(a);
    status = status == GMD_OK ? make_plan(a) : status;
    if (status != GMD_OK) {
        return status;
    }
    tell_of_job(a);
    const trial_memory asked = choose_memory(a);
    bool has_limit = asked.limit_bytes != 0;
    setting_search search = {.crew = &a->crew, .memory = memory_of_search(a, has_limit)};
    a->crew = (crew){.plan = &a->plan,
                     .lib_directory = a->request->lib_directory,
                     .processes = count_processes(a),
                     .has_limit = has_limit,
                     .most_memory = usual_capacity(a)};
    recorded_conf(&a->view, a->recorded);
    status = a->advice->is_changed ? GMD_OK : reproduce(a);
    status = status == GMD_OK ? try_settings(a, &search, &asked) : status;
    status = status == GMD_OK ? tell(a, &search) : status;
    search_free(&search);
    return status;
}

gmd_status gmd_advise(gmd_advice *advice, const gmd_advice_request *request, gmd_error *error)
{
    *advice = (gmd_advice){.name = request->path,
                           .is_changed = request->without_line || request->scale != 1};
    adviser a = {
        .request = request, .advice = advice, .diagnosis = &advice->diagnosis, .error = error};
    gmd_status status = advise(&a);
    job_plan_free(&a.plan);
    gmd_truth_free(&a.truth);
    gmd_facts_free(&a.facts);
    one_device_free(&a.view);
    if (!request->keeps_diagnosis) {
        gmd_diagnosis_free(&advice->diagnosis);
    }
    if (status != GMD_OK) {
        gmd_advice_free(advice);
    }
    return status;
}

const gmd_setting_advice *gmd_advice_baseline(const gmd_advice *advice)
{
    const gmd_setting_advice *defaults = NULL;
    for (size_t i = 0; i < advice->count; i++) {
        const gmd_setting_advice *s = &advice->settings[i];
        if (s->is_recorded) {
            return s;
        }
        defaults = *s->conf ? defaults : s;
    }
    return *advice->unknown_conf ? defaults : NULL;
}

bool gmd_needs_the_same(const gmd_setting_advice *x, const gmd_setting_advice *y)
{
    uint64_t more = gmd_max(x->smallest_capacity, y->smallest_capacity);
    uint64_t less = gmd_min(x->smallest_capacity, y->smallest_capacity);
    return more - less <= more / 1000;
}

bool gmd_is_worth_a_change(const gmd_setting_advice *s, const gmd_setting_advice *now)
{
    bool both_known = s->smallest_capacity && now->smallest_capacity;
    if (s->fits != now->fits) {
        return s->fits;
    }
    if (both_known) {
        return s->smallest_capacity < now->smallest_capacity && !gmd_needs_the_same(s, now);
    }
    return s->smallest_capacity || (!now->smallest_capacity && s->ooms < now->ooms);
}

void gmd_advice_free(gmd_advice *advice)
{
    free(advice->settings);
    free(advice->leaks);
    gmd_diagnosis_free(&advice->diagnosis);
    *advice = (gmd_advice){0};
}
