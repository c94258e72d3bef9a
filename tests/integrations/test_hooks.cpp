// test_hooks.cpp - libgmd_torch_hooks.so called as PyTorch calls it, on the simulated device. With
// the folder of PyTorch's real libraries first in LD_LIBRARY_PATH the errors are made by those.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_test.h"
}

#include "standin/pluggable.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <dlfcn.h>

using pool_id = std::pair<unsigned long long, unsigned long long>;
using stream_filter = std::function<bool(cudaStream_t)>;
using torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;

extern "C" {
void *gmd_torch_malloc(size_t size, int device, cudaStream_t stream);
void gmd_torch_begin_pool(int device, pool_id id, stream_filter accepts);
void gmd_torch_end_pool(int device, pool_id id);
void gmd_torch_release_pool(int device, pool_id id);
void *gmd_torch_base_allocation(void *ptr, size_t *size);
int gmd_torch_dump_on_oom(const char *prefix, unsigned limit, char *message, size_t message_size);
int gmd_torch_raises_oom(void);
int gmd_torch_answer_cache_info(char *message, size_t message_size);
void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream);
void gmd_empty_cache(void);
int gmd_walk(int device, gmd_walk_fn *visit, void *context);
}

namespace
{

constexpr size_t MiB = 1 << 20;
constexpr size_t too_much = size_t{1} << 50;

// Memory that the device has handed out.
size_t used()
{
    size_t free_bytes = 0;
    size_t total = 0;
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    return total - free_bytes;
}

struct search {
    uint64_t address;
    int64_t pool;
};

void look(void *context, const gmd_block_info *block)
{
    auto *s = static_cast<search *>(context);
    if (block->address == s->address) {
        s->pool = static_cast<int64_t>(block->pool_id[1]);
    }
}

// The second half of the name of the block's pool, -1: no such block.
int64_t pool_of(void *block)
{
    search s = {reinterpret_cast<uintptr_t>(block), -1};
    assert_int_equal(gmd_walk(0, look, &s), 0);
    return s.pool;
}

int start_empty(void **)
{
    gmd_empty_cache();
    return used() == 0 ? 0 : -1;
}

FIXTURE(empty_cache, start_empty, nullptr);

std::string text_of_refusal(size_t size)
{
    try {
        gmd_torch_malloc(size, 0, nullptr);
    } catch (const c10::OutOfMemoryError &e) {
        return e.what();
    }
    return "";
}

TEST_F(empty_cache, a_refused_request_throws_pytorchs_error)
{
    std::string text = text_of_refusal(too_much);
    assert_non_null(
        std::strstr(text.c_str(), "CUDA out of memory. Tried to allocate 1048576.00 GiB"));
}

TEST_F(empty_cache, the_error_is_one_of_pytorchs_errors)
{
    bool is_caught = false;
    try {
        gmd_torch_malloc(too_much, 0, nullptr);
    } catch (const c10::Error &) { // the type tells its base: it is the real one
        is_caught = true;
    }
    assert_true(is_caught);
    assert_int_equal(gmd_torch_raises_oom(), 1);
}

TEST_F(empty_cache, a_refused_request_leaves_no_cuda_error)
{
    text_of_refusal(too_much);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

TEST_F(empty_cache, a_request_of_nothing_gets_no_block)
{
    assert_null(gmd_torch_malloc(0, 0, nullptr));
    assert_int_equal(used(), 0);
}

TEST_F(empty_cache, requests_on_accepted_streams_go_to_the_pool)
{
    cudaStream_t captured = nullptr;
    assert_int_equal(cudaStreamCreate(&captured), cudaSuccess);
    gmd_torch_begin_pool(0, pool_id(0, 7), [captured](cudaStream_t s) { return s == captured; });
    void *in_pool = gmd_torch_malloc(100, 0, captured);
    void *outside = gmd_torch_malloc(100, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 7));
    assert_int_equal(pool_of(in_pool), 7);
    assert_int_equal(pool_of(outside), 0);
    gmd_free(in_pool, 100, 0, captured);
    gmd_free(outside, 100, 0, nullptr);
    gmd_torch_release_pool(0, pool_id(0, 7));
}

// A graph replays into its pool's memory: that is not given back while the graph lives.
TEST_F(empty_cache, memory_of_a_capture_stays_until_it_is_released)
{
    cudaStream_t captured = nullptr;
    cudaGraph_t graph = nullptr;
    assert_int_equal(cudaStreamCreate(&captured), cudaSuccess);
    gmd_torch_begin_pool(0, pool_id(0, 6), [captured](cudaStream_t s) { return s == captured; });
    assert_int_equal(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), cudaSuccess);
    gmd_free(gmd_torch_malloc(100, 0, captured), 100, 0, captured);
    assert_int_equal(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    gmd_torch_end_pool(0, pool_id(0, 6));
    gmd_empty_cache();
    assert_int_equal(used(), 2 * MiB);
    gmd_torch_release_pool(0, pool_id(0, 6));
    gmd_empty_cache();
    assert_int_equal(used(), 0);
}

TEST_F(empty_cache, the_filter_lives_until_the_end_and_no_longer)
{
    auto counted = std::make_shared<int>(0);
    gmd_torch_begin_pool(0, pool_id(0, 8), [counted](cudaStream_t) { return false; });
    assert_int_equal(counted.use_count(), 2);
    gmd_torch_end_pool(0, pool_id(0, 8));
    assert_int_equal(counted.use_count(), 1);
    gmd_torch_release_pool(0, pool_id(0, 8));
}

TEST_F(empty_cache, an_empty_filter_means_every_stream)
{
    gmd_torch_begin_pool(0, pool_id(0, 9), stream_filter());
    void *block = gmd_torch_malloc(100, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 9));
    assert_int_equal(pool_of(block), 9);
    gmd_free(block, 100, 0, nullptr);
    gmd_torch_release_pool(0, pool_id(0, 9));
}

TEST_F(empty_cache, a_filter_that_throws_means_no)
{
    gmd_torch_begin_pool(0, pool_id(0, 2), [](cudaStream_t) -> bool {
        throw std::runtime_error("CUDA did not say");
    });
    void *block = gmd_torch_malloc(100, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 2));
    assert_int_equal(pool_of(block), 0);
    gmd_free(block, 100, 0, nullptr);
    gmd_torch_release_pool(0, pool_id(0, 2));
}

template <typename Call> std::string refusal(Call call)
{
    try {
        call();
    } catch (const std::runtime_error &e) {
        return e.what();
    }
    return "";
}

TEST_F(empty_cache, pools_out_of_turn_are_refused_by_name)
{
    assert_string_equal(refusal([] { gmd_torch_end_pool(0, pool_id(3, 4)); }).c_str(),
                        "gmd_allocator: no requests go to pool (3, 4) of device 0");
    assert_string_equal(refusal([] { gmd_torch_release_pool(0, pool_id(3, 4)); }).c_str(),
                        "gmd_allocator: nobody holds pool (3, 4) of device 0");
}

TEST_F(empty_cache, a_pool_that_is_begun_twice_is_refused)
{
    gmd_torch_begin_pool(0, pool_id(5, 0), stream_filter());
    std::string message = refusal([] { gmd_torch_begin_pool(0, pool_id(5, 0), stream_filter()); });
    gmd_torch_end_pool(0, pool_id(5, 0));
    gmd_torch_release_pool(0, pool_id(5, 0));
    assert_non_null(std::strstr(message.c_str(), "requests go already"));
}

TEST_F(empty_cache, the_base_of_a_block_is_its_segment)
{
    void *first = gmd_torch_malloc(3 * MiB, 0, nullptr);
    void *second = gmd_torch_malloc(3 * MiB, 0, nullptr);
    size_t size = 0;
    void *base = gmd_torch_base_allocation(second, &size);
    gmd_free(first, 0, 0, nullptr);
    gmd_free(second, 0, 0, nullptr);
    assert_ptr_equal(base, first);
    assert_int_equal(size, 20 * MiB);
}

TEST_F(empty_cache, a_foreign_pointer_has_no_base)
{
    int foreign = 0;
    std::string message = refusal([&foreign] { gmd_torch_base_allocation(&foreign, nullptr); });
    assert_non_null(std::strstr(message.c_str(), "none of its"));
}

// In the library's own variable: this program, when it names it, has a copy.
void make_current(CUDAPluggableAllocator *object)
{
    void *library = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    void *variable = dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    assert_non_null(variable);
    static_cast<std::atomic<CUDAPluggableAllocator *> *>(variable)->store(object);
    dlclose(library);
}

// PyTorch's class itself is in a library of a gigabyte: here always the stand-in's.
TEST_F(empty_cache, the_allocator_of_pytorch_answers_cache_info)
{
    char message[200] = "";
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = &plain;
    make_current(changed);
    int status = gmd_torch_answer_cache_info(message, sizeof message);
    assert_string_equal(message, "");
    assert_int_equal(status, 0);
    size_t all = 0;
    size_t given = 1;
    gmd_free(gmd_torch_malloc(3 * MiB, 0, nullptr), 0, 0, nullptr);
    __asm__ volatile("" : "+r"(changed)); // its type is not what the compiler thinks
    changed->cacheInfo(0, &all);
    changed->cacheInfo(0, &given);
    assert_int_equal(given, 20 * MiB);
    assert_true(all > size_t{1} << 30);
    assert_int_equal(changed->before() + changed->after(), 3);
}

TEST_F(empty_cache, an_allocator_of_another_kind_is_refused)
{
    struct other : CUDAPluggableAllocator {
        int before() override
        {
            return 5;
        }
    } object;
    char message[200] = "";
    make_current(&object);
    assert_int_equal(gmd_torch_answer_cache_info(message, sizeof message), -1);
    assert_string_equal(message, "PyTorch's current allocator is not a plain pluggable one");
}

} // namespace
