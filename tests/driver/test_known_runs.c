/* A known entry with a condition, or one that ends the judging of its run, over two runs: the
 * second is judged by what happened in it, and in no run before. In each way in which runs are
 * made. */
#include "driver_test.h"
#include "gmd_fork_server.h"
#include "gmd_in_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* An expectation of the trace is not met, as a defect would show. The first run has the condition
 * of the list, so that its violation is known; the second has it not. */
static const char with_fault[] = "fault cudaEventRecord 1000 2\nexpect oom a 1MiB s0\n";
static const char without_fault[] = "expect oom a 1MiB s0\n";
static const char of_a_fault[] = "expect | fault cudaEventRecord\n";
static const char ends_a_run[] = "expect | fault cudaEventRecord | end\n";

typedef struct setting {
    gmd_known known;
    gmd_run_options options;
    gmd_trace first, second;
    gmd_outcome *outcome;
    gmd_fork_server *server;
    gmd_error error;
} setting;

static void take_list(setting *t, const char *list)
{
    if (read_list(&t->known, list, &t->error) != GMD_OK) {
        fail_msg("%s", t->error.text);
    }
}

static int set_up(void **state)
{
    setting *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->options = options_on(GMD_TEST_PLANTED);
    t->options.judging.known = &t->known;
    t->first = parse_lines(with_fault);
    t->second = parse_lines(without_fault);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    setting *t = *state;
    gmd_fork_server_close(t->server);
    free(t->outcome);
    gmd_trace_free(&t->first);
    gmd_trace_free(&t->second);
    gmd_known_free(&t->known);
    free(t);
    return 0;
}

FIXTURE(known_runs, set_up, tear_down);

static void expect_known(const gmd_outcome *o)
{
    assert_int_equal(o->violation_count, 0);
    assert_int_equal(o->known_count, 1);
    assert_int_equal(o->verdict, GMD_PASS);
}

static void expect_reported(const gmd_outcome *o)
{
    assert_int_equal(o->violation_count, 1);
    assert_string_equal(o->violations[0].oracle, "expect");
    assert_int_equal(o->known_count, 0);
    assert_int_equal(o->verdict, GMD_FAIL);
}

/* --- each in a process of its own --------------------------------------------------------- */

static void expect_isolated(setting *t, const char *list)
{
    gmd_outcome *o = t->outcome = calloc(1, sizeof *o);
    gmd_workload workload = {
        .name = "first", .kind = "trace", .trace = &t->first, .body = gmd_play_trace};
    take_list(t, list);
    assert_int_equal(gmd_run_isolated(&t->options, &workload, o, &t->error), GMD_OK);
    expect_known(o);
    workload.trace = &t->second;
    assert_int_equal(gmd_run_isolated(&t->options, &workload, o, &t->error), GMD_OK);
    expect_reported(o);
}

TEST_F(known_runs, isolated_runs_have_conditions_of_their_own)
{
    expect_isolated(*state, of_a_fault);
}

TEST_F(known_runs, the_end_of_an_isolated_run_is_its_own)
{
    expect_isolated(*state, ends_a_run);
}

/* --- forks of one process ----------------------------------------------------------------- */

static gmd_fork_server *open_server(setting *t, const char *list)
{
    take_list(t, list);
    if (gmd_fork_server_open(&t->server, &t->options, &t->error) != GMD_OK) {
        fail_msg("%s", t->error.text);
    }
    return t->server;
}

static void expect_forked(setting *t, const char *list)
{
    gmd_fork_server *n = open_server(t, list);
    const gmd_outcome *o = NULL;
    assert_int_equal(gmd_fork_server_run(n, &t->first, &o, &t->error), GMD_OK);
    expect_known(o);
    assert_int_equal(gmd_fork_server_run(n, &t->second, &o, &t->error), GMD_OK);
    expect_reported(o);
}

TEST_F(known_runs, forked_runs_have_conditions_of_their_own)
{
    expect_forked(*state, of_a_fault);
}

TEST_F(known_runs, the_end_of_a_forked_run_is_its_own)
{
    expect_forked(*state, ends_a_run);
}

/* --- many in one process --------------------------------------------------- */

static void expect_persistent(setting *t, const char *list)
{
    gmd_fork_server *n = open_server(t, list);
    const gmd_persistent_input traces[] = {{.trace = t->first}, {.trace = t->second}};
    gmd_persistent_result result;
    gmd_fork_server_follow(n, &t->options);
    assert_int_equal(gmd_fork_server_run_persistent(n, traces, 2, &result, &t->error), GMD_OK);
    assert_int_equal(result.passed, 1);
    assert_true(result.is_suspect);
    expect_reported(result.outcome);
}

TEST_F(known_runs, inputs_of_one_process_have_conditions_of_their_own)
{
    expect_persistent(*state, of_a_fault);
}

TEST_F(known_runs, the_end_of_an_input_is_its_own)
{
    expect_persistent(*state, ends_a_run);
}

/* The other allocator of these tests cannot be made anew in its process. */
static void use_renewed(setting *t)
{
    t->options.subject.allocator = "reference";
}

TEST_F(known_runs, renewed_inputs_have_conditions_of_their_own)
{
    use_renewed(*state);
    expect_persistent(*state, of_a_fault);
}

TEST_F(known_runs, the_end_of_a_renewed_input_is_its_own)
{
    use_renewed(*state);
    expect_persistent(*state, ends_a_run);
}

/* --- in the caller's process -------------------------------------------------------------- */

static void play_here(setting *t)
{
    gmd_in_process *p = NULL;
    const gmd_outcome *o = NULL;
    assert_int_equal(gmd_in_process_open(&p, &t->options, &t->error), GMD_OK);
    assert_int_equal(gmd_in_process_run(p, &t->first, &o, &t->error), GMD_OK);
    expect_known(o);
    assert_int_equal(gmd_in_process_run(p, &t->second, &o, &t->error), GMD_OK);
    expect_reported(o);
    gmd_in_process_close(p);
}

/* A process of its own: it loads a device, and the library keeps what it leaked. */
static void expect_in_process(setting *t, const char *list)
{
    int how = 0;
    take_list(t, list);
    pid_t child = fork();
    if (child == 0) {
        play_here(t);
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

TEST_F(known_runs, runs_in_this_process_have_conditions_of_their_own)
{
    expect_in_process(*state, of_a_fault);
}

TEST_F(known_runs, the_end_of_a_run_in_this_process_is_its_own)
{
    expect_in_process(*state, ends_a_run);
}

TEST_F(known_runs, renewed_runs_in_this_process_have_conditions_of_their_own)
{
    use_renewed(*state);
    expect_in_process(*state, ends_a_run);
}
