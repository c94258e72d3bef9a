/* state.h - the state that the simulator's files share, and what each offers to the others.
 *
 * Everything here is called with the runtime's lock held. */
#ifndef GMD_SIM_STATE_H
#define GMD_SIM_STATE_H

#include "address_map.h"
#include "calls.h"
#include "gmd_random.h"
#include "gmd_sim.h"
#include "gmd_sim_front.h"
#include "past.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct stream stream;

enum { LIMIT_COUNT = 3 }; /* stack, printf and malloc heap */

typedef struct sim_device {
    uint64_t physical_bytes, allocated_bytes, allocation_count, stream_count, event_count;
    uint64_t budget_bytes; /* gmd_sim_budget; UINT64_MAX: none */
    uint64_t reservation_count, reservation_bytes, handle_count, mapped_bytes;
    uint64_t next_large, next_small; /* GMD_SIM_ASCENDING: where the next allocation may begin */
    stream *legacy;                  /* the default stream */
    unsigned flags;                  /* cudaSetDeviceFlags */
    size_t limits[LIMIT_COUNT];
    unsigned context_count;    /* cuDevicePrimaryCtxRetain without release */
    bool is_active;            /* its primary context exists */
    int error;                 /* sticky: every call returns it until a reset */
    bool is_error_noted;       /* some call has said so as misuse */
    uint64_t blocking_entries; /* ever queued on blocking streams other than the default */
} sim_device;

typedef struct sim_state {
    gmd_sim_config config;
    uint64_t epoch;    /* of resets; part of every handle */
    uint64_t now_ns;   /* the virtual clock */
    gmd_random random; /* state of the generator of GMD_SIM_RANDOM */
    uint64_t forced_waits;
    gmd_random schedule_random; /* state of the generator of GMD_SIM_SEEDED */
    size_t choices_used;
    uint64_t buffers; /* ever made, of device and page-locked host memory: their ids */
    uint32_t running; /* host functions, without the lock */
    size_t recorded_next, recorded_next_reservation;
    bool recorded_broken;       /* the recorded list no longer matches */
    bool is_driver_initialized; /* cuInit or any runtime call; stays, like the process's state */
    sim_device devices[GMD_SIM_DEVICE_MAX];
} sim_state;

extern sim_state sim;

/* control.c: the default configuration, unless the runtime is already running. Aborts when the host
 * cannot give the few tables that it needs. */
void sim_reset_to_default(void);
static inline void sim_start(void)
{
    if (__builtin_expect(sim.epoch == 0, 0)) {
        sim_reset_to_default();
    }
}

/* devices.c: makes the device's primary context current on the thread. */
void device_use(sim_thread *thread, int device);
/* contexts.c */
CUcontext context_of(int device);
/* The device of a context; -1, with misuse noted: it is none. */
int context_device(sim_call *call, CUcontext context);
/* CUDA_SUCCESS, or why a driver call that names this device cannot be made. */
int driver_check(sim_call *call, CUdevice device);
static inline bool device_exists(int device)
{
    return device >= 0 && (uint32_t)device < sim.config.device_count;
}

/* placement.c: where an allocation of `size` bytes goes, and the address space it takes there.
 * False: no free address or no physical memory for it. */
typedef struct place {
    uint64_t address, span;
} place;
bool placement_choose(int device, uint64_t size, place *out);
/* The address range [from, to) that one device's allocations are placed in. */
place placement_window(int device);
/* Free addresses for a reservation, outside of the devices' windows; 0: none. */
uint64_t placement_reserve(uint64_t size, uint64_t alignment, uint64_t wanted);
/* Physical memory that the device can still give. */
static inline uint64_t memory_left(int device)
{
    uint64_t most = sim.devices[device].budget_bytes < sim.config.capacity_bytes
                        ? sim.devices[device].budget_bytes
                        : sim.config.capacity_bytes;
    uint64_t taken = sim.devices[device].physical_bytes;
    return most > taken ? most - taken : 0;
}
bool placement_owns(uint64_t address); /* in any device's window: never a host address */
void placement_reset_device(int device);
/* The configuration's devices fit the address space. */
bool placement_can_hold(uint32_t device_count, uint64_t capacity_bytes);

/* memory.c */
allocation *memory_find_range(uint64_t address, uint64_t size); /* whole range in one; NULL: no */
/* Likewise for work that runs now: memory of a pool may be cut otherwise than when it was queued.
 */
allocation *memory_find_run(uint64_t address, uint64_t size);
/* Work on `device` can read and write every byte; `bad` gets the first that it cannot. */
bool memory_is_usable(uint64_t address, uint64_t size, int device, uint64_t *bad);
/* Likewise for work that runs now: all of it is still there. */
bool memory_is_there(uint64_t address, uint64_t size, int device);
/* A new allocation of `size` > 0 bytes; false: out of memory. */
bool memory_allocate(int device, uint64_t size, uint32_t pool_block, uint64_t *address);
void memory_release_at(uint64_t address); /* an allocation begins there */
void memory_reset(void);                  /* nothing is allocated */
void memory_release_device(int device);   /* what one device has given */

/* virtual_memory.c: address ranges, physical memory and what is mapped where. `a` is the address
 * range of a reservation in the map. */
bool virtual_is_usable(const allocation *a, uint64_t address, uint64_t size, int device,
                       uint64_t *bad);
/* All of it is mapped, and physical memory of that device. */
bool virtual_is_memory_of(const allocation *a, uint64_t address, uint64_t size, int device,
                          uint64_t *bad);
void virtual_release(allocation *a); /* with what is mapped in it */
bool virtual_is_mapped(const allocation *a, uint64_t address, uint64_t *start);
void virtual_reset(void);

/* accesses.c: what queued work touches. A kernel keeps its ranges until it completes, a few of them
 * without an allocation. */
typedef struct access_range {
    uint64_t address, size;
} access_range;

enum { ACCESSES_INLINE = 2 };

typedef struct access_list {
    uint32_t count;
    uint64_t mark;      /* that it writes; 0: none */
    access_range *more; /* all of them, owned, where they are more than fit here */
    access_range few[ACCESSES_INLINE];
} access_list;

bool accesses_keep(access_list *list, const gmd_sim_access *accesses, size_t count);
void accesses_drop(access_list *list);
/* The work runs now: on memory that is gone it breaks the device. */
void accesses_carry_out(const access_list *list, int device);
void device_break(int device);

/* host_memory.c: page-locked host memory that holds the whole range; `out` may be NULL. */
typedef struct host_range {
    uint64_t address, size;
    uint64_t buffer_id;
    int device;
} host_range;
bool host_find(const void *pointer, uint64_t size, host_range *out);
void host_reset(void);

/* streams.c: queues and clock. A ticket is a position in a stream's queue: entries are numbered
 * from 1, and are complete up to `head` and queued up to `tail`. */
typedef struct entry {
    enum {
        ENTRY_KERNEL,
        ENTRY_FILL,
        ENTRY_COPY,
        ENTRY_WAIT,
        ENTRY_RECORD,
        ENTRY_HOST,
        ENTRY_WAIT_VALUE,
        ENTRY_WAIT_EVENT, /* only as a node of a graph */
        ENTRY_NOTHING
    } kind;
    uint32_t value;       /* FILL, WAIT_VALUE */
    uint32_t count;       /* FILL: bytes of the pattern, 1 or 4; WAIT_VALUE: how it compares */
    uint64_t duration_ns; /* KERNEL, FILL, COPY */
    uint64_t queued_ns, sequence;
    union {
        struct {
            uint64_t to, from, width, height; /* rows of `width` bytes */
            uint64_t to_pitch, from_pitch;
            void *staged; /* a copy of pageable source memory, owned */
        } move;           /* FILL, COPY, WAIT_VALUE (to) */
        struct {
            stream *on;
            uint64_t ticket;
        } wait;
        cudaEvent_t event; /* RECORD, WAIT_EVENT */
        struct {
            cudaHostFn_t function;
            cudaStreamCallback_t callback; /* instead of it */
            void *data;
            cudaStream_t stream;
            past *before;     /* what its stream's work was after when it was queued, counted */
        } host;               /* HOST */
        access_list accesses; /* KERNEL */
    };
} entry;

struct capture;

struct stream {
    cudaStream_t handle;
    uint32_t id; /* of the structure, which later streams use again: their tickets go on */
    int device, priority;
    unsigned flags;
    bool is_destroyed;
    bool is_running; /* a host function of its, without the lock */
    bool is_open;    /* the host does not know of all its work that it is over */
    uint32_t open_index;
    uint64_t head, tail;
    uint64_t known; /* the host knows that all up to here is over, and all that is before it */
    past *before;   /* what lies before the next entry besides the stream's own and what is known */
    uint64_t need;  /* must be complete up to here before a synchronising call returns */
    uint64_t need_followed;   /* GMD_SIM_LAZY: waits up to here have passed the need on */
    uint64_t end_ns;          /* when entry `head` ended */
    uint64_t saw_default;     /* the default stream's tail when this one was ordered after it */
    uint64_t seen_by_default; /* this one's tail when the default stream was ordered after it */
    uint64_t saw_blocking;    /* of the default stream: blocking_entries at that time */
    entry *ring;              /* of entries head+1 to tail, at (ticket - 1) % ring_size */
    uint64_t ring_size;
    uint32_t active_index;
    struct capture *capture; /* NULL: what is queued runs */
    uint32_t *capture_after; /* the nodes that the next captured one depends on */
    uint32_t capture_after_count, capture_after_capacity;
    stream *next; /* in the list of free or of unnamed structures */
};

/* The stream that a handle means for this thread; NULL, with misuse noted: none. */
stream *stream_of(sim_call *call, cudaStream_t handle);
stream *stream_find(sim_thread *thread, cudaStream_t handle); /* likewise, without the note */

stream *stream_by_id(uint32_t id); /* any structure, in use or not; NULL: none */

/* Queues `e` behind everything on `s`, or adds it to the capture that `s` is in; with GMD_SIM_EAGER
 * it completes at once. False, here and below: the host has no memory; what the entry owns is then
 * still the caller's. */
bool stream_push(stream *s, entry e);

/* Which streams of a device the host waits for or asks about. */
typedef enum stream_group { STREAMS_ALL, STREAMS_BLOCKING } stream_group;

/* Makes time pass until `s` is complete up to `ticket`, or until all of a group is. The host then
 * knows only what host_learn is told. Host functions run meanwhile, without the lock: what was
 * looked up before must be looked up again. */
void stream_force(stream *s, uint64_t ticket);
/* At the begin of an API call: lets work complete where the schedule decides that now. */
void schedule_progress(void);

bool streams_are_idle(int device, stream_group group);
void streams_force_group(int device, stream_group group); /* -1: every device */

/* Room for the default streams of so many devices. False: the host has no memory. */
bool streams_init(uint32_t device_count);
void streams_reset(void);              /* every stream and its work is gone */
void streams_reset_device(int device); /* of one device, work unfinished */
uint64_t stream_pending(const stream *s);

/* A place in a stream's work: all that is queued up to `ticket`. `before` is what lies before it on
 * other streams; it is needed to follow the point or to learn that it is over. */
typedef struct point {
    stream *on; /* NULL: nothing */
    uint64_t ticket;
    past *before;
} point;

/* For whoever stores a point: what it had is given up, and what lies before the new one kept. */
static inline void point_store(point *at, point p)
{
    past_keep(p.before);
    past_drop(at->before);
    *at = p;
}

/* What is queued on `s` now; to be passed on, not to be stored. */
static inline point stream_point(const stream *s)
{
    return (point){.on = (stream *)s, .ticket = s->tail, .before = s->before};
}

/* happens_before.c: everything queued on `s` from now on runs after `p` in every schedule. */
bool stream_is_after(const stream *s, point p);
bool host_is_after(point p); /* likewise, whatever the host does */

/* Makes it so: queues a wait where one is needed. */
bool stream_follow(stream *s, point p);

/* Makes what is queued next on `s` wait for what the default stream's rules demand. */
bool stream_order_default(stream *s);

/* The host has waited for a point, or was told that it is complete: what it does from now on, and
 * all work that it queues, is after it. */
void host_learn(point p);
void host_learn_group(int device, stream_group group); /* all that is queued; -1: every device */

/* The host has synchronised with some work, and has learnt of it: pools give memory back. */
void pools_synchronised(void);
uint64_t pools_hold(int device); /* bytes of the device, in use or not */

/* The host waits for all work of a device; -1: of every device. */
static inline void host_wait_device(int device)
{
    streams_force_group(device, STREAMS_ALL);
    host_learn_group(device, STREAMS_ALL);
    pools_synchronised();
}

/* pools.c, pool_memory.c: stream-ordered memory. */
bool pool_free(uint32_t slot, point freed_at); /* false: it is free already */
void pools_reset(void);
const char *pools_violation(void); /* what does not hold of them; NULL: all does */
void pools_reset_device(int device);
/* Bytes of the chunk that begins with this block, in use or not; 0: it begins with another. */
uint64_t pool_chunk_span(uint32_t slot);
/* The range begins in this block and ends in its chunk. */
bool pool_has(uint32_t slot, uint64_t address, uint64_t size);

/* events.c */
void event_recorded(cudaEvent_t handle, const stream *s, uint64_t ticket, uint64_t end_ns);
int event_record_by_graph(cudaEvent_t handle, stream *s); /* nodes of a launched graph */
int event_wait_by_graph(cudaEvent_t handle, stream *s);
void events_reset(void);
const char *events_violation(void); /* what does not hold of events and tickets; NULL: all does */
void events_reset_device(int device);

/* copies.c: what an entry does to memory when it completes, or when it is dropped. */
void copy_complete(entry *e, int device);
bool copy_value_holds(const entry *e); /* WAIT_VALUE */

/* queue.c: what an entry owns. */
void entry_drop(entry *e);
bool entry_copy(entry *to, const entry *from);

/* capture.c: checks that answer with the error of a call that a capture forbids, after stopping the
 * capture where that is what a real device does; 0: it may go on. */
bool capture_is_any(void);
bool capture_stop(int device); /* what captures on it becomes invalid; false: nothing does */
int capture_check_unsafe(sim_call *call); /* may synchronise, whatever it is given */
int capture_check_device(sim_call *call); /* cudaDeviceSynchronize */
int capture_check_event(sim_call *call, uint64_t capture_id); /* the host asks for an event */
int capture_check_stream(sim_call *call, stream *s);          /* the host asks for a stream */
int capture_check_work(sim_call *call, const stream *s);      /* work on a stream */
/* Stops the capture of `s`; returns `error` with the sentence noted. */
int capture_refuse(sim_call *call, stream *s, int error, const char *sentence);
uint64_t capture_id_of(const stream *s); /* 0: it does not capture */
bool capture_push(stream *s, entry e);
/* `s` waits for an event recorded in a capture: joins it. */
int capture_wait(sim_call *call, stream *s, uint64_t capture_id, const uint32_t *after,
                 uint32_t count);
void capture_leave_stream(stream *s); /* it is destroyed */
void captures_reset(void);
void graphs_reset(void);            /* graphs.c */
const char *graphs_violation(void); /* what does not hold of graphs; NULL: all does */

/* Handles are numbers that are no addresses, so that following one faults: a kind (4 bits), the
 * reset that they belong to (18 bits) and a serial number (38 bits), so that a stale one is
 * recognised. */
enum {
    HANDLE_STREAM = 5,
    HANDLE_EVENT = 6,
    HANDLE_CONTEXT = 7,
    HANDLE_MEMORY = 8,
    HANDLE_POOL = 9,
    HANDLE_GRAPH = 12,
    HANDLE_GRAPH_NODE = 13,
    HANDLE_GRAPH_EXEC = 14
};
enum { HANDLE_SERIAL_BITS = 38 };

static inline uint64_t handle_make(int kind, uint64_t serial)
{
    return (uint64_t)kind << 60 | (sim.epoch & 0x3FFFF) << 42 | serial << 4;
}

/* The serial number of a handle of this kind and reset; 0: it is none. */
static inline uint64_t handle_serial(uint64_t handle, int kind)
{
    uint64_t rest = handle ^ handle_make(kind, 0);
    return rest >> (HANDLE_SERIAL_BITS + 4) == 0 && (rest & 0xF) == 0 ? rest >> 4 : 0;
}

#endif
