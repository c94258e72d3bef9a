/* call_record.h - one API call while it is made: who makes it, what it answers, and which rule of
 * the API it breaks. */
#ifndef GMD_SIM_CALL_RECORD_H
#define GMD_SIM_CALL_RECORD_H

#include "thread.h"

typedef enum call_id {
#define CALL_ID(result, name, parameters, arguments) CALL_##name,
    GMD_SIM_CUDA_FUNCTIONS(CALL_ID) CALL_COUNT
#undef CALL_ID
} call_id;

extern const char *const call_names[CALL_COUNT];

typedef struct sim_call {
    sim_thread *thread;
    call_id id;
    bool lacks_memory; /* the host has none for a stream that the call names */
    gmd_sim_call record;
} sim_call;

/* For a call that broke the API's rules: notes the static sentence and returns `result`. */
int call_misuse(sim_call *call, int result, const char *sentence);
/* Where a call can break several rules with one error: `rule` is its name for good. */
int call_misuse_of(sim_call *call, int result, const char *rule, const char *sentence);

#endif
