/* gmd_limit.h - whether what was found lies outside the allocator's contract. Under --beyond
 * requests are made that the contract forbids, and what it does not promise is judged: what shows
 * only then is a limit, and no defect. */
#ifndef GMD_LIMIT_H
#define GMD_LIMIT_H

#include "gmd_runner.h"

/* Runs the trace, which shows `cause` as runner->given says, with the contract kept to, and where
 * it does not show then, beyond each clause alone. `limit` gets the names of the clauses beyond
 * which it shows, with commas; of all that are not kept to, where it takes several. Empty: it is a
 * defect, or does not come again, or each clause is kept to. */
void gmd_limit_find(gmd_runner *runner, const gmd_trace *trace, const gmd_identity *cause,
                    char *limit, size_t size);

#endif
