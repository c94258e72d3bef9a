/* libcudart.so.12 as a program sees it that was compiled with the headers of CUDA 12. */
#include "gmd_cuda12.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <string.h>

enum { UNTOUCHED = 0x5A };

static void *library;

static int open_library(void **state)
{
    (void)state;
    library = dlopen(GMD_TEST_LIBRARIES "/sim/libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    return library == NULL;
}

/* The function by its name, of the type of the variable it goes to. */
#define FIND(variable, name)                                                                       \
    do {                                                                                           \
        *(void **)&(variable) = dlsym(library, name);                                              \
        assert_non_null(dlsym(library, name));                                                     \
    } while (0)

/* Room for a structure and what would be overwritten behind it. */
typedef struct room {
    union {
        gmd_cuda12_device_prop properties;
        gmd_cuda12_pointer_attributes attributes;
        unsigned char bytes[2048];
    };
} room;

static void assert_untouched_from(const room *r, size_t from)
{
    for (size_t i = from; i < sizeof r->bytes; i++) {
        assert_int_equal(r->bytes[i], UNTOUCHED);
    }
}

TEST(properties_are_where_cuda_12_has_them)
{
    cudaError_t (*get)(gmd_cuda12_device_prop *, int);
    FIND(get, "cudaGetDeviceProperties_v2");
    room r;
    memset(&r, UNTOUCHED, sizeof r);
    assert_int_equal(get(&r.properties, 0), cudaSuccess);
    assert_int_equal(r.properties.major, 9);
    assert_int_equal(r.properties.multiProcessorCount, 132);
    assert_int_equal(r.properties.maxThreadsPerMultiProcessor, 2048);
    assert_int_equal(r.properties.memoryPoolsSupported, 1);
    assert_int_equal(r.properties.computeMode, 0);
    assert_true(r.properties.clockRate > 0);
    assert_untouched_from(&r, sizeof r.properties);
}

TEST(the_plain_name_fills_what_cuda_11_knew)
{
    cudaError_t (*get)(gmd_cuda12_device_prop *, int);
    FIND(get, "cudaGetDeviceProperties");
    room r;
    memset(&r, UNTOUCHED, sizeof r);
    assert_int_equal(get(&r.properties, 0), cudaSuccess);
    assert_int_equal(r.properties.reservedSharedMemPerBlock, 1024);
    assert_untouched_from(&r, GMD_CUDA11_PROPERTIES_BYTES);
}

TEST(properties_of_no_device_are_refused)
{
    cudaError_t (*get)(gmd_cuda12_device_prop *, int);
    FIND(get, "cudaGetDeviceProperties_v2");
    room r;
    memset(&r, UNTOUCHED, sizeof r);
    assert_int_equal(get(&r.properties, 7), cudaErrorInvalidDevice);
    assert_int_equal(get(NULL, 0), cudaErrorInvalidValue);
    assert_untouched_from(&r, 0);
}

TEST(attributes_of_a_pointer_fill_24_bytes)
{
    cudaError_t (*get)(gmd_cuda12_pointer_attributes *, const void *);
    __typeof__(&cudaMalloc) allocate;
    __typeof__(&cudaFree) release;
    FIND(get, "cudaPointerGetAttributes");
    FIND(allocate, "cudaMalloc");
    FIND(release, "cudaFree");
    void *memory = NULL;
    assert_int_equal(allocate(&memory, 1000), cudaSuccess);
    room r;
    memset(&r, UNTOUCHED, sizeof r);
    assert_int_equal(get(&r.attributes, memory), cudaSuccess);
    assert_int_equal(r.attributes.type, cudaMemoryTypeDevice);
    assert_ptr_equal(r.attributes.devicePointer, memory);
    assert_untouched_from(&r, sizeof r.attributes);
    assert_int_equal(get(NULL, memory), cudaErrorInvalidValue);
    assert_int_equal(release(memory), cudaSuccess);
}

TEST(dependencies_are_told_and_set_without_edge_data)
{
    __typeof__(&cudaStreamBeginCapture) begin;
    __typeof__(&cudaStreamEndCapture) end;
    __typeof__(&cudaStreamCreate) create;
    __typeof__(&cudaMemsetAsync) fill;
    __typeof__(&cudaMalloc) allocate;
    cudaError_t (*ask)(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *,
                       cudaGraph_t *, const cudaGraphNode_t **, size_t *);
    cudaError_t (*set)(cudaStream_t, cudaGraphNode_t *, size_t, unsigned int);
    cudaError_t (*list)(cudaGraphNode_t, cudaGraphNode_t *, size_t *);
    FIND(create, "cudaStreamCreate");
    FIND(begin, "cudaStreamBeginCapture");
    FIND(end, "cudaStreamEndCapture");
    FIND(fill, "cudaMemsetAsync");
    FIND(allocate, "cudaMalloc");
    FIND(ask, "cudaStreamGetCaptureInfo_v2_ptsz");
    FIND(set, "cudaStreamUpdateCaptureDependencies");
    FIND(list, "cudaGraphNodeGetDependencies");
    cudaStream_t stream;
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *last;
    cudaGraphNode_t first, second, before = NULL;
    size_t count = 0;
    void *memory = NULL;
    assert_int_equal(allocate(&memory, 1000), cudaSuccess);
    assert_int_equal(create(&stream), cudaSuccess);
    assert_int_equal(begin(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    assert_int_equal(fill(memory, 1, 10, stream), cudaSuccess);
    assert_int_equal(ask(stream, &status, NULL, NULL, &last, &count), cudaSuccess);
    assert_int_equal(count, 1);
    first = last[0];
    assert_int_equal(set(stream, NULL, 0, cudaStreamSetCaptureDependencies), cudaSuccess);
    FIND(set, "cudaStreamUpdateCaptureDependencies_ptsz");
    assert_int_equal(set(stream, &first, 1, cudaStreamAddCaptureDependencies), cudaSuccess);
    assert_int_equal(fill(memory, 2, 10, stream), cudaSuccess);
    assert_int_equal(ask(stream, &status, NULL, NULL, &last, &count), cudaSuccess);
    second = last[0];
    assert_int_equal(end(stream, &graph), cudaSuccess);
    count = 1;
    assert_int_equal(list(second, &before, &count), cudaSuccess);
    assert_int_equal(count, 1);
    assert_ptr_equal(before, first);
}

TEST(the_time_between_events_has_two_names)
{
    __typeof__(&cudaEventElapsedTime) elapsed;
    __typeof__(&cudaEventCreate) create;
    __typeof__(&cudaEventRecord) record;
    __typeof__(&cudaEventSynchronize) wait;
    FIND(create, "cudaEventCreate");
    FIND(record, "cudaEventRecord");
    FIND(wait, "cudaEventSynchronize");
    FIND(elapsed, "cudaEventElapsedTime_v2");
    cudaEvent_t start, stop;
    float milliseconds = -1;
    assert_int_equal(create(&start), cudaSuccess);
    assert_int_equal(create(&stop), cudaSuccess);
    assert_int_equal(record(start, NULL), cudaSuccess);
    assert_int_equal(record(stop, NULL), cudaSuccess);
    assert_int_equal(wait(stop), cudaSuccess);
    assert_int_equal(elapsed(&milliseconds, start, stop), cudaSuccess);
    assert_true(milliseconds >= 0);
}

TEST(prefetching_names_a_device)
{
    cudaError_t (*prefetch)(const void *, size_t, int, cudaStream_t);
    cudaError_t (*advise)(const void *, size_t, enum cudaMemoryAdvise, int);
    FIND(prefetch, "cudaMemPrefetchAsync");
    FIND(advise, "cudaMemAdvise");
    assert_int_equal(prefetch(&prefetch, 8, -1, NULL), cudaErrorNotSupported);
    FIND(prefetch, "cudaMemPrefetchAsync_ptsz");
    assert_int_equal(prefetch(&prefetch, 8, 0, NULL), cudaErrorNotSupported);
    assert_int_equal(advise(&advise, 8, cudaMemAdviseSetReadMostly, 0), cudaErrorNotSupported);
}

TEST(captures_answer_as_many_questions_as_the_name_says)
{
    __typeof__(&cudaStreamBeginCapture) begin;
    __typeof__(&cudaStreamEndCapture) end;
    __typeof__(&cudaStreamCreate) create;
    __typeof__(&cudaStreamGetCaptureInfo) ask_v3;
    cudaError_t (*ask)(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *);
    cudaError_t (*ask_v2)(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *,
                          cudaGraph_t *, const cudaGraphNode_t **, size_t *);
    FIND(create, "cudaStreamCreate");
    FIND(begin, "cudaStreamBeginCapture");
    FIND(end, "cudaStreamEndCapture");
    FIND(ask, "cudaStreamGetCaptureInfo_ptsz");
    FIND(ask_v2, "cudaStreamGetCaptureInfo_v2");
    FIND(ask_v3, "cudaStreamGetCaptureInfo_v3_ptsz");
    cudaStream_t stream;
    cudaGraph_t graph = NULL, seen_v2 = NULL, seen_v3 = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    size_t count = 9;
    assert_int_equal(create(&stream), cudaSuccess);
    assert_int_equal(begin(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    assert_int_equal(ask(stream, &status, &id), cudaSuccess);
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    assert_int_equal(ask_v2(stream, &status, &id, &seen_v2, NULL, &count), cudaSuccess);
    assert_int_equal(ask_v3(stream, &status, &id, &seen_v3, NULL, NULL, &count), cudaSuccess);
    assert_int_equal(end(stream, &graph), cudaSuccess);
    assert_ptr_equal(seen_v2, graph);
    assert_ptr_equal(seen_v3, graph);
}

TEST_GROUP(open_library, NULL);
