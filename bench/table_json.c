/* table_json.c - the comparison for programs. */
#include "gmd_bench.h"

#include "gmd_json.h"
#include "gmd_report_text.h"

static void put_interval(gmd_json *json, const char *key, const gmd_bench_interval *i)
{
    gmd_json_array(json, key);
    gmd_json_double(json, NULL, i->low);
    gmd_json_double(json, NULL, i->high);
    gmd_json_end(json);
}

static void put_result(gmd_json *json, const gmd_bench_report *report, const gmd_bench_row *row,
                       uint32_t allocator)
{
    const gmd_bench_result *r = &row->results[allocator];
    gmd_json_row(json, NULL);
    gmd_json_string(json, "name", row->name);
    gmd_json_string(json, "allocator", report->options->allocators[allocator]);
    if (r->state != GMD_BENCH_MEASURED) {
        gmd_json_null(json, "ns_per_op");
        gmd_json_string(json, r->state == GMD_BENCH_SKIPPED ? "skipped" : "failed", r->reason);
        gmd_json_end(json);
        return;
    }
    gmd_json_double(json, "ns_per_op", r->ns_per_op.median);
    put_interval(json, "interval", &r->ns_per_op);
    gmd_json_u64(json, "rounds", r->rounds);
    gmd_json_u64(json, "disturbed_rounds", r->disturbed);
    if (row->has_floor) {
        gmd_json_double(json, "floor_ns_per_op", row->floor_ns);
    }
    if (r->has_ratio) {
        gmd_json_double(json, "ratio", r->ratio.median);
        put_interval(json, "ratio_interval", &r->ratio);
    }
    gmd_json_end(json);
}

static void put_machine(gmd_json *json, const gmd_bench_machine *m)
{
    gmd_json_object(json, "machine");
    gmd_json_string(json, "processor", m->processor);
    gmd_json_string(json, "governor", m->governor);
    gmd_json_array(json, "cores");
    for (uint32_t i = 0; i < m->core_count; i++) {
        gmd_json_u64(json, NULL, (uint64_t)m->cores[i]);
    }
    gmd_json_end(json);
    gmd_json_double(json, "load_before", m->load_before);
    gmd_json_double(json, "load_after", m->load_after);
    gmd_json_end(json);
}

gmd_status gmd_bench_write_json(const gmd_bench_report *report, const char *version, FILE *out,
                                gmd_error *error)
{
    const gmd_bench_options *o = report->options;
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, "gmd", version);
    gmd_json_string(&json, "command", "bench");
    gmd_json_string(&json, "allocator", o->allocators[0]);
    gmd_json_string(&json, "device", o->device == GMD_DEVICE_SIM ? "sim" : "cuda");
    gmd_json_u64(&json, "seed", o->seed);
    gmd_json_string(&json, "verdict", gmd_bench_failures(report) ? "fail" : "pass");
    gmd_json_double(&json, "seconds", report->seconds);
    gmd_json_array(&json, "results");
    for (size_t i = 0; i < report->row_count; i++) {
        for (uint32_t n = 0; n < o->allocator_count; n++) {
            put_result(&json, report, &report->rows[i], n);
        }
    }
    gmd_json_end(&json);
    put_machine(&json, &report->machine);
    gmd_json_array(&json, "notes");
    for (uint32_t i = 0; i < report->note_count; i++) {
        gmd_json_string(&json, NULL, report->notes[i]);
    }
    gmd_json_end(&json);
    gmd_json_end(&json);
    gmd_json_finish(&json);
    return gmd_finish_writing(out, "the JSON report", error);
}
