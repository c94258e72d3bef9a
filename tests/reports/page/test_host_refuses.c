/* The host's memory and a page: each request for it is refused, alone or with all later ones, and
 * no page is made then. */
#include "gmd_page.h"
#include "gmd_test.h"
#include "host_memory.h"
#include "planted.h"

#include <stdio.h>
#include <string.h>

typedef struct two_jobs {
    gmd_diagnosis items[2];
} two_jobs;

static void diagnose(gmd_diagnosis *diagnosis, const char *name)
{
    planted *p = planted_new();
    planted_job job = planted_job_new(p);
    for (int i = 0; i < 6; i++) {
        planted_forward(&job);
        planted_backward(&job, false);
        planted_step(&job);
    }
    planted_refuse(p, 64 * GMD_MIB);
    gmd_snapshot snapshot = planted_take_snapshot(p);
    assert_int_equal(gmd_diagnosis_make(diagnosis, &snapshot, name, NULL), GMD_OK);
    planted_free(p);
}

static gmd_status make_page(const two_jobs *jobs, FILE *out, gmd_error *error)
{
    gmd_page *page;
    gmd_status status = gmd_page_open(&page, error);
    for (int i = 0; status == GMD_OK && i < 2; i++) {
        status = gmd_page_add_diagnosis(page, &jobs->items[i], "job", error);
    }
    if (status == GMD_OK) {
        status = gmd_page_write(page, "1", out, error);
    }
    gmd_page_free(page);
    return status;
}

static bool is_refused_or_made(void *context, uint64_t nth, bool every_later)
{
    gmd_error error = {""};
    FILE *out = tmpfile();
    assert_non_null(out);
    begin_refusals(nth, every_later);
    gmd_status status = make_page(context, out, &error);
    bool was_refused = end_refusals();
    fclose(out);
    assert_int_equal(status, was_refused ? GMD_NO_MEMORY : GMD_OK);
    if (was_refused) {
        assert_non_null(strstr(error.text, "no host memory"));
    }
    return was_refused;
}

TEST(a_page_is_made_whole_or_not_at_all)
{
    two_jobs jobs;
    diagnose(&jobs.items[0], "before");
    diagnose(&jobs.items[1], "after");
    sweep_refusals(is_refused_or_made, &jobs);
    gmd_diagnosis_free(&jobs.items[0]);
    gmd_diagnosis_free(&jobs.items[1]);
}
