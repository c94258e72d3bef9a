/* gmd_scenario_inspect.h - a run of a scenario is inspected: memory by line, tensors, references.
 */
#ifndef GMD_SCENARIO_INSPECT_H
#define GMD_SCENARIO_INSPECT_H

#include "gmd_inspection.h"
#include "gmd_scenario.h"

/* The next run is inspected and fills in `inspection` (opened with what is wanted), which stays the
 * caller's and must outlive the runs. Once it is complete, further runs do not change it. NULL: no
 * inspection. The requests are the same either way. */
void gmd_scenario_inspect(gmd_scenario *scenario, gmd_inspection *inspection);

#endif
