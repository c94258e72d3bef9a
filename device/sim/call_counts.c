#include "call_counts.h"

#include "lock.h"

#include <string.h>

#define FAULTS_MAX 64

typedef struct fault {
    call_id id;
    uint64_t at; /* the count of calls of `id` at which it answers */
    bool every_later;
    int error;
} fault;

static struct {
    uint64_t of_each[CALL_COUNT];
    uint64_t all, misuses;
    fault faults[FAULTS_MAX];
    size_t fault_count;
} counts;

/* The fault that answers the current call of `id`, if any. A single one is used up. */
static bool take_fault(call_id id, int *error)
{
    for (size_t i = 0; i < counts.fault_count; i++) {
        fault *f = &counts.faults[i];
        if (f->id == id &&
            (counts.of_each[id] == f->at || (f->every_later && counts.of_each[id] > f->at))) {
            *error = f->error;
            if (!f->every_later) {
                *f = counts.faults[--counts.fault_count];
            }
            return true;
        }
    }
    return false;
}

bool counts_add(sim_call *call)
{
    call->record.index = ++counts.all;
    counts.of_each[call->id]++;
    call->record.failed_by_fault = counts.fault_count && take_fault(call->id, &call->record.result);
    return call->record.failed_by_fault;
}

void counts_add_misuse(void)
{
    counts.misuses++;
}

void counts_reset(void)
{
    memset(counts.of_each, 0, sizeof counts.of_each);
    counts.all = counts.misuses = 0;
    counts.fault_count = 0;
}

/* --- control ----------------------------------------------------------------------------- */

static call_id find_call(const char *function)
{
    int id = 0;
    while (id < CALL_COUNT && strcmp(call_names[id], function) != 0) {
        id++;
    }
    return (call_id)id;
}

uint64_t gmd_sim_call_count(const char *function)
{
    call_id id = find_call(function);
    sim_lock();
    uint64_t count = id < CALL_COUNT ? counts.of_each[id] : 0;
    sim_unlock();
    return count;
}

uint64_t gmd_sim_misuse_count(void)
{
    sim_lock();
    uint64_t count = counts.misuses;
    sim_unlock();
    return count;
}

int gmd_sim_fault(const char *function, uint64_t nth, bool every_later, int error)
{
    call_id id = find_call(function);
    if (id == CALL_COUNT || nth == 0 || error == 0) {
        return -1;
    }
    sim_lock();
    fault f = {.id = id, .every_later = every_later, .error = error};
    bool fits =
        counts.fault_count < FAULTS_MAX && !__builtin_add_overflow(counts.of_each[id], nth, &f.at);
    if (fits) {
        counts.faults[counts.fault_count++] = f;
    }
    sim_unlock();
    return fits ? 0 : -1;
}

void gmd_sim_clear_faults(void)
{
    sim_lock();
    counts.fault_count = 0;
    sim_unlock();
}
