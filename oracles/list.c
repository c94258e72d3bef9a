/* list.c - the oracles, in the order of their list. */
#include "list.h"

#define ORACLE(name, severity, holds_when) &oracle_##name,

const gmd_oracle *const gmd_oracles[] = {GMD_ORACLE_LIST(ORACLE, GMD_NO_ENTRY, GMD_NO_ENTRY) NULL};
