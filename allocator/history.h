/* history.h - the history of a device: the rings of its heaps (history_ring.h), switched on and
 * off, and brought into one order. Sync: the device's. */
#ifndef GMD_HISTORY_H
#define GMD_HISTORY_H

#include "device_allocator.h"
#include "history_ring.h"

/* From now on, or no more (0 entries); what was recorded is dropped. False: no host memory, and it
 * is off. The caller has exclusive access to the device, here and in all that follow. */
bool history_switch(device_allocator *d, uint64_t max_entries, gmd_stacks which);

/* The recording goes on with other stacks, and leaves out what d->skipped says by now. False: there
 * is none. */
bool history_change_stacks(device_allocator *d, gmd_stacks which);

/* A heap is made: false: no host memory. A heap goes: its events stay. */
bool history_open(device_allocator *d, heap *h);
void history_retire(device_allocator *d, heap *h);

/* Events carry the notes of their threads (stacks_set_note) from now on. */
void history_carry_notes(device_allocator *d);

/* The latest max_entries events in the order in which they happened. False: no host memory. */
bool history_collect(const device_allocator *d, history_event **events, size_t *count);

/* Somebody looked: `active_bytes` of the device were in use. */
void history_note_snapshot(device_allocator *d, uint64_t active_bytes);

/* An event of a segment. */
void history_note(device_allocator *d, history_kind kind, uint64_t address, uint64_t size,
                  const free_set *set);

#endif
