/* conformance_driver - makes the calls of the driver API on pools, pointers, peers, other
 * processes, per-thread default streams and contexts, and the runtime's on boxes, right and wrong,
 * on the simulated or a real device and prints what each answers: conformance_driver.expected. */
#include "conformance_api.h"
#include "conformance_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

conformance_api api;
gmd_runtime rt;

static struct {
#define OWN_FIELD(result, name, suffix, parameters, arguments) __typeof__(&name) name##suffix;
    GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(OWN_FIELD)
    GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(OWN_FIELD)
#undef OWN_FIELD
} own;

int show(const char *what, int result)
{
    printf("%-76s %s", what, rt.cudaGetErrorName((cudaError_t)result));
    int last = (int)api.cudaGetLastError();
    if (last != cudaSuccess) {
        printf("  last error %s", rt.cudaGetErrorName((cudaError_t)last));
    }
    printf("\n");
    return result;
}

void tell(const char *what, int is_so)
{
    printf("%-76s %s\n", what, is_so ? "yes" : "no");
}

#define SHOW_OWN(call) show(#call, (int)own.call)

/* --- pools ------------------------------------------------------------------------------- */

static CUmemPoolProps pool_of_device(int device)
{
    CUmemPoolProps p;
    memset(&p, 0, sizeof p);
    p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device;
    return p;
}

static void pool_objects(void)
{
    CUmemoryPool pool = NULL, first = NULL, current = NULL;
    CUmemPoolProps p = pool_of_device(0);
    printf("# pools: objects\n");
    SHOW(cuDeviceGetDefaultMemPool(&first, 0));
    SHOW(cuDeviceGetMemPool(&current, 0));
    tell("the default pool is the current one", first && first == current);
    cudaMemPool_t runtimes = NULL;
    SHOW(cudaDeviceGetDefaultMemPool(&runtimes, 0));
    tell("the runtime's is the same", first == runtimes);
    SHOW(cuDeviceGetDefaultMemPool(NULL, 0));
    SHOW(cuDeviceGetDefaultMemPool(&current, 99));
    SHOW(cuDeviceGetMemPool(NULL, 0));
    SHOW(cuDeviceGetMemPool(&current, 99));
    SHOW(cuMemPoolCreate(&pool, &p));
    SHOW(cuMemPoolCreate(NULL, &p));
    SHOW(cuMemPoolCreate(&current, NULL));
    p.location.id = 99;
    SHOW(cuMemPoolCreate(&current, &p));
    p = pool_of_device(0);
    p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    SHOW(cuMemPoolCreate(&current, &p));
    SHOW(cuDeviceSetMemPool(0, pool));
    SHOW(cuDeviceGetMemPool(&current, 0));
    tell("the new one is current", current == pool);
    SHOW(cuDeviceSetMemPool(99, pool));
    SHOW(cuDeviceSetMemPool(0, NULL));
    SHOW(cuMemPoolDestroy(first));
    SHOW(cuMemPoolDestroy(pool));
    SHOW(cuDeviceGetMemPool(&current, 0));
    tell("the default pool is current again", current == first);
    SHOW(cuMemPoolDestroy(NULL));
}

static void pool_attributes(void)
{
    CUmemoryPool pool = NULL;
    CUmemPoolProps p = pool_of_device(0);
    uint64_t figure = 99;
    int is_on = 99;
    printf("# pools: attributes and access\n");
    api.cuMemPoolCreate(&pool, &p);
    SHOW(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &figure));
    tell("a threshold of 0", figure == 0);
    figure = 64 * MIB;
    SHOW(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &figure));
    figure = 0;
    SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &figure));
    tell("the runtime sees it", figure == 64 * MIB);
    SHOW(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &is_on));
    tell("it is on", is_on == 1);
    SHOW(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &figure));
    SHOW(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, NULL));
    SHOW(cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &figure));
    SHOW(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &figure));
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                  nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    SHOW(cuMemPoolGetAccess(&flags, pool, &here));
    tell("its device reads and writes", flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    SHOW(cuMemPoolGetAccess(&flags, pool, &nowhere));
    SHOW(cuMemPoolGetAccess(NULL, pool, &here));
    SHOW(cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    SHOW(cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    SHOW(cuMemPoolSetAccess(pool, &access, 1));
    SHOW(cuMemPoolTrimTo(pool, 0));
    SHOW(cuMemPoolTrimTo(NULL, 0));
    SHOW(cuMemPoolDestroy(pool));
}

static void pool_memory(void)
{
    CUmemoryPool pool = NULL, of = NULL;
    CUmemPoolProps p = pool_of_device(0);
    CUdeviceptr memory = 0, other = 0;
    CUstream stream = NULL;
    uint64_t used = 99;
    printf("# pools: memory\n");
    api.cuMemPoolCreate(&pool, &p);
    SHOW(cuStreamCreate(&stream, cudaStreamNonBlocking));
    SHOW(cuMemAllocFromPoolAsync(&memory, MIB, pool, stream));
    SHOW(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    tell("1 MiB is used", used == MIB);
    SHOW(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
    tell("the pointer is of the pool", of == pool);
    SHOW(cuMemsetD8Async(memory, 1, MIB, stream));
    SHOW(cuMemFreeAsync(memory, stream));
    SHOW(cuMemFreeAsync(memory, stream));
    SHOW(cuMemAllocFromPoolAsync(NULL, MIB, pool, stream));
    SHOW(cuMemAllocFromPoolAsync(&other, 0, pool, stream));
    SHOW(cuMemAllocFromPoolAsync(&other, (size_t)1 << 50, pool, stream));
    SHOW(cuMemAllocFromPoolAsync(&other, MIB, NULL, stream));
    SHOW(cuMemAllocAsync(&other, 0, stream));
    SHOW(cuStreamSynchronize(stream));
    SHOW(cuMemPoolDestroy(pool));
    SHOW(cuStreamDestroy_v2(stream));
}

/* --- pointers ---------------------------------------------------------------------------- */

/* How many of the bytes that are given the answer fills, counted from the first to the last. */
static int bytes_filled(CUpointer_attribute which, CUdeviceptr pointer)
{
    unsigned char first[32], second[32];
    memset(first, 0x5A, sizeof first);
    memset(second, 0xA5, sizeof second);
    api.cuPointerGetAttribute(first, which, pointer);
    api.cuPointerGetAttribute(second, which, pointer);
    int filled = 0;
    for (int i = 0; i < (int)sizeof first; i++) {
        filled = first[i] == 0x5A && second[i] == 0xA5 ? filled : i + 1;
    }
    return filled;
}

static void show_kinds(const char *what, CUdeviceptr pointer)
{
    static const struct {
        const char *name;
        CUpointer_attribute which;
    } kinds[] = {
        {"SYNC_MEMOPS", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS},
        {"BUFFER_ID", CU_POINTER_ATTRIBUTE_BUFFER_ID},
        {"IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED},
        {"MAPPED", CU_POINTER_ATTRIBUTE_MAPPED},
        {"MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE},
        {"ALLOWED_HANDLE_TYPES", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES},
        {"MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
        {"DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
        {"DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER},
        {"HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER},
        {"RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE},
        {"CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t room[4] = {0};
        char line[96];
        int result = (int)api.cuPointerGetAttribute(room, kinds[i].which, pointer);
        snprintf(line, sizeof line, "%s: %s, %d bytes, %s", what, kinds[i].name,
                 bytes_filled(kinds[i].which, pointer), room[0] ? "not 0" : "0");
        show(line, result);
    }
}

static void pointer_kinds(void)
{
    void *memory = NULL, *host = NULL, *second = NULL, *ordered = NULL;
    CUdeviceptr range = 0;
    uint64_t id = 0, inside = 0, other = 0;
    printf("# pointers: one question\n");
    api.cudaMalloc(&memory, MIB);
    api.cudaMalloc(&second, MIB);
    api.cudaMallocHost(&host, MIB);
    api.cudaMallocAsync(&ordered, MIB, NULL);
    api.cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0);
    show_kinds("cudaMalloc", (uintptr_t)memory);
    show_kinds("cudaMallocHost", (uintptr_t)host);
    show_kinds("cudaMallocAsync", (uintptr_t)ordered);
    show_kinds("reserved", range);
    show_kinds("none", (uintptr_t)&range);
    SHOW(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, (uintptr_t)memory));
    SHOW(cuPointerGetAttribute(&inside, CU_POINTER_ATTRIBUTE_BUFFER_ID, (uintptr_t)memory + 999));
    SHOW(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, (uintptr_t)second));
    tell("one buffer has one id, another has another", id == inside && id != other);
    SHOW(cudaFree(memory));
    SHOW(cudaFree(second));
    SHOW(cudaFreeHost(host));
    SHOW(cudaFreeAsync(ordered, NULL));
    SHOW(cuMemAddressFree(range, 2 * MIB));
}

static void pointer_lists(void)
{
    void *memory = NULL;
    CUdeviceptr start = 9;
    void *host = &start;
    unsigned type = 99;
    int device = 99;
    size_t size = 99;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *out[] = {&type, &device, &start, &size, &host};
    printf("# pointers: several questions\n");
    api.cudaMalloc(&memory, MIB);
    CUdeviceptr inside = (uintptr_t)memory + 1000;
    SHOW(cuPointerGetAttributes(5, which, out, inside));
    tell("device memory of device 0", type == CU_MEMORYTYPE_DEVICE && device == 0);
    tell("where it begins, 1 MiB", start == inside - 1000 && size == MIB);
    tell("not the host's: NULL", host == NULL);
    SHOW(cuPointerGetAttributes(5, which, out, (uintptr_t)&type));
    tell("memory of none: no type", type == 0);
    tell("memory of none: device -2", device == -2);
    tell("memory of none: device 0", device == 0);
    tell("memory of none: no beginning", start == 0);
    tell("memory of none: the beginning is as it was", start == inside - 1000);
    tell("memory of none: begins at the pointer", start == (uintptr_t)&type);
    tell("memory of none: no size", size == 0);
    tell("memory of none: the size is as it was", size == MIB);
    tell("memory of none: no host pointer", host == NULL);
    tell("memory of none: the pointer itself", host == &type);
    SHOW(cuPointerGetAttributes(0, which, out, inside));
    SHOW(cuPointerGetAttributes(2, NULL, out, inside));
    SHOW(cuPointerGetAttributes(2, which, NULL, inside));
    which[1] = (CUpointer_attribute)99;
    SHOW(cuPointerGetAttributes(2, which, out, inside));
    SHOW(cudaFree(memory));
}

/* --- devices, peers, other processes ----------------------------------------------------- */

static void peers(void)
{
    CUuuid uuid;
    struct cudaDeviceProp properties;
    int answer = 99;
    CUcontext context = NULL;
    printf("# devices and peers\n");
    SHOW(cuDeviceGetUuid_v2(&uuid, 0));
    SHOW(cudaGetDeviceProperties(&properties, 0));
    tell("the runtime's is the same", memcmp(&uuid, &properties.uuid, sizeof uuid) == 0);
    SHOW(cuDeviceGetUuid_v2(NULL, 0));
    SHOW(cuDeviceGetUuid_v2(&uuid, 99));
    SHOW(cuDeviceCanAccessPeer(&answer, 0, 0));
    tell("a device is not its own peer", answer == 0);
    SHOW(cuDeviceCanAccessPeer(NULL, 0, 0));
    SHOW(cuDeviceCanAccessPeer(&answer, 0, 99));
    SHOW(cuDeviceGetP2PAttribute(&answer, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    SHOW(cuDeviceGetP2PAttribute(&answer, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99));
    SHOW(cuCtxGetCurrent(&context));
    SHOW(cuCtxEnablePeerAccess(context, 0));
    SHOW(cuCtxEnablePeerAccess(context, 1));
    SHOW(cuCtxEnablePeerAccess(NULL, 0));
    SHOW(cuCtxDisablePeerAccess(context));
    SHOW(cuCtxDisablePeerAccess(NULL));
}

static void other_processes(void)
{
    CUipcMemHandle handle;
    CUdeviceptr opened = 0;
    void *memory = NULL;
    printf("# other processes\n");
    memset(&handle, 0, sizeof handle);
    api.cudaMalloc(&memory, MIB);
    SHOW(cuIpcGetMemHandle(&handle, 0));
    SHOW(cuIpcGetMemHandle(&handle, (uintptr_t)&handle));
    memset(&handle, 0, sizeof handle);
    SHOW(cuIpcOpenMemHandle_v2(&opened, handle, 99));
    SHOW(cuIpcCloseMemHandle(0));
    SHOW(cuIpcCloseMemHandle((uintptr_t)memory));
    SHOW(cudaFree(memory));
}

/* --- boxes ------------------------------------------------------------------------------- */

static struct cudaMemcpy3DParms box(struct cudaPitchedPtr to, struct cudaPitchedPtr from,
                                    struct cudaExtent extent)
{
    return (struct cudaMemcpy3DParms){
        .srcPtr = from, .dstPtr = to, .extent = extent, .kind = cudaMemcpyDefault};
}

static void wrong_boxes(struct cudaPitchedPtr device, struct cudaPitchedPtr host)
{
    struct cudaExtent size = {16, 8, 4};
    struct cudaMemcpy3DParms p = box(device, host, size);
    p.srcPtr.ptr = NULL;
    SHOW(cudaMemcpy3D(&p));
    p = box(device, host, size);
    p.dstPtr.pitch = 8;
    SHOW(cudaMemcpy3D(&p));
    p = box(device, host, size);
    p.extent.depth = 0;
    SHOW(cudaMemcpy3D(&p));
    p = box(device, host, size);
    p.kind = (enum cudaMemcpyKind)9;
    SHOW(cudaMemcpy3D(&p));
    p = box(device, host, size);
    p.kind = cudaMemcpyDeviceToHost;
    SHOW(cudaMemcpy3D(&p));
    p = box(device, host, size);
    p.extent.depth = 400000;
    SHOW(cudaMemcpy3D(&p));
}

static void boxes(void)
{
    static unsigned char given[4 * 8 * 16], got[4 * 8 * 16];
    struct cudaPitchedPtr device = {0}, from = {given, 16, 16, 8}, to = {got, 16, 16, 8};
    struct cudaExtent all = {16, 8, 4}, none = {0, 8, 4};
    for (int i = 0; i < (int)sizeof given; i++) {
        given[i] = (unsigned char)(i * 7 + 1);
    }
    printf("# boxes\n");
    SHOW(cudaMalloc3D(&device, none));
    tell("nothing is allocated", device.ptr == NULL);
    SHOW(cudaMalloc3D(NULL, all));
    SHOW(cudaMalloc3D(&device, all));
    tell("rows of 512 bytes", device.pitch == 512);
    tell("16 by 8", device.xsize == 16 && device.ysize == 8);
    struct cudaMemcpy3DParms p = box(device, from, all);
    SHOW(cudaMemcpy3D(&p));
    p = box(to, device, (struct cudaExtent){8, 4, 2});
    p.srcPos = (struct cudaPos){4, 2, 1};
    p.dstPos = (struct cudaPos){8, 4, 2};
    SHOW(cudaMemcpy3DAsync(&p, NULL));
    SHOW(cudaDeviceSynchronize());
    bool is_same = true;
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 4; y++) {
            is_same &= memcmp(&got[((z + 2) * 8 + y + 4) * 16 + 8],
                              &given[((z + 1) * 8 + y + 2) * 16 + 4], 8) == 0;
        }
    }
    tell("the box has arrived", is_same);
    tell("and nothing beside it", got[0] == 0 && got[(2 * 8 + 4) * 16 + 7] == 0);
    wrong_boxes(device, from);
    SHOW(cudaFree(device.ptr));
}

/* --- per-thread default streams ---------------------------------------------------------- */

static void own_streams(void)
{
    CUstream legacy = NULL;
    unsigned long long id = 0, plain = 0;
    CUdeviceptr memory = 0;
    unsigned flags = 99;
    unsigned char byte = 0;
    printf("# per-thread default streams\n");
    SHOW(cuStreamGetId(legacy, &plain));
    SHOW_OWN(cuStreamGetId_ptsz(legacy, &id));
    tell("not the legacy stream", id != plain);
    SHOW(cuStreamGetId(cudaStreamPerThread, &plain));
    tell("the thread's own", id == plain);
    SHOW_OWN(cuStreamGetFlags_ptsz(legacy, &flags));
    SHOW_OWN(cuMemAllocAsync_ptsz(&memory, MIB, legacy));
    SHOW_OWN(cuMemsetD8Async_ptsz(memory, 7, MIB, legacy));
    SHOW_OWN(cuMemcpyDtoH_v2_ptds(&byte, memory, 1));
    tell("the copy is after the memset", byte == 7);
    SHOW_OWN(cuMemsetD8_v2_ptds(memory, 8, MIB));
    SHOW_OWN(cuMemcpyDtoHAsync_v2_ptsz(&byte, memory, 1, legacy));
    SHOW_OWN(cuStreamSynchronize_ptsz(legacy));
    tell("the copy is after the memset", byte == 8);
    SHOW_OWN(cuMemFreeAsync_ptsz(memory, legacy));
    SHOW_OWN(cuStreamQuery_ptsz((CUstream)(uintptr_t)0x1));
    SHOW_OWN(cuStreamSynchronize_ptsz(legacy));
}

static void own_entry_points(void)
{
    void *plain = NULL, *one = NULL, *legacy = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    printf("# per-thread default streams: entry points\n");
    SHOW(cuGetProcAddress_v2("cuStreamQuery", &plain, 12000, 0, &status));
    SHOW(cuGetProcAddress_v2("cuStreamQuery", &legacy, 12000, 1, &status));
    SHOW(cuGetProcAddress_v2("cuStreamQuery", &one, 12000, 2, &status));
    tell("the flag makes a difference", one && plain == legacy && one != plain);
    SHOW(cuGetProcAddress_v2("cuMemcpyHtoD", &plain, 12000, 0, &status));
    SHOW(cuGetProcAddress_v2("cuMemcpyHtoD", &one, 12000, 2, &status));
    tell("the flag makes a difference", one && one != plain);
    SHOW(cuGetProcAddress_v2("cuMemAlloc", &plain, 12000, 0, &status));
    SHOW(cuGetProcAddress_v2("cuMemAlloc", &one, 12000, 2, &status));
    tell("here it makes none", one && one == plain);
    SHOW(cuGetProcAddress_v2("cuStreamQuery_ptsz", &one, 12000, 0, &status));
    tell("the form itself is no name", status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    SHOW(cuGetProcAddress_v2("cuStreamQuery", &one, 12000, 3, &status));
    SHOW(cuGetProcAddress_v2("cuStreamQuery", &one, 12000, 8, &status));
    SHOW(cuGetProcAddress_v2("cuDeviceGetUuid", &one, 12000, 0, &status));
    tell("it is there", one && status == CU_GET_PROC_ADDRESS_SUCCESS);
    SHOW(cuGetProcAddress_v2("cuMemPoolCreate", &one, 11010, 0, &status));
    tell("too new", status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    SHOW(cuGetProcAddress_v2("cuMemAllocFromPoolAsync", &one, 11020, 2, &status));
    tell("it is there", one && status == CU_GET_PROC_ADDRESS_SUCCESS);
}

/* --- no current context ------------------------------------------------------------------ */

static void no_context(void)
{
    CUcontext context = NULL, seen = NULL;
    CUdeviceptr memory = 0;
    void *pointer = NULL;
    int device = 99;
    printf("# no current context\n");
    SHOW(cuCtxGetCurrent(&context));
    SHOW(cuCtxSetCurrent(NULL));
    SHOW(cuMemAlloc_v2(&memory, MIB));
    SHOW(cudaGetDevice(&device));
    tell("device 0", device == 0);
    SHOW(cuCtxGetCurrent(&seen));
    tell("asking for the device makes no context current", seen == NULL);
    SHOW(cudaMalloc(&pointer, MIB));
    SHOW(cuCtxGetCurrent(&seen));
    tell("an allocation does", seen == context);
    SHOW(cudaFree(pointer));
    SHOW(cuCtxSetCurrent(NULL));
    SHOW(cudaStreamSynchronize(NULL));
    SHOW(cuCtxGetCurrent(&seen));
    tell("so does waiting", seen == context);
    SHOW(cuCtxSetCurrent((CUcontext)(uintptr_t)0));
    SHOW(cuStreamQuery(NULL));
    SHOW(cuPointerGetAttributes(0, NULL, NULL, 0));
    SHOW(cudaSetDevice(0));
    SHOW(cuCtxGetCurrent(&seen));
    tell("cudaSetDevice makes it current", seen == context);
}

/* --- main -------------------------------------------------------------------------------- */

static bool load_api(void)
{
    void *cudart = dlopen(rt.path, RTLD_NOW | RTLD_GLOBAL);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    bool is_complete = cudart && driver;
#define LOAD(result, name, parameters, arguments) LOAD_INTO(api.name, #name)
#define LOAD_OWN(result, name, suffix, parameters, arguments)                                      \
    LOAD_INTO(own.name##suffix, #name #suffix)
#define LOAD_INTO(place, text)                                                                     \
    if (is_complete) {                                                                             \
        void *found = dlsym(cudart, text);                                                         \
        found = found ? found : dlsym(driver, text);                                               \
        memcpy((void *)&(place), (const void *)&found, sizeof found);                              \
        if (!found) {                                                                              \
            fprintf(stderr, "there is no %s\n", text);                                             \
            is_complete = false;                                                                   \
        }                                                                                          \
    }
    GMD_CUDART_FUNCTIONS(LOAD)
    GMD_CUDART_FURTHER_FUNCTIONS(LOAD)
    GMD_CUDA_DRIVER_FUNCTIONS(LOAD)
    GMD_CUDA_DRIVER_PER_THREAD_FUNCTIONS(LOAD_OWN)
    GMD_CUDA_DRIVER_PER_THREAD_SYNCHRONOUS(LOAD_OWN)
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
    if (rt.sim) {
        gmd_sim_config config;
        rt.sim->gmd_sim_default_config(&config);
        config.backed = true;
        rt.sim->gmd_sim_reset(&config);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    api.cudaFree(NULL);
    static void (*const sections[])(void) = {
        pool_objects,    pool_attributes, pool_memory, pointer_kinds,    pointer_lists, peers,
        other_processes, boxes,           own_streams, own_entry_points, no_context};
    int only =
        argc > 3 ? (int)strtol(argv[3], NULL, 10) : -1; /* one crash must not hide the others */
    for (int i = 0; i < (int)(sizeof sections / sizeof *sections); i++) {
        if (only < 0 || only == i) {
            sections[i]();
        }
    }
    return 0;
}
