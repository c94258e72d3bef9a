#include "oracle_test.h"

#include "../raised.h"

#include <stdio.h>

void gmd_precondition_met(gmd_judge *judge, unsigned which)
{
    (void)judge;
    (void)which;
}

void gmd_violation_add(gmd_judge *judge, gmd_kind kind, const gmd_given_party *parties,
                       const char *format, ...)
{
    gmd_identity identity;
    va_list arguments;
    va_start(arguments, format);
    gmd_identity_make(&identity, kind, parties);
    note_raised(&identity);
    if (judge->count++ == 0) {
        judge->identity = identity;
        vsnprintf(judge->first, sizeof judge->first, format, arguments);
    }
    va_end(arguments);
}
