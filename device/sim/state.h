/* state.h - the state that the simulator's files share, and what each offers to the others.
 *
 * Everything here is called with the runtime's lock held. */
#ifndef GMD_SIM_STATE_H
#define GMD_SIM_STATE_H

#include "address_map.h"
#include "calls.h"
#include "front.h"
#include "gmd_sim.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct stream stream;

typedef struct sim_device {
    uint64_t physical_bytes, allocated_bytes, allocation_count, stream_count, event_count;
    uint64_t next_large, next_small; /* GMD_SIM_ASCENDING: where the next allocation may begin */
    stream *legacy;                  /* the default stream */
    unsigned context_count;          /* cuDevicePrimaryCtxRetain without release */
    bool is_active;                  /* its primary context exists */
    cudaError_t broken; /* every call answers this: queued work did what the device cannot */
} sim_device;

typedef struct sim_state {
    gmd_sim_config config;
    uint64_t epoch;  /* of resets; part of every handle */
    uint64_t now_ns; /* the virtual vclock */
    uint64_t random; /* state of the generator of GMD_SIM_RANDOM */
    uint64_t forced_waits;
    uint64_t choice_random;  /* GMD_SIM_SEEDED: state of the generator */
    size_t choice_next;      /* GMD_SIM_EXPLICIT */
    const char *late_misuse; /* noticed when queued work ran; the next call tells it */
    uint32_t running;        /* host functions, without the lock */
    size_t recorded_next;
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
CUcontext context_of(int device);
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
bool placement_owns(uint64_t address); /* in any device's window: never a host address */
void placement_reset_device(int device);
/* The configuration's devices fit the address space. */
bool placement_can_hold(uint32_t device_count, uint64_t capacity_bytes);

/* memory.c */
allocation *memory_find_range(uint64_t address, uint64_t size); /* whole range in one; NULL: no */
/* Work on `device` can read and write the whole range. */
bool memory_is_usable(uint64_t address, uint64_t size, int device);
void memory_reset(void);                /* nothing is allocated */
void memory_release_device(int device); /* what one device has given */
/* Page-locked host memory of cudaMallocHost that holds the whole range. */
bool memory_is_pinned(const void *pointer, uint64_t size, int *device);

/* --- streams and what is queued on them -------------------------------------------------- */

/* A place in a stream's work: all that is queued up to `ticket`. */
typedef struct point {
    stream *on; /* NULL: nothing */
    uint64_t ticket;
} point;

/* What something is ordered after, beyond what the host knows: shared, and never changed. */
typedef struct vclock {
    uint32_t refs, count;
    point part[]; /* by ascending id of the stream */
} vclock;

enum { ACCESSES_INLINE = 3 };

/* A ticket is a position in a stream's queue: entries are numbered from 1, and are complete up to
 * `head` and queued up to `tail`. */
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
    uint32_t count;       /* KERNEL: of its accesses; FILL: bytes of the pattern, 1 or 4;
                             WAIT_VALUE: how it compares */
    uint64_t duration_ns; /* KERNEL, FILL, COPY */
    uint64_t queued_ns, sequence;
    union {
        struct {
            uint64_t to, from, width, height; /* rows of `width` bytes */
            uint64_t to_pitch, from_pitch;
            void *staged; /* a copy of pageable source memory, owned */
        } move;           /* FILL, COPY, WAIT_VALUE (to) */
        struct {
            uint64_t address, size;
        } access[ACCESSES_INLINE]; /* KERNEL of that many or fewer */
        gmd_sim_access *accesses;  /* KERNEL of more, owned */
        struct point wait;         /* WAIT */
        cudaEvent_t event;         /* RECORD */
        struct {
            cudaHostFn_t function;
            cudaStreamCallback_t callback; /* instead of it */
            void *data;
            cudaStream_t stream;
        } host; /* HOST */
    };
} entry;

/* What work queued after `since` is ordered after. */
typedef struct clock_version {
    uint64_t since;
    vclock *clock;
} clock_version;

struct capture;

struct stream {
    cudaStream_t handle;
    uint32_t id; /* of the structure, which later streams use again: their tickets go on */
    int device, priority;
    unsigned flags;
    bool is_destroyed;
    bool is_running;     /* a host function of its, without the lock */
    bool is_history_cut; /* there were more versions than are kept */
    bool is_ahead;       /* of what the host knows: in the list of those */
    uint64_t head, tail;
    uint64_t known;           /* the host is ordered after its work up to here */
    uint64_t need;            /* must be complete up to here before a synchronising call returns */
    uint64_t need_followed;   /* GMD_SIM_LAZY: waits up to here have passed the need on */
    uint64_t end_ns;          /* when entry `head` ended */
    uint64_t saw_default;     /* this stream already waits for the default stream up to here */
    uint64_t seen_by_default; /* the default stream already waits for this one up to here */
    uint64_t changes;         /* of its tail and clock, to see whether there was one */
    entry *ring;              /* of entries head+1 to tail, at (ticket - 1) % ring_size */
    uint64_t ring_size;
    clock_version *versions; /* ascending; the last one holds for what is queued next */
    uint32_t version_count, version_capacity;
    uint32_t active_index, ahead_index;
    struct capture *capture; /* NULL: what is queued runs */
    uint32_t *capture_after; /* the nodes that the next captured one depends on */
    uint32_t capture_after_count, capture_after_capacity;
    stream *next; /* in the list of free or of unnamed structures */
};

/* The stream that a handle means for this thread; NULL, with misuse noted: none. */
stream *stream_of(sim_call *call, cudaStream_t handle);
stream *stream_find(sim_thread *thread, cudaStream_t handle); /* likewise, without the note */

stream *stream_by_id(uint32_t id); /* any structure, in use or not; NULL: none */

/* Makes what is queued next on `s` wait for what the default stream's rules demand. False, here and
 * below: the host has no memory. */
bool stream_order_default(stream *s);

/* Queues `e` behind everything on `s`, or adds it to the capture that `s` is in; with GMD_SIM_EAGER
 * it completes at once. It owns what the entry owns, also when it fails. */
bool stream_push(stream *s, entry e);

/* Makes time pass until `s` is complete up to `ticket`, until all of a device's or every stream is;
 * the host then knows of it. Host functions run meanwhile, without the lock: what was looked up
 * before must be looked up again. */
void stream_force(stream *s, uint64_t ticket);
void streams_force_device(int device);                 /* -1: every device */
void stream_force_unknown(stream *s, uint64_t ticket); /* likewise; what is known is the caller's */

bool streams_reset(void);              /* every stream and its work is gone */
void streams_reset_device(int device); /* of one device, work unfinished */
uint64_t stream_pending(const stream *s);

static inline point stream_point(stream *s)
{
    return (point){.on = s, .ticket = s->tail};
}

/* happens_before.c: everything queued on `s` from now on runs after `p` in every schedule. */
bool stream_is_after(const stream *s, point p);
bool host_is_after(point p); /* likewise, whatever the host does */
/* Makes it so: queues a wait where one is needed. False: the host has no memory. */
bool stream_follow(stream *s, point p);

/* What is queued next on the stream is ordered after: NULL, nothing that the host does not know. */
vclock *stream_clock(const stream *s);
vclock *clock_share(vclock *c);
void clock_release(vclock *c);
/* What is queued on `s` from now on, or whatever the host does, is ordered after `p` and `known`.
 */
bool stream_join(stream *s, point p, const vclock *known);
void host_join(point p, const vclock *known);
void host_join_stream(stream *s);  /* all that is queued on it */
void host_join_device(int device); /* on all of a device's streams; -1: every device's */
void host_join_at(stream *s, uint64_t ticket); /* one entry and what it was ordered after */
void stream_mark_ahead(stream *s); /* something was queued that the host does not know */
void stream_forget_clock(stream *s);

/* schedule.c: work may get on, where the schedule chooses at each call how far. */
void schedule_step(void);
/* The device's context is broken, as by the real device's error, until the device is reset. */
void device_break(int device, cudaError_t error, const char *misuse);

/* events.c */
void event_recorded(cudaEvent_t handle, const stream *s, uint64_t ticket, uint64_t end_ns);
int event_record_by_graph(cudaEvent_t handle, stream *s); /* nodes of a launched graph */
int event_wait_by_graph(cudaEvent_t handle, stream *s);
void events_reset(void);
void events_reset_device(int device);

/* capture.c, graphs.c */
bool capture_is_any(void);
/* A call that is unsafe while something captures: the error, with the captures stopped, or 0. */
int capture_check_unsafe(sim_call *call);
int capture_check_device(sim_call *call);                          /* cudaDeviceSynchronize */
int capture_check_event_wait(sim_call *call, uint64_t capture_id); /* the host asks for an event */
int capture_check_stream(sim_call *call, stream *s);               /* the host asks for a stream */
int capture_refuse(sim_call *call, stream *s, int error, const char *sentence);
int capture_check_legacy(sim_call *call, const stream *s); /* work on a stream: 906 on the legacy */
uint64_t capture_id_of(const stream *s);
bool capture_push(stream *s, entry e);
/* A wait of `s` for an event recorded in a capture: joins it. */
int capture_wait(sim_call *call, stream *s, uint64_t capture_id, const uint32_t *after,
                 uint32_t count);
void capture_leave_stream(stream *s); /* it is destroyed */
void captures_reset(void);
void graphs_reset(void);

/* copies.c: what an entry does to memory when it completes. */
void copy_complete(entry *e, int device);
bool copy_value_holds(const entry *e); /* WAIT_VALUE */
/* queue.c: what an entry owns. */
void entry_drop(entry *e);
bool entry_copy(entry *to, const entry *from);

/* Handles are numbers that are no addresses, so that following one faults: a kind (4 bits), the
 * reset that they belong to (18 bits) and a serial number (38 bits), so that a stale one is
 * recognised. */
enum { HANDLE_STREAM = 5, HANDLE_EVENT = 6, HANDLE_CONTEXT = 7 };
enum { HANDLE_GRAPH = 12, HANDLE_GRAPH_NODE = 13, HANDLE_GRAPH_EXEC = 14 };
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
