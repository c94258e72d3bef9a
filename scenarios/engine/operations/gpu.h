/* gpu.h - the GPU whose kernels' memory the engine models. */
#ifndef GMD_ENGINE_GPU_H
#define GMD_ENGINE_GPU_H

#define GPU_MULTIPROCESSORS 132 /* of an H100 and an H200 */
#define GPU_WARP            32

#endif
