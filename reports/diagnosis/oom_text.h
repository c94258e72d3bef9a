/* oom_text.h - each out-of-memory of a device on a screen. */
#ifndef GMD_REPORTS_DIAGNOSIS_OOM_TEXT_H
#define GMD_REPORTS_DIAGNOSIS_OOM_TEXT_H

#include "page.h"

/* What cost most first, as many as there is room for. */
gmd_status oom_text_put(const page *p, const gmd_ooms *ooms);

#endif
