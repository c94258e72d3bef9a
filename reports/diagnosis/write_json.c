/* write_json.c - a diagnosis for programs: docs/schema/diagnose.schema.json. */
#include "gmd_diagnosis_report.h"

#include "peaks.h"
#include "place_json.h"

#include "gmd_json.h"
#include "gmd_report_text.h"
#include "gmd_unused.h"

#include <stdlib.h>

/* Moments are events' places in the file's merged order, from 0; -1: before the first. */
static void put_event(gmd_json *json, const char *key, uint32_t moment)
{
    if (moment == GMD_NEVER) {
        gmd_json_null(json, key);
    } else {
        gmd_json_i64(json, key, (int64_t)moment - 1);
    }
}

static void put_finding(gmd_json *json, const gmd_ranked_finding *ranked)
{
    const gmd_facts *facts = &ranked->device->facts;
    const gmd_job_finding *finding = ranked->finding;
    gmd_json_object(json, NULL);
    gmd_json_string(json, "class", gmd_finding_class_name(finding->class));
    gmd_json_u64(json, "device", facts->recording.device);
    gmd_json_double(json, "confidence", finding->confidence);
    gmd_json_u64(json, "bytes", finding->bytes);
    gmd_json_u64(json, "bytes_per_iteration", finding->bytes_per_iteration);
    gmd_json_array(json, "where");
    for (size_t i = 0; i < finding->where_count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, &facts->places, finding->where[i].frame);
        gmd_json_u64(json, "bytes", finding->where[i].bytes);
        gmd_json_bool(json, "inferred", finding->where[i].is_inferred);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    gmd_json_string(json, "evidence", finding->evidence);
    gmd_json_string(json, "fix", finding->fix);
    gmd_json_end(json);
}

static gmd_holder_facts holder_facts(const gmd_facts *facts)
{
    return (gmd_holder_facts){&facts->recording, &facts->places, &facts->iterations,
                              &facts->categories};
}

static gmd_status put_lines(gmd_json *json, const gmd_facts *facts, uint32_t moment,
                            gmd_error *error)
{
    const gmd_holder_facts of = holder_facts(facts);
    gmd_holders holders;
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_LINE, moment, error);
    gmd_json_array(json, "holders");
    for (size_t i = 0; status == GMD_OK && i < holders.count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, &facts->places, (uint32_t)holders.items[i].key);
        gmd_json_u64(json, "bytes", holders.items[i].bytes);
        gmd_json_u64(json, "blocks", holders.items[i].blocks);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    if (status == GMD_OK) {
        gmd_holders_free(&holders);
    }
    return status;
}

static void put_key(gmd_json *json, const gmd_facts *facts, gmd_grouping grouping, uint64_t key)
{
    if (grouping == GMD_BY_STACK) {
        place_json_put_frames(json, &facts->places, (uint32_t)key);
    } else if (grouping == GMD_BY_STREAM) {
        gmd_json_u64(json, "stream", key);
    } else if (key == GMD_SET_UP) {
        gmd_json_null(json, "iterations");
    } else {
        gmd_json_u64(json, "iterations", key);
    }
}

typedef struct grouped {
    const char *name; /* of the array */
    gmd_grouping grouping;
} grouped;

/* Those that hold most: there may be thousands of stacks. */
static gmd_status put_group(gmd_json *json, const gmd_facts *facts, grouped by, uint32_t moment,
                            gmd_error *error)
{
    enum { MOST = 32 };
    const gmd_holder_facts of = holder_facts(facts);
    gmd_holders holders;
    gmd_status status = gmd_holders_find(&holders, &of, by.grouping, moment, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_json_array(json, by.name);
    for (size_t i = 0; i < holders.count && i < MOST; i++) {
        gmd_json_object(json, NULL);
        gmd_json_u64(json, "bytes", holders.items[i].bytes);
        gmd_json_u64(json, "blocks", holders.items[i].blocks);
        put_key(json, facts, by.grouping, holders.items[i].key);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    gmd_holders_free(&holders);
    return GMD_OK;
}

static gmd_status put_groups(gmd_json *json, const gmd_facts *facts, uint32_t moment,
                             gmd_error *error)
{
    static const grouped groups[] = {
        {"stacks", GMD_BY_STACK}, {"ages", GMD_BY_AGE}, {"streams", GMD_BY_STREAM}};
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < sizeof groups / sizeof *groups; i++) {
        status = put_group(json, facts, groups[i], moment, error);
    }
    return status;
}

static gmd_status put_categories(gmd_json *json, const gmd_facts *facts, uint32_t moment,
                                 gmd_error *error)
{
    const gmd_holder_facts of = holder_facts(facts);
    gmd_holders holders;
    gmd_status status = gmd_holders_find(&holders, &of, GMD_BY_CATEGORY, moment, error);
    gmd_json_row(json, "categories");
    for (size_t i = 0; status == GMD_OK && i < holders.count; i++) {
        gmd_json_u64(json, gmd_category_name((gmd_category)holders.items[i].key),
                     holders.items[i].bytes);
    }
    gmd_json_end(json);
    if (status == GMD_OK) {
        gmd_holders_free(&holders);
    }
    return status;
}

typedef struct moment_key {
    const char *key; /* "peak" */
    const gmd_amount *amount;
    uint32_t moment;
    bool is_lower_bound;
} moment_key;

static gmd_status put_moment(gmd_json *json, const gmd_facts *facts, const moment_key *m,
                             gmd_error *error)
{
    const gmd_amount *amount = m->amount;
    gmd_json_object(json, m->key);
    gmd_json_u64(json, "allocated", amount->allocated);
    gmd_json_u64(json, "active", amount->active);
    if (facts->snapshot->recorder == GMD_RECORDER_PYTORCH) {
        gmd_json_u64(json, "reserved", amount->reserved);
    } else {
        gmd_json_null(json, "reserved");
    }
    put_event(json, "event", m->moment);
    gmd_json_bool(json, "lower_bound", m->is_lower_bound);
    gmd_status status = put_categories(json, facts, m->moment, error);
    if (status == GMD_OK) {
        status = put_lines(json, facts, m->moment, error);
    }
    if (status == GMD_OK) {
        status = put_groups(json, facts, m->moment, error);
    }
    gmd_json_end(json);
    return status;
}

static const char *source_name(gmd_iteration_source source)
{
    static const char *const names[] = {[GMD_ITERATIONS_UNKNOWN] = "unknown",
                                        [GMD_ITERATIONS_ANNOTATED] = "annotations",
                                        [GMD_ITERATIONS_FROM_EVENTS] = "events"};
    return names[source];
}

static void put_iterations(gmd_json *json, const gmd_facts *facts)
{
    const gmd_iterations *it = &facts->iterations;
    gmd_json_row(json, "iterations");
    gmd_json_u64(json, "count", gmd_iterations_shown(it));
    gmd_json_u64(json, "warm_up", it->warm_up);
    gmd_json_u64(json, "period_events", it->period_events);
    gmd_json_string(json, "source", source_name(it->source));
    gmd_json_end(json);
}

/* Only the causes that have bytes. */
static void put_free(gmd_json *json, const char *key, const gmd_free_memory *free_memory)
{
    gmd_json_row(json, key);
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (free_memory->by_cause[cause]) {
            gmd_json_u64(json, gmd_free_cause_name((gmd_free_cause)cause),
                         free_memory->by_cause[cause]);
        }
    }
    gmd_json_end(json);
}

static void put_keepers(gmd_json *json, const gmd_facts *facts, const gmd_free_memory *free_memory)
{
    gmd_json_array(json, "keepers");
    for (size_t i = 0; i < free_memory->keeper_count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, &facts->places, free_memory->keepers[i].frame);
        gmd_json_u64(json, "bytes", free_memory->keepers[i].bytes);
        gmd_json_u64(json, "blocks", free_memory->keepers[i].blocks);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void put_known(gmd_json *json, const char *key, uint64_t bytes)
{
    if (bytes == GMD_NOT_KNOWN) {
        gmd_json_null(json, key);
    } else {
        gmd_json_u64(json, key, bytes);
    }
}

static gmd_status put_oom(gmd_json *json, const gmd_facts *facts, const gmd_oom *oom,
                          gmd_error *error)
{
    gmd_json_object(json, NULL);
    put_event(json, "event", oom->moment);
    gmd_json_u64(json, "requested", oom->requested);
    gmd_json_string(json, "cause", gmd_oom_cause_name(oom->cause));
    gmd_json_string(json, "outcome", gmd_oom_outcome_name(oom->outcome));
    place_json_put(json, &facts->places, gmd_places_frame(&facts->places, oom->origin));
    gmd_json_u64(json, "stream", oom->stream);
    put_known(json, "device_free", oom->device_free);
    put_known(json, "beside_pytorch", oom->beside);
    gmd_json_u64(json, "allocated", oom->free.amount.allocated);
    gmd_json_u64(json, "active", oom->free.amount.active);
    gmd_json_u64(json, "reserved", oom->free.amount.reserved);
    gmd_json_bool(json, "lower_bound", gmd_is_lower_bound(&facts->recording, oom->moment));
    gmd_json_u64(json, "largest_servable", oom->largest);
    gmd_json_u64(json, "asked_of_device", oom->needed);
    gmd_json_u64(json, "missing", oom->missing);
    gmd_json_u64(json, "leaked", oom->leaked);
    gmd_json_u64(json, "repeats", oom->repeats);
    gmd_json_string(json, "change", oom->change);
    put_free(json, "free", &oom->free);
    put_keepers(json, facts, &oom->free);
    gmd_status status = put_categories(json, facts, oom->moment, error);
    if (status == GMD_OK) {
        status = put_lines(json, facts, oom->moment, error);
    }
    gmd_json_end(json);
    return status;
}

static gmd_status put_ooms(gmd_json *json, const gmd_device_diagnosis *device, gmd_error *error)
{
    gmd_status status = GMD_OK;
    gmd_json_array(json, "ooms");
    for (size_t i = 0; status == GMD_OK && i < device->ooms.count; i++) {
        status = put_oom(json, &device->facts, &device->ooms.items[i], error);
    }
    gmd_json_end(json);
    return status;
}

/* What the last of it was taken for. */
static void put_taken_for(gmd_json *json, const gmd_facts *facts, const gmd_unused *unused)
{
    if (!unused->has_request) {
        gmd_json_null(json, "taken_for");
        return;
    }
    gmd_json_object(json, "taken_for");
    gmd_json_u64(json, "requested", unused->requested);
    place_json_put(json, &facts->places, gmd_places_frame(&facts->places, unused->origin));
    gmd_json_u64(json, "stream", unused->stream);
    put_free(json, "free", &unused->refused);
    gmd_json_end(json);
}

/* What is reserved and not allocated where reserved memory is most. */
static gmd_status put_unused(gmd_json *json, const gmd_facts *facts, gmd_error *error)
{
    gmd_unused unused;
    gmd_status status = gmd_unused_find(&unused, facts, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_json_object(json, "reserved_not_allocated");
    put_event(json, "event", facts->recording.peak.reserved_at);
    put_free(json, "free", &unused.free);
    gmd_json_u64(json, "rounding", unused.free.rounding);
    put_keepers(json, facts, &unused.free);
    put_taken_for(json, facts, &unused);
    gmd_json_end(json);
    gmd_unused_release(&unused);
    return GMD_OK;
}

/* What holds for the device whose peak is highest is written at the top, too; of several snapshots,
 * what holds for that whose peak is highest. */
static gmd_status put_device(gmd_json *json, const gmd_device_diagnosis *device, gmd_error *error)
{
    const gmd_facts *facts = &device->facts;
    const gmd_recording *r = &facts->recording;
    const moment_key peak = {"peak", &r->peak.amount, r->peak.allocated_at,
                             gmd_is_peak_lower_bound(r)};
    const moment_key end = {"end", &r->at_end, r->last, gmd_is_lower_bound(r, r->last)};
    gmd_json_u64(json, "device_number", r->device);
    gmd_status status = put_moment(json, facts, &peak, error);
    if (status == GMD_OK) {
        status = put_moment(json, facts, &end, error);
    }
    if (status == GMD_OK) {
        status = put_unused(json, facts, error);
    }
    if (status == GMD_OK) {
        status = put_ooms(json, device, error);
    }
    put_iterations(json, facts);
    gmd_json_bool(json, "enough", gmd_can_tell_leak(facts));
    gmd_json_bool(json, "complete", gmd_is_complete(r));
    gmd_json_bool(json, "begins_late", r->begins_late);
    gmd_json_bool(json, "ends_early", r->ends_early);
    gmd_json_u64(json, "oom_count", r->oom_count);
    return status;
}

static gmd_status put_devices(gmd_json *json, const gmd_diagnosis *d, gmd_error *error)
{
    gmd_status status = GMD_OK;
    gmd_json_array(json, "devices");
    for (size_t i = 0; status == GMD_OK && i < d->device_count; i++) {
        gmd_json_object(json, NULL);
        status = put_device(json, &d->devices[i], error);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    return status;
}

static gmd_status put_diagnosis(gmd_json *json, const gmd_diagnosis *diagnosis, gmd_error *error)
{
    gmd_status status = GMD_OK;
    gmd_json_string(json, "snapshot", diagnosis->name);
    gmd_json_string(json, "recorder", gmd_recorder_name(diagnosis->snapshot.recorder));
    gmd_json_u64(json, "events", diagnosis->snapshot.event_count);
    gmd_json_array(json, "findings");
    for (size_t i = 0; i < diagnosis->finding_count; i++) {
        put_finding(json, &diagnosis->findings[i]);
    }
    gmd_json_end(json);
    if (diagnosis->device_count) {
        status = put_device(json, &diagnosis->devices[0], error);
    }
    if (status == GMD_OK && diagnosis->device_count > 1) {
        status = put_devices(json, diagnosis, error);
    }
    return status;
}

/* --- several snapshots ----------------------------------------------------------------------- */

static gmd_status put_snapshots(gmd_json *json, const gmd_diagnosis *diagnoses, size_t count,
                                gmd_error *error)
{
    gmd_status status = GMD_OK;
    gmd_json_array(json, "snapshots");
    for (size_t i = 0; status == GMD_OK && i < count; i++) {
        gmd_json_object(json, NULL);
        status = put_diagnosis(json, &diagnoses[i], error);
        gmd_json_end(json);
    }
    gmd_json_end(json);
    return status;
}

static void put_differences(gmd_json *json, const gmd_comparison *lines)
{
    gmd_json_array(json, "differences");
    for (size_t i = 0; i < lines->row_count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, lines->rows[i].named_by, (uint32_t)lines->rows[i].key);
        gmd_json_array(json, "bytes");
        for (size_t k = 0; k < lines->snapshot_count; k++) {
            gmd_json_u64(json, NULL, lines->rows[i].bytes[k]);
        }
        gmd_json_end(json);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

gmd_status gmd_diagnosis_write_json(const gmd_diagnosis *diagnoses, size_t count,
                                    const char *version, FILE *out, gmd_error *error)
{
    gmd_json json;
    gmd_comparison lines = {0};
    size_t findings = 0;
    for (size_t i = 0; i < count; i++) {
        findings += diagnoses[i].finding_count;
    }
    gmd_status status = count > 1 ? peaks_compare(&lines, diagnoses, count, error) : GMD_OK;
    if (status != GMD_OK) {
        return status;
    }
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, "gmd", version);
    gmd_json_string(&json, "command", "diagnose");
    gmd_json_string(&json, "verdict", findings ? "fail" : "pass");
    status = put_diagnosis(&json, &diagnoses[peaks_highest(diagnoses, count)], error);
    if (status == GMD_OK && count > 1) {
        status = put_snapshots(&json, diagnoses, count, error);
        put_differences(&json, &lines);
    }
    gmd_json_end(&json);
    gmd_json_finish(&json);
    gmd_comparison_free(&lines);
    return status == GMD_OK ? gmd_finish_writing(out, "the JSON report", error) : status;
}
