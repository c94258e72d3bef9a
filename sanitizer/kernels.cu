// kernels.cu - fills memory with patterns and verifies them (sweep_task.h). kernels.ptx is what nvcc makes of
// this file; it is kept beside it, since users and CI may have no nvcc:
//
//     nvcc -ptx -arch=compute_75 -O2 -o kernels.ptx kernels.cu
#include "sweep_task.h"

typedef unsigned long long word;

struct damage { // of one thread, then of its thread block
    word first, last, changed;
    word found; // the word that the first one lies in
};

__device__ static void note_byte(damage *d, word address, word found)
{
    if (address < d->first) {
        d->first = address;
        d->found = found;
    }
    d->last = max(d->last, address);
    d->changed++;
}

// The bytes of `found` that are not those of `expected`, lowest address first.
__device__ static void note_word(damage *d, word address, word found, word expected)
{
    const word different = found ^ expected;
    for (int i = 0; i < 8; i++) {
        if ((different >> 8 * i) & 0xff) {
            note_byte(d, address + i, found);
        }
    }
}

// A word that is one of the two is a find of 8 bytes.
__device__ static void seek_word(const sweep_range *r, word address, word found, damage *d)
{
    if (found == r->expected || found == r->written) {
        note_byte(d, address, found);
        d->last = max(d->last, address + 7);
        d->changed += 7;
    }
}

// A range of less than two words.
__device__ static void seek_bytes(const sweep_range *r, damage *d)
{
    bool is_expected = true, is_written = true;
    for (word at = r->address; at < r->address + r->bytes; at++) {
        const unsigned char found = *(volatile unsigned char *)at;
        is_expected = is_expected && found == (unsigned char)(r->expected >> 8 * (at % 8));
        is_written = is_written && found == (unsigned char)(r->written >> 8 * (at % 8));
    }
    if (is_expected || is_written) {
        note_byte(d, r->address, is_expected ? r->expected : r->written);
        d->last = max(d->last, (word)(r->address + r->bytes - 1));
        d->changed += r->bytes - 1;
    }
}

// Bytes that fill no word: at the ends of a range.
__device__ static void sweep_byte(const sweep_range *r, word address, damage *d)
{
    volatile unsigned char *byte = (volatile unsigned char *)address;
    const int shift = 8 * (int)(address % 8);
    const unsigned char found = *byte;
    if ((r->flags & SWEEP_VERIFY) && found != (unsigned char)(r->expected >> shift)) {
        note_byte(d, address, (r->expected & ~((word)0xff << shift)) | (word)found << shift);
    }
    if (r->flags & SWEEP_WRITE) {
        *byte = (unsigned char)(r->written >> shift);
    }
}

__device__ static void sweep_pair(const sweep_range *r, word address, damage *d)
{
    ulonglong2 *pair = (ulonglong2 *)address;
    if (r->flags & SWEEP_SEEK) {
        const ulonglong2 found = __ldcg(pair);
        seek_word(r, address, found.x, d);
        seek_word(r, address + 8, found.y, d);
    }
    if (r->flags & SWEEP_VERIFY) {
        const ulonglong2 found = __ldcg(pair);
        if (found.x != r->expected || found.y != r->expected) {
            note_word(d, address, found.x, r->expected);
            note_word(d, address + 8, found.y, r->expected);
        }
    }
    if (r->flags & SWEEP_WRITE) {
        __stcg(pair, make_ulonglong2(r->written, r->written));
    }
}

// A stripe is as wide as a thread block has words of 16 bytes.
__device__ static void sweep_stripes(const sweep_range *r, word inner, word inner_end, damage *d)
{
    for (word stripe = inner + (word)blockIdx.x * SWEEP_STRIPE_STEP; stripe < inner_end;
         stripe += (word)gridDim.x * SWEEP_STRIPE_STEP) {
        const word at = stripe + threadIdx.x * 16;
        if (at < inner_end) {
            sweep_pair(r, at, d);
        }
    }
    const word last = inner_end - min(inner_end - inner, (word)SWEEP_STRIPE);
    if (blockIdx.x == 0 && last + threadIdx.x * 16 < inner_end) {
        sweep_pair(r, last + threadIdx.x * 16, d);
    }
}

__device__ static void sweep_part(const sweep_range *r, damage *d)
{
    const word end = r->address + r->bytes;
    const word inner = min((word)((r->address + 15) & ~15ull), end);
    const word inner_end = max(inner, (word)(end & ~15ull));
    const word rank = (word)blockIdx.x * blockDim.x + threadIdx.x;
    if (r->flags & SWEEP_STRIPED) {
        sweep_stripes(r, inner, inner_end, d);
    } else {
        const word stride = (word)gridDim.x * blockDim.x * 16;
        for (word at = inner + rank * 16; at < inner_end; at += stride) {
            sweep_pair(r, at, d);
        }
    }
    if (r->flags & SWEEP_SEEK) {
        if (rank == 0 && inner == inner_end) {
            seek_bytes(r, d);
        }
    } else if (blockIdx.x == 0) { // at most 15 bytes at either end
        if (r->address + threadIdx.x < inner) {
            sweep_byte(r, r->address + threadIdx.x, d);
        }
        if (inner_end + threadIdx.x < end) {
            sweep_byte(r, inner_end + threadIdx.x, d);
        }
    }
}

#ifndef GMD_SWEEP_ON_HOST // for a test of what is above

// An entry that the host has not read yet stays.
__device__ static void keep_find(sweep_finds *finds, const sweep_range *r, const damage *d)
{
    sweep_find *f = &finds->entries[atomicAdd_system(&finds->count, 1u) % SWEEP_FINDS];
    if (atomicCAS_system(&f->state, SWEEP_FREE, SWEEP_TAKEN) != SWEEP_FREE) {
        atomicAdd_system(&finds->lost, 1u);
        return;
    }
    f->first = d->first;
    f->last = d->last;
    f->changed = d->changed;
    f->word = d->found;
    f->ticket = r->ticket;
    __threadfence_system();
    atomicExch_system(&f->state, SWEEP_COMPLETE);
}

__device__ static void sweep(sweep_finds *finds, const sweep_range *r)
{
    __shared__ damage all;
    if (threadIdx.x == 0) {
        all = {~0ull, 0, 0, 0};
    }
    damage mine = {~0ull, 0, 0, 0};
    __syncthreads();
    sweep_part(r, &mine);
    if (mine.changed) {
        atomicMin(&all.first, mine.first);
        atomicMax(&all.last, mine.last);
        atomicAdd(&all.changed, mine.changed);
    }
    __syncthreads();
    if (mine.changed && mine.first == all.first) {
        all.found = mine.found;
    }
    __syncthreads();
    if (threadIdx.x == 0 && all.changed) {
        keep_find(finds, r, &all);
    }
}

extern "C" __global__ void gmd_sweep_few(const __grid_constant__ sweep_few task)
{
    sweep(task.finds, &task.ranges[blockIdx.y]);
}

extern "C" __global__ void gmd_sweep_many(const __grid_constant__ sweep_many task)
{
    sweep(task.finds, &task.ranges[blockIdx.y]);
}

#endif
