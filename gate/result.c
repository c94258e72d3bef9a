#include "gmd_gate_result.h"

#include <stdlib.h>
#include <string.h>

gmd_verdict gmd_gate_part_verdict(const gmd_gate_part *part)
{
    for (size_t i = 0; i < part->item_count; i++) {
        if (part->items[i].fate == GMD_GATE_FAILED) {
            return GMD_FAIL;
        }
    }
    return GMD_PASS;
}

gmd_verdict gmd_gate_verdict(const gmd_gate_result *result)
{
    return result->finding_count ? GMD_FAIL : GMD_PASS;
}

uint64_t gmd_gate_part_runs(const gmd_gate_part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].runs;
    }
    return sum;
}

uint64_t gmd_gate_part_requests(const gmd_gate_part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].requests;
    }
    return sum;
}

double gmd_gate_part_seconds(const gmd_gate_part *part)
{
    double sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].seconds;
    }
    return sum;
}

size_t gmd_gate_part_skipped(const gmd_gate_part *part)
{
    size_t sum = 0;
    for (size_t i = 0; i < part->item_count; i++) {
        sum += part->items[i].fate == GMD_GATE_SKIPPED;
    }
    return sum;
}

size_t gmd_gate_part_findings(const gmd_gate_result *result, const gmd_gate_part *part)
{
    size_t sum = 0;
    for (size_t i = 0; i < result->finding_count; i++) {
        sum += strcmp(result->findings[i].part, part->name) == 0;
    }
    return sum;
}

void gmd_gate_result_free(gmd_gate_result *result)
{
    for (size_t i = 0; i < result->part_count; i++) {
        free(result->parts[i].items);
    }
    free(result->parts);
    free(result->findings);
    *result = (gmd_gate_result){0};
}
