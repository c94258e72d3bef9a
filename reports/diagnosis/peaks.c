#include "peaks.h"

uint64_t peaks_bytes(const gmd_diagnosis *diagnosis)
{
    return diagnosis->device_count ? diagnosis->devices[0].facts.recording.peak.amount.allocated
                                   : 0;
}

size_t peaks_highest(const gmd_diagnosis *diagnoses, size_t count)
{
    size_t highest = 0;
    for (size_t i = 1; i < count; i++) {
        highest = peaks_bytes(&diagnoses[i]) > peaks_bytes(&diagnoses[highest]) ? i : highest;
    }
    return highest;
}

gmd_status peaks_compare(gmd_comparison *lines, const gmd_diagnosis *diagnoses, size_t count,
                         gmd_error *error)
{
    const gmd_facts *facts[GMD_COMPARED_MAX];
    uint32_t moments[GMD_COMPARED_MAX];
    if (count > GMD_COMPARED_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "expected at most %d snapshots, found %zu",
                        GMD_COMPARED_MAX, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (diagnoses[i].device_count == 0) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "%s: nothing is in it: neither events nor segments", diagnoses[i].name);
        }
        facts[i] = &diagnoses[i].devices[0].facts;
        moments[i] = facts[i]->recording.peak.allocated_at;
    }
    return gmd_comparison_make(lines, facts, moments, count, GMD_BY_LINE, error);
}
