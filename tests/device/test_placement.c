/* Where cudaMalloc puts allocations under each policy. */
#include "device_test.h"

static void use_placement(gmd_sim_placement placement, uint64_t seed)
{
    gmd_sim_config config = device_config();
    config.placement = placement;
    config.seed = seed;
    device_reset(&config);
}

TEST_F(fresh_device, ascending_never_comes_back)
{
    use_placement(GMD_SIM_ASCENDING, 0);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        void *pointer = device_malloc(4 * MIB);
        assert_true((uintptr_t)pointer > last);
        last = (uintptr_t)pointer;
        assert_success(cudaFree(pointer));
    }
}

TEST_F(fresh_device, ascending_starts_over_when_the_window_is_used_up)
{
    gmd_sim_config config = device_config();
    config.capacity_bytes = (uint64_t)16 << 40;
    device_reset(&config);
    uint64_t first = device_malloc_address(PAGE);
    assert_success(cudaFree(device_malloc(((uint64_t)16 << 40) - PAGE)));
    assert_int_equal(device_malloc_address(PAGE), first + PAGE);
}

TEST_F(fresh_device, reuse_first_takes_the_lowest_hole_that_fits)
{
    use_placement(GMD_SIM_REUSE_FIRST, 0);
    void *blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = device_malloc((size_t)(i + 1) * 2 * MIB);
    }
    assert_success(cudaFree(blocks[0]));
    assert_success(cudaFree(blocks[2]));
    assert_ptr_equal(device_malloc(4 * MIB), blocks[2]);
    assert_ptr_equal(device_malloc(2 * MIB), blocks[0]);
}

TEST_F(fresh_device, reuse_first_joins_neighbouring_holes)
{
    use_placement(GMD_SIM_REUSE_FIRST, 0);
    void *first = device_malloc(2 * MIB), *second = device_malloc(2 * MIB);
    device_malloc(2 * MIB);
    assert_success(cudaFree(second));
    assert_success(cudaFree(first));
    assert_ptr_equal(device_malloc(4 * MIB), first);
}

enum { DRAWS = 64 };

static void draw(uint64_t seed, uint64_t addresses[DRAWS])
{
    use_placement(GMD_SIM_RANDOM, seed);
    for (int i = 0; i < DRAWS; i++) {
        addresses[i] = device_malloc_address((size_t)(i % 3 + 1) << 20);
    }
}

TEST_F(fresh_device, random_is_the_seeds_choice)
{
    uint64_t first[DRAWS], same[DRAWS], other[DRAWS];
    draw(7, first);
    draw(7, same);
    draw(8, other);
    assert_memory_equal(first, same, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

TEST_F(fresh_device, random_uses_the_whole_device)
{
    use_placement(GMD_SIM_RANDOM, 3);
    for (int i = 0; i < 512; i++) {
        device_malloc(2 * MIB);
    }
    assert_int_equal(device_state(0).physical_bytes, GIB);
}

static void use_recorded(const gmd_sim_recorded *list, size_t count)
{
    gmd_sim_config config = device_config();
    config.placement = GMD_SIM_RECORDED;
    config.recorded = list;
    config.recorded_count = count;
    device_reset(&config);
}

TEST_F(fresh_device, recorded_gives_the_recorded_addresses)
{
    const gmd_sim_recorded list[] = {{0x7f6b12000000, 20 * MIB, 0}, {0x7f6b10000000, 2 * MIB, 0}};
    use_recorded(list, 2);
    assert_int_equal(device_malloc_address(20 * MIB), 0x7f6b12000000);
    assert_int_equal(gmd_sim_recorded_left(), 1);
    assert_int_equal(device_malloc_address(2 * MIB), 0x7f6b10000000);
    assert_int_equal(gmd_sim_recorded_left(), 0);
    gmd_sim_range range;
    assert_int_equal(gmd_sim_find(0x7f6b12000000 + 20 * MIB - 1, &range), 0);
    assert_int_equal(device_state(0).physical_bytes, 22 * MIB);
}

TEST_F(fresh_device, recorded_comes_back_to_a_freed_address)
{
    const gmd_sim_recorded list[] = {{0x7f0000000000, 2 * MIB, 0}, {0x7f0000000000, 4 * MIB, 0}};
    use_recorded(list, 2);
    assert_success(cudaFree(device_malloc(2 * MIB)));
    assert_int_equal(device_malloc_address(4 * MIB), 0x7f0000000000);
}

TEST_F(fresh_device, recorded_is_given_up_at_the_first_mismatch)
{
    const gmd_sim_recorded list[] = {{0x7f0000000000, 2 * MIB, 0}, {0x7f0000200000, 4 * MIB, 0}};
    use_recorded(list, 2);
    device_malloc(6 * MIB);
    assert_true(device_malloc_address(2 * MIB) != 0x7f0000000000);
    assert_int_equal(gmd_sim_recorded_left(), 2);
}

TEST_F(fresh_device, recorded_never_overlaps)
{
    const gmd_sim_recorded list[] = {{0x7f0000000000, 4 * MIB, 0}, {0x7f0000200000, 2 * MIB, 0}};
    use_recorded(list, 2);
    device_malloc(4 * MIB);
    assert_true(device_malloc_address(2 * MIB) != 0x7f0000200000);
    assert_int_equal(gmd_sim_recorded_left(), 1);
}

TEST_F(fresh_device, a_request_beyond_memory_keeps_the_recorded_list)
{
    const gmd_sim_recorded list[] = {{0x7f0000000000, 2 * MIB, 0}};
    use_recorded(list, 1);
    void *pointer;
    assert_int_equal(cudaMalloc(&pointer, 2 * GIB), cudaErrorMemoryAllocation);
    assert_int_equal(device_malloc_address(2 * MIB), 0x7f0000000000);
}

TEST_F(fresh_device, hostile_recorded_addresses_are_not_used)
{
    const uint64_t addresses[] = {0, 1, 0x7fffffffff00, 0x800000000000, UINT64_MAX - 511};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        const gmd_sim_recorded list[] = {{addresses[i], 2 * MIB, 0}};
        use_recorded(list, 1);
        assert_true(device_malloc_address(2 * MIB) != addresses[i]);
        assert_int_equal(gmd_sim_recorded_left(), 1);
    }
}

/* Compared with the plainest model there is: a list of the live ranges. */
TEST_F(fresh_device, random_histories_never_overlap)
{
    for (int placement = GMD_SIM_ASCENDING; placement <= GMD_SIM_RANDOM; placement++) {
        use_placement((gmd_sim_placement)placement, 11);
        struct {
            uint64_t address, size;
        } live[64] = {{0}};
        uint32_t seed = 1;
        for (int step = 0; step < 4000; step++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t slot = seed >> 26;
            if (live[slot].address) {
                assert_success(cudaFree((void *)(uintptr_t)live[slot].address));
                live[slot].address = 0;
                continue;
            }
            uint64_t size = (seed >> 8 & 1) ? seed >> 9 & 0xFFFF : seed >> 9 & 0xFFFFFF;
            uint64_t address = device_malloc_address(size + 1);
            for (int i = 0; i < 64; i++) {
                assert_true(!live[i].address || address + size < live[i].address ||
                            live[i].address + live[i].size < address);
            }
            live[slot].address = address;
            live[slot].size = size;
        }
        uint64_t sum = 0;
        for (int i = 0; i < 64; i++) {
            sum += live[i].address ? live[i].size + 1 : 0;
        }
        assert_int_equal(device_state(0).allocated_bytes, sum);
    }
}
