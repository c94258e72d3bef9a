/* list.h - what every oracle's file includes: how it names itself, and that it is in the list. */
#ifndef GMD_LIST_H
#define GMD_LIST_H

#include "gmd_oracle.h"

#define DECLARE_ORACLE(name, severity, holds_when) extern const gmd_oracle oracle_##name;
GMD_ORACLE_LIST(DECLARE_ORACLE, GMD_NO_ENTRY, GMD_NO_ENTRY)

/* .entry = ORACLE_ENTRY(leak) */
#define ORACLE_ENTRY(name) (&gmd_judges[gmd_judge_##name])

#endif
