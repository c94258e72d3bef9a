/* call_list.h - what the allocator has asked of the device. */
#ifndef GMD_CALL_LIST_H
#define GMD_CALL_LIST_H

#include "gmd_oracle.h"

#define MISUSE_MAX 8 /* noted of one request */

typedef struct call_list { /* zero-initialised: empty */
    gmd_device_call *list; /* of the last request, those that take or give back memory; owned */
    size_t count, capacity;
    uint64_t memory_calls, api_calls; /* in all: of those, and of any kind */
    gmd_misuse misuses[MISUSE_MAX];   /* not judged yet */
    size_t misuse_count;
    bool has_failed; /* in the last request, a call of any kind: it left an error, or may have */
} call_list;

/* A request begins: nothing was asked in it. Misuses stay until they are judged. */
static inline void call_list_begin(call_list *calls)
{
    calls->count = 0;
    calls->has_failed = false;
}
/* Without host memory it is left out. */
void call_list_add(call_list *calls, const gmd_device_call *call);
void call_list_add_misuse(call_list *calls, const gmd_misuse *misuse);
static inline void call_list_judged(call_list *calls)
{
    calls->misuse_count = 0;
}
void call_list_free(call_list *calls);

#endif
