// A stand-in for ggml's source file, of which the adapter takes the pools: see README.md.
#error "the adapter takes a part of this file"

// from here:
struct ggml_cuda_pool_leg : public ggml_cuda_pool {
    int device;

    explicit ggml_cuda_pool_leg(int which) : device(which) {}

    void *alloc(size_t size, size_t *actual_size) override
    {
        void *memory = nullptr;
        CUDA_CHECK(ggml_cuda_device_malloc(&memory, size, device));
        *actual_size = size;
        return memory;
    }
    void free(void *memory, size_t) override
    {
        ggml_cuda_set_device(device);
        CUDA_CHECK(cudaFree(memory));
    }
};

#if defined(GGML_USE_VMM)
struct ggml_cuda_pool_vmm : public ggml_cuda_pool {
    static const size_t CUDA_POOL_VMM_MAX_SIZE = 1ull << 35;

    CUdeviceptr begin = 0;
    size_t used = 0, mapped = 0, granularity;
    int device;

    explicit ggml_cuda_pool_vmm(int which)
        : granularity(ggml_cuda_info().devices[which].vmm_granularity),
          device(ggml_cuda_get_physical_device(which))
    {
        CU_CHECK(cuMemAddressReserve(&begin, CUDA_POOL_VMM_MAX_SIZE, 0, 0, 0));
    }
    ~ggml_cuda_pool_vmm() override
    {
        if (mapped) {
            (void)cuMemUnmap(begin, mapped);
        }
        (void)cuMemAddressFree(begin, CUDA_POOL_VMM_MAX_SIZE);
    }
    void grow(size_t size)
    {
        CUmemAllocationProp prop = {};
        CUmemAccessDesc access = {};
        CUmemGenericAllocationHandle handle;
        GGML_ASSERT(size <= CUDA_POOL_VMM_MAX_SIZE - mapped);
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = device;
        CU_CHECK(cuMemCreate(&handle, size, &prop, 0));
        CU_CHECK(cuMemMap(begin + mapped, size, 0, handle, 0));
        CU_CHECK(cuMemRelease(handle));
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CU_CHECK(cuMemSetAccess(begin + mapped, size, &access, 1));
        mapped += size;
    }
    void *alloc(size_t size, size_t *actual_size) override
    {
        *actual_size = (size + 255) / 256 * 256;
        if (*actual_size > mapped - used) {
            grow((*actual_size - (mapped - used) + granularity - 1) / granularity * granularity);
        }
        used += *actual_size;
        return reinterpret_cast<void *>(begin + used - *actual_size);
    }
    void free(void *memory, size_t size) override
    {
        used -= size;
        GGML_ASSERT(memory == reinterpret_cast<void *>(begin + used));
    }
};
#endif

std::unique_ptr<ggml_cuda_pool> ggml_backend_cuda_context::new_pool_for_device(int, int);
