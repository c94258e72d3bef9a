#include "gmd_contract.h"

#include "gmd_abi.h"
#include "gmd_size.h"

#include <string.h>

const gmd_clause_row gmd_clause_rows[GMD_CLAUSE_COUNT] = {
    [GMD_CLAUSE_OUT_OF_MEMORY] = {"out_of_memory",
                                  "how a refusal is told",
                                  {{"null", "by a null pointer"},
                                   {"throws", "by std::bad_alloc or one derived from it"}}},
    [GMD_CLAUSE_ZERO_BYTES] = {"zero_bytes",
                               "a request for 0 bytes",
                               {{"taken", "is served, or gets a null pointer"},
                                {"outside", "is not made"}}},
    [GMD_CLAUSE_LARGEST] = {"largest", "no request is for more bytes", {{NULL, NULL}}},
    [GMD_CLAUSE_ALIGNMENT] = {"alignment",
                              "what the address of each block is a multiple of",
                              {{"256", "256 bytes, as cudaMalloc's"},
                               {"128", "128 bytes, a line of the device's cache"},
                               {"16", "16 bytes, enough for each type"}}},
    [GMD_CLAUSE_STREAMS] = {"streams",
                            "how long a stream must live",
                            {{"may_go", "as the program likes"},
                             {"outlive_blocks", "longer than the blocks that were allocated on it"},
                             {"outlive_allocator", "longer than the allocator is used"}}},
    [GMD_CLAUSE_OTHER_STREAMS] = {"other_streams",
                                  "work on a block on another stream than that of its allocation",
                                  {{"recorded",
                                    "is recorded (gmd_record_stream), or ordered before the free"},
                                   {"ordered", "is ordered before the free"}}},
    [GMD_CLAUSE_THREADS] = {"threads",
                            "who calls the allocator",
                            {{"many", "any thread, at any time"}, {"one", "one thread"}}},
    [GMD_CLAUSE_DEVICES] = {"devices",
                            "what has memory of it",
                            {{"many", "each device"}, {"one", "the first device"}}},
    [GMD_CLAUSE_POOL] = {"pool",
                         "the memory that it takes of the device",
                         {{"grows", "as much as there is"},
                          {"fixed", "a part, and more is refused"}}},
    [GMD_CLAUSE_PRESSURE] = {"pressure",
                             "what is cached, before a request is refused",
                             {{"gives_back", "goes back to the device"}, {"keeps", "may stay"}}},
    [GMD_CLAUSE_PENDING_ERRORS] = {"pending_errors",
                                   "an error of the caller's own that it has not looked at yet",
                                   {{"kept", "stays, and is not taken for the allocator's"},
                                    {"outside", "there is none when the allocator is called"}}},
    [GMD_CLAUSE_FAILING_CALLS] =
        {"failing_calls",
         "after a CUDA call that fails for another reason than device memory",
         {{"strong", "a request is served or refused, and all else is as it was"},
          {"basic", "a request may also fail; all else is as it was"},
          {"outside", "nothing is promised: such calls do not fail"}}},
};

void gmd_contract_init(gmd_contract *contract)
{
    *contract = (gmd_contract){.largest = UINT64_MAX};
}

bool gmd_contract_has(const gmd_contract *c, gmd_clause clause, uint8_t term)
{
    return c && c->terms[clause] == term && !(c->beyond >> clause & 1);
}

uint64_t gmd_contract_largest(const gmd_contract *c)
{
    return c && !(c->beyond >> GMD_CLAUSE_LARGEST & 1) ? c->largest : UINT64_MAX;
}

uint64_t gmd_contract_alignment(const gmd_contract *c, uint64_t strictest)
{
    return gmd_contract_has(c, GMD_CLAUSE_ALIGNMENT, GMD_ALIGNED_16)    ? 16
           : gmd_contract_has(c, GMD_CLAUSE_ALIGNMENT, GMD_ALIGNED_128) ? 128
                                                                        : strictest;
}

unsigned gmd_contract_promises(const gmd_contract *c)
{
    bool throws = c->terms[GMD_CLAUSE_OUT_OF_MEMORY] == GMD_OOM_THROWS;
    return c->promises | (throws ? GMD_PROMISE_THROWS : 0);
}

const char *gmd_contract_without(const gmd_contract *c, char text[GMD_CONTRACT_WITHOUT])
{
    const struct {
        bool is_out;
        const char *name;
    } kinds[] = {
        {gmd_contract_has(c, GMD_CLAUSE_STREAMS, GMD_STREAMS_OUTLIVE_ALLOCATOR), "destroy"},
        {gmd_contract_has(c, GMD_CLAUSE_OTHER_STREAMS, GMD_OTHERS_ORDERED), "record"},
        {gmd_contract_has(c, GMD_CLAUSE_THREADS, GMD_THREADS_ONE), "threads"},
        {gmd_contract_has(c, GMD_CLAUSE_DEVICES, GMD_DEVICES_ONE), "devices"},
        {gmd_contract_largest(c) < UINT64_MAX / 2, "huge"},
        {gmd_contract_has(c, GMD_CLAUSE_PENDING_ERRORS, GMD_PENDING_OUTSIDE), "leave_error"},
    };
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].is_out) {
            length += (size_t)snprintf(text + length, GMD_CONTRACT_WITHOUT - length, "%s%s",
                                       length ? "," : "", kinds[i].name);
        }
    }
    return text;
}

const char *gmd_contract_known(const gmd_contract *c, uint32_t index)
{
    const struct {
        gmd_clause clause;
        uint8_t term;
        const char *line;
    } known[] = {
        {GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS, "expect.refused"},
        {GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS, "oom_retry.cache_kept"},
        {GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS, "oom_retry.served_when_emptied -although"},
        {GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS, "oom_retry.held_when_all_is_free"},
        {GMD_CLAUSE_PRESSURE, GMD_PRESSURE_KEEPS, "oom_retry.refused_when_all_is_free"},
        {GMD_CLAUSE_POOL, GMD_POOL_FIXED, "expect.refused"},
        {GMD_CLAUSE_POOL, GMD_POOL_FIXED, "oom_retry.room_was_left"},
        {GMD_CLAUSE_POOL, GMD_POOL_FIXED, "oom_retry.never_served"},
        {GMD_CLAUSE_POOL, GMD_POOL_FIXED, "oom_retry.held_when_all_is_free"},
        {GMD_CLAUSE_POOL, GMD_POOL_FIXED, "oom_retry.refused_when_all_is_free"},
        {GMD_CLAUSE_FAILING_CALLS, GMD_FAILING_BASIC, "progress.failed | fault"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (gmd_contract_has(c, known[i].clause, known[i].term) && index-- == 0) {
            return known[i].line;
        }
    }
    return NULL;
}
