/* Files that are there for a moment only, and must not outlive gmd. */
#include "gmd_output.h"
#include "gmd_temporary.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static int make_file(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/gmd-temporary-XXXXXX");
    return close(mkstemp(path));
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

FIXTURE(file, make_file, remove_file);

TEST_F(file, one_that_was_announced_is_removed)
{
    gmd_temporary_announce(path);
    gmd_temporary_remove_all();
    gmd_temporary_forget(path);
    assert_int_equal(access(path, F_OK), -1);
}

TEST_F(file, one_that_was_forgotten_stays)
{
    gmd_temporary_announce(path);
    gmd_temporary_forget(path);
    gmd_temporary_remove_all();
    assert_int_equal(access(path, F_OK), 0);
}

TEST_F(file, a_child_leaves_that_of_its_parent_alone)
{
    gmd_temporary_announce(path);
    pid_t child = fork();
    if (child == 0) {
        gmd_temporary_remove_all();
        _exit(EXIT_SUCCESS);
    }
    waitpid(child, NULL, 0);
    gmd_temporary_forget(path);
    assert_int_equal(access(path, F_OK), 0);
}

TEST_F(file, a_report_that_is_being_written_leaves_nothing)
{
    gmd_output out;
    gmd_error error;
    assert_int_equal(gmd_output_open(&out, path, &error), GMD_OK);
    gmd_temporary_remove_all();
    assert_int_equal(access(out.part, F_OK), -1);
    gmd_output_close(&out, GMD_FAILED, &error);
    assert_int_equal(access(path, F_OK), 0);
}
