// test_kernels.cpp - the parts of kernels.cu that one thread runs, compiled for the host: which
// bytes a grid sweeps, and what it finds. How threads of a block join what they found needs a GPU.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" {
#include "gmd_test.h"
}

struct ulonglong2 {
    unsigned long long x, y;
};

static struct {
    unsigned int x;
} threadIdx, blockIdx, blockDim, gridDim;

using std::max;
using std::min;

static ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y)
{
    return {x, y};
}

static ulonglong2 __ldcg(const ulonglong2 *from)
{
    return *from;
}

static void __stcg(ulonglong2 *to, ulonglong2 value)
{
    *to = value;
}

#define __device__
#define GMD_SWEEP_ON_HOST
#include "kernels.cu"

namespace
{

constexpr uint64_t freed = 0x7ff47fbf7fbf7fbfu, fresh = 0x7ff17f917f917f91u;
constexpr size_t room = 300000;

struct memory {
    std::vector<unsigned char> bytes;
    memory() : bytes(room + 64, 0) {}

    unsigned char *start() // a multiple of 16
    {
        return bytes.data() + (16 - reinterpret_cast<uintptr_t>(bytes.data()) % 16);
    }
};

sweep_range range_of(unsigned char *from, size_t count, uint32_t flags)
{
    return {reinterpret_cast<uintptr_t>(from), count, freed, freed, flags, 1};
}

// All threads of a grid, one after the other.
damage run(const sweep_range &range, unsigned int blocks)
{
    damage all = {~0ull, 0, 0, 0};
    gridDim.x = blocks;
    blockDim.x = 256;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++) {
            damage mine = {~0ull, 0, 0, 0};
            sweep_part(&range, &mine);
            all.first = min(all.first, mine.first);
            all.last = max(all.last, mine.last);
            all.changed += mine.changed;
        }
    }
    return all;
}

unsigned char pattern_at(const unsigned char *at)
{
    return static_cast<unsigned char>(freed >> 8 * (reinterpret_cast<uintptr_t>(at) % 8));
}

const struct {
    size_t offset, count;
} places[] = {{0, 0},  {0, 1},   {3, 4},    {5, 30},   {8, 24},     {1, 15},
              {7, 17}, {16, 16}, {0, 4096}, {9, 9999}, {13, 200001}};

} // namespace

TEST(a_range_is_written_to_the_byte)
{
    for (const auto &p : places) {
        memory m;
        unsigned char *from = m.start() + p.offset;
        run(range_of(from, p.count, SWEEP_WRITE), 3);
        for (size_t i = 0; i < room - 16; i++) {
            unsigned char *at = m.start() + i;
            const bool is_in = at >= from && at < from + p.count;
            assert_int_equal(*at, is_in ? pattern_at(at) : 0);
        }
    }
}

TEST(what_was_written_verifies)
{
    for (const auto &p : places) {
        memory m;
        unsigned char *from = m.start() + p.offset;
        run(range_of(from, p.count, SWEEP_WRITE), 3);
        assert_int_equal(run(range_of(from, p.count, SWEEP_VERIFY), 5).changed, 0);
    }
}

TEST(each_changed_byte_is_found)
{
    memory m;
    unsigned char *from = m.start() + 5;
    run(range_of(from, 100, SWEEP_WRITE), 1);
    for (size_t i = 0; i < 100; i++) {
        from[i] ^= 1;
        const damage d = run(range_of(from, 100, SWEEP_VERIFY), 1);
        from[i] ^= 1;
        assert_int_equal(d.changed, 1);
        assert_int_equal(d.first, reinterpret_cast<uintptr_t>(from + i));
        assert_int_equal(d.last, d.first);
    }
}

TEST(stripes_that_were_written_verify_whatever_the_grid_is)
{
    for (unsigned int blocks : {1u, 2u, 7u}) {
        memory m;
        unsigned char *from = m.start() + 13;
        run(range_of(from, 200001, SWEEP_WRITE | SWEEP_STRIPED), blocks);
        assert_int_equal(run(range_of(from, 200001, SWEEP_VERIFY | SWEEP_STRIPED), 3).changed, 0);
    }
}

TEST(stripes_are_a_part_of_the_range_with_both_ends)
{
    memory m;
    unsigned char *from = m.start();
    run(range_of(from, 200000, SWEEP_WRITE | SWEEP_STRIPED), 2);
    const auto written = static_cast<size_t>(std::count_if(
        from, from + 200000, [](const unsigned char &byte) { return byte == pattern_at(&byte); }));
    assert_int_equal(written, 4 * SWEEP_STRIPE); // at 0, 1, 2 steps, and the last bytes
    assert_int_equal(from[0], pattern_at(from));
    assert_int_equal(from[199999], pattern_at(from + 199999));
    assert_int_equal(from[SWEEP_STRIPE], 0);
}

TEST(a_change_in_a_stripe_is_found)
{
    memory m;
    unsigned char *from = m.start();
    run(range_of(from, 200000, SWEEP_WRITE | SWEEP_STRIPED), 2);
    std::memset(from, 0, 200000);
    const damage d = run(range_of(from, 200000, SWEEP_VERIFY | SWEEP_STRIPED), 2);
    assert_int_equal(d.first, reinterpret_cast<uintptr_t>(from));
    assert_int_equal(d.last, reinterpret_cast<uintptr_t>(from + 199999));
}

TEST(words_of_either_pattern_are_sought)
{
    memory m;
    unsigned char *from = m.start();
    std::memcpy(from + 64, &freed, sizeof freed);
    std::memcpy(from + 128, &fresh, sizeof fresh);
    sweep_range range = range_of(from, 1000, SWEEP_SEEK);
    range.written = fresh;
    const damage d = run(range, 2);
    assert_int_equal(d.changed, 16);
    assert_int_equal(d.first, reinterpret_cast<uintptr_t>(from + 64));
    assert_int_equal(d.last, reinterpret_cast<uintptr_t>(from + 135));
}

TEST(a_single_float_of_a_pattern_is_sought)
{
    memory m;
    unsigned char *from = m.start() + 16;
    std::memcpy(from, &fresh, 4);
    sweep_range range = range_of(from, 4, SWEEP_SEEK);
    range.written = fresh;
    assert_int_equal(run(range, 1).changed, 4);
    from[1] ^= 1;
    assert_int_equal(run(range, 1).changed, 0);
}
