/* A campaign that goes on from what brought the allocator into new states; and one of several
 * processes. */
#include "fuzz_test.h"

#include "gmd_jobs.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct campaign {
    gmd_run_options run;
    gmd_corpus corpus;
    gmd_findings findings;
    gmd_search_options options;
    gmd_search_result result;
} campaign;

static void set_up(campaign *c, const char *allocator, uint64_t seed, uint64_t runs)
{
    gmd_error error = {""};
    *c = (campaign){.run = options_for(allocator)};
    c->run.process.call_budget_s = 20;
    c->run.recording.features = mmap(NULL, sizeof *c->run.recording.features,
                                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c->run.recording.features != MAP_FAILED);
    c->findings.minimize_seconds = 0.01;
    c->options = (gmd_search_options){
        .run = &c->run, .corpus = &c->corpus, .seed = seed, .runs = runs, .no_sweeps = true};
    demand_ok(gmd_search_find_space(&c->options.space, &c->run, &error), &error);
    c->options.space.has_one_thread = true; /* interleaved ones take fifty times as long */
}

static void tear_down(campaign *c)
{
    gmd_findings_free(&c->findings);
    gmd_corpus_free(&c->corpus);
    munmap(c->run.recording.features, sizeof *c->run.recording.features);
}

static void search(campaign *c)
{
    gmd_error error = {""};
    demand_ok(gmd_search(&c->options, &c->findings, &c->result, &error), &error);
}

static void search_with_jobs(campaign *c, unsigned jobs)
{
    gmd_error error = {""};
    demand_ok(gmd_search_jobs(&c->options, jobs, &c->findings, &c->result, &error), &error);
}

TEST(new_states_fill_the_corpus)
{
    campaign c;
    set_up(&c, "reference", 1, 200);
    search(&c);
    assert_true(c.corpus.count > 10);
    assert_true(c.result.status.features > 100);
    assert_int_equal(c.findings.count, 0);
    tear_down(&c);
}

TEST(the_same_seed_makes_the_same_corpus)
{
    campaign first, second;
    set_up(&first, "reference", 5, 200);
    set_up(&second, "reference", 5, 200);
    search(&first);
    search(&second);
    assert_int_equal(first.result.status.features, second.result.status.features);
    assert_int_equal(first.corpus.count, second.corpus.count);
    for (size_t i = 0; i < first.corpus.count; i++) {
        assert_int_equal(first.corpus.entries[i].size, second.corpus.entries[i].size);
        assert_memory_equal(first.corpus.entries[i].bytes, second.corpus.entries[i].bytes,
                            first.corpus.entries[i].size);
    }
    tear_down(&first);
    tear_down(&second);
}

static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) {
        closedir(d);
    }
    rmdir(folder);
}

TEST(a_campaign_goes_on_where_another_one_ended)
{
    char folder[] = "/tmp/gmd-test-guided-XXXXXX";
    assert_non_null(mkdtemp(folder));
    campaign first, second;
    set_up(&first, "reference", 1, 300);
    first.corpus.folder = folder;
    search(&first);
    set_up(&second, "reference", 2, 1); /* what it reads, and one more */
    second.options.runs = first.corpus.count + 1;
    second.corpus.folder = folder;
    search(&second);
    assert_true(second.result.status.features * 10 > first.result.status.features * 8);
    tear_down(&first);
    tear_down(&second);
    remove_folder(folder);
}

TEST(several_processes_find_a_defect_once)
{
    campaign c;
    setenv("GMD_PLANT", "wrong_sum", 1);
    set_up(&c, GMD_TEST_PLANTED, 1, 200);
    search_with_jobs(&c, 3);
    unsetenv("GMD_PLANT");
    assert_true(c.findings.count >= 1);
    for (size_t i = 0; i < c.findings.count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_false(
                gmd_identity_equal(&c.findings.items[i].cause, &c.findings.items[j].cause));
        }
    }
    tear_down(&c);
}

TEST(several_processes_share_what_they_learn)
{
    campaign c;
    set_up(&c, "reference", 1, 301);
    search_with_jobs(&c, 2);
    assert_true(c.result.status.runs >= 301);
    assert_true(c.result.status.features > 100);
    assert_int_equal(c.findings.count, 0);
    tear_down(&c);
}
