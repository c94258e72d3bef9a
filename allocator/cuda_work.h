/* cuda_work.h - whether a device has work to do, asked without waiting and without a stream's
 * handle: one that the caller has destroyed must not be used. */
#ifndef GMD_CUDA_WORK_H
#define GMD_CUDA_WORK_H

typedef enum cuda_work {
    CUDA_WORK_NONE,
    CUDA_WORK_PENDING,
    CUDA_WORK_CAPTURED, /* a stream is being captured */
    CUDA_WORK_UNKNOWN,  /* the device does not tell */
} cuda_work;

/* Asks about all streams of the current device. The question makes a capture invalid, as any that
 * concerns the whole device does (seen on an H200). */
cuda_work cuda_work_now(void);

#endif
