#include "gmd_cause.h"

const gmd_violation *gmd_cause_find(const gmd_outcome *outcome, const gmd_identity *cause)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        if (gmd_identity_equal(&outcome->violations[i].identity, cause)) {
            return &outcome->violations[i];
        }
    }
    return NULL;
}
