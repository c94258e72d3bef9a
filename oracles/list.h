/* list.h - what every oracle's file includes: how it names itself, and that it is in the list. */
#ifndef GMD_LIST_H
#define GMD_LIST_H

#include "gmd_oracle.h"

#define GMD_ORACLE_DECLARATION(name, severity, holds_when)                                         \
    extern const gmd_oracle gmd_oracle_##name;
GMD_ORACLE_LIST(GMD_ORACLE_DECLARATION, GMD_NO_ENTRY, GMD_NO_ENTRY)

/* .entry = GMD_ENTRY(leak) */
#define GMD_ENTRY(name) (&gmd_judges[gmd_judge_##name])

#endif
