#ifndef GMD_ORACLE_LIST_H
#define GMD_ORACLE_LIST_H

#include "gmd_oracle.h"

extern const gmd_oracle gmd_oracle_backing;
extern const gmd_oracle gmd_oracle_alignment;
extern const gmd_oracle gmd_oracle_size;
extern const gmd_oracle gmd_oracle_overlap;
extern const gmd_oracle gmd_oracle_accounting;
extern const gmd_oracle gmd_oracle_leak;
extern const gmd_oracle gmd_oracle_progress;

#endif
