/* gmd_job_findings.h - what is wrong in a recorded job. Each class of finding (class_*.c, listed in
 * job_findings.c) looks at the facts and says what it found. */
#ifndef GMD_JOB_FINDINGS_H
#define GMD_JOB_FINDINGS_H

#include "gmd_facts.h"
#include "gmd_job_finding.h"
#include "gmd_ooms.h"

typedef struct gmd_job_findings { /* most bytes first; none: healthy */
    gmd_job_finding *items;
    size_t count;
    uint8_t *blamed; /* by lifetime: the class whose finding counts it, and 1 more; 0: none does */
} gmd_job_findings;

/* What is found to leak is noted in the OOMs; one that cost the job something leads to a finding,
 * of what its cause is: gmd_ooms_costly. */
gmd_status gmd_job_findings_find(gmd_job_findings *findings, gmd_ooms *ooms, const gmd_facts *facts,
                                 gmd_error *error);
void gmd_job_findings_free(gmd_job_findings *findings);

/* Whether the job holds ever more, whatever the allocator does. */
bool gmd_finding_is_leak(gmd_finding_class class);
const char *gmd_finding_class_name(gmd_finding_class class);

/* The stack by which a line of the program holds most of what a finding counts, or asked for most,
 * where that counts no blocks; 0: none. */
uint32_t gmd_finding_stack(const gmd_job_findings *findings, const gmd_job_finding *finding,
                           const gmd_facts *facts, uint32_t frame);

#endif
