/* conformance_memory - makes the calls on virtual memory, stream-ordered pools, host memory, peers,
 * contexts and entry points, right and wrong, on the simulated or a real device and prints what
 * each answers. The two transcripts must be equal: conformance_memory.expected.
 *
 * As in conformance.c nothing is printed that a device may choose. Exit status: 0 done, 3 the
 * device could not be opened, 77 no GPU. */
#include "conformance_device.h"
#include "gmd_runtime.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB  ((size_t)1 << 20)
#define PAGE (2 * MIB)

#define API_FIELD(result, name, parameters, arguments) __typeof__(&name) name;
static struct api {
    GMD_CUDART_FUNCTIONS(API_FIELD)
    GMD_CUDART_FURTHER_FUNCTIONS(API_FIELD)
    GMD_CUDA_DRIVER_FUNCTIONS(API_FIELD)
} api;
#undef API_FIELD

static gmd_runtime rt;

static int show(const char *what, int result)
{
    printf("%-76s %s", what, rt.cudaGetErrorName((cudaError_t)result));
    int last = (int)api.cudaGetLastError();
    if (last != result) {
        printf("  last error %s", rt.cudaGetErrorName((cudaError_t)last));
    }
    printf("\n");
    return result;
}

static void tell(const char *what, int is_so)
{
    printf("%-76s %s\n", what, is_so ? "yes" : "no");
}

#define SHOW(call) show(#call, (int)api.call)

static size_t free_memory(void)
{
    size_t free_bytes = 0, total;
    api.cudaMemGetInfo(&free_bytes, &total);
    return free_bytes;
}

/* --- virtual memory ---------------------------------------------------------------------- */

static CUmemAllocationProp pinned_memory(void)
{
    CUmemAllocationProp p;
    memset(&p, 0, sizeof p);
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return p;
}

static CUmemAccessDesc read_write(int device)
{
    return (CUmemAccessDesc){.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

static void granularity(void)
{
    CUmemAllocationProp p = pinned_memory();
    size_t bytes = 0;
    printf("# granularity\n");
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    tell("it is 2 MiB", bytes == PAGE);
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    tell("it is 2 MiB", bytes == PAGE);
    SHOW(cuMemGetAllocationGranularity(NULL, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SHOW(cuMemGetAllocationGranularity(&bytes, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, (CUmemAllocationGranularity_flags)7));
    p.location.id = 99;
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    p.location.id = 0;
    p.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    p = pinned_memory();
    p.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    SHOW(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static void reservations(void)
{
    CUdeviceptr at = 0, other = 0, third = 0;
    printf("# reservations\n");
    SHOW(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    tell("aligned to 2 MiB", at && at % PAGE == 0);
    SHOW(cuMemAddressReserve(&other, 64 * MIB, 64 * MIB, 0, 0));
    tell("aligned to 64 MiB", other % (64 * MIB) == 0);
    SHOW(cuMemAddressReserve(NULL, 64 * MIB, 0, 0, 0));
    SHOW(cuMemAddressReserve(&third, 0, 0, 0, 0));
    SHOW(cuMemAddressReserve(&third, MIB, 0, 0, 0));
    SHOW(cuMemAddressReserve(&third, PAGE + 1, 0, 0, 0));
    SHOW(cuMemAddressReserve(&third, PAGE, 3, 0, 0));
    SHOW(cuMemAddressReserve(&third, PAGE, 512, 0, 0));
    SHOW(cuMemAddressFree(third, PAGE));
    SHOW(cuMemAddressReserve(&third, PAGE, 0, 0, 1));
    SHOW(cuMemAddressReserve(&third, PAGE, 0, at, 0));
    tell("a taken address is not given twice", third != at);
    SHOW(cuMemAddressFree(third, PAGE));
    SHOW(cuMemAddressReserve(&third, (size_t)1 << 60, 0, 0, 0));
    SHOW(cuMemAddressFree(at, 32 * MIB));
    SHOW(cuMemAddressFree(at + PAGE, 62 * MIB));
    SHOW(cuMemAddressFree(0, PAGE));
    SHOW(cuMemAddressFree(at, 64 * MIB));
    SHOW(cuMemAddressFree(at, 64 * MIB));
    SHOW(cuMemAddressFree(other, 64 * MIB));
}

static void physical_memory(void)
{
    CUmemAllocationProp p = pinned_memory(), found;
    CUmemGenericAllocationHandle a = 0, b = 0;
    printf("# physical memory\n");
    size_t before = free_memory();
    SHOW(cuMemCreate(&a, 4 * PAGE, &p, 0));
    tell("8 MiB less are free", before - free_memory() == 4 * PAGE);
    SHOW(cuMemGetAllocationPropertiesFromHandle(&found, a));
    tell("the properties are found", memcmp(&found, &p, sizeof p) == 0);
    SHOW(cuMemGetAllocationPropertiesFromHandle(NULL, a));
    SHOW(cuMemCreate(NULL, PAGE, &p, 0));
    SHOW(cuMemCreate(&b, PAGE, NULL, 0));
    SHOW(cuMemCreate(&b, 0, &p, 0));
    SHOW(cuMemCreate(&b, MIB, &p, 0));
    SHOW(cuMemCreate(&b, PAGE, &p, 1));
    SHOW(cuMemCreate(&b, (size_t)1 << 50, &p, 0));
    p.location.id = 99;
    SHOW(cuMemCreate(&b, PAGE, &p, 0));
    p = pinned_memory();
    p.type = (CUmemAllocationType)5;
    SHOW(cuMemCreate(&b, PAGE, &p, 0));
    p = pinned_memory();
    p.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    SHOW(cuMemCreate(&b, PAGE, &p, 0));
    SHOW(cuMemRelease(a));
    tell("it is free again", free_memory() == before);
    p = pinned_memory();
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    SHOW(cuMemCreate(&a, PAGE, &p, 0));
    SHOW(cuMemRelease(a));
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    SHOW(cuMemCreate(&b, PAGE, &p, 0));
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    SHOW(cuMemCreate(&b, PAGE, &p, 0));
    SHOW(cuMemRelease(0));
}

/* At `at` 32 MiB are reserved; `a` has four pages, `b` has one. */
static void mapping(CUdeviceptr at, CUmemGenericAllocationHandle a, CUmemGenericAllocationHandle b)
{
    size_t before = free_memory();
    SHOW(cuMemMap(at, 4 * PAGE, 0, a, 0));
    SHOW(cuMemMap(at, 4 * PAGE, 0, a, 0));
    SHOW(cuMemMap(at + 4 * PAGE, PAGE, 0, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE, PAGE, 0, b, 1));
    SHOW(cuMemMap(at + 6 * PAGE, 2 * PAGE, 0, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE, PAGE, PAGE, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE + 512, PAGE, 0, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE, MIB, 0, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE, 0, 0, b, 0));
    SHOW(cuMemMap(at + 32 * MIB, PAGE, 0, b, 0));
    SHOW(cuMemMap(at + 6 * PAGE, PAGE, 0, 0, 0));
    tell("mapping takes no more memory", free_memory() == before);
    SHOW(cudaMemset((void *)(uintptr_t)(at + 32 * MIB), 0, 1));
}

static void access_to_mappings(CUdeviceptr at)
{
    CUmemAccessDesc access = read_write(0);
    SHOW(cuMemSetAccess(at, 5 * PAGE, &access, 1));
    SHOW(cuMemSetAccess(at, 6 * PAGE, &access, 1));
    SHOW(cuMemSetAccess(at, 4 * PAGE, &access, 0));
    SHOW(cuMemSetAccess(at, 4 * PAGE, NULL, 1));
    SHOW(cuMemSetAccess(at, PAGE, &access, 1));
    SHOW(cuMemSetAccess(at + PAGE, PAGE, &access, 1));
    SHOW(cuMemSetAccess(at, MIB, &access, 1));
    CUmemAccessDesc wrong = read_write(99);
    SHOW(cuMemSetAccess(at, 4 * PAGE, &wrong, 1));
    wrong = read_write(0);
    wrong.flags = (CUmemAccess_flags)2;
    SHOW(cuMemSetAccess(at, 4 * PAGE, &wrong, 1));
    unsigned long long flags = 9;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    SHOW(cuMemGetAccess(&flags, &here, at));
    tell("it is read and write", flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    SHOW(cuMemGetAccess(&flags, &here, at + 5 * PAGE));
    SHOW(cuMemGetAccess(NULL, &here, at));
}

/* Also releases both. `before`: what was free when they were made. */
static void unmapping(CUdeviceptr at, CUmemGenericAllocationHandle a,
                      CUmemGenericAllocationHandle b, size_t before)
{
    CUmemGenericAllocationHandle again = 0;
    SHOW(cudaMemset((void *)(uintptr_t)at, 1, 5 * PAGE));
    SHOW(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
    tell("it is the same handle", again == a);
    SHOW(cuMemRelease(again));
    SHOW(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 6 * PAGE)));
    SHOW(cuMemRelease(a));
    tell("released memory that is mapped stays", free_memory() == before);
    SHOW(cudaMemset((void *)(uintptr_t)at, 1, 4 * PAGE));
    SHOW(cudaDeviceSynchronize());
    SHOW(cuMemUnmap(at, PAGE));
    SHOW(cuMemUnmap(at + PAGE, 3 * PAGE));
    SHOW(cuMemUnmap(at, MIB));
    SHOW(cuMemUnmap(at + 8 * PAGE, PAGE));
    SHOW(cuMemUnmap(at + 32 * MIB, PAGE));
    api.cudaDeviceSynchronize(); /* cuMemUnmap waits for nothing */
    SHOW(cuMemAddressFree(at, 32 * MIB));
    SHOW(cuMemUnmap(at, 6 * PAGE));
    tell("unmapping gives the released memory back", free_memory() == before + 4 * PAGE);
    SHOW(cuMemUnmap(at, 5 * PAGE));
    SHOW(cuMemMap(at, PAGE, 0, b, 0));
    SHOW(cuMemMap(at + PAGE, PAGE, 0, b, 0));
    SHOW(cuMemUnmap(at, 2 * PAGE));
    SHOW(cuMemRelease(b));
}

static void mapping_twice(CUdeviceptr at)
{
    CUmemAllocationProp p = pinned_memory();
    CUmemAccessDesc access = read_write(0);
    CUmemGenericAllocationHandle a = 0;
    SHOW(cuMemCreate(&a, 4 * PAGE, &p, 0));
    SHOW(cuMemMap(at, PAGE, 0, a, 0));
    SHOW(cuMemMap(at, 4 * PAGE, 0, a, 0));
    SHOW(cuMemMap(at + 4 * PAGE, 4 * PAGE, 0, a, 0));
    SHOW(cuMemSetAccess(at, 8 * PAGE, &access, 1));
    SHOW(cuMemSetAccess(at, 5 * PAGE, &access, 1));
    SHOW(cuMemUnmap(at, 5 * PAGE));
    SHOW(cuMemRelease(a));
    SHOW(cuMemRelease(a));
    SHOW(cuMemMap(at + 8 * PAGE, 4 * PAGE, 0, a, 0));
    SHOW(cuMemUnmap(at, 32 * MIB));
    SHOW(cudaFree((void *)(uintptr_t)at));
    SHOW(cuMemAddressFree(at, 32 * MIB));
}

static void mappings(void)
{
    CUmemAllocationProp p = pinned_memory();
    CUmemGenericAllocationHandle a = 0, b = 0;
    CUdeviceptr at = 0;
    printf("# mappings\n");
    api.cuMemAddressReserve(&at, 32 * MIB, 0, 0, 0);
    api.cuMemCreate(&a, 4 * PAGE, &p, 0);
    api.cuMemCreate(&b, PAGE, &p, 0);
    size_t before = free_memory();
    mapping(at, a, b);
    access_to_mappings(at);
    unmapping(at, a, b, before);
    mapping_twice(at);
}

/* --- pools ------------------------------------------------------------------------------- */

static struct cudaMemPoolProps device_pool(int device)
{
    struct cudaMemPoolProps p;
    memset(&p, 0, sizeof p);
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    p.location.id = device;
    return p;
}

static uint64_t pool_figure(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 99;
    api.cudaMemPoolGetAttribute(pool, attribute, &value);
    return value;
}

static void pool_objects(void)
{
    cudaMemPool_t first = NULL, same = NULL, own = NULL;
    struct cudaMemPoolProps p = device_pool(0);
    printf("# pools\n");
    SHOW(cudaDeviceGetDefaultMemPool(&first, 0));
    SHOW(cudaDeviceGetMemPool(&same, 0));
    tell("the default pool is the current one", same == first);
    SHOW(cudaDeviceGetDefaultMemPool(NULL, 0));
    SHOW(cudaDeviceGetDefaultMemPool(&same, 99));
    SHOW(cudaMemPoolCreate(&own, &p));
    SHOW(cudaMemPoolCreate(NULL, &p));
    SHOW(cudaMemPoolCreate(&same, NULL));
    p = device_pool(99);
    SHOW(cudaMemPoolCreate(&same, &p));
    p = device_pool(0);
    p.allocType = cudaMemAllocationTypeInvalid;
    SHOW(cudaMemPoolCreate(&same, &p));
    SHOW(cudaDeviceSetMemPool(0, own));
    api.cudaDeviceGetMemPool(&same, 0);
    tell("the new pool is the current one", same == own);
    SHOW(cudaDeviceSetMemPool(0, NULL));
    SHOW(cudaDeviceSetMemPool(99, own));
    SHOW(cudaMemPoolDestroy(own));
    api.cudaDeviceGetMemPool(&same, 0);
    tell("the default pool is the current one again", same == first);
    SHOW(cudaMemPoolDestroy(first));
    SHOW(cudaMemPoolDestroy(NULL));
}

static void pool_attributes(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaMemPoolProps p = device_pool(0);
    int on = 9, off = 0;
    uint64_t threshold = 64 * MIB, zero = 0, one = 1;
    printf("# attributes of a pool\n");
    api.cudaMemPoolCreate(&pool, &p);
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &on));
    tell("on", on == 1);
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
    tell("on", on == 1);
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &on));
    tell("on", on == 1);
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off));
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
    tell("off", on == 0);
    tell("no threshold at first", pool_figure(pool, cudaMemPoolAttrReleaseThreshold) == 0);
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    tell("now there is one", pool_figure(pool, cudaMemPoolAttrReleaseThreshold) == threshold);
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one));
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero));
    SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &zero));
    SHOW(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)77, &zero));
    SHOW(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)77, &zero));
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, NULL));
    SHOW(cudaMemPoolGetAttribute(NULL, cudaMemPoolAttrUsedMemHigh, &zero));
    SHOW(cudaMemPoolDestroy(pool));
}

static void pool_access(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaMemPoolProps p = device_pool(0);
    struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    struct cudaMemAccessDesc access = {here, cudaMemAccessFlagsProtReadWrite};
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    printf("# access to a pool\n");
    api.cudaMemPoolCreate(&pool, &p);
    SHOW(cudaMemPoolGetAccess(&flags, pool, &here));
    tell("read and write", flags == cudaMemAccessFlagsProtReadWrite);
    SHOW(cudaMemPoolSetAccess(pool, &access, 1));
    SHOW(cudaMemPoolSetAccess(pool, &access, 0));
    access.flags = cudaMemAccessFlagsProtNone;
    SHOW(cudaMemPoolSetAccess(pool, &access, 1));
    access.flags = cudaMemAccessFlagsProtRead;
    SHOW(cudaMemPoolSetAccess(pool, &access, 1));
    SHOW(cudaMemPoolDestroy(pool));
}

static void pool_memory(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaMemPoolProps p = device_pool(0);
    cudaStream_t a = NULL, b = NULL;
    void *first = NULL, *second = NULL, *third = NULL;
    uint64_t most = UINT64_MAX;
    printf("# memory of a pool\n");
    api.cudaMemPoolCreate(&pool, &p);
    api.cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most);
    api.cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    api.cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    SHOW(cudaMallocFromPoolAsync(&first, 8 * MIB, pool, a));
    tell("aligned to 512", (uintptr_t)first % 512 == 0);
    tell("used: 8 MiB", pool_figure(pool, cudaMemPoolAttrUsedMemCurrent) == 8 * MIB);
    tell("reserved: not less", pool_figure(pool, cudaMemPoolAttrReservedMemCurrent) >= 8 * MIB);
    SHOW(cudaMemsetAsync(first, 1, 8 * MIB, a));
    SHOW(cudaFreeAsync(first, a));
    tell("used: none", pool_figure(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    tell("used at most: 8 MiB", pool_figure(pool, cudaMemPoolAttrUsedMemHigh) == 8 * MIB);
    SHOW(cudaMallocFromPoolAsync(&second, 8 * MIB, pool, a));
    tell("the same stream gets it again", second == first);
    SHOW(cudaFreeAsync(second, a));
    SHOW(cudaFreeAsync(second, a));
    SHOW(cudaMallocFromPoolAsync(NULL, 8 * MIB, pool, a));
    SHOW(cudaMallocFromPoolAsync(&third, 0, pool, a));
    SHOW(cudaMallocFromPoolAsync(&third, 8 * MIB, NULL, a));
    SHOW(cudaMallocFromPoolAsync(&third, (size_t)1 << 50, pool, a));
    SHOW(cudaStreamSynchronize(a));
    tell("kept below the threshold",
         pool_figure(pool, cudaMemPoolAttrReservedMemCurrent) >= 8 * MIB);
    SHOW(cudaMallocFromPoolAsync(&third, 8 * MIB, pool, b));
    tell("another stream gets it when the first is done", third == first);
    SHOW(cudaFreeAsync(third, b));
    SHOW(cudaStreamSynchronize(b));
    SHOW(cudaMemPoolTrimTo(pool, 0));
    tell("trimmed", pool_figure(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
    SHOW(cudaMemPoolTrimTo(NULL, 0));
    SHOW(cudaMallocFromPoolAsync(&first, MIB, pool, a));
    SHOW(cudaFree(first));
    SHOW(cudaFree(first));
    SHOW(cudaDeviceSynchronize());
    most = 0;
    api.cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most);
    SHOW(cudaMallocFromPoolAsync(&first, MIB, pool, a));
    SHOW(cudaFreeAsync(first, a));
    SHOW(cudaStreamSynchronize(a));
    tell("given back when the host synchronises",
         pool_figure(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
    SHOW(cudaMemPoolDestroy(pool));
    SHOW(cudaMallocAsync(&first, MIB, NULL));
    SHOW(cudaFreeAsync(first, NULL));
    SHOW(cudaFreeAsync(NULL, a));
    SHOW(cudaMalloc(&first, MIB));
    SHOW(cudaFreeAsync(first, a));
    SHOW(cudaStreamSynchronize(a));
    SHOW(cudaFree(first));
    SHOW(cudaFreeAsync(&first, a));
    CUdeviceptr from_driver = 0;
    SHOW(cuMemAllocAsync(&from_driver, MIB, a));
    SHOW(cuMemFreeAsync(from_driver, a));
    SHOW(cuMemFreeAsync(0, a));
    SHOW(cuMemAllocAsync(&from_driver, 0, a));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaStreamDestroy(a));
    SHOW(cudaStreamDestroy(b));
}

/* --- host memory, pointers, contexts ----------------------------------------------------- */

#define BLOCK ((size_t)64 << 10)
static char own_memory[4 * BLOCK];

static void host_memory(void)
{
    void *allocated = NULL, *out = NULL;
    unsigned flags = 99;
    printf("# host memory\n");
    SHOW(cudaHostRegister(own_memory, BLOCK, 0));
    SHOW(cudaHostRegister(own_memory, BLOCK, 0));
    SHOW(cudaHostRegister(own_memory + BLOCK, BLOCK, 16));
    SHOW(cudaHostRegister(NULL, BLOCK, 0));
    SHOW(cudaHostRegister(own_memory + 2 * BLOCK, 0, 0));
    SHOW(cudaHostGetDevicePointer(&out, own_memory, 0));
    tell("the device has it at the same address", out == own_memory);
    SHOW(cudaHostGetDevicePointer(&out, own_memory + 5, 0));
    SHOW(cudaHostGetDevicePointer(NULL, own_memory, 0));
    SHOW(cudaHostGetDevicePointer(&out, own_memory, 1));
    SHOW(cudaHostGetDevicePointer(&out, &out, 0));
    SHOW(cudaHostGetFlags(&flags, own_memory));
    tell("mapped", (flags & cudaHostAllocMapped) != 0);
    tell("portable", (flags & cudaHostAllocPortable) != 0);
    SHOW(cudaHostGetFlags(NULL, own_memory));
    SHOW(cudaHostGetFlags(&flags, &flags));
    SHOW(cudaFreeHost(own_memory));
    SHOW(cudaHostUnregister(own_memory + BLOCK));
    SHOW(cudaHostUnregister(NULL));
    SHOW(cudaHostUnregister(own_memory));
    SHOW(cudaHostUnregister(own_memory));
    SHOW(cudaHostAlloc(&allocated, BLOCK, cudaHostAllocMapped | cudaHostAllocPortable));
    SHOW(cudaHostGetDevicePointer(&out, allocated, 0));
    SHOW(cudaHostGetFlags(&flags, allocated));
    tell("portable and mapped", (flags & 3) == 3);
    SHOW(cudaHostUnregister(allocated));
    SHOW(cudaHostRegister(allocated, BLOCK, 0));
    SHOW(cudaFreeHost(allocated));
    SHOW(cuMemHostAlloc(&allocated, BLOCK, 0));
    SHOW(cuMemHostAlloc(NULL, BLOCK, 0));
    SHOW(cuMemHostAlloc(&out, 0, 0));
    SHOW(cuMemHostAlloc(&out, BLOCK, 99));
    CUdeviceptr mapped = 0;
    SHOW(cuMemHostGetDevicePointer_v2(&mapped, allocated, 0));
    SHOW(cuMemHostGetFlags(&flags, allocated));
    SHOW(cuMemFreeHost(allocated));
    SHOW(cuMemAllocHost_v2(&allocated, BLOCK));
    SHOW(cuMemFreeHost(allocated));
    SHOW(cuMemFreeHost(own_memory));
    SHOW(cuMemHostRegister_v2(own_memory, BLOCK, 0));
    SHOW(cuMemHostUnregister(own_memory));
    SHOW(cuMemHostUnregister(own_memory));
}

static void pitched_memory(void)
{
    void *rows = NULL;
    size_t pitch = 0;
    printf("# rows\n");
    SHOW(cudaMallocPitch(&rows, &pitch, 1000, 10));
    tell("rows are 1024 bytes apart", pitch == 1024);
    SHOW(cudaFree(rows));
    SHOW(cudaMallocPitch(NULL, &pitch, 1000, 10));
    SHOW(cudaMallocPitch(&rows, NULL, 1000, 10));
    SHOW(cudaMallocPitch(&rows, &pitch, 0, 10));
    tell("no rows", rows == NULL);
    SHOW(cudaMallocPitch(&rows, &pitch, (size_t)1 << 40, (size_t)1 << 40));
}

static void pointers(void)
{
    void *memory = NULL;
    CUcontext context = NULL, current = NULL;
    unsigned type = 99;
    int ordinal = 99;
    unsigned is_managed = 1;
    CUdeviceptr start = 0;
    size_t size = 0;
    printf("# pointers\n");
    api.cudaMalloc(&memory, MIB);
    CUdeviceptr inside = (uintptr_t)memory + 1000;
    SHOW(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
    api.cuCtxGetCurrent(&current);
    tell("the current context", context == current);
    SHOW(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    tell("device memory", type == CU_MEMORYTYPE_DEVICE);
    SHOW(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside));
    tell("itself", start == inside);
    SHOW(cuPointerGetAttribute(&memory, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside));
    SHOW(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
    tell("not managed", !is_managed);
    SHOW(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
    tell("device 0", ordinal == 0);
    SHOW(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    tell("where it begins", start == inside - 1000);
    SHOW(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    tell("1 MiB", size == MIB);
    SHOW(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    SHOW(cuPointerGetAttribute(&size, (CUpointer_attribute)99, inside));
    SHOW(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&size));
    SHOW(cuMemGetAddressRange_v2(&start, &size, inside));
    tell("where it begins, 1 MiB", start == inside - 1000 && size == MIB);
    SHOW(cuMemGetAddressRange_v2(NULL, NULL, inside));
    SHOW(cuMemGetAddressRange_v2(&start, &size, (uintptr_t)&size));
    SHOW(cudaFree((void *)(uintptr_t)(inside - 1000)));
    SHOW(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    SHOW(cuMemGetAddressRange_v2(&start, &size, inside));
}

static void contexts(void)
{
    CUcontext own = NULL, seen = NULL;
    CUdevice device = 9;
    unsigned flags = 0;
    printf("# contexts\n");
    SHOW(cuDevicePrimaryCtxRetain(&own, 0));
    SHOW(cuCtxGetDevice(&device));
    tell("device 0", device == 0);
    SHOW(cuCtxGetDevice(NULL));
    SHOW(cuCtxGetFlags(&flags));
    SHOW(cuCtxGetFlags(NULL));
    SHOW(cuCtxSynchronize());
    SHOW(cuCtxPushCurrent_v2(own));
    SHOW(cuCtxPopCurrent_v2(&seen));
    tell("the one that was pushed", seen == own);
    SHOW(cuCtxGetCurrent(&seen));
    tell("the runtime's is current again", seen == own);
    SHOW(cuCtxPopCurrent_v2(&seen));
    SHOW(cuCtxGetCurrent(&seen));
    tell("none is current", seen == NULL);
    SHOW(cuCtxPopCurrent_v2(&seen));
    SHOW(cuCtxGetDevice(&device));
    SHOW(cuCtxSynchronize());
    CUdeviceptr memory = 0;
    SHOW(cuMemAlloc_v2(&memory, MIB));
    SHOW(cuCtxPushCurrent_v2(NULL));
    SHOW(cuCtxSetCurrent(own));
    SHOW(cuCtxGetDevice(&device));
    SHOW(cuDevicePrimaryCtxRelease_v2(0));
}

static void settings(void)
{
    unsigned flags = 0;
    char text[32] = "";
    int device = 9, answer = 9;
    size_t value = 0;
    printf("# settings\n");
    SHOW(cudaGetDeviceFlags(&flags));
    tell("mapped host memory", (flags & cudaDeviceMapHost) != 0);
    SHOW(cudaGetDeviceFlags(NULL));
    SHOW(cudaSetDeviceFlags(4));
    SHOW(cudaGetDeviceFlags(&flags));
    tell("blocking", (flags & cudaDeviceScheduleMask) == 4);
    SHOW(cudaSetDeviceFlags(3));
    SHOW(cudaSetDeviceFlags(1u << 20));
    SHOW(cudaSetDeviceFlags(0));
    SHOW(cudaDeviceGetPCIBusId(text, 32, 0));
    SHOW(cudaDeviceGetByPCIBusId(&device, text));
    tell("it is device 0", device == 0);
    SHOW(cudaDeviceGetPCIBusId(text, 5, 0));
    SHOW(cudaDeviceGetPCIBusId(NULL, 32, 0));
    SHOW(cudaDeviceGetPCIBusId(text, 32, 99));
    SHOW(cudaDeviceGetByPCIBusId(NULL, "0000:00:00.0"));
    SHOW(cudaDeviceGetByPCIBusId(&device, NULL));
    SHOW(cudaDeviceGetByPCIBusId(&device, "ffff:ff:1f.7"));
    SHOW(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    tell("1024 bytes of stack", value == 1024);
    SHOW(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    tell("a heap of 8 MiB", value == 8 * MIB);
    SHOW(cudaDeviceGetLimit(NULL, cudaLimitStackSize));
    SHOW(cudaDeviceGetLimit(&value, (enum cudaLimit)99));
    SHOW(cudaDeviceSetLimit((enum cudaLimit)99, 1));
    SHOW(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
    SHOW(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    tell("2048 bytes of stack", value == 2048);
    SHOW(cudaDeviceGetP2PAttribute(&answer, cudaDevP2PAttrAccessSupported, 0, 0));
    SHOW(cudaDeviceGetP2PAttribute(&answer, cudaDevP2PAttrAccessSupported, 0, 99));
}

/* --- other processes, peers, entry points ------------------------------------------------ */

static void other_processes(void)
{
    cudaIpcMemHandle_t handle;
    void *memory = NULL, *opened = NULL;
    printf("# other processes\n");
    memset(&handle, 0, sizeof handle);
    api.cudaMalloc(&memory, MIB);
    SHOW(cudaIpcGetMemHandle(&handle, NULL));
    SHOW(cudaIpcGetMemHandle(&handle, &handle));
    SHOW(cudaIpcOpenMemHandle(&opened, handle, 99));
    SHOW(cudaIpcCloseMemHandle(NULL));
    SHOW(cudaIpcCloseMemHandle(memory));
    SHOW(cudaFree(memory));
}

static void peers(void)
{
    int answer = 9, count = 0;
    printf("# peers\n");
    api.cudaGetDeviceCount(&count);
    SHOW(cudaDeviceCanAccessPeer(&answer, 0, 0));
    tell("a device is not its own peer", answer == 0);
    SHOW(cudaDeviceCanAccessPeer(NULL, 0, 0));
    SHOW(cudaDeviceCanAccessPeer(&answer, 0, 99));
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    SHOW(cudaDeviceEnablePeerAccess(99, 0));
    SHOW(cudaDeviceEnablePeerAccess(0, 1));
    SHOW(cudaDeviceDisablePeerAccess(0));
    SHOW(cudaDeviceDisablePeerAccess(99));
}

static void entry_points(void)
{
    void *function = NULL, *exported = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointVersionNotSufficent;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    (void)exported;
    printf("# entry points\n");
    SHOW(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 12000, 0, &found));
    tell("it is there", function && found == cudaDriverEntryPointSuccess);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, 0, &found));
    tell("a plain name is there", function && found == cudaDriverEntryPointSuccess);
    SHOW(cudaGetDriverEntryPointByVersion("cuNothingOfThatName", &function, 12000, 0, &found));
    tell("nothing", !function && found == cudaDriverEntryPointSymbolNotFound);
    SHOW(cudaGetDriverEntryPointByVersion("cuNothingOfThatName", &function, 12000, 0, NULL));
    SHOW(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 12000, 0, NULL));
    SHOW(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 5000, 0, &found));
    tell("too new for the version", found == cudaDriverEntryPointVersionNotSufficent);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 10020, 0, &found));
    tell("new enough", found == cudaDriverEntryPointSuccess);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &function, 11010, 0, &found));
    tell("too new for the version", found == cudaDriverEntryPointVersionNotSufficent);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 2000, 0, &found));
    tell("there from the start", found == cudaDriverEntryPointSuccess);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAlloc_v2", &function, 12000, 0, &found));
    tell("a name with its version is there", found == cudaDriverEntryPointSuccess);
    SHOW(cudaGetDriverEntryPointByVersion("", &function, 12000, 0, &found));
    SHOW(cuGetProcAddress_v2("cuMemMap", &function, 12000, 0, &status));
    tell("it is there", function && status == CU_GET_PROC_ADDRESS_SUCCESS);
    SHOW(cuGetProcAddress_v2("cuNothingOfThatName", &function, 12000, 0, &status));
    tell("nothing", status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    SHOW(cuGetProcAddress_v2("cuNothingOfThatName", &function, 12000, 0, NULL));
}

static void properties(void)
{
    struct cudaDeviceProp p;
    size_t free_bytes, total = 0;
    printf("# properties\n");
    memset(&p, 0, sizeof p);
    SHOW(cudaGetDeviceProperties(&p, 0));
    api.cudaMemGetInfo(&free_bytes, &total);
    tell("the memory is cudaMemGetInfo's", p.totalGlobalMem == total);
    tell("Hopper", p.major == 9 && p.minor == 0 && p.multiProcessorCount == 132);
    tell("warps of 32", p.warpSize == 32);
    tell("pools are supported", p.memoryPoolsSupported == 1);
    tell("priorities are supported", p.streamPrioritiesSupported == 1);
    SHOW(cudaGetDeviceProperties(NULL, 0));
    SHOW(cudaGetDeviceProperties(&p, 99));
    SHOW(cudaGetDeviceProperties(&p, -1));
}

/* --- main -------------------------------------------------------------------------------- */

static void *find_function(void *cudart, void *driver, const char *name)
{
    void *found = dlsym(cudart, name);
    return found ? found : dlsym(driver, name);
}

static bool load_api(void)
{
    void *cudart = dlopen(rt.path, RTLD_NOW | RTLD_GLOBAL);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    bool is_complete = cudart && driver;
#define LOAD(result, name, parameters, arguments)                                                  \
    if (is_complete && !(*(void **)&api.name = find_function(cudart, driver, #name))) {            \
        fprintf(stderr, "there is no %s\n", #name);                                                \
        is_complete = false;                                                                       \
    }
    GMD_CUDART_FUNCTIONS(LOAD)
    GMD_CUDART_FURTHER_FUNCTIONS(LOAD)
    GMD_CUDA_DRIVER_FUNCTIONS(LOAD)
#undef LOAD
    return is_complete;
}

int main(int argc, char **argv)
{
    int status = open_device(&rt, argc, argv);
    if (status) {
        return status;
    }
    if (!load_api()) {
        return 3;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    api.cudaFree(NULL);
    static void (*const sections[])(void) = {
        granularity, reservations,   physical_memory, mappings, pool_objects, pool_attributes,
        pool_access, pool_memory,    other_processes, peers,    entry_points, properties,
        host_memory, pitched_memory, pointers,        contexts, settings};
    int only =
        argc > 3 ? (int)strtol(argv[3], NULL, 10) : -1; /* one crash must not hide the others */
    for (int i = 0; i < (int)(sizeof sections / sizeof *sections); i++) {
        if (only < 0 || only == i) {
            sections[i]();
        }
    }
    return 0;
}
