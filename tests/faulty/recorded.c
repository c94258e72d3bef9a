#include "recorded.h"

#include <stdlib.h>

cudaEvent_t recorded_event(cudaStream_t stream)
{
    cudaEvent_t event = NULL;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        event = NULL;
    } else if (cudaEventRecord(event, stream) != cudaSuccess) {
        cudaGetLastError();
        cudaEventDestroy(event);
        event = NULL;
    }
    if (!event && cudaStreamSynchronize(stream) != cudaSuccess) {
        cudaGetLastError();
        cudaDeviceSynchronize();
    }
    return event;
}

void recorded_add(recorded **list, const void *pointer, cudaStream_t stream)
{
    for (const recorded *r = *list; r; r = r->next) {
        if (r->pointer == pointer && r->stream == stream && !r->event) {
            return;
        }
    }
    recorded *r = malloc(sizeof *r);
    if (!r) {
        cudaStreamSynchronize(stream);
        return;
    }
    *r = (recorded){.next = *list, .pointer = pointer, .stream = stream};
    *list = r;
}

recorded *recorded_take(recorded **list, const void *pointer)
{
    recorded *taken = NULL;
    for (recorded **link = list; *link;) {
        recorded *r = *link;
        if (r->pointer == pointer) {
            *link = r->next;
            r->next = taken;
            taken = r;
        } else {
            link = &r->next;
        }
    }
    return taken;
}

void recorded_forget(recorded **list, cudaStream_t stream)
{
    for (recorded **link = list; *link;) {
        recorded *r = *link;
        if (r->stream == stream && !r->event) {
            r->event = recorded_event(stream);
            if (!r->event) { /* the host has waited */
                *link = r->next;
                free(r);
                continue;
            }
        }
        link = &r->next;
    }
}

void recorded_wait(recorded *taken, cudaStream_t stream)
{
    while (taken) {
        recorded *r = taken;
        cudaEvent_t event = r->event ? r->event : recorded_event(r->stream);
        if (event && cudaStreamWaitEvent(stream, event, 0) != cudaSuccess) {
            cudaGetLastError();
            cudaEventSynchronize(event);
        }
        if (event) {
            cudaEventDestroy(event);
        }
        taken = r->next;
        free(r);
    }
}
