/* Schedules that choose: what they let happen is legal, reproducible, and everything that is. */
#include "device_test.h"

#include <string.h>

enum { POLLS = 5, SEEDS = 200, LINKS = 5 };

static void use_seed(uint64_t seed)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_SEEDED;
    config.schedule_seed = seed;
    config.backed = true;
    device_reset(&config);
}

static void use_choices(const uint8_t *choices, size_t count)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_EXPLICIT;
    config.choices = choices;
    config.choice_count = count;
    device_reset(&config);
}

/* Work on two streams, polled: how much was pending at each poll. */
static void watch(uint64_t seed, uint64_t seen[20])
{
    use_seed(seed);
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    for (int i = 0; i < 20; i++) {
        launch(i % 3 ? a : b, 10);
        seen[i] = gmd_sim_pending(a) << 8 | gmd_sim_pending(b);
    }
}

TEST_F(fresh_device, a_seed_decides_everything)
{
    unsigned differing = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t first[20], again[20], other[20];
        watch(seed, first);
        watch(seed, again);
        watch(seed + 1, other);
        assert_memory_equal(first, again, sizeof first);
        differing += memcmp(first, other, sizeof first) != 0;
    }
    assert_true(differing > SEEDS / 2);
}

/* A value goes from stream to stream by events, each of which could be outrun by the next copy. */
TEST_F(fresh_device, no_seed_breaks_the_order_of_waits)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        use_seed(seed);
        unsigned char *memory = device_malloc(LINKS + 1), last = 0;
        assert_success(cudaMemset(memory, 0, LINKS + 1));
        assert_success(cudaDeviceSynchronize());
        cudaEvent_t event = new_event(cudaEventDisableTiming);
        for (int i = 0; i < LINKS; i++) {
            cudaStream_t stream = new_stream(cudaStreamNonBlocking);
            if (i == 0) {
                assert_success(cudaMemsetAsync(memory, 7, 1, stream));
            } else {
                assert_success(cudaStreamWaitEvent(stream, event, 0));
            }
            assert_success(
                cudaMemcpyAsync(memory + i + 1, memory + i, 1, cudaMemcpyDeviceToDevice, stream));
            assert_success(cudaEventRecord(event, stream));
        }
        assert_success(cudaEventSynchronize(event));
        assert_int_equal(gmd_sim_peek((uintptr_t)memory + LINKS, &last, 1), 0);
        assert_int_equal(last, 7);
    }
}

TEST_F(fresh_device, seeds_reach_both_orders_of_what_is_not_ordered)
{
    unsigned last_writes[2] = {0, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        use_seed(seed);
        unsigned char *memory = device_malloc(1), value;
        for (int i = 0; i < 2; i++) {
            assert_success(cudaMemsetAsync(memory, i, 1, new_stream(cudaStreamNonBlocking)));
        }
        assert_success(cudaDeviceSynchronize());
        assert_int_equal(gmd_sim_peek((uintptr_t)memory, &value, 1), 0);
        last_writes[value]++;
    }
    assert_true(last_writes[0] > 10 && last_writes[1] > 10);
}

/* a: two kernels; b: a kernel, a wait for the first of a, and another. The order in which the
 * kernels complete, as text. */
static void run_explicit(const uint8_t *choices, size_t count, char order[8])
{
    use_choices(choices, count);
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(a, 10);
    assert_success(cudaEventRecord(event, a));
    launch(a, 10);
    launch(b, 10);
    assert_success(cudaStreamWaitEvent(b, event, 0));
    launch(b, 10);
    uint64_t left_a = 2, left_b = 3;
    size_t length = 0;
    for (int poll = 0; poll < POLLS; poll++) {
        cudaPeekAtLastError();
        uint64_t now_a = gmd_sim_pending(a), now_b = gmd_sim_pending(b);
        if (now_a < left_a) {
            order[length++] = 'a';
        }
        if (now_b < left_b && left_b != 2) { /* the wait does not count */
            order[length++] = 'b';
        }
        order[length] = '\0';
        left_a = now_a;
        left_b = now_b;
    }
}

TEST_F(fresh_device, explicit_choices_reach_every_legal_order)
{
    static const char *const legal[] = {"aabb", "abab", "abba", "baab", "baba"};
    bool is_reached[5] = {false};
    for (unsigned bits = 0; bits < 1u << POLLS; bits++) {
        /* Nothing completes while work is queued: a choice for each call that finds some. */
        uint8_t choices[5 + 2 * POLLS] = {0};
        for (int poll = 0; poll < POLLS; poll++) {
            choices[5 + 2 * poll] = (uint8_t)(1 + (bits >> poll & 1));
        }
        char order[8] = "";
        run_explicit(choices, sizeof choices, order);
        size_t which = 0;
        while (which < 5 && strcmp(order, legal[which]) != 0) {
            which++;
        }
        assert_true(which < 5 || strlen(order) < 4);
        if (which < 5) {
            is_reached[which] = true;
        }
    }
    for (size_t i = 0; i < 5; i++) {
        assert_true(is_reached[i]);
    }
}

TEST_F(fresh_device, used_up_choices_leave_the_timed_schedule)
{
    const uint8_t choices[] = {0};
    use_choices(choices, 1);
    launch(NULL, 100);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady); /* the choice */
    gmd_sim_advance(99);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
    gmd_sim_advance(1);
    assert_success(cudaStreamQuery(NULL));
}

TEST_F(fresh_device, choices_without_a_list_are_refused)
{
    gmd_sim_config config = device_config();
    config.schedule = GMD_SIM_EXPLICIT;
    config.choice_count = 1;
    assert_int_equal(gmd_sim_reset(&config), -1);
}

/* --- many streams ------------------------------------------------------------------------ */

enum { CROWD = 300, ROUNDS = 3 };

typedef struct crowd {
    cudaStream_t streams[CROWD];
    uint64_t ends[CROWD]; /* when all that is queued on each is over */
    uint64_t random;
} crowd;

static uint64_t below(crowd *c, uint64_t limit)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (c->random >> 33) % limit;
}

/* Work on each stream, which may wait for what was queued on another one; all at time 0. */
static void queue_on_all(crowd *c)
{
    for (int i = 0; i < CROWD * ROUNDS; i++) {
        uint64_t at = (uint64_t)i % CROWD, other = below(c, CROWD), duration = below(c, 1000);
        if (below(c, 2)) {
            cudaEvent_t event = new_event(cudaEventDisableTiming);
            assert_success(cudaEventRecord(event, c->streams[other]));
            assert_success(cudaStreamWaitEvent(c->streams[at], event, 0));
            c->ends[at] = c->ends[other] > c->ends[at] ? c->ends[other] : c->ends[at];
        }
        launch(c->streams[at], duration);
        c->ends[at] += duration;
    }
}

static void expect_what_is_over(const crowd *c)
{
    for (int i = 0; i < CROWD; i++) {
        bool is_over = cudaStreamQuery(c->streams[i]) == cudaSuccess;
        assert_int_equal(is_over, c->ends[i] <= gmd_sim_now());
    }
}

TEST_F(fresh_device, the_work_of_hundreds_of_streams_is_over_when_its_time_has_come)
{
    crowd c = {.random = 3};
    for (int i = 0; i < CROWD; i++) {
        c.streams[i] = new_stream(cudaStreamNonBlocking);
    }
    queue_on_all(&c);
    for (int i = 0; i < 20; i++) {
        gmd_sim_advance(below(&c, 100));
        expect_what_is_over(&c);
        uint64_t waited = below(&c, CROWD), before = gmd_sim_now();
        assert_success(cudaStreamSynchronize(c.streams[waited]));
        assert_int_equal(gmd_sim_now(), c.ends[waited] > before ? c.ends[waited] : before);
        expect_what_is_over(&c);
    }
}
