/* gmd_scenario_inspect.h - looking inside a run of a scenario. */
#ifndef GMD_SCENARIO_INSPECT_H
#define GMD_SCENARIO_INSPECT_H

#include "gmd_inspection.h"
#include "gmd_scenario.h"

/* What happens inside the next run is written into `inspection` (opened with what is wanted), which
 * stays the caller's; once it is complete, further runs leave it alone. NULL: nobody looks. The
 * requests are the same either way. */
void gmd_scenario_inspect(gmd_scenario *scenario, gmd_inspection *inspection);

#endif
