#include "campaign_tables.h"

#include "table.h"

void table_of_campaign(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {{"Time", "ns"},        {"Sequences", "count"},
                                        {"Requests", "count"}, {"Features", "count"},
                                        {"Corpus", "count"},   {"Findings", "count"}};
    if (!report->course_length) {
        return;
    }
    gmd_json *json =
        table_begin(to, "campaign", "The campaign over time", input, TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->course_length; i++) {
        const gmd_campaign_moment *m = &report->course[i];
        table_row(json);
        table_seconds(json, m->seconds);
        gmd_json_u64(json, NULL, m->runs);
        gmd_json_u64(json, NULL, m->requests);
        gmd_json_u64(json, NULL, m->features);
        gmd_json_u64(json, NULL, m->inputs);
        gmd_json_u64(json, NULL, m->findings);
        table_row_end(json);
    }
    table_end(json);
}

void table_of_coverage(document *to, const gmd_report *report, uint32_t input)
{
    static const table_column list[] = {{"What", "text"}, {"Seen", "count"}};
    if (!report->coverage_count) {
        return;
    }
    gmd_json *json = table_begin(to, "coverage", "Coverage of the allocator's states", input,
                                 TABLE_COLUMNS(list));
    for (size_t i = 0; i < report->coverage_count; i++) {
        table_row(json);
        gmd_json_string(json, NULL, report->coverage[i].what);
        gmd_json_u64(json, NULL, report->coverage[i].seen);
        table_row_end(json);
    }
    table_end(json);
}
