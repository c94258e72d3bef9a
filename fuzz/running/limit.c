#include "gmd_limit.h"

#include "gmd_cause.h"
#include "gmd_contract.h"
#include "gmd_known.h"

#include <stdlib.h>
#include <string.h>

/* What the contract does not promise is known. False: no host memory. */
static bool add_excused(const gmd_contract *contract, gmd_known *excused)
{
    gmd_error error;
    const char *line;
    bool is_added = true;
    for (uint32_t i = 0; is_added && (line = gmd_contract_known(contract, i)) != NULL; i++) {
        is_added = known_add(excused, line, "contract", &error) == GMD_OK;
    }
    return is_added;
}

static bool shows_with(gmd_runner *runner, const gmd_run_options *options, const gmd_trace *trace,
                       const gmd_identity *cause)
{
    const gmd_run_options *given = runner->given;
    const gmd_outcome *outcome;
    gmd_error error;
    runner->given = options;
    gmd_runner_renew(runner);
    bool shows = gmd_runner_run(runner, trace, &outcome, &error) == GMD_OK &&
                 gmd_cause_find(outcome, cause) != NULL;
    runner->given = given;
    gmd_runner_renew(runner);
    return shows;
}

static bool shows_under(gmd_runner *runner, const gmd_contract *contract, const gmd_trace *trace,
                        const gmd_identity *cause)
{
    gmd_run_options options = *runner->given;
    gmd_known excused = {0}, known = {0};
    const gmd_known *const lists[] = {options.judging.known, &excused};
    bool shows = false;
    if (add_excused(contract, &excused) && gmd_known_join(lists, 2, &known)) {
        options.judging.known = &known;
        options.judging.contract = contract;
        shows = shows_with(runner, &options, trace, cause);
    }
    free(known.entries);
    gmd_known_free(&excused);
    return shows;
}

static void add_name(char *limit, size_t size, gmd_clause clause)
{
    size_t used = strlen(limit);
    snprintf(limit + used, size - used, "%s%s", used ? "," : "", gmd_clause_rows[clause].name);
}

/* The clauses that state something and are not kept to. */
static uint32_t loose_clauses(const gmd_contract *contract)
{
    uint32_t loose = 0;
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        char line[GMD_CONTRACT_LINE];
        bool is_stated = *gmd_contract_line(contract, (gmd_clause)i, line) != '\0';
        loose |= is_stated ? contract->beyond & 1u << i : 0;
    }
    return loose;
}

void gmd_limit_find(gmd_runner *runner, const gmd_trace *trace, const gmd_identity *cause,
                    char *limit, size_t size)
{
    const gmd_contract *given = runner->given->judging.contract;
    const uint32_t loose = given ? loose_clauses(given) : 0;
    gmd_contract contract = loose ? *given : (gmd_contract){.beyond = 0};
    *limit = '\0';
    contract.beyond &= ~loose;
    const uint32_t kept = contract.beyond;
    if (!loose || shows_under(runner, &contract, trace, cause)) {
        return;
    }
    /* What does not come again in a new process, either, is not for the contract. */
    if (!shows_under(runner, given, trace, cause)) {
        return;
    }
    for (int i = 0; i < GMD_CLAUSE_COUNT; i++) {
        contract.beyond = kept | 1u << i;
        if (loose >> i & 1 && shows_under(runner, &contract, trace, cause)) {
            add_name(limit, size, (gmd_clause)i);
        }
    }
    bool needs_several = !*limit;
    for (int i = 0; needs_several && i < GMD_CLAUSE_COUNT; i++) {
        if (loose >> i & 1) {
            add_name(limit, size, (gmd_clause)i);
        }
    }
}
