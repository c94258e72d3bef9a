/* What runs after what in every schedule: the laws, one by one, and a model that follows every edge
 * of the graph of all work, which must agree on random programs. */
#include "device_test.h"

#include <stdlib.h>
#include <string.h>

static gmd_sim_point point_of(cudaStream_t stream)
{
    gmd_sim_point point;
    assert_int_equal(gmd_sim_point_of(0, stream, &point), 0);
    return point;
}

static gmd_sim_point work_on(cudaStream_t stream)
{
    launch(stream, 10);
    return point_of(stream);
}

static cudaEvent_t recorded(cudaStream_t stream)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    assert_success(cudaEventRecord(event, stream));
    return event;
}

static cudaStream_t free_stream(void)
{
    return new_stream(cudaStreamNonBlocking);
}

/* --- laws -------------------------------------------------------------------------------- */

TEST_F(fresh_device, a_stream_is_after_its_own_work)
{
    cudaStream_t a = free_stream(), b = free_stream();
    gmd_sim_point work = work_on(a);
    assert_true(gmd_sim_is_ordered(work, 0, a));
    assert_false(gmd_sim_is_ordered(work, 0, b));
    assert_false(gmd_sim_is_known(work));
}

TEST_F(fresh_device, that_time_has_passed_orders_nothing)
{
    cudaStream_t a = free_stream(), b = free_stream();
    gmd_sim_point work = work_on(a);
    gmd_sim_advance(1000);
    assert_int_equal(gmd_sim_pending(a), 0);
    assert_false(gmd_sim_is_ordered(work, 0, b));
    assert_false(gmd_sim_is_known(work));
}

TEST_F(fresh_device, waiting_for_an_event_orders_even_when_it_is_complete)
{
    cudaStream_t a = free_stream(), b = free_stream();
    gmd_sim_point work = work_on(a);
    cudaEvent_t event = recorded(a);
    gmd_sim_advance(1000);
    assert_success(cudaStreamWaitEvent(b, event, 0));
    assert_true(gmd_sim_is_ordered(work, 0, b));
    assert_false(gmd_sim_is_known(work));
}

TEST_F(fresh_device, a_wait_orders_what_was_queued_before_the_record_only)
{
    cudaStream_t a = free_stream(), b = free_stream();
    cudaEvent_t event = recorded(a);
    gmd_sim_point later = work_on(a);
    assert_success(cudaStreamWaitEvent(b, event, 0));
    assert_false(gmd_sim_is_ordered(later, 0, b));
}

TEST_F(fresh_device, waits_pass_on_what_the_other_stream_had_waited_for)
{
    cudaStream_t a = free_stream(), b = free_stream(), c = free_stream();
    gmd_sim_point work = work_on(a);
    assert_success(cudaStreamWaitEvent(b, recorded(a), 0));
    cudaEvent_t second = recorded(b);
    assert_success(cudaStreamWaitEvent(c, second, 0));
    assert_true(gmd_sim_is_ordered(work, 0, c));
}

TEST_F(fresh_device, an_answer_of_a_query_is_known_to_the_host)
{
    cudaStream_t a = free_stream(), b = free_stream();
    gmd_sim_point work = work_on(a);
    cudaEvent_t event = recorded(a);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    assert_false(gmd_sim_is_known(work));
    gmd_sim_advance(1000);
    assert_success(cudaEventQuery(event));
    assert_true(gmd_sim_is_known(work));
    assert_true(gmd_sim_is_ordered(work, 0, b));
}

TEST_F(fresh_device, what_the_host_knows_includes_what_came_before)
{
    cudaStream_t a = free_stream(), b = free_stream();
    gmd_sim_point work = work_on(a);
    assert_success(cudaStreamWaitEvent(b, recorded(a), 0));
    assert_success(cudaStreamSynchronize(b));
    assert_true(gmd_sim_is_known(work));
}

TEST_F(fresh_device, freeing_memory_waits_for_the_device)
{
    gmd_sim_point work = work_on(free_stream());
    assert_success(cudaFree(device_malloc(4096)));
    assert_true(gmd_sim_is_known(work));
}

TEST_F(fresh_device, the_default_stream_is_after_idle_blocking_streams)
{
    cudaStream_t a = new_stream(cudaStreamDefault), b = new_stream(cudaStreamDefault);
    gmd_sim_point on_a = work_on(a), free_work = work_on(free_stream());
    gmd_sim_advance(1000);
    assert_true(gmd_sim_is_ordered(on_a, 0, NULL));
    assert_false(gmd_sim_is_ordered(free_work, 0, NULL));
    assert_false(gmd_sim_is_ordered(on_a, 0, b));
    launch(NULL, 10); /* what lies between makes the one blocking stream follow the other */
    assert_true(gmd_sim_is_ordered(on_a, 0, b));
}

TEST_F(fresh_device, an_event_on_the_default_stream_is_after_blocking_streams)
{
    cudaStream_t a = new_stream(cudaStreamDefault), b = free_stream();
    gmd_sim_point work = work_on(a);
    gmd_sim_advance(1000);
    assert_success(cudaStreamWaitEvent(b, recorded(NULL), 0));
    assert_true(gmd_sim_is_ordered(work, 0, b));
}

TEST_F(fresh_device, a_stream_made_anew_is_not_after_the_work_of_a_destroyed_one)
{
    cudaStream_t a = free_stream();
    gmd_sim_point work = work_on(a);
    gmd_sim_advance(1000);
    assert_success(cudaStreamDestroy(a));
    cudaStream_t b = free_stream();
    assert_false(gmd_sim_is_ordered(work, 0, b));
    assert_success(cudaDeviceSynchronize());
    assert_true(gmd_sim_is_ordered(work, 0, b));
}

/* --- the model --------------------------------------------------------------------------- */

/* Every entry, record, wait and moment of the host is a node; edges say what must come first. */
enum { STREAMS = 6, BLOCKING = 3, LEGACY = 0, EVENTS = 4, STEPS = 60, NODES = STEPS * 2 + 32 };

typedef struct model {
    bool before[NODES][NODES]; /* [later][earlier], closed */
    int count;
    int last[STREAMS]; /* of each stream's queue; -1: none */
    int event[EVENTS];
    int host;    /* what the host has last waited for; -1 */
    int gone[2]; /* all work of destroyed streams, and of destroyed blocking ones; -1 */
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[EVENTS];
    gmd_sim_point points[STEPS];
    int nodes[STEPS], point_count;
} model;

static void follows(model *m, int later, int earlier)
{
    if (earlier >= 0) {
        m->before[later][earlier] = true;
        for (int i = 0; i < earlier; i++) {
            m->before[later][i] |= m->before[earlier][i];
        }
    }
}

static int host_moment(model *m)
{
    int node = m->count++;
    assert_true(node < NODES);
    follows(m, node, m->host);
    return m->host = node;
}

static bool is_blocking(int stream)
{
    return stream < BLOCKING;
}

/* An edge from everything that a new entry of `stream` must come after. */
static void follow_all_before(model *m, int node, int stream)
{
    follows(m, node, m->host);
    follows(m, node, m->last[stream]);
    for (int s = 0; s < BLOCKING && is_blocking(stream); s++) {
        if (stream == LEGACY || s == LEGACY) {
            follows(m, node, m->last[s]);
        }
    }
    follows(m, node, stream == LEGACY ? m->gone[1] : -1);
}

static int queue_node(model *m, int stream)
{
    int node = m->count++;
    assert_true(node < NODES);
    follow_all_before(m, node, stream);
    return m->last[stream] = node;
}

static void model_start(model *m)
{
    memset(m, 0, sizeof *m);
    m->host = m->gone[0] = m->gone[1] = -1;
    for (int s = 0; s < STREAMS; s++) {
        m->last[s] = -1;
        unsigned flags = is_blocking(s) ? cudaStreamDefault : cudaStreamNonBlocking;
        m->streams[s] = s == LEGACY ? NULL : new_stream(flags);
    }
    for (int e = 0; e < EVENTS; e++) {
        m->event[e] = -1;
        m->events[e] = new_event(e & 1 ? cudaEventDisableTiming : cudaEventDefault);
    }
}

static void host_waits_for_stream(model *m, int stream)
{
    int now = host_moment(m);
    for (int s = 0; s < STREAMS; s++) {
        if (s == stream || (stream == LEGACY && is_blocking(s)) || stream < 0) {
            follows(m, now, m->last[s]);
        }
    }
    follows(m, now, stream < 0 ? m->gone[0] : stream == LEGACY ? m->gone[1] : -1);
}

/* The device, and the model after it where the call says that something is over. */
static void ask_or_wait(model *m, int what, int stream, int event)
{
    switch (what) {
    case 0:
        if (cudaStreamQuery(m->streams[stream]) == cudaSuccess) {
            host_waits_for_stream(m, stream);
        }
        return;
    case 1:
        assert_success(cudaStreamSynchronize(m->streams[stream]));
        host_waits_for_stream(m, stream);
        return;
    case 2:
        if (cudaEventQuery(m->events[event]) == cudaSuccess) {
            follows(m, host_moment(m), m->event[event]);
        }
        return;
    case 3:
        assert_success(cudaEventSynchronize(m->events[event]));
        follows(m, host_moment(m), m->event[event]);
        return;
    default:
        if (rand() % 4 == 0) {
            assert_success(cudaDeviceSynchronize());
            host_waits_for_stream(m, -1);
        } else {
            gmd_sim_advance((uint64_t)rand() % 30);
        }
    }
}

static void replace_stream(model *m, int stream)
{
    if (stream == LEGACY) {
        return;
    }
    assert_success(cudaStreamDestroy(m->streams[stream]));
    m->streams[stream] =
        new_stream(is_blocking(stream) ? cudaStreamDefault : cudaStreamNonBlocking);
    for (int kind = 0; kind <= is_blocking(stream); kind++) {
        int gone = m->count++;
        assert_true(gone < NODES);
        follows(m, gone, m->gone[kind]);
        follows(m, gone, m->last[stream]);
        m->gone[kind] = gone;
    }
    m->last[stream] = -1;
}

static void queue_something(model *m, int what, int stream, int event)
{
    if (what < 3) {
        launch(m->streams[stream], (uint64_t)rand() % 20);
        m->nodes[m->point_count] = queue_node(m, stream);
        m->points[m->point_count++] = point_of(m->streams[stream]);
    } else if (what < 5) {
        assert_success(cudaEventRecord(m->events[event], m->streams[stream]));
        m->event[event] = queue_node(m, stream);
    } else if (what < 8) {
        assert_success(cudaStreamWaitEvent(m->streams[stream], m->events[event], 0));
        follows(m, queue_node(m, stream), m->event[event]);
    } else {
        replace_stream(m, stream);
    }
}

/* A node that is taken back: what would be queued next. */
static void compare(model *m)
{
    for (int stream = 0; stream < STREAMS; stream++) {
        int next = m->count;
        assert_true(next < NODES);
        memset(m->before[next], 0, sizeof m->before[next]);
        follow_all_before(m, next, stream);
        for (int i = 0; i < m->point_count; i++) {
            assert_int_equal(gmd_sim_is_ordered(m->points[i], 0, m->streams[stream]),
                             m->before[next][m->nodes[i]]);
        }
        memset(m->before[next], 0, sizeof m->before[next]);
    }
    for (int i = 0; i < m->point_count; i++) {
        assert_int_equal(gmd_sim_is_known(m->points[i]),
                         m->host >= 0 && m->before[m->host][m->nodes[i]]);
    }
}

static void run_program(unsigned seed, gmd_sim_schedule schedule)
{
    static model m;
    gmd_sim_config config = device_config();
    config.schedule = schedule;
    config.schedule_seed = seed;
    device_reset(&config);
    model_start(&m);
    srand(seed);
    for (int step = 0; step < STEPS; step++) {
        int stream = rand() % STREAMS, event = rand() % EVENTS, what = rand() % 14;
        if (what < 9) {
            queue_something(&m, what, stream, event);
        } else {
            ask_or_wait(&m, what - 9, stream, event);
        }
        compare(&m);
    }
}

TEST_F(fresh_device, clocks_agree_with_every_path_of_the_graph)
{
    for (unsigned seed = 1; seed <= 2000; seed++) {
        run_program(seed, GMD_SIM_TIMED);
        run_program(seed, GMD_SIM_EAGER);
        run_program(seed, GMD_SIM_LAZY);
        run_program(seed, GMD_SIM_SEEDED);
    }
}
