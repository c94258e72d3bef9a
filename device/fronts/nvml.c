/* libnvidia-ml.so.1: what PyTorch asks the management library for when it reports an out-of-memory
 * and when it decides how memory can be shared. Without it, a simulated device on a machine with a
 * real GPU would meet that machine's library, which does not know the device. Nothing runs on the
 * simulated device but this process, and no other device is linked to it.
 *
 * Values and signatures are those of NVML 13 (https://docs.nvidia.com/deploy/nvml-api/). */
#include <string.h>

enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2, NVML_ERROR_NOT_SUPPORTED = 3 };
enum { DRIVER_VERSION = 13000 };

typedef struct nvmlDevice_st *nvmlDevice_t;
struct nvmlDevice_st {
    int unused;
};

typedef struct nvmlGpuFabricInfoV_t {
    unsigned int version;
    unsigned char clusterUuid[16];
    int status;
    unsigned int cliqueId;
    unsigned char state; /* 0: not supported */
    unsigned int healthMask;
} nvmlGpuFabricInfoV_t;

int nvmlInit_v2(void);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, void *processes);
int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, void *info);
int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info);

int nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = DRIVER_VERSION;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    static struct nvmlDevice_st any;
    if (!bus_id || !device) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = &any;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, void *processes)
{
    (void)device;
    (void)processes;
    *count = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type)
{
    (void)device;
    (void)link;
    *type = 255; /* unknown */
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, void *info)
{
    (void)device;
    (void)link;
    (void)info;
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    (void)device;
    unsigned int version = info->version;
    memset(info, 0, sizeof *info);
    info->version = version;
    return NVML_SUCCESS;
}
