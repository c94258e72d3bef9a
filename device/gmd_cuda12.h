/* gmd_cuda12.h - what CUDA 12 declares otherwise than CUDA 13, for the front libcudart.so.12.
 *
 * The layouts are those of CUDA 12.0 to 12.9 (driver_types.h); CUDA 13 took eight fields out of the
 * device's properties and put a reserve behind the attributes of a pointer. CUDA 12 has
 * these of the calls that gmd has by other names or with other parameters:
 *
 *     cudaGetDeviceProperties             fills what CUDA 11 knew; _v2 is CUDA 12's
 *     cudaPointerGetAttributes            a structure of 24 bytes
 *     cudaMemAdvise, cudaMemPrefetchAsync name a device; _v2 a place
 *     cudaEventElapsedTime                beside it _v2, the same
 *     cudaStreamGetCaptureInfo            three answers; _v2 has the graph, _v3 its edges
 *     cudaStreamUpdateCaptureDependencies, cudaGraphNodeGetDependencies   _v2 has edges */
#ifndef GMD_CUDA12_H
#define GMD_CUDA12_H

#include "gmd_cuda.h"

typedef struct gmd_cuda12_pointer_attributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
} gmd_cuda12_pointer_attributes;

typedef struct gmd_cuda12_device_prop {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int maxTexture1D;
    int maxTexture1DMipmap;
    int maxTexture1DLinear;
    int maxTexture2D[2];
    int maxTexture2DMipmap[2];
    int maxTexture2DLinear[3];
    int maxTexture2DGather[2];
    int maxTexture3D[3];
    int maxTexture3DAlt[3];
    int maxTextureCubemap;
    int maxTexture1DLayered[2];
    int maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D;
    int maxSurface2D[2];
    int maxSurface3D[3];
    int maxSurface1DLayered[2];
    int maxSurface2DLayered[3];
    int maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    int cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
    int deviceNumaConfig;
    int deviceNumaId;
    int mpsEnabled;
    int hostNumaId;
    unsigned int gpuPciDeviceID;
    unsigned int gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
} gmd_cuda12_device_prop;

/* X(field): those that CUDA 13 has as well. */
/* clang-format off */
#define GMD_CUDA12_COMMON_PROPERTIES(X)                                                            \
    X(name) X(uuid) X(luid) X(luidDeviceNodeMask) X(totalGlobalMem) X(sharedMemPerBlock)           \
    X(regsPerBlock) X(warpSize) X(memPitch) X(maxThreadsPerBlock) X(maxThreadsDim)                 \
    X(maxGridSize) X(totalConstMem) X(major) X(minor) X(textureAlignment)                          \
    X(texturePitchAlignment) X(multiProcessorCount) X(integrated) X(canMapHostMemory)              \
    X(maxTexture1D) X(maxTexture1DMipmap) X(maxTexture2D) X(maxTexture2DMipmap)                    \
    X(maxTexture2DLinear) X(maxTexture2DGather) X(maxTexture3D) X(maxTexture3DAlt)                 \
    X(maxTextureCubemap) X(maxTexture1DLayered) X(maxTexture2DLayered)                             \
    X(maxTextureCubemapLayered) X(maxSurface1D) X(maxSurface2D) X(maxSurface3D)                    \
    X(maxSurface1DLayered) X(maxSurface2DLayered) X(maxSurfaceCubemap)                             \
    X(maxSurfaceCubemapLayered) X(surfaceAlignment) X(concurrentKernels) X(ECCEnabled)             \
    X(pciBusID) X(pciDeviceID) X(pciDomainID) X(tccDriver) X(asyncEngineCount)                     \
    X(unifiedAddressing) X(memoryBusWidth) X(l2CacheSize) X(persistingL2CacheMaxSize)              \
    X(maxThreadsPerMultiProcessor) X(streamPrioritiesSupported) X(globalL1CacheSupported)          \
    X(localL1CacheSupported) X(sharedMemPerMultiprocessor) X(regsPerMultiprocessor)                \
    X(managedMemory) X(isMultiGpuBoard) X(multiGpuBoardGroupID) X(hostNativeAtomicSupported)       \
    X(pageableMemoryAccess) X(concurrentManagedAccess) X(computePreemptionSupported)               \
    X(canUseHostPointerForRegisteredMem) X(cooperativeLaunch) X(sharedMemPerBlockOptin)            \
    X(pageableMemoryAccessUsesHostPageTables) X(directManagedMemAccessFromHost)                    \
    X(maxBlocksPerMultiProcessor) X(accessPolicyMaxWindowSize) X(reservedSharedMemPerBlock)        \
    X(hostRegisterSupported) X(sparseCudaArraySupported) X(hostRegisterReadOnlySupported)          \
    X(timelineSemaphoreInteropSupported) X(memoryPoolsSupported) X(gpuDirectRDMASupported)         \
    X(gpuDirectRDMAFlushWritesOptions) X(gpuDirectRDMAWritesOrdering)                              \
    X(memoryPoolSupportedHandleTypes) X(deferredMappingCudaArraySupported)                         \
    X(ipcEventSupported) X(clusterLaunch) X(unifiedFunctionPointers) X(deviceNumaConfig)           \
    X(deviceNumaId) X(mpsEnabled) X(hostNumaId) X(gpuPciDeviceID) X(gpuPciSubsystemID)             \
    X(hostNumaMultinodeIpcSupported)
/* clang-format on */

/* What CUDA 11 knew of it, and its library's function of the plain name fills. */
#define GMD_CUDA11_PROPERTIES_BYTES offsetof(gmd_cuda12_device_prop, hostRegisterSupported)

_Static_assert(sizeof(gmd_cuda12_pointer_attributes) == 24, "the size in CUDA 12");
_Static_assert(sizeof(gmd_cuda12_device_prop) == 1032, "the size in CUDA 12");
#define GMD_CUDA12_PLACE(field, place)                                                             \
    _Static_assert(offsetof(gmd_cuda12_device_prop, field) == (place), "its place in CUDA 12")
GMD_CUDA12_PLACE(clockRate, 348);
GMD_CUDA12_PLACE(major, 360);
GMD_CUDA12_PLACE(multiProcessorCount, 388);
GMD_CUDA12_PLACE(memoryClockRate, 608);
GMD_CUDA12_PLACE(maxThreadsPerMultiProcessor, 624);
GMD_CUDA12_PLACE(regsPerMultiprocessor, 648);
GMD_CUDA12_PLACE(sharedMemPerBlockOptin, 696);
GMD_CUDA12_PLACE(reservedSharedMemPerBlock, 720);
#undef GMD_CUDA12_PLACE

#endif
