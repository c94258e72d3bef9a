/* What watches outlives what it watches: a fork server that is ended or stopped from outside,
 * processes that a library leaves behind, and one that writes at random over all memory that the
 * processes share. */
#include "driver_test.h"
#include "gmd_clock.h"
#include "gmd_fork_server.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static gmd_run_options options;
static gmd_fork_server *server;
static gmd_trace trace;

static int close_server(void **state)
{
    (void)state;
    gmd_fork_server_close(server);
    gmd_trace_free(&trace);
    server = NULL;
    unsetenv("GMD_PLANT");
    unsetenv("GMD_SCRIBBLE");
    return 0;
}

FIXTURE(server, NULL, close_server);

static void open_server(const char *allocator)
{
    gmd_error error = {""};
    options = options_on(allocator);
    if (gmd_fork_server_open(&server, &options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

static const char few_blocks[] = "alloc a 4096 s1\nalloc b 4096 s1\nuse b s1\nfree a\nfree b\n";

static gmd_status run_lines_there(const char *lines, const gmd_outcome **outcome, gmd_error *error)
{
    gmd_trace_free(&trace);
    trace = parse_lines(lines);
    return gmd_fork_server_run(server, &trace, outcome, error);
}

static void expect_pass(void)
{
    gmd_error error = {""};
    const gmd_outcome *o = NULL;
    if (run_lines_there(few_blocks, &o, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(o->verdict, GMD_PASS);
}

/* The children of this process. */
static size_t list_children(pid_t *list, size_t most)
{
    char path[64];
    long child;
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *children = fopen(path, "re");
    assert_non_null(children);
    while (count < most &&
           fscanf(children, "%ld", &child) == 1) { /* NOLINT(cert-err34-c): the kernel's */
        list[count++] = (pid_t)child;
    }
    fclose(children);
    return count;
}

static pid_t server_process(void)
{
    pid_t child = 0;
    assert_int_equal(list_children(&child, 1), 1);
    return child;
}

static const int signals[] = {SIGKILL, SIGSEGV, SIGTERM, SIGSTOP};

TEST_F(server, a_fork_server_that_is_ended_or_stopped_is_replaced)
{
    open_server("reference");
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        kill(server_process(), signals[i]);
        expect_pass();
        assert_int_equal(gmd_fork_server_take_troubles(server).restarts, 1);
    }
}

TEST_F(server, many_inputs_are_run_by_the_next_one)
{
    open_server("reference");
    gmd_error error = {""};
    gmd_persistent_result result;
    trace = parse_lines(few_blocks);
    const gmd_persistent_input inputs[] = {{.trace = trace}, {.trace = trace}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gmd_fork_server_run_persistent(server, inputs, 2, &result, &error),
                         GMD_OK);
        assert_int_equal(result.passed, 2);
        kill(server_process(), SIGKILL);
    }
}

/* In each run; a library cannot aim so well that another run passes in between. */
TEST_F(server, one_that_ends_again_and_again_is_an_error)
{
    gmd_error error = {""};
    const gmd_outcome *o;
    setenv("GMD_PLANT", "end_parent", 1);
    open_server(GMD_TEST_PLANTED);
    assert_int_equal(run_lines_there(few_blocks, &o, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "times in a row"));
}

TEST_F(server, a_run_ends_with_the_deadline)
{
    gmd_error error = {""};
    const gmd_outcome *o = NULL;
    setenv("GMD_PLANT", "hang", 1);
    open_server(GMD_TEST_PLANTED);
    double start = gmd_clock_s();
    gmd_fork_server_set_deadline(server, start + 0.3);
    assert_int_equal(run_lines_there("alloc a 1 s1\nalloc b 1 s1\nalloc c 1 s1\n", &o, &error),
                     GMD_OK);
    assert_true(o->is_cut_off);
    assert_int_equal(o->violation_count, 0);
    assert_true(gmd_clock_s() - start < 10);
}

/* --- a run of its own ------------------------------------------------------------------------ */

static void *kill_the_first_child(void *context)
{
    (void)context;
    pid_t child;
    while (list_children(&child, 1) == 0) {
    }
    kill(child, SIGKILL);
    return NULL;
}

/* As the kernel may when memory is short: the run is made again, and its own end is told. */
TEST_F(server, a_run_that_somebody_else_ended_is_no_crash)
{
    pthread_t killer;
    setenv("GMD_PLANT", "hang", 1);
    options = options_on(GMD_TEST_PLANTED);
    options.process.call_budget_s = 0.5;
    trace = parse_lines("alloc a 1 s1\nalloc b 1 s1\nalloc c 1 s1\n");
    gmd_workload workload = {
        .name = "hang.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    gmd_error error = {""};
    assert_non_null(o);
    assert_int_equal(pthread_create(&killer, NULL, kill_the_first_child, NULL), 0);
    gmd_status status = gmd_run_isolated(&options, &workload, o, &error);
    pthread_join(killer, NULL);
    bool is_told =
        o->violation_count == 1 && strcmp(o->violations[0].identity.kind, "progress.hang") == 0;
    free(o);
    assert_int_equal(status, GMD_OK);
    assert_true(is_told);
}

/* --- what a library leaves behind ------------------------------------------------------------ */

TEST_F(server, processes_that_a_run_left_behind_are_ended)
{
    pid_t left[8];
    setenv("GMD_PLANT", "leave_processes", 1);
    open_server(GMD_TEST_PLANTED);
    expect_pass();
    assert_int_equal(gmd_fork_server_take_troubles(server).left_behind, 3);
    gmd_fork_server_close(server);
    server = NULL;
    assert_int_equal(list_children(left, 8), 0);
}

TEST_F(server, a_run_of_its_own_tells_of_them)
{
    pid_t left[8];
    setenv("GMD_PLANT", "leave_processes", 1);
    gmd_outcome *o = run_lines(GMD_TEST_PLANTED, few_blocks);
    bool is_told = false;
    for (uint32_t i = 0; i < o->note_count; i++) {
        is_told = is_told || strstr(o->notes[i], "that the library had left behind");
    }
    free(o);
    assert_true(is_told);
    assert_int_equal(list_children(left, 8), 0);
}

/* --- wild writes ------------------------------------------------------------------------------ */

static void set_seed(int seed)
{
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    setenv("GMD_SCRIBBLE", number, 1);
}

/* Whoever reads what was recorded finds no more than there can be. */
static void run_scribbling(gmd_outcome *outcome)
{
    gmd_error error = {""};
    gmd_trace lines = parse_lines(few_blocks);
    gmd_run_options noted = options_on(GMD_TEST_SCRIBBLING);
    noted.process.call_budget_s = 2;
    noted.recording.timeline = gmd_timeline_open(&error);
    noted.recording.journal = gmd_journal_open(&error);
    const gmd_workload workload = {
        .name = "test", .kind = "trace", .trace = &lines, .body = gmd_play_trace};
    gmd_status status = gmd_run_isolated(&noted, &workload, outcome, &error);
    uint64_t entries = noted.recording.timeline->count, events = noted.recording.journal->count;
    gmd_timeline_close(noted.recording.timeline);
    gmd_journal_close(noted.recording.journal);
    gmd_trace_free(&lines);
    assert_int_equal(status, GMD_OK);
    assert_true(entries <= GMD_TIMELINE_MAX);
    assert_true(events <= GMD_JOURNAL_EVENT_MAX);
}

TEST(wild_writes_are_outlived)
{
    enum { SEEDS = 40 };
    uint32_t shown = 0;
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    for (int seed = 1; seed <= SEEDS; seed++) {
        set_seed(seed);
        run_scribbling(o);
        shown += o->verdict == GMD_FAIL;
    }
    unsetenv("GMD_SCRIBBLE");
    free(o);
    assert_true(shown > 0);
}

TEST_F(server, wild_writes_of_a_run_are_not_the_next_ones)
{
    enum { SEEDS = 25 };
    gmd_error error = {""};
    for (int seed = 1; seed <= SEEDS; seed++) {
        gmd_persistent_result result;
        set_seed(seed);
        options = options_on(GMD_TEST_SCRIBBLING);
        options.process.call_budget_s = 2;
        assert_int_equal(gmd_fork_server_open(&server, &options, &error), GMD_OK);
        trace = parse_lines(few_blocks);
        const gmd_persistent_input inputs[] = {{.trace = trace}, {.trace = trace}};
        const gmd_outcome *o;
        assert_int_equal(gmd_fork_server_run_persistent(server, inputs, 2, &result, &error),
                         GMD_OK);
        assert_true(result.passed <= 2);
        assert_int_equal(gmd_fork_server_run(server, &trace, &o, &error), GMD_OK);
        close_server(NULL);
        trace = (gmd_trace){0};
    }
}
