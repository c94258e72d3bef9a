#include "trace_test.h"

#include "gmd_truth.h"

#include <stdio.h>
#include <string.h>

#define FIGURES "\"a\":1,\"r\":2,\"seg\":3,\"act\":4,\"isb\":5,\"retries\":6,\"ooms\":7}\n"

static gmd_status read_json(const char *text, gmd_truth *truth, gmd_error *error)
{
    gmd_status status = gmd_truth_read_json(write_temporary(text, strlen(text)), truth, error);
    remove_temporary();
    return status;
}

static gmd_status read_ops(const char *text, gmd_truth *truth, gmd_error *error)
{
    size_t size;
    uint8_t *packed = pack(text, strlen(text), &size);
    gmd_status status = gmd_truth_read_ops(write_temporary(packed, size), truth, error);
    remove_temporary();
    free(packed);
    return status;
}

static void assert_untouched(const gmd_truth *t)
{
    assert_true(!t->stats && !t->phases && !t->conf && !t->ops && !t->stream_handles);
    assert_int_equal(t->stat_count + t->phase_count + t->op_count + t->stream_count, 0);
    assert_int_equal(t->cap_bytes + t->ops_cap_bytes, 0);
}

static void assert_json_refused(const char *text, const char *part)
{
    gmd_truth truth = {0};
    gmd_error error = {""};
    assert_int_equal(read_json(text, &truth, &error), GMD_BAD_INPUT);
    assert_untouched(&truth);
    assert_contains(error.text, "gmd-trace-test-");
    assert_contains(error.text, part);
}

static void assert_ops_refused(const char *text, const char *part)
{
    gmd_truth truth = {0};
    gmd_error error = {""};
    assert_int_equal(read_ops(text, &truth, &error), GMD_BAD_INPUT);
    assert_untouched(&truth);
    assert_contains(error.text, part);
}

/* One line after a good header and a good line. */
static void assert_line_refused(const char *line, const char *part)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"streams\": [7, 8], \"cap\": 0}\n{\"op\":\"free\",\"id\":1," FIGURES "%s\n", line);
    assert_ops_refused(text, part);
}

TEST(settings_statistics_and_phases_are_read)
{
    gmd_truth truth = {0};
    assert_int_equal(
        read_json("{\"case\": \"x\", \"conf\": \"a:b\", \"kwargs\": {\"cap_gib\": 2.5, \"n\": 1},\n"
                  " \"stats\": {\"num_ooms\": 73, \"active_bytes.all.peak\": 2365474816},\n"
                  " \"phases\": [{\"label\": \"start\", \"allocated\": 1, \"max_allocated\": 2,"
                  " \"reserved\": 3, \"max_reserved\": 4}]}",
                  &truth, NULL),
        GMD_OK);
    uint64_t value = 0;
    assert_true(truth.cap_gib == 2.5);
    assert_int_equal(truth.cap_bytes, 2684354560u);
    assert_string_equal(truth.conf, "a:b");
    assert_true(gmd_truth_stat(&truth, "active_bytes.all.peak", &value));
    assert_int_equal(value, 2365474816u);
    assert_false(gmd_truth_stat(&truth, "active_bytes", &value));
    assert_int_equal(truth.phase_count, 1);
    assert_string_equal(truth.phases[0].label, "start");
    assert_int_equal(truth.phases[0].max_reserved, 4);
    gmd_truth_free(&truth);
}

TEST(a_recording_without_a_cap_has_none)
{
    gmd_truth truth = {0};
    assert_int_equal(read_json("{\"kwargs\": {}, \"stats\": {}}", &truth, NULL), GMD_OK);
    assert_int_equal(truth.cap_bytes, 0);
    assert_int_equal(truth.stat_count, 0);
    gmd_truth_free(&truth);
}

TEST(the_recorder_s_own_file_is_read)
{
    gmd_truth truth = {0};
    uint64_t peak = 0;
    assert_int_equal(
        gmd_truth_read_json(GMD_TEST_DATA "/histories/simple_cycle_leak.json", &truth, NULL),
        GMD_OK);
    assert_true(gmd_truth_stat(&truth, "reserved_bytes.all.peak", &peak));
    assert_int_equal(peak, 1879048192u);
    assert_int_equal(truth.phase_count, 60);
    gmd_truth_free(&truth);
}

TEST(malformed_json_is_refused_with_its_line)
{
    assert_json_refused("{\"stats\": {},\n\"phases\": }", ":2: column ");
    assert_json_refused("[1]", ":1: expected a JSON object");
    assert_json_refused("{\"stats\": {\"num_ooms\": -1}}",
                        "stats: \"num_ooms\": expected an integer from 0");
    assert_json_refused("{\"stats\": {\"num_ooms\": 1.5}}", "\"num_ooms\": expected an integer");
    assert_json_refused("{\"stats\": []}", "\"stats\": expected an object");
    assert_json_refused("{\"phases\": {}}", "\"phases\": expected an array");
    assert_json_refused("{\"phases\": [{\"allocated\": 1}]}", "a string \"label\"");
    assert_json_refused("{\"phases\": [{\"label\": \"x\", \"allocated\": 1}]}",
                        "phases: \"max_allocated\"");
    assert_json_refused("{\"kwargs\": {\"cap_gib\": \"2\"}}",
                        "\"cap_gib\": expected a number of GiB over 0");
    assert_json_refused("{\"kwargs\": {\"cap_gib\": -1}}", "\"cap_gib\"");
    assert_json_refused("{\"conf\": 1}", "\"conf\": expected a string");
}

TEST(operations_are_read)
{
    gmd_truth truth = {0};
    assert_int_equal(
        read_ops("{\"streams\": [7, 8], \"cap\": 2684354560, \"profile\": \"mixed\"}\n"
                 "{\"op\":\"alloc\",\"id\":1,\"bytes\":512,\"stream\":1,\"ptr\":4096," FIGURES
                 "{ \"op\": \"free\", \"id\": 1, \"later\": \"key\", " FIGURES
                 "{\"op\":\"oom\",\"id\":2,\"bytes\":99,\"stream\":0,\"ptr\":null," FIGURES,
                 &truth, NULL),
        GMD_OK);
    assert_int_equal(truth.stream_count, 2);
    assert_int_equal(truth.stream_handles[1], 8);
    assert_int_equal(truth.ops_cap_bytes, 2684354560u);
    assert_int_equal(truth.op_count, 3);
    const gmd_truth_op *alloc = &truth.ops[0], *oom = &truth.ops[2];
    assert_int_equal(alloc->kind, GMD_TRUTH_ALLOC);
    assert_int_equal(alloc->stream, 1);
    assert_int_equal(alloc->address, 4096);
    assert_int_equal(alloc->allocated, 1);
    assert_int_equal(alloc->reserved, 2);
    assert_int_equal(alloc->segments, 3);
    assert_int_equal(alloc->active, 4);
    assert_int_equal(alloc->inactive_split, 5);
    assert_int_equal(alloc->retries, 6);
    assert_int_equal(alloc->ooms, 7);
    assert_int_equal(truth.ops[1].kind, GMD_TRUTH_FREE);
    assert_int_equal(oom->kind, GMD_TRUTH_OOM);
    assert_int_equal(oom->bytes, 99);
    assert_int_equal(oom->address, 0);
    assert_int_equal(oom->line, 4);
    gmd_truth_free(&truth);
}

TEST(an_operation_may_be_an_empty_cache)
{
    gmd_truth truth = {0};
    assert_int_equal(read_ops("{\"streams\": [7]}\n{\"op\":\"free\",\"id\":1," FIGURES
                              "{\"op\":\"empty_cache\"}\n{\"op\":\"empty_cache\"," FIGURES,
                              &truth, NULL),
                     GMD_OK);
    assert_int_equal(truth.op_count, 3);
    assert_int_equal(truth.ops[1].kind, GMD_TRUTH_EMPTY_CACHE);
    assert_int_equal(truth.ops[1].retries, 6); /* those before it */
    gmd_truth_free(&truth);
}

TEST(both_files_are_read_into_one)
{
    gmd_truth truth = {0};
    assert_int_equal(read_json("{\"stats\": {\"num_ooms\": 1}}", &truth, NULL), GMD_OK);
    assert_int_equal(
        read_ops("{\"streams\": [7]}\n{\"op\":\"free\",\"id\":1," FIGURES, &truth, NULL), GMD_OK);
    assert_int_equal(truth.stat_count, 1);
    assert_int_equal(truth.op_count, 1);
    gmd_truth_free(&truth);
}

TEST(reading_again_replaces_what_was_read)
{
    gmd_truth truth = {0};
    uint64_t ooms;
    assert_int_equal(read_json("{\"stats\": {\"num_ooms\": 1}}", &truth, NULL), GMD_OK);
    assert_int_equal(read_json("{\"stats\": {\"num_ooms\": 2}}", &truth, NULL), GMD_OK);
    assert_true(gmd_truth_stat(&truth, "num_ooms", &ooms));
    assert_int_equal(ooms, 2);
    gmd_truth_free(&truth);
}

TEST(malformed_operations_are_refused_with_their_line)
{
    assert_ops_refused("", ":1: ");
    assert_ops_refused("{\"cap\": 1}\n", ":1: \"streams\": expected an array of stream handles");
    assert_ops_refused("{\"streams\": [-1]}\n", "line 1: \"streams\": expected an integer from 0");
    assert_ops_refused("{\"streams\": [1], \"cap\": 1.5}\n",
                       "line 1: \"cap\": expected an integer");
    assert_line_refused("x", ":3: column 1: expected '{', found 'x'");
    assert_line_refused("", ":3: column 1: expected '{', found the end of the line");
    assert_line_refused("{\"op\":\"free\",\"id\":1",
                        ":3: column 20: expected ',' or '}', found the end");
    assert_line_refused("{\"op\":\"free\",\"id\":-1}",
                        "expected an integer from 0, a string or null, found '-1}'");
    assert_line_refused("{\"op\":\"free\",\"id\":99999999999999999999}",
                        "expected a 64-bit integer");
    assert_line_refused("{\"op\" \"free\"}", "expected ':'");
    assert_line_refused("{\"o\\u0070\":\"free\"}", "expected '\"' and no escapes");
    assert_line_refused("{\"op\":\"move\",\"id\":1," FIGURES,
                        "\"op\": expected \"alloc\", \"free\", \"oom\" or \"empty_cache\"");
    assert_line_refused("{\"op\":\"free\"," FIGURES, ":3: \"id\": expected an integer from 0");
    assert_line_refused("{\"op\":\"free\",\"id\":\"1\"," FIGURES,
                        ":3: \"id\": expected an integer from 0");
    assert_line_refused("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"stream\":2,\"ptr\":1," FIGURES,
                        ":3: \"stream\": expected the index of one of the streams");
    assert_line_refused("{\"op\":\"alloc\",\"id\":1,\"bytes\":1,\"stream\":1,\"ptr\":null," FIGURES,
                        ":3: \"ptr\": expected an integer from 0");
    assert_line_refused("{\"op\":\"free\",\"id\":1} x", "expected the end of the line, found 'x'");
}

TEST(twenty_thousand_operations_are_read)
{
    enum { OPS = 20000, LINE = 256 };
    char *text = malloc((size_t)(OPS + 1) * LINE), *at = text;
    gmd_truth truth = {0};
    at += sprintf(at, "{\"streams\": [7]}\n");
    for (int i = 0; i < OPS; i++) {
        at += sprintf(at, "{\"op\":\"free\",\"id\":%d," FIGURES, i);
    }
    assert_int_equal(read_ops(text, &truth, NULL), GMD_OK);
    assert_int_equal(truth.op_count, OPS);
    assert_int_equal(truth.ops[OPS - 1].id, OPS - 1);
    gmd_truth_free(&truth);
    free(text);
}
