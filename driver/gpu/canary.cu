/* canary.cu - the kernels that fill blocks and verify them on a real device (canary.h). Compiled
 * into an image that canary.c loads by the driver's module functions: no CUDA runtime of this file's
 * own comes into the process. */
#include <stdint.h>

/* What canary.c reads in pinned memory of the host; the same structure as there. */
struct canary_report {
    uint32_t count; /* verifications that found something, in all */
    uint32_t capacity; /* 0: nothing is reported, and this structure ends here */
    unsigned long long reported[1024]; /* tickets, by their last bits: one report for each */
    struct {
        uint64_t ticket, word, found; /* of which verification; a wrong word, and what it holds */
        uint32_t is_complete;
    } entries[1];
};

/* Each word of a block holds its block's mark above its own place: what is found in the wrong place
 * tells whose it is. */
__device__ static uint64_t word_of(uint64_t mark, uint64_t place)
{
    return mark << 24 | (place & 0xffffff);
}

/* Words `0, step, 2 * step, ...` below `words`. */
extern "C" __global__ void gmd_canary_fill(uint64_t *block, uint64_t words, uint64_t step,
                                           uint64_t mark)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x * step;
    for (uint64_t i = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * step; i < words;
         i += stride) {
        block[i] = word_of(mark, i);
    }
}

/* One of the thread blocks that find a wrong word reports the lowest that it found. */
extern "C" __global__ void gmd_canary_verify(const uint64_t *block, uint64_t words, uint64_t step,
                                             uint64_t mark, uint64_t ticket,
                                             struct canary_report *report)
{
    __shared__ unsigned long long first;
    if (threadIdx.x == 0) {
        first = ~0ull;
    }
    __syncthreads();
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x * step;
    for (uint64_t i = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * step; i < words;
         i += stride) {
        if (__ldcg((const unsigned long long *)&block[i]) != word_of(mark, i)) {
            atomicMin(&first, (unsigned long long)i);
            break; /* the later ones of this thread are higher */
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && first != ~0ull && report->capacity &&
        atomicExch_system(&report->reported[ticket % 1024], (unsigned long long)ticket) != ticket) {
        uint32_t at = atomicAdd_system(&report->count, 1);
        if (at < report->capacity) {
            report->entries[at].ticket = ticket;
            report->entries[at].word = first;
            report->entries[at].found = __ldcg((const unsigned long long *)&block[first]);
            __threadfence_system();
            atomicExch_system(&report->entries[at].is_complete, 1);
        }
    }
}
