#include "gmd_call_log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void call_log_clear(call_log *log)
{
    log->count = 0;
    log->is_full = false;
    for (size_t i = 0; i < GMD_LOGGED_FUNCTION_MAX && log->functions[i].name; i++) {
        log->functions[i].name = NULL;
    }
}

bool call_log_is_sound(const gmd_logged_call *call)
{
    size_t length = strnlen(call->function, sizeof call->function);
    bool is_name = length > 0 && length < sizeof call->function;
    for (size_t i = 0; i < length; i++) {
        is_name =
            is_name && (isalnum((unsigned char)call->function[i]) || call->function[i] == '_');
    }
    return is_name && call->ordinal > 0;
}

/* How many calls of the function there were in the request, with this one; 0: no room. */
static uint32_t count_call(call_log *log, const char *function, uint32_t request)
{
    for (size_t i = 0; i < GMD_LOGGED_FUNCTION_MAX; i++) {
        if (!log->functions[i].name) {
            log->functions[i].name = function;
            log->functions[i].request = request;
            log->functions[i].calls = 0;
        }
        if (log->functions[i].name == function) {
            if (log->functions[i].request != request) {
                log->functions[i].request = request;
                log->functions[i].calls = 0;
            }
            return ++log->functions[i].calls;
        }
    }
    return 0;
}

void call_log_add(call_log *log, const char *function, uint32_t request)
{
    uint32_t ordinal = count_call(log, function, request);
    if (log->count == GMD_LOGGED_CALL_MAX || !ordinal) {
        log->is_full = true;
        return;
    }
    gmd_logged_call *call = &log->calls[log->count++];
    snprintf(call->function, sizeof call->function, "%s", function);
    call->request = request;
    call->ordinal = ordinal;
}
