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
extern const gmd_oracle gmd_oracle_stream_order;
extern const gmd_oracle gmd_oracle_oom_retry;
extern const gmd_oracle gmd_oracle_peak_bound;
extern const gmd_oracle gmd_oracle_api_misuse;
extern const gmd_oracle gmd_oracle_device_state;
extern const gmd_oracle gmd_oracle_snapshot;
extern const gmd_oracle gmd_oracle_misuse;
extern const gmd_oracle gmd_oracle_data;
extern const gmd_oracle gmd_oracle_determinism;
extern const gmd_oracle gmd_oracle_reference;
extern const gmd_oracle gmd_oracle_private_pool;

#endif
