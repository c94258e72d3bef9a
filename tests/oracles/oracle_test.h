/* oracle_test.h - a judge that counts, for tests that call an oracle's hooks with made-up views. */
#ifndef ORACLE_TEST_H
#define ORACLE_TEST_H

#include "gmd_test.h"
#include "list.h"

struct gmd_judge {
    int count;
    char first[600];
    gmd_identity identity; /* of the first, too */
};

#endif
