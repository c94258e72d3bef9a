/* gmd_sim.h - control of the simulated CUDA device, for tests, oracles and fuzzers.
 *
 * The simulated libcudart.so.13, libcudart.so.12 and libcuda.so.1 share one runtime
 * (libgmd_sim.so); these functions are exported by it and steer and inspect that runtime. They are
 * never seen by the allocator under test: none of them touches a thread's last error, moves the
 * clock unless it says so, or counts as a call.
 *
 * Convention: functions returning int give 0, or -1 when an argument is out of range and nothing
 * was changed. Sizes are bytes, times are nanoseconds of the virtual clock. All functions may be
 * called from any thread, but gmd_sim_reset must not run beside other calls. */
#ifndef GMD_SIM_H
#define GMD_SIM_H

#include "gmd_cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_SIM_PAGE_BYTES ((uint64_t)2 << 20) /* physical memory is handed out in such pages */
#define GMD_SIM_DEVICE_MAX 16

/* Every function that the device counts and can make to fail, by the name that gmd_sim_fault()
 * takes. X(result, name, parameters, arguments) */
#define GMD_SIM_CUDA_FUNCTIONS(X)                                                                  \
    GMD_CUDART_FUNCTIONS(X)                                                                        \
    GMD_CUDART_FURTHER_FUNCTIONS(X)                                                                \
    GMD_CUDA_DRIVER_FUNCTIONS(X)                                                                   \
    X(int, kernel, (), ()) /* gmd_sim_launch() */

/* Where cudaMalloc puts a new allocation among the free addresses. */
typedef enum gmd_sim_placement {
    GMD_SIM_ASCENDING,   /* always beyond every earlier one, until the address window is used up */
    GMD_SIM_REUSE_FIRST, /* the lowest free address that fits */
    GMD_SIM_RANDOM,      /* a seeded choice among the free places */
    GMD_SIM_RECORDED,    /* the next address of the given list; see gmd_sim_config.recorded */
} gmd_sim_placement;

/* How far queued work gets without being forced. A synchronising call always completes what it
 * waits for, and never breaks the order of a stream or of waits. The last two decide at every API
 * call that may look at the device or queue work, and at gmd_sim_advance, how much of what could
 * complete does, and while a call waits, in which order: so that they reach every legal order. */
typedef enum gmd_sim_schedule {
    GMD_SIM_TIMED,    /* work takes its duration on the virtual clock */
    GMD_SIM_EAGER,    /* work is complete as soon as it is queued, if its waits are */
    GMD_SIM_LAZY,     /* work completes only when a synchronising call forces it */
    GMD_SIM_SEEDED,   /* gmd_sim_config.schedule_seed decides */
    GMD_SIM_EXPLICIT, /* gmd_sim_config.choices decide; when they are used up: timed */
} gmd_sim_schedule;

typedef struct gmd_sim_recorded {
    uint64_t address, size;
    int device; /* that asked for it; not used for placing */
} gmd_sim_recorded;

typedef struct gmd_sim_config {
    size_t struct_size;      /* sizeof(gmd_sim_config) */
    uint32_t device_count;   /* 1 to GMD_SIM_DEVICE_MAX */
    uint64_t capacity_bytes; /* of each device; at least one page; all together (the number of
                                devices rounded up to a power of 2) at most 16 TiB */
    uint64_t seed;           /* of GMD_SIM_RANDOM */
    gmd_sim_placement placement;
    gmd_sim_schedule schedule;
    /* The handle of a destroyed stream or event goes to the next one that is made on its device, as
     * an H200 does it. Else none comes again, so that each use of a stale one is noticed. */
    bool reuses_handles;
    bool backed;          /* device memory holds data: copies and memsets really move bytes */
    bool free_is_lenient; /* breaks the device on purpose: cudaFree does not wait for queued work */
    /* GMD_SIM_RECORDED, kept by reference until the next reset: a cudaMalloc gets the address of
     * the next entry when its size is the entry's and the range is free. From the first mismatch
     * on, placement falls back to ascending addresses and gmd_sim_recorded_left tells. */
    const gmd_sim_recorded *recorded;
    size_t recorded_count;
    /* Likewise the addresses that cuMemAddressReserve gives, one after the other, where they are
     * free; beyond the list and for any other placement: the lowest free ones of a window. */
    const uint64_t *recorded_reservations;
    size_t recorded_reservation_count;
    uint64_t schedule_seed; /* of GMD_SIM_SEEDED */
    /* GMD_SIM_EXPLICIT, kept by reference until the next reset, as fuzz input. One choice is used
     * wherever there are several: with n streams whose next work can complete, a choice modulo n +
     * 1 gives 0 to leave it at that, or which of them goes on; modulo n while a call waits. */
    const uint8_t *choices;
    size_t choice_count;
} gmd_sim_config;

/* The configuration that holds before the first reset: 1 device of 80 GiB, ascending, timed,
 * unbacked; environment variables GMD_SIM_DEVICES, GMD_SIM_CAPACITY (bytes), GMD_SIM_SCHEDULE
 * (timed, eager or lazy) and GMD_SIM_BACKED (0 or 1) change it, so that an unmodified program can
 * be run on the libraries by hand. */
void gmd_sim_default_config(gmd_sim_config *config);

/* Back to a fresh device: all memory, streams, events, faults, counters and errors are gone,
 * handles from before are invalid. Takes microseconds: the cost follows what was in use. -1 also
 * where the host has no memory for a first table. */
int gmd_sim_reset(const gmd_sim_config *config);

/* --- observing --------------------------------------------------------------------------- */

typedef enum gmd_sim_call_kind {
    GMD_SIM_CALL_OTHER,
    GMD_SIM_CALL_MALLOC, /* address, size */
    GMD_SIM_CALL_FREE,   /* address, size of what was freed */
    GMD_SIM_CALL_MAP,    /* physical memory at an address: address, size */
    GMD_SIM_CALL_UNMAP,  /* likewise */
} gmd_sim_call_kind;

/* One finished API call. */
typedef struct gmd_sim_call {
    const char *function; /* "cudaMalloc"; static */
    uint64_t index;       /* of all calls since the reset, from 1 */
    uint64_t address, size;
    gmd_sim_call_kind kind;
    int result; /* cudaError_t, or CUresult for cu* */
    int device; /* the memory's or the current device */
    bool failed_by_fault;
    bool is_pooled;          /* FREE: of memory of a stream-ordered pool, which keeps it */
    const char *misuse;      /* a sentence when the call breaks the API's rules, else NULL */
    const char *misuse_rule; /* then: the rule, where its error leaves it open which one; or NULL */
} gmd_sim_call;

/* Called in the calling thread after each API call, outside the runtime's lock. NULL: none. One
 * observer at a time; it must not call the CUDA API. */
typedef void gmd_sim_observer(void *context, const gmd_sim_call *call);
void gmd_sim_observe(gmd_sim_observer *observer, void *context);

/* The calling thread's own CUDA calls from now on are the harness's (true) or the allocator's
 * (false, as in every thread at first). The harness's calls do what they say, but they are not
 * counted, take no planted fault and are not reported to the observer. */
void gmd_sim_harness(bool is_harness);

/* What the CUDA runtime keeps for the calling thread, looked at without a trace. */
typedef struct gmd_sim_thread_state {
    int device;       /* cudaGetDevice */
    int last_error;   /* cudaPeekAtLastError */
    int capture_mode; /* cudaStreamCaptureMode, as cudaThreadExchangeStreamCaptureMode gives it */
} gmd_sim_thread_state;
void gmd_sim_thread(gmd_sim_thread_state *state);

/* Called in the calling thread when an API call begins and again when it has ended, outside the
 * runtime's lock and not for control functions, so that a scheduler of host threads can let another
 * thread run there. The hook may block, and may itself call control functions only. NULL: none. Set
 * it while no other thread makes calls; a reset leaves it as it is. */
typedef void gmd_sim_yield(void *context, const char *function, bool is_before);
void gmd_sim_set_yield(gmd_sim_yield *hook, void *context);

typedef struct gmd_sim_device_state {
    uint64_t capacity_bytes;
    uint64_t physical_bytes;   /* taken, in whole pages */
    uint64_t allocated_bytes;  /* sum of the sizes asked for */
    uint64_t allocation_count; /* live cudaMalloc allocations */
    uint64_t stream_count;     /* created and not destroyed */
    uint64_t event_count;      /* likewise */
    /* Virtual memory management: address ranges reserved, physical handles that exist (released
     * ones that are still mapped too), and what is mapped. */
    uint64_t reservation_count, reservation_bytes, handle_count, mapped_bytes;
    uint64_t pool_bytes; /* of allocated_bytes: what stream-ordered pools hold, in use or not */
} gmd_sim_device_state;

int gmd_sim_device(int device, gmd_sim_device_state *state);

/* The live allocation that contains `address`; -1 when there is none. O(1) or O(log n). */
typedef struct gmd_sim_range {
    uint64_t address, size; /* size as asked for */
    int device;
} gmd_sim_range;
int gmd_sim_find(uint64_t address, gmd_sim_range *range);

/* Every byte of the range is memory of `device` that work on it can read and write: it is
 * allocated, or mapped with access. `bad`, where it is not NULL, gets the first address that
 * cannot. */
bool gmd_sim_is_backed(uint64_t address, uint64_t size, int device, uint64_t *bad);

/* Another library than the one that is looked at allocates `size` bytes, and gets this address. -1:
 * something is there, or there is no memory for it. No call is counted or observed, and no work is
 * waited for; nor when it gives them back, which is -1 where they are gone already. */
int gmd_sim_occupy(int device, uint64_t address, uint64_t size);
int gmd_sim_vacate(uint64_t address);

/* Visits live allocations of a device in ascending address order. */
void gmd_sim_each_allocation(int device, void (*visit)(void *context, const gmd_sim_range *range),
                             void *context);

uint64_t gmd_sim_call_count(const char *function); /* since the reset; 0 for an unknown name */
uint64_t gmd_sim_misuse_count(void);
uint64_t gmd_sim_forced_waits(void); /* times a synchronising call had to force progress */
size_t gmd_sim_recorded_left(void);  /* entries of the recorded list not used yet */

/* Reads or writes backed memory from the host without queueing anything; -1 where the range is not
 * one live allocation or memory is not backed. */
int gmd_sim_peek(uint64_t address, void *to, size_t size);
int gmd_sim_poke(uint64_t address, const void *from, size_t size);

/* --- marks ------------------------------------------------------------------------------- */

/* Every byte of the range now holds `mark` (not 0), as if a kernel had written it. Other work that
 * writes there, but for copies of marked memory, leaves no mark. Needs no backed memory. Marks are
 * kept from the first one on, until the reset. */
void gmd_sim_mark(uint64_t address, uint64_t size, uint64_t mark);

/* As gmd_sim_launch of a kernel that writes `mark` to all of one range. */
cudaError_t gmd_sim_launch_marking(cudaStream_t handle, uint64_t duration_ns, uint64_t address,
                                   uint64_t size, uint64_t mark);

/* How much of a range holds `mark`, and of what does not the first address and what mark that has
 * (0: none). -1: not known, or part of the range is neither allocated nor mapped. */
typedef struct gmd_sim_marked {
    uint64_t marked_bytes, other_bytes, other_address, other_mark;
} gmd_sim_marked;
int gmd_sim_find_mark(uint64_t address, uint64_t size, uint64_t mark, gmd_sim_marked *out);

/* --- work and time ----------------------------------------------------------------------- */

typedef struct gmd_sim_access {
    uint64_t address, size;
    bool is_write;
} gmd_sim_access;

/* Queues a kernel that takes `duration_ns` and touches the given ranges. `stream` NULL is the
 * current device's legacy default stream. Returns what a launch would. Counts as the call "kernel".
 */
cudaError_t gmd_sim_launch(cudaStream_t handle, uint64_t duration_ns,
                           const gmd_sim_access *accesses, size_t access_count);

/* The choices of a seeded or explicit schedule begin again, as after a reset: for several runs one
 * after the other on a device that is idle. */
void gmd_sim_restart_schedule(void);

uint64_t gmd_sim_now(void);
void gmd_sim_advance(uint64_t duration_ns);     /* work that ends in that time completes */
uint64_t gmd_sim_pending(cudaStream_t handle);  /* queued entries not complete; 0 idle */
bool gmd_sim_event_complete(cudaEvent_t event); /* cudaEventQuery without side effects */

/* --- happens before ---------------------------------------------------------------------- */

/* A place in the work of a stream: all that was queued on it at some moment. */
typedef struct gmd_sim_point {
    uint32_t stream; /* the simulator's own number: a destroyed stream's points stay valid */
    uint64_t ticket; /* 0: nothing was queued */
} gmd_sim_point;

/* What is queued on a stream of `device` now (NULL: its legacy default stream). -1: no such stream.
 */
int gmd_sim_point_of(int device, cudaStream_t handle, gmd_sim_point *where);

/* Whatever is queued on the stream from now on runs after the point in every schedule, not only
 * because of how this one went: an event, the stream itself, or the host's synchronising says so.
 * An answer "complete" of a query counts as synchronising: the host knows. */
bool gmd_sim_is_ordered(gmd_sim_point point, int device, cudaStream_t handle);
bool gmd_sim_is_known(gmd_sim_point point);    /* likewise, whatever the host does from now on */
bool gmd_sim_is_complete(gmd_sim_point point); /* it has run, by this schedule */

/* --- faults ------------------------------------------------------------------------------ */

/* The `nth` call of `function` from now (1: the next) returns `error` and does nothing else; with
 * `every_later` so does each one after it. -1: unknown function, nth 0, error 0, or too many faults
 * (64). */
int gmd_sim_fault(const char *function, uint64_t nth, bool every_later, int error);
void gmd_sim_clear_faults(void);

/* A device gives no more than this much physical memory (UINT64_MAX: its capacity) and is out of
 * memory beyond it, while cudaMemGetInfo goes on telling of the capacity. Until the reset. */
int gmd_sim_budget(int device, uint64_t bytes);

#endif
