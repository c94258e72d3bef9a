/* list.c - the one list of oracles. The order is that of the questions one would ask: did it break
 * or break a rule, is there memory, is it big enough, is it mine alone and nobody's any more, is a
 * refusal true, do the sums agree, is it given back. */
#include "list.h"

const gmd_oracle *const gmd_oracles[] = {
    &gmd_oracle_progress,
    &gmd_oracle_api_misuse,
    &gmd_oracle_backing,
    &gmd_oracle_alignment,
    &gmd_oracle_size,
    &gmd_oracle_overlap,
    &gmd_oracle_private_pool,
    &gmd_oracle_stream_order,
    &gmd_oracle_data,
    &gmd_oracle_oom_retry,
    &gmd_oracle_peak_bound,
    &gmd_oracle_accounting,
    &gmd_oracle_snapshot,
    &gmd_oracle_leak,
    &gmd_oracle_device_state,
    &gmd_oracle_misuse,
    &gmd_oracle_determinism,
    &gmd_oracle_reference,
    NULL,
};
