#include "call_record.h"

const char *const call_names[CALL_COUNT] = {
#define CALL_NAME(result, name, parameters, arguments) #name,
    GMD_SIM_CUDA_FUNCTIONS(CALL_NAME)};
#undef CALL_NAME

int call_misuse(sim_call *call, int result, const char *sentence)
{
    call->record.misuse = sentence;
    call->record.misuse_rule = NULL;
    return result;
}

int call_misuse_of(sim_call *call, int result, const char *rule, const char *sentence)
{
    call->record.misuse = sentence;
    call->record.misuse_rule = rule;
    return result;
}
