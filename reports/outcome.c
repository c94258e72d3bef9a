#include "outcome.h"

const char *gmd_verdict_name(int verdict)
{
    switch (verdict) {
    case GMD_PASS:
        return "pass";
    case GMD_FAIL:
        return "fail";
    default: /* a value that cannot be is not a pass */
        return "error";
    }
}

gmd_verdict gmd_report_verdict(const gmd_report *report)
{
    if (report->outcome_count == 0) {
        return GMD_ERROR;
    }
    gmd_verdict worst = GMD_PASS;
    for (size_t i = 0; i < report->outcome_count; i++) {
        if (gmd_is_error(report->outcomes[i])) {
            return GMD_ERROR;
        }
        worst = report->outcomes[i]->verdict == GMD_FAIL ? GMD_FAIL : worst;
    }
    return worst;
}

uint64_t gmd_report_requests(const gmd_report *report)
{
    uint64_t requests = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        requests += report->outcomes[i]->requests;
    }
    return requests;
}

double gmd_report_seconds(const gmd_report *report)
{
    double seconds = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        seconds += report->outcomes[i]->seconds;
    }
    return seconds;
}

double gmd_requests_per_second(const gmd_outcome *outcome)
{
    return outcome->seconds > 0 ? (double)outcome->requests / outcome->seconds : 0;
}

bool gmd_is_error(const gmd_outcome *outcome)
{
    return outcome->verdict != GMD_PASS && outcome->verdict != GMD_FAIL;
}

bool gmd_is_unexplained_failure(const gmd_outcome *outcome)
{
    if (outcome->verdict != GMD_FAIL) {
        return false;
    }
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        if (outcome->oracles[i].fate == GMD_ORACLE_FAILED) {
            return false;
        }
    }
    return !outcome->check.present || outcome->check.exact;
}
