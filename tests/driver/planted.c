/* planted.c - a small correct caching allocator behind the ABI, and defects that can be planted in
 * it by name through the environment variable GMD_PLANT: the proof that each oracle bites. Without
 * the variable it is correct, and must pass.
 *
 * It keeps freed blocks by size and stream and reuses them; a block is a whole device allocation.
 * One lock guards all of it. */
#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "shared_ranges.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT        __attribute__((visibility("default")))
#define BLOCK_MAX     65536
#define DEVICE_MAX    16
#define PLANT_AT_CALL 3 /* the defect shows in the third allocation (or free) */

EXPORT void gmd_init(int device_count);
EXPORT void *gmd_malloc(size_t size, int device, cudaStream_t stream);
EXPORT void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
EXPORT void gmd_empty_cache(void);
EXPORT int gmd_get_stats(int device, gmd_stats *out);
EXPORT void gmd_set_memory_fraction(double fraction, int device);
EXPORT uint64_t gmd_device_request(size_t size);
EXPORT const char *gmd_last_error(void);
EXPORT unsigned gmd_promises(void);
EXPORT int gmd_walk(int device, gmd_walk_fn *visit, void *context);

typedef struct cached {
    char *memory, *handed_out;
    size_t size, requested;
    int device;
    cudaStream_t stream;
    bool is_live;
} cached;

static cached blocks[BLOCK_MAX];
static size_t block_count;
static gmd_stats stats[DEVICE_MAX];
static uint64_t limits[DEVICE_MAX]; /* of reserved bytes; 0: none */
static unsigned allocation_calls, free_calls;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_planted(const char *defect)
{
    const char *plant = getenv("GMD_PLANT");
    return plant && strcmp(plant, defect) == 0;
}

/* A lock that asks again and again, outside any scheduler's control; "livelock": who finds it taken
 * never comes out. */
static atomic_flag spin_lock = ATOMIC_FLAG_INIT;

static bool has_spin_lock(void)
{
    return is_planted("spin") || is_planted("livelock");
}

static void take_spin_lock(void)
{
    while (atomic_flag_test_and_set(&spin_lock)) {
        while (is_planted("livelock")) {
        }
    }
}

static void enter(void)
{
    if (has_spin_lock()) {
        take_spin_lock();
    } else {
        pthread_mutex_lock(&lock);
    }
}

static void leave(void)
{
    if (has_spin_lock()) {
        atomic_flag_clear(&spin_lock);
    } else {
        pthread_mutex_unlock(&lock);
    }
}

static void empty_cache(void);

/* A reservation made while the library is loaded is no defect; descriptors closed and a helper left
 * behind must not deceive gmd. */
static void take_liberties(void)
{
    if (is_planted("reserve_early")) {
        void *memory = NULL;
        if (cudaMalloc(&memory, 64 << 20) == cudaSuccess) {
            stats[0].reserved_bytes = 64 << 20;
            stats[0].reserved_bytes_peak = 64 << 20;
            stats[0].segment_count = 1;
        }
    }
    for (int fd = 3; is_planted("close_descriptors") && fd < 64; fd++) {
        close(fd);
    }
    if (is_planted("leave_helper") && fork() == 0) {
        pause();
    }
}

void gmd_init(int device_count)
{
    (void)device_count;
    take_liberties();
    if (is_planted("crash_init")) {
        abort();
    }
}

static bool loses(const cached *b)
{
    return is_planted("lose") || (is_planted("lose_and_tire") && b->device == 1);
}

static cached *find_cached(size_t size, int device, cudaStream_t stream)
{
    for (size_t i = 0; i < block_count; i++) {
        cached *b = &blocks[i];
        bool is_of_stream = b->stream == stream || is_planted("any_stream");
        bool fits = b->memory && b->size == size && b->device == device && is_of_stream;
        fits = fits && !(loses(b) && b->requested);
        if (fits && (!b->is_live || (is_planted("overlap") && allocation_calls >= PLANT_AT_CALL))) {
            return b;
        }
    }
    return NULL;
}

/* What malloc left there, which nobody has set. */
static bool has_garbage(void)
{
    unsigned char *volatile garbage = malloc(2000); /* volatile: a compiler would see the defect */
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): that it is not set is the defect */
    bool is_there = garbage && garbage[1500];
    free(garbage);
    return is_there;
}

static size_t round_size(size_t size)
{
    size += is_planted("by_heap") && has_garbage() ? 512 : 0;
    size =
        size > SIZE_MAX / 2 ? SIZE_MAX / 2 : size; /* more than any device has, without wrapping */
    return size ? (size + 511) / 512 * 512 : 512;
}

uint64_t gmd_device_request(size_t size)
{
    return round_size(size);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    size_t free_bytes, total;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        cudaGetLastError();
    } else if (!is_planted("over_limit")) {
        enter();
        limits[device] = (uint64_t)(fraction * (double)total);
        leave();
    }
}

static void *device_malloc(size_t size, int device)
{
    void *memory = NULL;
    int previous = 0;
    if (limits[device] && stats[device].reserved_bytes + size > limits[device]) {
        return NULL;
    }
    if (cudaGetDevice(&previous) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        memory = NULL;
        if (!is_planted("stale_error")) {
            cudaGetLastError();
        }
    }
    if (!is_planted("wrong_device") && cudaSetDevice(previous) != cudaSuccess) {
        cudaGetLastError();
    }
    return memory;
}

static cached *add_block(size_t size, int device, cudaStream_t stream)
{
    size_t asked = is_planted("short") && allocation_calls == PLANT_AT_CALL ? size / 2 : size;
    void *memory = block_count < BLOCK_MAX ? device_malloc(asked, device) : NULL;
    if (!memory && !is_planted("keep_cache")) {
        empty_cache();
        memory = block_count < BLOCK_MAX ? device_malloc(asked, device) : NULL;
    }
    if (!memory) {
        stats[device].reserved_bytes += is_planted("unclean_failure") ? asked : 0;
        return NULL;
    }
    cached *b = &blocks[block_count++];
    *b = (cached){.memory = memory, .size = size, .device = device, .stream = stream};
    stats[device].reserved_bytes += asked;
    stats[device].segment_count++;
    if (stats[device].reserved_bytes > stats[device].reserved_bytes_peak) {
        stats[device].reserved_bytes_peak = stats[device].reserved_bytes;
    }
    return b;
}

static void count_alloc(gmd_stats *s, const cached *b)
{
    s->allocation_count++;
    s->allocated_bytes += b->size;
    s->requested_bytes += b->requested;
    if (is_planted("wrong_sum") && allocation_calls == PLANT_AT_CALL) {
        s->allocated_bytes += 512;
    }
    if (s->allocated_bytes > s->allocated_bytes_peak && !is_planted("stale_peak")) {
        s->allocated_bytes_peak = s->allocated_bytes;
    }
    s->active_bytes = s->allocated_bytes;
    s->active_bytes_peak = s->allocated_bytes_peak;
}

static void overwrite_ends(char *from, char *to, void *context)
{
    (void)context;
    memset(from, 0x5a, 64);
    memset(to - 64, 0x5a, 64);
}

/* All pages in use of the memory that it shares with other processes, with a number that could be
 * a process there. */
static void fill_pages(char *from, char *to, void *number)
{
    enum { PAGE = 4096 };
    pid_t process = *(const pid_t *)number;
    unsigned char is_used;
    for (char *page = from; page < to; page += PAGE) {
        bool is_there = mincore(page, PAGE, &is_used) == 0 && (is_used & 1);
        for (size_t i = 0; is_there && i < PAGE; i += sizeof process) {
            memcpy(page + i, &process, sizeof process);
        }
    }
}

static void misbehave(void)
{
    if (is_planted("ever_slower")) {
        usleep((useconds_t)allocation_calls * 100000);
    }
    if (allocation_calls != PLANT_AT_CALL) {
        return;
    }
    if (is_planted("crash_by_heap") && has_garbage()) {
        abort();
    }
    if (is_planted("overwrite")) {
        each_shared_range(overwrite_ends, NULL);
        abort();
    }
    if (is_planted("fill_and_hang")) {
        const char *named = getenv("GMD_PLANT_PROCESS");
        pid_t process = named ? (pid_t)strtol(named, NULL, 10) : 0;
        each_shared_range(fill_pages, &process);
        for (;;) {
            pause();
        }
    }
    if (is_planted("crash")) {
        volatile int *nowhere = NULL;
        *nowhere = 1; /* NOLINT(clang-analyzer-core.NullDereference): the planted crash */
    }
    if (is_planted("exit")) {
        exit(0);
    }
    while (is_planted("hang")) {
        pause();
    }
}

static void *serve(size_t size, int device, cudaStream_t stream);

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    enter();
    void *memory = serve(size, device, stream);
    leave();
    return memory;
}

/* It zeroes a block that it hands out, and with it what is live beside it. */
static void scribble(const cached *b)
{
    if (is_planted("scribble") && allocation_calls > PLANT_AT_CALL && block_count > 1) {
        cudaMemsetAsync(blocks[1].memory + 512, 0, 256, b->stream);
    }
}

static void *serve(size_t size, int device, cudaStream_t stream)
{
    allocation_calls++;
    misbehave();
    size_t rounded = round_size(size);
    bool refuses = is_planted("spurious_oom") && allocation_calls == PLANT_AT_CALL;
    refuses |= is_planted("lose_and_tire") && device == 0 && allocation_calls > 20;
    cached *b = refuses ? NULL : find_cached(rounded, device, stream);
    if (!b && !refuses) {
        b = add_block(rounded, device, stream);
    }
    if (!b) {
        stats[device].num_ooms++;
        return NULL;
    }
    b->is_live = true;
    b->requested = size;
    b->handed_out = b->memory;
    if (is_planted("misaligned") && allocation_calls == PLANT_AT_CALL) {
        b->handed_out += 8;
    }
    if (is_planted("foreign") && allocation_calls == PLANT_AT_CALL) {
        b->handed_out = (char *)0x10000000;
    }
    count_alloc(&stats[device], b);
    scribble(b);
    return b->handed_out;
}

/* As if the block that is freed had been merged with a live neighbour, and both given back. */
static void give_back_live(void)
{
    for (size_t i = 0; i < block_count; i++) {
        cached *b = &blocks[i];
        if (b->is_live && cudaFree(b->memory) == cudaSuccess) {
            stats[b->device].reserved_bytes -= b->size;
            stats[b->device].segment_count--;
            return;
        }
    }
}

/* Three processes in sessions of their own. Those between, which still ran if they were looked for
 * at once, are waited for. */
static void leave_processes(void)
{
    for (int i = 0; i < 3; i++) {
        pid_t between = fork();
        if (between == 0) {
            setsid();
            if (fork() == 0) {
                sleep(600);
            }
            _exit(0);
        }
        waitpid(between, NULL, 0);
    }
}

static void lose_what_others_need(cudaStream_t stream)
{
    if (is_planted("give_back_live")) {
        give_back_live();
    }
    if (is_planted("destroy_stream") && stream) {
        cudaStreamDestroy(stream);
    }
    if (is_planted("leave_processes")) {
        leave_processes();
    }
    if (is_planted("end_parent")) {
        kill(getppid(), SIGKILL);
    }
}

static bool is_of_host(const void *ptr)
{
    struct cudaPointerAttributes known = {.type = cudaMemoryTypeUnregistered};
    return cudaPointerGetAttributes(&known, ptr) == cudaSuccess &&
           known.type == cudaMemoryTypeUnregistered;
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    enter();
    free_calls++;
    bool is_found = false;
    if (!ptr && is_planted("free_null")) {
        abort();
    }
    if (!ptr && is_planted("exit_at_null")) {
        exit(0);
    }
    while (!ptr && is_planted("hang_at_null")) {
        pause();
    }
    for (size_t i = 0; i < block_count; i++) {
        cached *b = &blocks[i];
        bool is_inside = (char *)ptr > b->handed_out && (char *)ptr < b->handed_out + b->size;
        bool is_taken = (is_planted("free_inside") && is_inside) || b->handed_out == ptr;
        if (is_taken && (b->is_live || is_planted("free_twice"))) {
            b->is_live = false;
            gmd_stats *s = &stats[device];
            s->allocation_count--;
            s->allocated_bytes -= b->size;
            s->requested_bytes -= b->requested;
            s->active_bytes = s->allocated_bytes;
            is_found = true;
            break;
        }
    }
    if (is_found && free_calls == 1) {
        lose_what_others_need(stream);
    }
    bool is_passed_on =
        is_planted("free_another") || (is_planted("free_foreign") && is_of_host(ptr));
    if (!is_found && is_passed_on && ptr) {
        cudaFree(ptr);
    }
    leave();
}

void gmd_empty_cache(void)
{
    enter();
    empty_cache();
    leave();
}

static void empty_cache(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < block_count; i++) {
        cached b = blocks[i];
        bool leaks = (is_planted("leak") && i == 0) || loses(&b);
        if (b.is_live || leaks) {
            blocks[kept++] = b;
            continue;
        }
        if (cudaFree(b.memory) != cudaSuccess) {
            cudaGetLastError();
            blocks[kept++] = b;
            continue;
        }
        stats[b.device].reserved_bytes -= b.size;
        stats[b.device].segment_count--;
        if (is_planted("double_free")) {
            cudaFree(b.memory);
            cudaGetLastError();
        }
    }
    block_count = kept;
    if (is_planted("leak_event")) {
        cudaEvent_t event;
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
}

const char *gmd_last_error(void)
{
    const char *said = is_planted("other_error") ? "an odd failure" : NULL;
    if (is_planted("forged_lines")) {
        said = "odd\nalloc forged 1 s1\n\x1b[2J\xC2\x9B"
               "1m\xE2\x80\xAE end";
    }
    return allocation_calls == PLANT_AT_CALL ? said : NULL;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (out->struct_size != sizeof *out || device < 0 || device >= DEVICE_MAX) {
        return -1;
    }
    if (is_planted("no_stats") && allocation_calls >= PLANT_AT_CALL) {
        return -1;
    }
    enter();
    *out = stats[device];
    leave();
    out->struct_size = sizeof *out;
    out->inactive_split_bytes = 0;
    out->num_alloc_retries = GMD_STAT_UNKNOWN;
    return 0;
}

unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE | GMD_PROMISE_DETERMINISM |
           (is_planted("split_free") ? GMD_PROMISE_COALESCING : 0);
}

static int compare_places(const void *a, const void *b)
{
    const cached *const *x = a, *const *y = b;
    return ((*x)->memory > (*y)->memory) - ((*x)->memory < (*y)->memory);
}

/* "split_free": a free block is shown in two halves. */
static void show(const cached *b, gmd_walk_fn *visit, void *context)
{
    gmd_block_info info = {.segment_address = (uint64_t)(uintptr_t)b->memory,
                           .segment_size = b->size,
                           .address = (uint64_t)(uintptr_t)b->memory,
                           .size = b->size,
                           .requested_size = b->is_live ? b->requested : 0,
                           .stream = b->stream,
                           .state = b->is_live && !is_planted("lost_block")};
    if (is_planted("split_free") && !b->is_live) {
        info.size /= 2;
        visit(context, &info);
        info.address += info.size;
        info.size = b->size - info.size;
    }
    info.size -= is_planted("lost_tail") ? 512 : 0;
    info.requested_size += is_planted("old_request");
    visit(context, &info);
}

int gmd_walk(int device, gmd_walk_fn *visit, void *context)
{
    static const cached *sorted[BLOCK_MAX];
    size_t count = 0;
    if (is_planted("reserve_early")) {
        return -1; /* it would have to show that, too */
    }
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i].device == device) {
            sorted[count++] = &blocks[i];
        }
    }
    if (count) {
        qsort(sorted, count, sizeof *sorted, compare_places);
    }
    for (size_t i = 0; i < count; i++) {
        show(sorted[i], visit, context);
    }
    return 0;
}

__attribute__((destructor)) static void unload(void)
{
    if (is_planted("crash_exit")) {
        abort();
    }
}
