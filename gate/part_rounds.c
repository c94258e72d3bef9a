/* part_rounds.c - the same round of requests again and again. */
#include "gate.h"
#include "plan.h"

void gmd_gate_rounds(gmd_gate *gate)
{
    (void)gate;
}

void gmd_gate_rounds_of_file(gmd_gate *gate, const char *path)
{
    (void)gate;
    (void)path;
}
