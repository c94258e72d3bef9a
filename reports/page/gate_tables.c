#include "run_tables.h"
#include "table.h"

static void put_parts(document *to, const gmd_gate_result *gate, uint32_t input)
{
    static const table_column list[] = {
        {"Part", "text"},     {"Category", "text"}, {"What", "text"},      {"Verdict", "text"},
        {"Items", "count"},   {"Runs", "count"},    {"Requests", "count"}, {"Findings", "count"},
        {"Skipped", "count"}, {"Time", "ns"}};
    gmd_json *json = table_begin(to, "parts", "Parts of the gate", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        table_row(json);
        gmd_json_string(json, NULL, p->name);
        gmd_json_string(json, NULL, p->category);
        gmd_json_string(json, NULL, p->was_run ? p->what : p->reason);
        gmd_json_string(json, NULL,
                        p->was_run ? gmd_verdict_name(gmd_gate_part_verdict(p)) : "not run");
        gmd_json_u64(json, NULL, p->item_count - gmd_gate_part_skipped(p));
        gmd_json_u64(json, NULL, gmd_gate_part_runs(p));
        gmd_json_u64(json, NULL, gmd_gate_part_requests(p));
        gmd_json_u64(json, NULL, gmd_gate_part_findings(gate, p));
        gmd_json_u64(json, NULL, gmd_gate_part_skipped(p));
        table_seconds(json, gmd_gate_part_seconds(p));
        table_row_end(json);
    }
    table_end(json);
}

static const char *fate_of(const gmd_gate_item *item)
{
    return item->fate == GMD_GATE_FAILED    ? "fail"
           : item->fate == GMD_GATE_SKIPPED ? "skipped"
                                            : "pass";
}

static void put_items(document *to, const gmd_gate_result *gate, uint32_t input)
{
    static const table_column list[] = {{"Part", "text"},      {"Item", "text"},
                                        {"Verdict", "text"},   {"Runs", "count"},
                                        {"Requests", "count"}, {"With a finding", "count"},
                                        {"Time", "ns"},        {"Note", "text"}};
    gmd_json *json = table_begin(to, "items", "Items of the gate", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        for (size_t k = 0; k < p->item_count; k++) {
            const gmd_gate_item *item = &p->items[k];
            table_row(json);
            gmd_json_string(json, NULL, p->name);
            gmd_json_string(json, NULL, item->name);
            gmd_json_string(json, NULL, fate_of(item));
            gmd_json_u64(json, NULL, item->runs);
            gmd_json_u64(json, NULL, item->requests);
            gmd_json_u64(json, NULL, item->hits);
            table_seconds(json, item->seconds);
            gmd_json_string(json, NULL, item->detail);
            table_row_end(json);
        }
    }
    table_end(json);
}

static const char *change_of(gmd_gate_change change)
{
    static const char *const names[] = {[GMD_GATE_UNJUDGED] = "not judged",
                                        [GMD_GATE_SAME] = "same",
                                        [GMD_GATE_BETTER] = "better",
                                        [GMD_GATE_WORSE] = "worse",
                                        [GMD_GATE_LOST] = "lost"};
    return names[change];
}

static void put_number(gmd_json *json, bool is_known, double value)
{
    if (is_known) {
        gmd_json_exact(json, NULL, value);
    } else {
        gmd_json_null(json, NULL);
    }
}

static void put_figures(document *to, const gmd_gate_result *gate, uint32_t input)
{
    static const table_column list[] = {
        {"Category", "text"}, {"Item", "text"},    {"Figure", "text"}, {"Unit", "text"},
        {"Now", "ratio"},     {"Low", "ratio"},    {"High", "ratio"},  {"Before", "ratio"},
        {"Change", "text"},   {"Excess", "ratio"}, {"Note", "text"}};
    gmd_json *json =
        table_begin(to, "figures", "Figures and the baseline", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < gate->figure_count; i++) {
        const gmd_gate_figure *f = &gate->figures[i];
        bool has_before = f->change != GMD_GATE_UNJUDGED, has_now = f->change != GMD_GATE_LOST;
        table_row(json);
        gmd_json_string(json, NULL, f->category);
        gmd_json_string(json, NULL, f->item);
        gmd_json_string(json, NULL, f->name);
        gmd_json_string(json, NULL, f->unit);
        put_number(json, has_now, f->now.value);
        put_number(json, has_now, f->now.low);
        put_number(json, has_now, f->now.high);
        put_number(json, has_before, f->before.value);
        gmd_json_string(json, NULL, change_of(f->change));
        put_number(json, has_before && has_now, f->excess);
        gmd_json_string(json, NULL, f->detail);
        table_row_end(json);
    }
    table_end(json);
}

void tables_of_gate(document *to, const gmd_gate_result *gate, uint32_t input)
{
    put_parts(to, gate, input);
    put_items(to, gate, input);
    if (gate->figure_count) {
        put_figures(to, gate, input);
    }
}
