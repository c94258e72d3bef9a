/* sarif.h - what of a report is a result in the sense of SARIF, and where it lies. */
#ifndef GMD_REPORTS_SARIF_H
#define GMD_REPORTS_SARIF_H

#include "gmd_json.h"
#include "outcome.h"

typedef struct sarif_result {
    const char *rule, *message;
    const gmd_identity *identity; /* NULL: it is of no violation, or of one without a kind */
    const gmd_outcome *outcome;   /* of whose run it is */
    const char *place;            /* of a gate: "part/item"; NULL: the outcome itself */
    const char *case_path;        /* NULL: none was written */
    const char *replay;           /* the command that shows it again; NULL: not known */
    uint64_t request;             /* UINT64_MAX: of no request */
} sarif_result;

/* Calls `visit` for each result, in the order of the report. */
typedef void sarif_visit(void *context, const sarif_result *result);
void sarif_each(const gmd_report *report, sarif_visit *visit, void *context);

/* The keys "locations" and "partialFingerprints" of an open result. */
void sarif_locations(gmd_json *json, const sarif_result *result);
void sarif_fingerprint(gmd_json *json, const sarif_result *result);

#endif
