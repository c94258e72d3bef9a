// torch_answers.cpp - questions that torch 2.11's class for pluggable allocators refuses to answer,
// or answers for itself: PyTorch's allocator object gets a copy of its class's virtual table with
// those entries replaced (torch/csrc/cuda/CUDAPluggableAllocator.h,
// c10/cuda/CUDACachingAllocator.h).
#include "torch_books.h"
#include "torch_checkpoints.h"
#include "torch_pools.h"
#include "torch_segment.h"
#include "torch_serving.h"
#include "torch_symbols.h"

#include "gmd_abi.h"
extern "C" {
#include "gmd_cuda.h"
}

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <link.h>

namespace
{

// --- the largest block -------------------------------------------------------------------------

void note_largest(void *context, const gmd_block_info *block)
{
    auto *largest = static_cast<size_t *>(context);
    if (block->state == 0 && block->size > *largest) {
        *largest = block->size;
    }
}

// CUDAPluggableAllocator::cacheInfo refuses to answer in torch 2.11, and cuDNN's benchmark asks it
// how large a workspace may be. The answer is that of PyTorch's own allocator: the largest free
// block, and, where the caller brought no figure, at least the device's free memory.
void cache_info(void *self, int8_t device, size_t *largest)
{
    (void)self;
    size_t total = 0;
    if (*largest == 0 && cudaMemGetInfo(largest, &total) != cudaSuccess) {
        cudaGetLastError();
        *largest = 0;
    }
    gmd_walk(device, note_largest, largest);
}

// --- the cache of a pool -----------------------------------------------------------------------

void empty_cache(void *self, pool_id id)
{
    (void)self;
    if (id == pool_id(0, 0)) {
        serving.empty_cache();
        return;
    }
    const uint64_t name[2] = {id.first, id.second};
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
    }
    for (int device = 0; device < count; device++) {
        gmd_empty_pool(device, name); // a pool may be on some devices only
    }
}

// --- torch.cuda.MemPool
// ----------------------------------------------------------------------------

int use_count(void *self, int8_t device, pool_id id)
{
    (void)self;
    return holders_of_pool(device, id);
}

void create_pool(void *self, int8_t device, pool_id id, std::shared_ptr<void> source)
{
    (void)self;
    hold_pool(device, id);
    if (source) {
        set_pool_source(device, id, std::move(source));
    }
}

void set_use_on_oom(void *self, int8_t device, pool_id id, bool is_on)
{
    (void)self;
    set_pool_option(device, id, "use_on_oom", is_on);
}

void set_no_split(void *self, int8_t device, pool_id id)
{
    (void)self;
    set_pool_option(device, id, "no_split", true);
}

// --- tensors that other processes use ------------------------------------------------------------

struct shareable { // c10::cuda::CUDACachingAllocator::ShareableHandle
    ptrdiff_t offset;
    std::string handle;
};

constexpr unsigned ipc_with_peer_access = 1; // cudaIpcMemLazyEnablePeerAccess
constexpr char handle_tag[] = "gmd1";        // before CUDA's own handle

shareable share(void *self, void *ptr)
{
    (void)self;
    const gmd_block_info segment = segment_of(ptr);
    if (segment.is_expandable) {
        throw std::runtime_error("gmd_allocator: a CUDA tensor in an expandable segment cannot be "
                                 "shared with another process; gmd_torch.install() with "
                                 "expandable_segments:False, or send a copy on the CPU");
    }
    cudaIpcMemHandle_t handle;
    const cudaError_t status =
        cudaIpcGetMemHandle(&handle, reinterpret_cast<void *>(segment.segment_address));
    if (status != cudaSuccess) {
        cudaGetLastError();
        throw std::runtime_error(std::string("gmd_allocator: CUDA does not share memory with other "
                                             "processes here: ") +
                                 cudaGetErrorString(status));
    }
    std::string text = handle_tag;
    text.append(reinterpret_cast<const char *>(&handle), sizeof handle);
    return {static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(ptr) - segment.segment_address),
            text};
}

std::shared_ptr<void> open_shared(void *self, std::string text)
{
    (void)self;
    constexpr size_t tag_size = sizeof handle_tag - 1;
    cudaIpcMemHandle_t handle;
    if (text.size() != tag_size + sizeof handle || text.compare(0, tag_size, handle_tag) != 0) {
        throw std::runtime_error("gmd_allocator: the CUDA tensor comes from a process with another "
                                 "allocator; call gmd_torch.install() there, too");
    }
    std::memcpy(&handle, text.data() + tag_size, sizeof handle);
    void *base = nullptr;
    const cudaError_t status = cudaIpcOpenMemHandle(&base, handle, ipc_with_peer_access);
    if (status != cudaSuccess) {
        cudaGetLastError();
        throw std::runtime_error(std::string("gmd_allocator: a CUDA tensor of another process "
                                             "cannot be opened: ") +
                                 cudaGetErrorString(status));
    }
    // CUDA counts how often a process has opened the same memory.
    return {base, [](void *opened) {
                if (cudaIpcCloseMemHandle(opened) != cudaSuccess) {
                    cudaGetLastError();
                }
            }};
}

// --- the virtual table ---------------------------------------------------------------------------

constexpr char current_allocator[] = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";

struct answer {
    const char *symbol, *name; // of what is replaced
    const char *lost;          // what does not work where it is not there
    void *by;
    bool (*is_possible)() = nullptr; // nullptr: always
};

constexpr char reduce_overhead[] = "torch.compile(mode=\"reduce-overhead\")";

const answer answers[] = {
    {OF_PLUGGABLE("9cacheInfoEaPm"), "cacheInfo", "torch.backends.cudnn.benchmark",
     reinterpret_cast<void *>(cache_info)},
    {OF_PLUGGABLE("10emptyCacheESt4pairIyyE"), "emptyCache", "emptying one pool's cache",
     reinterpret_cast<void *>(empty_cache)},
    {OF_PLUGGABLE("14shareIpcHandleEPv"), "shareIpcHandle",
     "sharing CUDA tensors between processes", reinterpret_cast<void *>(share)},
    {OF_PLUGGABLE("12getIpcDevPtrENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
     "getIpcDevPtr", "taking CUDA tensors of other processes",
     reinterpret_cast<void *>(open_shared)},
    {OF_PLUGGABLE("18getCheckpointStateEaSt4pairIyyE"), "getCheckpointState", reduce_overhead,
     reinterpret_cast<void *>(get_checkpoint_state), books_are_known},
    {OF_PLUGGABLE("22setCheckpointPoolStateEaSt10shared_ptrIN3c104cuda20CUDACachingAllocator14"
                  "AllocatorStateEE"),
     "setCheckpointPoolState", reduce_overhead, reinterpret_cast<void *>(set_checkpoint_state),
     books_are_known},
};

// The virtual table with its offset and type in front; `count`: entries. nullptr: not found.
void **table_of_pluggable(size_t *count)
{
    auto **table = static_cast<void **>(loaded_symbol("libtorch_cuda.so", OF_PLUGGABLE_TABLE));
    Dl_info where;
    const ElfW(Sym) *entry = nullptr;
    if (!table ||
        !dladdr1(table, &where, const_cast<void **>(reinterpret_cast<const void **>(&entry)),
                 RTLD_DL_SYMENT) ||
        !entry) {
        return nullptr;
    }
    *count = entry->st_size / sizeof *table;
    return table;
}

// The one entry that is this function; -1: there is not exactly one.
ptrdiff_t entry_of(const std::vector<void *> &table, const char *symbol)
{
    void *function = loaded_symbol("libtorch_cuda.so", symbol);
    const auto first = std::find(table.begin(), table.end(), function);
    return function && first != table.end() &&
                   std::find(first + 1, table.end(), function) == table.end()
               ? first - table.begin()
               : -1;
}

// The base class's questions about pools have no symbols. In 2.11 these five, and nothing else, are
// between two that have.
bool answer_for_pools(std::vector<void *> &table)
{
    void *const by[] = {reinterpret_cast<void *>(use_count), reinterpret_cast<void *>(create_pool),
                        reinterpret_cast<void *>(set_use_on_oom),
                        reinterpret_cast<void *>(set_no_split),
                        reinterpret_cast<void *>(check_live_blocks)};
    const ptrdiff_t before = entry_of(table, OF_PLUGGABLE("11releasePoolEaSt4pairIyyE"));
    const ptrdiff_t after = entry_of(table, OF_PLUGGABLE("14shareIpcHandleEPv"));
    if (before < 0 || after - before != 6) {
        return false;
    }
    std::copy(std::begin(by), std::end(by), table.begin() + before + 1);
    return true;
}

} // namespace

// --- what the helper calls -----------------------------------------------------------------------

// Lets PyTorch's current allocator, which must be a CUDAPluggableAllocator, answer. Every step is
// checked against the symbols, so that another version of PyTorch is refused, not broken. 0: done;
// 1: but for what the message names; -1: nothing is changed, and the message says why.
TORCH_EXPORT int gmd_torch_answer(char *message, size_t message_size)
{
    size_t count = 0;
    void **table = table_of_pluggable(&count);
    auto *current =
        static_cast<std::atomic<void ***> *>(loaded_symbol("libc10_cuda.so", current_allocator));
    if (!table || !current) {
        return fail(message, message_size,
                    "PyTorch's pluggable allocator is not as it was in 2.11");
    }
    void ***object = current->load();
    if (!object || *object != table + 2) {
        return fail(message, message_size,
                    "PyTorch's current allocator is not a plain pluggable one");
    }
    // Never destroyed: PyTorch destroys its allocator, through the table, after what is made here.
    static auto &changed = *new std::vector<void *>;
    changed.assign(table, table + count);
    std::string missing = answer_for_pools(changed) ? "" : "torch.cuda.MemPool";
    for (const answer &a : answers) {
        const ptrdiff_t entry = entry_of(changed, a.symbol);
        if (entry >= 0 && (!a.is_possible || a.is_possible())) {
            changed[static_cast<size_t>(entry)] = a.by;
        } else {
            missing += (missing.empty() ? "" : ", ") + std::string(a.lost) + " (" + a.name + ")";
        }
    }
    *object = changed.data() + 2;
    std::snprintf(message, message_size, "%s", missing.c_str());
    return !missing.empty();
}
