// test_hooks.cpp - libgmd_torch_hooks.so called as PyTorch calls it, on the simulated device. With
// the folder of PyTorch's real libraries first in LD_LIBRARY_PATH the errors are made by those.
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
int gmd_torch_answer(char *message, size_t message_size);
void gmd_torch_free(void *ptr, size_t size, int device, cudaStream_t stream);
void gmd_torch_trace_with(void (*allocated)(void *), void (*freed)(void *));
int gmd_torch_is_traced(void);
void gmd_torch_enable_caching(int is_on);
size_t gmd_torch_stack(void *python, char *text, size_t size);
void gmd_torch_explain_with(size_t (*tell)(int, uint64_t, uint64_t, uint64_t, const char *, char *,
                                           size_t));
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

TEST_F(empty_cache, of_more_than_an_exabyte_only_that_is_told)
{
    const char expected[] = "CUDA out of memory. Tried to allocate more than 1EB memory.";
    assert_int_equal(text_of_refusal(size_t{1} << 60).compare(0, sizeof expected - 1, expected), 0);
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

// A library's own variable: this program, when it names it, has a copy.
void *variable_of(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    void *variable = dlsym(handle, symbol);
    assert_non_null(variable);
    dlclose(handle);
    return variable;
}

void make_current(CUDAPluggableAllocator *object)
{
    void *variable = variable_of("libc10_cuda.so", "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    static_cast<std::atomic<CUDAPluggableAllocator *> *>(variable)->store(object);
}

// PyTorch's class itself is in a library of a gigabyte: here always the stand-in's. An object of
// its own for each test, which the hooks made answer.
CUDAPluggableAllocator *answering(CUDAPluggableAllocator *object)
{
    char message[200] = "";
    make_current(object);
    int status = gmd_torch_answer(message, sizeof message);
    assert_string_equal(message, "");
    assert_int_equal(status, 0);
    __asm__ volatile("" : "+r"(object)); // its type is not what the compiler thinks
    return object;
}

TEST_F(empty_cache, the_allocator_of_pytorch_answers_cache_info)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    size_t all = 0;
    size_t given = 1;
    gmd_free(gmd_torch_malloc(3 * MiB, 0, nullptr), 0, 0, nullptr);
    changed->cacheInfo(0, &all);
    changed->cacheInfo(0, &given);
    assert_int_equal(given, 20 * MiB);
    assert_true(all > size_t{1} << 30);
    assert_int_equal(changed->before() + changed->after(), 3);
}

TEST_F(empty_cache, the_cache_of_one_pool_is_emptied_alone)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    gmd_free(gmd_torch_malloc(100, 0, nullptr), 0, 0, nullptr);
    gmd_torch_begin_pool(0, pool_id(0, 11), stream_filter());
    gmd_free(gmd_torch_malloc(100, 0, nullptr), 0, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 11));
    gmd_torch_release_pool(0, pool_id(0, 11));
    changed->emptyCache(pool_id(0, 11));
    assert_int_equal(used(), 2 * MiB);
    changed->emptyCache(pool_id(0, 0));
    assert_int_equal(used(), 0);
}

// As torch 2.11 has it (PyTorch's test_mempool_emptycache_multithread).
TEST_F(empty_cache, the_cache_of_a_pool_is_its_own_while_it_is_held)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    gmd_torch_begin_pool(0, pool_id(0, 15), stream_filter());
    gmd_free(gmd_torch_malloc(100, 0, nullptr), 0, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 15));
    changed->emptyCache(pool_id(0, 15));
    changed->emptyCache(pool_id(0, 0));
    assert_int_equal(used(), 2 * MiB);
    gmd_torch_release_pool(0, pool_id(0, 15));
    changed->emptyCache(pool_id(0, 0));
}

TEST_F(empty_cache, a_pool_of_a_user_is_held_until_it_is_gone)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    changed->createOrIncrefPool(0, pool_id(0, 12), nullptr);
    changed->setUseOnOOM(0, pool_id(0, 12), false);
    assert_int_equal(changed->getPoolUseCount(0, pool_id(0, 12)), 1);
    gmd_torch_begin_pool(0, pool_id(0, 12), stream_filter());
    assert_int_equal(changed->getPoolUseCount(0, pool_id(0, 12)), 2);
    gmd_torch_end_pool(0, pool_id(0, 12));
    gmd_torch_release_pool(0, pool_id(0, 12));
    gmd_torch_release_pool(0, pool_id(0, 12));
    assert_int_equal(changed->getPoolUseCount(0, pool_id(0, 12)), 0);
}

void *lend(size_t size, int, cudaStream_t)
{
    void *memory = nullptr;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : nullptr;
}

void take_back(void *ptr, size_t, int, cudaStream_t)
{
    assert_int_equal(cudaFree(ptr), cudaSuccess);
}

TEST_F(empty_cache, a_pool_of_a_user_has_its_memory_from_the_users_allocator)
{
    CUDAPluggableAllocator plain;
    auto source = std::make_shared<CUDAPluggableAllocator>();
    source->alloc_fn = lend;
    source->free_fn = take_back;
    CUDAPluggableAllocator *changed = answering(&plain);
    changed->createOrIncrefPool(0, pool_id(0, 13), source);
    gmd_torch_begin_pool(0, pool_id(0, 13), stream_filter());
    void *block = gmd_torch_malloc(100, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 13));
    assert_int_equal(source->books.size(), 1);
    gmd_torch_free(block, 0, 0, nullptr);
    gmd_torch_release_pool(0, pool_id(0, 13));
    gmd_torch_release_pool(0, pool_id(0, 13));
    changed->emptyCache(pool_id(0, 13));
    assert_int_equal(source->books.size(), 0);
    assert_int_equal(source.use_count(), 1);
}

TEST_F(empty_cache, a_source_of_another_class_is_refused_and_nobody_holds_the_pool)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    auto other = std::make_shared<void *>(nullptr);
    assert_non_null(
        std::strstr(refusal([&] { changed->createOrIncrefPool(0, pool_id(0, 16), other); }).c_str(),
                    "an allocator of its own"));
    assert_int_equal(changed->getPoolUseCount(0, pool_id(0, 16)), 0);
}

TEST_F(empty_cache, a_pool_of_a_user_is_not_split_if_so_wanted)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    changed->createOrIncrefPool(0, pool_id(0, 17), nullptr);
    changed->setNoSplit(0, pool_id(0, 17));
    changed->setUseOnOOM(0, pool_id(0, 17), true);
    gmd_torch_begin_pool(0, pool_id(0, 17), stream_filter());
    void *block = gmd_torch_malloc(100, 0, nullptr);
    gmd_torch_end_pool(0, pool_id(0, 17));
    assert_int_equal(gmd_block_size(0, block), 2 * MiB);
    gmd_torch_free(block, 0, 0, nullptr);
    gmd_torch_release_pool(0, pool_id(0, 17));
    gmd_torch_release_pool(0, pool_id(0, 17));
}

// As PyTorch uses it: what it asks for and frees goes through its books.
CUDAPluggableAllocator *with_books(CUDAPluggableAllocator *object)
{
    object->alloc_fn = gmd_torch_malloc;
    object->free_fn = gmd_torch_free;
    return answering(object);
}

// A pool with two live blocks of 2 MiB.
struct kept_pool {
    explicit kept_pool(CUDAPluggableAllocator *object) : torch(object)
    {
        gmd_torch_begin_pool(0, id, stream_filter());
        first = torch->malloc(2 * MiB, 0, nullptr);
        second = torch->malloc(2 * MiB, 0, nullptr);
    }
    ~kept_pool()
    {
        gmd_torch_end_pool(0, id);
        gmd_torch_release_pool(0, id);
        gmd_empty_cache();
    }
    CUDAPluggableAllocator *torch;
    pool_id id = {0, 14};
    void *first, *second;
};

TEST_F(empty_cache, the_live_blocks_of_a_pool_are_compared_with_those_that_are_expected)
{
    CUDAPluggableAllocator plain;
    kept_pool pool(with_books(&plain));
    assert_true(pool.torch->checkPoolLiveAllocations(0, pool.id, {pool.first, pool.second}));
    assert_false(pool.torch->checkPoolLiveAllocations(0, pool.id, {pool.first}));
    pool.torch->raw_delete(pool.first);
    assert_false(pool.torch->checkPoolLiveAllocations(0, pool.id, {pool.first, pool.second}));
    pool.torch->raw_delete(pool.second);
    assert_non_null(std::strstr(
        refusal([&] { pool.torch->checkPoolLiveAllocations(0, pool_id(9, 9), {}); }).c_str(),
        "no such pool"));
}

TEST_F(empty_cache, a_pool_goes_back_to_its_checkpoint_and_pytorchs_books_know)
{
    CUDAPluggableAllocator plain;
    kept_pool pool(with_books(&plain));
    auto kept = pool.torch->getCheckpointState(0, pool.id);
    pool.torch->raw_delete(pool.first);
    void *later = pool.torch->malloc(3 * MiB, 0, nullptr);
    {
        auto delta = pool.torch->setCheckpointPoolState(0, kept);
        assert_int_equal(delta.ptrs_freed.size(), 2); // second, later
        assert_int_equal(delta.dataptrs_allocd.size(), 2);
        assert_ptr_equal(delta.dataptrs_allocd[0].data, pool.first);
        assert_int_equal(delta.dataptrs_allocd[0].device.type, 1);
        assert_int_equal(plain.books.count(later), 0);
        assert_int_equal(plain.books.size(), 2);
        assert_true(pool.torch->checkPoolLiveAllocations(0, pool.id, {pool.first, pool.second}));
    } // the tensors that own the blocks are gone
    assert_int_equal(plain.books.size(), 0);
    assert_true(pool.torch->checkPoolLiveAllocations(0, pool.id, {}));
}

TEST_F(empty_cache, the_state_of_a_pool_that_is_not_there_is_refused)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    assert_string_equal(refusal([&] { changed->getCheckpointState(0, pool_id(9, 9)); }).c_str(),
                        "gmd_allocator: there is no private pool (9, 9)");
}

// The simulated device has no other processes; check_inside.py shares on a real one.
TEST_F(empty_cache, memory_that_cuda_does_not_share_is_refused_with_its_reason)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    void *block = gmd_torch_malloc(3 * MiB, 0, nullptr);
    std::string said = refusal([&] { changed->shareIpcHandle(block); });
    gmd_free(block, 0, 0, nullptr);
    assert_string_equal(said.c_str(), "gmd_allocator: CUDA does not share memory with other "
                                      "processes here: operation not supported");
}

TEST_F(empty_cache, a_handle_of_another_allocator_is_refused)
{
    CUDAPluggableAllocator plain;
    CUDAPluggableAllocator *changed = answering(&plain);
    assert_non_null(std::strstr(refusal([&] { changed->getIpcDevPtr("c123"); }).c_str(),
                                "comes from a process with another allocator"));
}

TEST_F(empty_cache, without_caching_each_request_is_one_of_cuda)
{
    gmd_torch_enable_caching(0);
    void *block = gmd_torch_malloc(512, 0, nullptr);
    assert_int_equal(pool_of(block), -1); // the allocator does not know it
    assert_int_equal(used(), 2 * MiB);    // what cudaMalloc takes
    bool is_refused = !text_of_refusal(too_much).empty();
    gmd_torch_enable_caching(1);
    void *cached = gmd_torch_malloc(512, 0, nullptr);
    assert_int_equal(pool_of(cached), 0);
    gmd_torch_free(block, 512, 0, nullptr);
    assert_int_equal(used(), 2 * MiB);
    gmd_torch_free(cached, 512, 0, nullptr);
    assert_true(is_refused);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

// --- who watches ---------------------------------------------------------------------------------

TEST_F(empty_cache, the_profiler_is_told_of_blocks_as_they_come_and_go)
{
    c10::is_profiling = true;
    void *block = gmd_torch_malloc(1000, 0, nullptr);
    assert_ptr_equal(c10::last_told.ptr, block);
    assert_int_equal(c10::last_told.bytes, 1024);
    assert_int_equal(c10::last_told.allocated, 1024);
    assert_int_equal(c10::last_told.reserved, 2 * MiB);
    gmd_torch_free(block, 0, 0, nullptr);
    c10::is_profiling = false;
    assert_int_equal(c10::last_told.bytes, -1024);
    assert_int_equal(c10::last_told.allocated, 0);
}

TEST_F(empty_cache, the_profiler_is_told_of_refusals)
{
    size_t before = c10::last_told.refusals;
    c10::is_profiling = true;
    text_of_refusal(too_much);
    c10::is_profiling = false;
    assert_int_equal(c10::last_told.refusals, before + 1);
}

TEST_F(empty_cache, a_trace_that_is_under_way_is_seen)
{
    auto *is_on = static_cast<bool *>(variable_of("libc10.so", "_ZN3c104impl8GPUTrace9haveStateE"));
    int before = gmd_torch_is_traced();
    *is_on = true;
    int during = gmd_torch_is_traced();
    *is_on = false;
    assert_int_equal(before, 0);
    assert_int_equal(during, 1);
}

// In place of Python's.
size_t tell_frame(void *, char *text, size_t size)
{
    return static_cast<size_t>(std::snprintf(text, size, "a.py:1:take"));
}

// Where the program or library begins that the address is in.
void *base_of(const void *address)
{
    Dl_info info = {};
    assert_int_not_equal(dladdr(address, &info), 0);
    return info.dli_fbase;
}

// How many of the return addresses in the text are of the program or library of `address`.
int count_frames(const std::string &text, const void *address)
{
    int count = 0;
    for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at + 1)) {
        const auto code = static_cast<uintptr_t>(std::strtoull(&text[at + 1], nullptr, 16));
        Dl_info info = {};
        count += dladdr(reinterpret_cast<void *>(code), &info) != 0 &&
                 info.dli_fbase == base_of(address);
    }
    return count;
}

TEST_F(empty_cache, a_stack_has_the_machine_codes_frames_and_then_pythons)
{
    char text[4000];
    size_t length = gmd_torch_stack(reinterpret_cast<void *>(tell_frame), text, sizeof text);
    std::string all(text, length);
    assert_true(count_frames(all, reinterpret_cast<void *>(tell_frame)) > 0);
    assert_int_equal(all.compare(all.size() - 12, 12, "\na.py:1:take"), 0);
}

TEST_F(empty_cache, a_stack_that_is_too_long_is_cut)
{
    char text[8] = "";
    assert_int_equal(gmd_torch_stack(nullptr, text, sizeof text), 0);
}

void *traced[2];

TEST_F(empty_cache, a_trace_is_told_of_addresses)
{
    gmd_torch_trace_with([](void *ptr) { traced[0] = ptr; }, [](void *ptr) { traced[1] = ptr; });
    void *block = gmd_torch_malloc(1000, 0, nullptr);
    gmd_torch_free(block, 0, 0, nullptr);
    gmd_torch_trace_with(nullptr, nullptr);
    assert_ptr_equal(traced[0], block);
    assert_ptr_equal(traced[1], block);
}

TEST_F(empty_cache, what_is_known_of_a_refusal_is_added_to_its_text)
{
    gmd_torch_explain_with([](int device, uint64_t asked, uint64_t total, uint64_t free_bytes,
                              const char *path, char *text, size_t room) {
        return static_cast<size_t>(std::snprintf(text, room, " [%d %d %d %s]", device,
                                                 asked == too_much, total == free_bytes, path));
    });
    std::string text = text_of_refusal(too_much);
    gmd_torch_explain_with(nullptr);
    assert_non_null(std::strstr(text.c_str(), "GPU 0 has a total capacity of "));
    assert_non_null(std::strstr(text.c_str(), " are in use. [0 1 1 ]"));
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
    assert_int_equal(gmd_torch_answer(message, sizeof message), -1);
    assert_string_equal(message, "PyTorch's current allocator is not a plain pluggable one");
}

} // namespace
