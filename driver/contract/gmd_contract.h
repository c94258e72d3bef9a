/* gmd_contract.h - what an allocator promises and what its callers must do, as data: the profile
 * of an allocator (--profile).
 *
 * A contract has clauses, and each clause one of a few terms. The first term of each is what gmd
 * takes for granted of every allocator; the others promise less, or demand more of the callers. A
 * session makes no request that the terms forbid (gmd_contract_forbids), and what the terms do not
 * promise is a known defect to its judge (gmd_contract_known).
 *
 * The text has a clause a line, `#` starts a comment:
 *
 *     gmd-profile 1
 *     streams outlive_blocks
 *     largest 1GiB
 *     promise determinism,throws
 *
 * What is not named has its first term. Thread safety: none is needed; a contract is a value. */
#ifndef GMD_CONTRACT_H
#define GMD_CONTRACT_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum gmd_clause {
    GMD_CLAUSE_OUT_OF_MEMORY,
    GMD_CLAUSE_ZERO_BYTES,
    GMD_CLAUSE_LARGEST, /* no terms but a size */
    GMD_CLAUSE_ALIGNMENT,
    GMD_CLAUSE_STREAMS,
    GMD_CLAUSE_OTHER_STREAMS,
    GMD_CLAUSE_THREADS,
    GMD_CLAUSE_DEVICES,
    GMD_CLAUSE_POOL,
    GMD_CLAUSE_PRESSURE,
    GMD_CLAUSE_PENDING_ERRORS,
    GMD_CLAUSE_FAILING_CALLS,
    GMD_CLAUSE_COUNT,
} gmd_clause;

/* The terms, in the order of gmd_clause_rows. */
enum { GMD_OOM_NULL, GMD_OOM_THROWS };
enum { GMD_ZERO_TAKEN, GMD_ZERO_OUTSIDE };
enum { GMD_ALIGNED_256, GMD_ALIGNED_128, GMD_ALIGNED_16 };
enum { GMD_STREAMS_MAY_GO, GMD_STREAMS_OUTLIVE_BLOCKS, GMD_STREAMS_OUTLIVE_ALLOCATOR };
enum { GMD_OTHERS_RECORDED, GMD_OTHERS_ORDERED };
enum { GMD_THREADS_MANY, GMD_THREADS_ONE };
enum { GMD_DEVICES_MANY, GMD_DEVICES_ONE };
enum { GMD_POOL_GROWS, GMD_POOL_FIXED };
enum { GMD_PRESSURE_GIVES_BACK, GMD_PRESSURE_KEEPS };
enum { GMD_PENDING_KEPT, GMD_PENDING_OUTSIDE };
enum { GMD_FAILING_STRONG, GMD_FAILING_BASIC, GMD_FAILING_OUTSIDE };

#define GMD_TERMS_MAX 3

typedef struct gmd_term {
    const char *name, *meaning; /* NULL: there are no more */
} gmd_term;

typedef struct gmd_clause_row {
    const char *name, *about;
    gmd_term terms[GMD_TERMS_MAX];
} gmd_clause_row;

extern const gmd_clause_row gmd_clause_rows[GMD_CLAUSE_COUNT];

typedef struct gmd_contract {
    char name[128];                  /* of its file; empty: there is none */
    uint8_t terms[GMD_CLAUSE_COUNT]; /* of each clause, which one */
    uint64_t largest;                /* bytes of a request; UINT64_MAX: any */
    unsigned promises;               /* beside those of the terms: a set of gmd_promise */
    uint32_t beyond; /* bit CLAUSE: requests are made that this clause forbids, and what it does not
                        promise is judged: to see what the contract leaves out */
} gmd_contract;

/* What gmd takes for granted. */
void gmd_contract_init(gmd_contract *contract);

/* Whether a clause has this term, and is kept to. NULL, no contract, has none. */
bool gmd_contract_has(const gmd_contract *contract, gmd_clause clause, uint8_t term);

/* The most bytes of a request, likewise; UINT64_MAX: any. */
uint64_t gmd_contract_largest(const gmd_contract *contract);

/* What the address of each block is a multiple of, in bytes; `strictest` where the contract has its
 * first term. */
uint64_t gmd_contract_alignment(const gmd_contract *contract, uint64_t strictest);

/* "streams,largest", or "all": clauses that are not kept to. GMD_BAD_INPUT names what was expected.
 */
gmd_status gmd_contract_go_beyond(gmd_contract *contract, const char *names, gmd_error *error);

/* What the terms promise, as a set of gmd_promise. */
unsigned gmd_contract_promises(const gmd_contract *contract);

/* Which kinds of requests it forbids altogether, as `gmd fuzz --without` names them:
 * "destroy,huge"; empty: none. For searches, which need not draw what is not made. */
enum { GMD_CONTRACT_WITHOUT = 80 };
const char *gmd_contract_without(const gmd_contract *contract, char text[GMD_CONTRACT_WITHOUT]);

/* Lines of a known list (gmd_known.h): what the terms do not promise. NULL: there are no more. */
const char *gmd_contract_known(const gmd_contract *contract, uint32_t index);

/* --- the text (contract_read.c) ---------------------------------------------------------- */

/* `name` is for messages, and stays with the contract. On failure nothing is changed, and the
 * message names the line. */
gmd_status gmd_contract_parse(gmd_contract *contract, const char *text, size_t size,
                              const char *name, gmd_error *error);

/* A file; or where `path` is a name without a slash or a dot, NAME.profile of `folder`, which has
 * the profiles that come with gmd. A message names those that there are. */
gmd_status gmd_contract_read(gmd_contract *contract, const char *path, const char *folder,
                             gmd_error *error);

/* The line of a clause, without its end; empty: it has its first term. */
enum { GMD_CONTRACT_LINE = 80 };
const char *gmd_contract_line(const gmd_contract *contract, gmd_clause clause,
                              char text[GMD_CONTRACT_LINE]);

#endif
