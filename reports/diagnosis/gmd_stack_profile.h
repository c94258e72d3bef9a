/* gmd_stack_profile.h - who holds the memory at the peak, by stack, for the tools that show stacks.
 */
#ifndef GMD_STACK_PROFILE_H
#define GMD_STACK_PROFILE_H

#include "gmd_diagnosis.h"

#include <stdio.h>

/* Writes profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), which
 * pprof, speedscope and `go tool pprof` open: a sample for each stack, with its blocks and bytes.
 * `out` is to be compressed by the caller. */
gmd_status gmd_stack_profile_write_pprof(const gmd_facts *facts, FILE *out, gmd_error *error);

/* Writes a line for each stack, the outermost frame first, and its bytes: what flamegraph.pl,
 * inferno and speedscope read. */
gmd_status gmd_stack_profile_write_folded(const gmd_facts *facts, FILE *out, gmd_error *error);

#endif
