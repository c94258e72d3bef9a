/* write_advice_json.c - advice for programs: docs/schema/advise.schema.json. */
#include "gmd_advice_report.h"

#include "gmd_job_findings.h"
#include "gmd_json.h"
#include "gmd_report_text.h"

static const char *memory_kind_name(const gmd_advice *a)
{
    static const char *const names[] = {[GMD_MEMORY_DEVICE] = "device",
                                        [GMD_MEMORY_RECORDED] = "recorded_limit",
                                        [GMD_MEMORY_LIMIT] = "limit",
                                        [GMD_MEMORY_CAPACITY] = "capacity"};
    return a->memory_kind == GMD_MEMORY_RECORDED && a->is_limit_inferred ? "inferred_limit"
                                                                         : names[a->memory_kind];
}

static void put_setting(gmd_json *json, const gmd_setting_advice *s)
{
    gmd_json_object(json, NULL);
    gmd_json_string(json, "conf", s->conf);
    gmd_json_bool(json, "recorded", s->is_recorded);
    gmd_json_bool(json, "fits", s->fits);
    gmd_json_u64(json, "peak_reserved", s->peak_reserved);
    gmd_json_u64(json, "peak_allocated", s->peak_allocated);
    gmd_json_u64(json, "retries", s->retries);
    gmd_json_u64(json, "ooms", s->ooms);
    if (s->smallest_capacity) {
        gmd_json_u64(json, "smallest_capacity", s->smallest_capacity);
    } else {
        gmd_json_null(json, "smallest_capacity");
    }
    gmd_json_bool(json, "exact", s->exact);
    gmd_json_u64(json, "device_calls", s->device_calls);
    gmd_json_double(json, "device_seconds", s->device_seconds);
    gmd_json_end(json);
}

static void put_recorded(gmd_json *json, const gmd_advice *a)
{
    gmd_json_row(json, "recorded");
    gmd_json_u64(json, "peak_allocated", a->recorded_peak_allocated);
    gmd_json_u64(json, "peak_reserved", a->recorded_peak_reserved);
    gmd_json_u64(json, "ooms", a->recorded_ooms);
    gmd_json_end(json);
}

static void put_leak(gmd_json *json, const gmd_advised_leak *leak)
{
    gmd_json_row(json, NULL);
    gmd_json_string(json, "class", gmd_finding_class_name(leak->class));
    gmd_json_u64(json, "bytes", leak->bytes);
    gmd_json_u64(json, "bytes_per_iteration", leak->bytes_per_iteration);
    if (*leak->file) {
        gmd_json_string(json, "file", leak->file);
        gmd_json_u64(json, "line", leak->line);
        gmd_json_bool(json, "inferred", leak->is_line_inferred);
    }
    gmd_json_end(json);
}

static void put_leaks(gmd_json *json, const gmd_advice *a)
{
    gmd_json_array(json, "leaks");
    for (size_t i = 0; i < a->leak_count; i++) {
        put_leak(json, &a->leaks[i]);
    }
    gmd_json_end(json);
}

static void put_changes(gmd_json *json, const gmd_advice *a)
{
    gmd_json_row(json, "changes");
    gmd_json_u64(json, "requests_left_out", a->left_out);
    gmd_json_u64(json, "requests_scaled", a->scaled);
    gmd_json_end(json);
}

gmd_status gmd_advice_write_json(const gmd_advice *a, const char *version, FILE *out,
                                 gmd_error *error)
{
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, "gmd", version);
    gmd_json_string(&json, "command", "advise");
    gmd_json_string(&json, "snapshot", a->name);
    gmd_json_string(&json, "verdict", gmd_advice_fits(a) ? "pass" : "fail");
    gmd_json_u64(&json, "device_number", a->device);
    gmd_json_u64(&json, "requests", a->requests);
    gmd_json_u64(&json, "memory", a->memory_bytes);
    gmd_json_string(&json, "memory_is", memory_kind_name(a));
    gmd_json_u64(&json, "lower_bound", a->lower_bound);
    gmd_json_u64(&json, "peak_live", a->peak_live);
    put_leaks(&json, a);
    put_recorded(&json, a);
    gmd_json_bool(&json, "reproduced", a->is_reproduced);
    gmd_json_bool(&json, "begins_late", a->begins_late);
    put_changes(&json, a);
    gmd_json_u64(&json, "tried", a->tried);
    gmd_json_u64(&json, "replays", a->replays);
    gmd_json_array(&json, "settings");
    for (size_t i = 0; i < a->count; i++) {
        put_setting(&json, &a->settings[i]);
    }
    gmd_json_end(&json);
    gmd_json_end(&json);
    gmd_json_finish(&json);
    return gmd_finish_writing(out, "the JSON report", error);
}
