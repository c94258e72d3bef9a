#include "allocator_calls.h"

#include "frames.h"
#include "gmd_log.h"
#include "journal_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void note_memory(gmd_session *s, const gmd_sim_call *call)
{
    s->calls.memory_calls++;
    journal_writer_call(s, call);
    if (s->interleaving.overlap) {
        return; /* no call says which request it is made for */
    }
    bool is_unmapped = call->kind == GMD_SIM_CALL_UNMAP;
    call_list_add(&s->calls,
                  &(gmd_device_call){.is_free = call->kind == GMD_SIM_CALL_FREE || is_unmapped,
                                     .is_mapping = call->kind == GMD_SIM_CALL_MAP || is_unmapped,
                                     .is_pooled = call->is_pooled,
                                     .device = call->device,
                                     .address = call->address,
                                     .size = call->size});
}

static void note_misuse(gmd_session *s, const gmd_sim_call *call)
{
    call_list_add_misuse(&s->calls, &(gmd_misuse){.function = call->function,
                                                  .sentence = call->misuse,
                                                  .rule = call->misuse_rule,
                                                  .address = call->address,
                                                  .size = call->size,
                                                  .result = call->result});
}

static void log_call(const gmd_sim_call *call)
{
    char memory[64] = "";
    if (call->size) {
        snprintf(memory, sizeof memory, "; %" PRIu64 " B at 0x%" PRIx64, call->size, call->address);
    }
    GMD_LOG(DEVICE, "%s: result %d%s%s%s; device %d%s", call->function, call->result,
            call->failed_by_fault ? " by a planted fault" : "", call->misuse ? ", misuse: " : "",
            call->misuse ? call->misuse : "", call->device, memory);
}

/* Its result is the error of an earlier call. */
static bool asks_for_errors(const char *function)
{
    return strcmp(function, "cudaGetLastError") == 0 ||
           strcmp(function, "cudaPeekAtLastError") == 0;
}

static void note_call(void *context, const gmd_sim_call *call)
{
    gmd_session *s = context;
    s->calls.api_calls++;
    if (GMD_LOG_IS_ON(DEVICE)) {
        log_call(call);
    }
    if (s->call_log) {
        call_log_add(s->call_log, call->function, (uint32_t)s->request_index);
    }
    if (s->features.map) {
        features_call(&s->features, call);
    }
    if (call->kind != GMD_SIM_CALL_OTHER && call->result == 0 && call->size != 0) {
        note_memory(s, call);
    }
    if (call->misuse) {
        note_misuse(s, call);
    }
    s->calls.has_failed = s->calls.has_failed || (call->result && !asks_for_errors(call->function));
    if (call->failed_by_fault) {
        frames_note_fault(s, call->function);
    }
}

void watch_allocator(gmd_session *s)
{
    if (s->runtime.sim) {
        s->runtime.sim->gmd_sim_harness(true);
        s->runtime.sim->gmd_sim_observe(note_call, s);
    }
}
