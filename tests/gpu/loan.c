/* loan.c - lending under load on a real GPU: the memory of many live blocks is lent to another
 * process, which takes 95 % of the device's, and comes back.
 *
 *     loan [GIB [SEED]]     live blocks of so much (default: 40 % of the device)
 *     loan --lodger BYTES   the other process: takes and fills them, says so, and holds them
 *                               until its standard input ends
 *
 * Exit status 0: all addresses and hashes are equal; 1: something is not as it should be; 77: there
 * is no GPU. */
#include "gmd_allocator.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STREAMS     4
#define BLOCKS_MAX  200000
#define STAGE_BYTES (64 * GMD_MIB)
#define DRIVER_BYTES                                                                               \
    ((int64_t)(32 * GMD_MIB)) /* the context of a program that has done some work */

extern char **environ;

typedef struct live_block {
    unsigned char *address;
    uint64_t size, hash;
    int stream;
} live_block;

static struct {
    gmd_allocator *a;
    cudaStream_t streams[STREAMS];
    live_block *blocks;
    size_t count;
    uint64_t bytes, random;
    unsigned char *stage; /* page-locked */
} test;

/* --- words ------------------------------------------------------------------------------- */

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s (last error: %s)\n", what, cudaGetErrorName(cudaPeekAtLastError()));
        exit(1);
    }
}

static uint64_t next_random(void)
{
    test.random ^= test.random << 13;
    test.random ^= test.random >> 7;
    test.random ^= test.random << 17;
    return test.random;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t free_bytes(void)
{
    size_t is_free = 0, total = 0;
    expect(cudaMemGetInfo(&is_free, &total) == cudaSuccess, "cudaMemGetInfo");
    return is_free;
}

static uint64_t total_bytes(void)
{
    size_t is_free = 0, total = 0;
    expect(cudaMemGetInfo(&is_free, &total) == cudaSuccess, "cudaMemGetInfo");
    return total;
}

/* --- blocks ------------------------------------------------------------------------------ */

/* 512 B to 1 GiB, each order of magnitude as often as any other. */
static uint64_t random_size(void)
{
    uint64_t base = (uint64_t)512 << (next_random() % 21);
    return base + next_random() % base;
}

/* Different bytes for each block: random ones from a place in the staging buffer that depends on
 * the block. */
static void fill(const live_block *b, size_t index)
{
    for (uint64_t at = 0; at < b->size;) {
        uint64_t from = (index * 4099 + at / 977 * 64) % (STAGE_BYTES / 2);
        uint64_t part = b->size - at < STAGE_BYTES / 2 ? b->size - at : STAGE_BYTES / 2;
        expect(cudaMemcpyAsync(b->address + at, test.stage + from, part, cudaMemcpyHostToDevice,
                               test.streams[b->stream]) == cudaSuccess,
               "filling a block");
        at += part;
    }
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, uint64_t size)
{
    uint64_t lanes[4] = {hash, ~hash, hash << 1, size};
    uint64_t at = 0;
    for (; at + 32 <= size; at += 32) {
        uint64_t words[4];
        memcpy(words, bytes + at, sizeof words);
        for (int i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15u;
            lanes[i] ^= lanes[i] >> 29;
        }
    }
    for (; at < size; at++) {
        lanes[0] = (lanes[0] ^ bytes[at]) * 0x100000001b3u;
    }
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

static uint64_t hash_block(const live_block *b)
{
    uint64_t hash = b->size;
    for (uint64_t at = 0; at < b->size;) {
        uint64_t part = b->size - at < STAGE_BYTES ? b->size - at : STAGE_BYTES;
        expect(cudaMemcpy(test.stage, b->address + at, part, cudaMemcpyDeviceToHost) == cudaSuccess,
               "reading a block");
        hash = hash_bytes(hash, test.stage, part);
        at += part;
    }
    return hash;
}

static void add_block(uint64_t size)
{
    live_block *b = &test.blocks[test.count];
    b->size = size;
    b->stream = (int)(next_random() % STREAMS);
    b->address = gmd_allocator_malloc(test.a, size, 0, test.streams[b->stream]);
    expect(b->address, "allocating a block");
    fill(b, test.count++);
    test.bytes += size;
}

/* One in eight is freed again, so that pages are partly live. */
static void make_blocks(uint64_t wanted)
{
    for (uint64_t at = 0; at < STAGE_BYTES; at += sizeof(uint64_t)) {
        uint64_t word = next_random();
        memcpy(test.stage + at, &word, sizeof word);
    }
    while (test.bytes < wanted && test.count < BLOCKS_MAX) {
        add_block(random_size());
        if (next_random() % 8 == 0) {
            live_block *b = &test.blocks[--test.count];
            expect(gmd_allocator_free(test.a, b->address, 0, test.streams[b->stream]), "free");
            test.bytes -= b->size;
        }
    }
    expect(cudaDeviceSynchronize() == cudaSuccess, "filling the blocks");
    for (size_t i = 0; i < test.count; i++) {
        test.blocks[i].hash = hash_block(&test.blocks[i]);
    }
}

static void expect_all_equal(void)
{
    size_t unequal = 0;
    for (size_t i = 0; i < test.count; i++) {
        unequal += hash_block(&test.blocks[i]) != test.blocks[i].hash;
    }
    printf("hashes: %zu blocks, %zu differ\n", test.count, unequal);
    expect(unequal == 0, "the bytes of all blocks come back");
}

typedef struct found { /* by a walk over the live blocks */
    size_t live;
    uint64_t sum;
} found;

static void visit(void *context, const gmd_block_info *b)
{
    found *f = context;
    f->live += b->state == 1;
    f->sum += b->state == 1 ? b->address : 0;
}

static void expect_same_addresses(void)
{
    found f = {0};
    uint64_t sum = 0;
    for (size_t i = 0; i < test.count; i++) {
        sum += (uintptr_t)test.blocks[i].address;
    }
    expect(gmd_allocator_walk(test.a, 0, visit, &f), "the walk");
    expect(f.live == test.count && f.sum == sum, "addresses are what they were");
}

/* --- the other process ------------------------------------------------------------------- */

typedef struct lodger {
    pid_t pid;
    int hold, said; /* closing `hold` ends it; `said` has its line */
} lodger;

static int lodge(uint64_t bytes)
{
    void *memory = NULL;
    char end;
    printf("  lodger: %.2f GiB free\n", (double)free_bytes() / (double)GMD_GIB);
    expect(cudaMalloc(&memory, bytes) == cudaSuccess, "the lodger's cudaMalloc");
    expect(cudaMemset(memory, 0xA5, bytes) == cudaSuccess, "the lodger's cudaMemset");
    expect(cudaDeviceSynchronize() == cudaSuccess, "the lodger's work");
    printf("  lodger: has %.2f GiB and has written all\n", (double)bytes / (double)GMD_GIB);
    fflush(stdout);
    expect(write(3, "!", 1) == 1, "telling the parent");
    while (read(0, &end, 1) > 0) {
    }
    return 0;
}

static lodger start_lodger(const char *program, uint64_t bytes)
{
    int hold[2], said[2];
    char number[32], answer;
    lodger l;
    snprintf(number, sizeof number, "%" PRIu64, bytes);
    char *arguments[] = {(char *)(uintptr_t)program, "--lodger", number, NULL};
    posix_spawn_file_actions_t actions;
    expect(pipe(hold) == 0 && pipe(said) == 0, "pipes");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, hold[1]);
    posix_spawn_file_actions_adddup2(&actions, hold[0], 0);
    posix_spawn_file_actions_adddup2(&actions, said[1], 3);
    fflush(stdout);
    expect(posix_spawn(&l.pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0,
           "starting the lodger");
    posix_spawn_file_actions_destroy(&actions);
    close(hold[0]);
    close(said[1]);
    l.hold = hold[1];
    l.said = said[0];
    expect(read(l.said, &answer, 1) == 1, "the lodger gets its memory");
    return l;
}

static void end_lodger(const lodger *l)
{
    int status = 0;
    close(l->hold);
    close(l->said);
    expect(waitpid(l->pid, &status, 0) == l->pid && status == 0, "the lodger ends well");
}

/* --- the test ---------------------------------------------------------------------------- */

static void expect_refused(const char *when)
{
    gmd_error error = {""};
    double begin = seconds();
    expect(gmd_allocator_yield_memory(test.a, 0, &error) != GMD_OK, when);
    printf("refused in %.3f ms, %s: %s\n", (seconds() - begin) * 1e3, when, error.text);
}

static void check_captures(cudaStream_t stream)
{
    const uint64_t pool[2] = {1, 0};
    cudaGraph_t graph = NULL;
    void *context;
    expect(gmd_allocator_begin_pool(test.a, 0, pool, NULL, NULL), "begin_pool");
    expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "capture");
    expect_refused("while a stream is captured into a pool");
    expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture goes on");
    expect(gmd_allocator_end_pool(test.a, 0, pool, &context), "end_pool");
    expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess, "capture");
    expect_refused("while a stream is captured that the allocator does not know");
    (void)cudaStreamEndCapture(stream, &graph); /* the question has ended it */
    (void)cudaGetLastError();
}

static void check_refusals(void)
{
    cudaStream_t foreign;
    expect(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking) == cudaSuccess, "a stream");
    const live_block *largest = test.blocks;
    for (size_t i = 1; i < test.count; i++) {
        largest = test.blocks[i].size > largest->size ? &test.blocks[i] : largest;
    }
    for (int i = 0; i < 50; i++) { /* some 0.1 s, and the bytes are not changed */
        cudaMemcpyAsync(test.stage, largest->address,
                        largest->size < STAGE_BYTES ? largest->size : STAGE_BYTES,
                        cudaMemcpyDeviceToHost, foreign);
    }
    expect_refused("while a stream works that the allocator has never seen");
    expect(cudaStreamQuery(foreign) == cudaErrorNotReady, "yield does not wait");
    expect(cudaStreamSynchronize(foreign) == cudaSuccess, "the work");
    (void)cudaGetLastError();
    check_captures(foreign);
    expect(cudaStreamDestroy(foreign) == cudaSuccess, "the stream");
}

static void lend_and_restore(const char *program, uint64_t empty)
{
    gmd_error error = {""};
    gmd_stats stats = {.struct_size = sizeof stats};
    expect(gmd_allocator_get_stats(test.a, 0, &stats), "statistics");
    int64_t others = (int64_t)empty - (int64_t)free_bytes() - (int64_t)stats.reserved_bytes;
    double gib = (double)test.bytes / (double)GMD_GIB, begin = seconds();
    expect(gmd_allocator_yield_memory(test.a, 0, &error) == GMD_OK, error.text);
    double took = seconds() - begin;
    printf("yield: %.1f GiB in %.2f s, %.1f GB/s\n", gib, took, (double)test.bytes / took / 1e9);
    int64_t more = (int64_t)empty - (int64_t)free_bytes();
    printf("device: %" PRId64
           " KiB more in use than when the context was new; before: %.2f GiB for "
           "the allocator, %" PRId64 " KiB for the driver's own streams and graphs\n",
           more / 1024, (double)stats.reserved_bytes / (double)GMD_GIB, others / 1024);
    expect(more <= DRIVER_BYTES, "the process uses the device as an empty one does");
    lodger l = start_lodger(program, total_bytes() / 100 * 95);
    expect(gmd_allocator_restore_memory(test.a, 0, &error) != GMD_OK, "restore without memory");
    printf("restore beside it: %s\n", error.text);
    end_lodger(&l);
    begin = seconds();
    expect(gmd_allocator_restore_memory(test.a, 0, &error) == GMD_OK, error.text);
    took = seconds() - begin;
    printf("restore: %.1f GiB in %.2f s, %.1f GB/s\n", gib, took, (double)test.bytes / took / 1e9);
    expect_same_addresses();
    expect_all_equal();
}

static void open_test(uint64_t seed)
{
    void *stage = NULL;
    gmd_error error = {""};
    test.random = seed * 2 + 1;
    test.blocks = calloc(BLOCKS_MAX, sizeof *test.blocks);
    expect(test.blocks, "host memory");
    expect(gmd_allocator_create(&test.a, 1, "expandable_segments:True", &error) == GMD_OK,
           error.text);
    expect(cudaMallocHost(&stage, STAGE_BYTES) == cudaSuccess, "page-locked memory");
    test.stage = stage;
    for (int i = 0; i < STREAMS; i++) {
        expect(cudaStreamCreateWithFlags(&test.streams[i], cudaStreamNonBlocking) == cudaSuccess,
               "streams");
    }
}

int main(int count, char **arguments)
{
    int devices = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        puts("skipped: no usable GPU");
        return 77;
    }
    if (count == 3 && strcmp(arguments[1], "--lodger") == 0) {
        return lodge(strtoull(arguments[2], NULL, 10));
    }
    uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    signal(SIGPIPE, SIG_IGN);
    open_test(seed);
    uint64_t empty = free_bytes();
    uint64_t wanted =
        count > 1 ? strtoull(arguments[1], NULL, 10) * GMD_GIB : total_bytes() / 10 * 4;
    make_blocks(wanted);
    printf("seed %" PRIu64 ": %zu live blocks on %d streams, %.2f GiB\n", seed, test.count, STREAMS,
           (double)test.bytes / (double)GMD_GIB);
    check_refusals();
    lend_and_restore(arguments[0], empty);
    gmd_allocator_destroy(test.a);
    printf("passed: %.2f GiB free at the end, %.2f at the beginning\n",
           (double)free_bytes() / (double)GMD_GIB, (double)empty / (double)GMD_GIB);
    return 0;
}
