#include "oracle_test.h"

#include <stdio.h>

void gmd_precondition_met(gmd_judge *judge, unsigned which)
{
    (void)judge;
    (void)which;
}

void gmd_violation_add(gmd_judge *judge, gmd_kind kind, const gmd_given_party *parties,
                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (judge->count++ == 0) {
        gmd_identity_make(&judge->identity, kind, parties);
        vsnprintf(judge->first, sizeof judge->first, format, arguments);
    }
    va_end(arguments);
}
