/* list.c - the one list of oracles. The order is that of the questions one would ask: is there
 * memory, is it big enough, is it mine alone, do the sums agree, is it given back. */
#include "list.h"

const gmd_oracle *const gmd_oracles[] = {
    &gmd_oracle_backing,    &gmd_oracle_alignment, &gmd_oracle_size,     &gmd_oracle_overlap,
    &gmd_oracle_accounting, &gmd_oracle_leak,      &gmd_oracle_progress, NULL,
};
