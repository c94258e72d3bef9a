/* launches.h - tells an order (order.h) what this process queues on CUDA's streams, whoever queues
 * it: PyTorch, cuBLAS, cuDNN, NCCL, Triton, the user's own kernels. By callbacks of CUPTI for calls
 * of the driver's API, below the runtime's.
 *
 * A kernel uses a block if a word of its parameters is an address within it. CUDA tells the sizes
 * of parameters (cuKernelGetParamInfo, CUDA 12.4), not their types. Hence two grades (order_use):
 *   certain    a parameter that is a pointer and nothing else (8 bytes), one that consists of
 *              pointers into blocks only, a copy's or memset's operand, every word where the
 * library that launches is known to fill its structures, or the layout is known (kernel_trust.c)
 *   possible   any other word within a structure: kernels leave parts of theirs uninitialised,
 * where an earlier launch's pointers may still stand; and what a table leads to that the host
 * copied into a block (pointer_tables.h), where the block's address is a parameter
 * Not seen: other pointers in device memory (arrays that kernels write), order that is made through
 * memory (flags that kernels poll, host functions), graphs that were built node by node.
 *
 * CUPTI has one subscriber in a process. While this one subscribes, torch.profiler gets no
 * activities of the device, and says so ("CUPTI initialization failed"); where another one has it
 * first, launches_start fails with a message, and the sanitizer goes on with what it has besides.
 *
 * Nothing here is linked: libcupti and libcuda are found at run time. */
#ifndef LAUNCHES_H
#define LAUNCHES_H

#include "order.h"

typedef struct launches launches;

typedef struct launches_work {
    const char *what; /* as long as the launches live */
    uint64_t place;
    order_stream stream;
    const order_use *uses; /* not of graphs */
    size_t count;
} launches_work;

typedef struct launches_callbacks {
    void *context;
    /* The block whose bytes [address, address + bytes) contain `pointer`, live or in quarantine,
     * with one reference that was taken under the lock that protects the table (order_block_keep);
     * NULL: none. Red zones belong to no block. Called for about ten words of each launch, by any
     * thread, with no lock held: a few ns where the word is no address of this allocator. */
    order_block *(*find_block)(void *context, uint64_t pointer);
    /* Where this thread is: a place for work that uses a block on another stream than its own or a
     * freed one, and for graph launches. By any thread, with no lock held. NULL: places are 0. */
    uint64_t (*place)(void *context);
    /* A stream is about to be destroyed: nothing may be queued on it any more. NULL: not told. */
    void (*stream_destroyed)(void *context, order_stream stream);
    /* Work that was told to the order. NULL: not told; else each work has a place. */
    void (*queued)(void *context, const launches_work *work);
    /* A call of the program returned that error of the driver's, by which CUDA is lost. NULL: not
     * told. */
    void (*failed)(void *context, int device, int result);
} launches_callbacks;

typedef struct launches_statistics {
    uint64_t kernels, copies, graphs; /* that were queued */
    uint64_t words;                   /* of kernels' parameters, looked at */
    uint64_t unknown_kernels;         /* launches whose parameters' sizes CUDA did not tell */
    uint64_t muted;                   /* calls that are the sanitizer's own */
} launches_statistics;

/* Starts to tell `o`. `cupti`: the path of libcupti.so, tried first; NULL: the one that is loaded
 * already (PyTorch links it), then the loader's search. CUDA need not be initialised yet. False,
 * with a sentence in `message`: nothing was started. `callbacks` is copied; `o` outlives what is
 * started. */
bool launches_start(order *o, const launches_callbacks *callbacks, const char *cupti,
                    launches **started, char *message, size_t message_bytes);

/* No callback runs any more when this returns; not to be called within one. Names of kernels in
 * findings are gone with it. NULL: nothing. */
void launches_stop(launches *l);

void launches_statistics_of(launches *l, launches_statistics *out);

/* What this thread calls between the two is not the program's: the sanitizer's own fills and
 * checks, the allocator's own calls. Work is no use, and waits, events and synchronisation make no
 * order; that streams, events and graphs come and go is seen all the same. They nest. */
void launches_mute(void);
void launches_unmute(void);

/* For tests: as if CUPTI had called back. */
void launches_callback(void *started, int domain, uint32_t number, const void *call);

#endif
