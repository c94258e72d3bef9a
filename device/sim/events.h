/* events.h - events. A record stores the stream and its tail; the event is complete when the
 * stream's head has got there. */
#ifndef GMD_SIM_EVENTS_H
#define GMD_SIM_EVENTS_H

#include "call_record.h"
#include "point.h"

typedef struct event {
    cudaEvent_t handle; /* NULL: free */
    uint64_t life;      /* tells the lives of a slot apart; part of the handle */
    int device;
    unsigned flags;
    point at;                /* on nothing: never recorded */
    uint64_t end_ns;         /* when it completed; meaningful once it has */
    uint64_t capture_id;     /* 0: not recorded in a capture */
    uint32_t *capture_after; /* the nodes that it stands for there, owned */
    uint32_t capture_count;
    uint32_t next_free;
} event;

event *event_new(int device, unsigned flags); /* NULL: no memory, or too many */
void event_delete(event *e);
event *event_find(cudaEvent_t handle);               /* NULL: there is none */
event *event_of(sim_call *call, cudaEvent_t handle); /* likewise, with misuse noted */

void event_forget(event *e); /* what it was recorded on */
bool event_is_complete(const event *e);
bool event_keeps_time(const event *e);
/* The entry that keeps its time has completed. */
void event_recorded(cudaEvent_t handle, const stream *s, uint64_t ticket, uint64_t end_ns);

void events_reset(void);
void events_reset_device(int device);
const char *events_violation(void); /* what does not hold of events and tickets; NULL: all does */

#endif
