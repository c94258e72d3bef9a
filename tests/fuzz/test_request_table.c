/* The table of requests (gmd_request_table.h) against what is written beside it by hand, and each
 * of its rows through the text and the bytes. */
#include "fuzz_test.h"

#include "gmd_file.h"
#include "gmd_generate.h"
#include "gmd_input.h"

static char *contents_of(const char *path)
{
    uint8_t *data;
    size_t size;
    gmd_error error = {""};
    demand_ok(gmd_file_read(path, &data, &size, &error), &error);
    char *text = malloc(size + 1);
    assert_non_null(text);
    memcpy(text, data, size);
    text[size] = '\0';
    free(data);
    return text;
}

/* What a line of this kind looks like, `words` for its fields. */
static void line_of(uint32_t op, const char *const words[GMD_FIELD_KINDS], char *line, size_t size)
{
    const gmd_request_row *row = &gmd_request_rows[op];
    size_t length = (size_t)snprintf(line, size, "%s", row->word);
    for (size_t i = 0; i < GMD_REQUEST_FIELDS; i++) {
        const char *word = words[row->fields[i]];
        assert_non_null(word);
        if (*word) {
            length += (size_t)snprintf(line + length, size - length, " %s", word);
        }
    }
}

TEST(every_word_is_that_of_one_request)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        for (uint32_t other = 0; other < op; other++) {
            assert_string_not_equal(gmd_request_rows[op].word, gmd_request_rows[other].word);
        }
    }
}

#define SYNTAX(field, syntax) [GMD_FIELD_##field] = (syntax),

TEST(the_manual_has_the_line_of_every_request)
{
    static const char *const words[GMD_FIELD_KINDS] = {GMD_FIELD_TABLE(SYNTAX)};
    char *manual = contents_of(GMD_TEST_SOURCE_DIR "/docs/trace-format.md");
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        char line[160], row[200];
        line_of(op, words, line, sizeof line);
        snprintf(row, sizeof row, "\n- `%s`: ", line);
        if (!strstr(manual, row)) {
            fail_msg("docs/trace-format.md has no item for `%s`", line);
        }
    }
    free(manual);
}

TEST(the_dictionary_has_the_word_of_every_request)
{
    char *dictionary = contents_of(GMD_TEST_SOURCE_DIR "/fuzz/dictionaries/gmd.dict");
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        const gmd_request_row *row = &gmd_request_rows[op];
        char entry[80];
        snprintf(entry, sizeof entry, "\n\"%s%s\"\n", row->word, row->field_set ? " " : "\\x0a");
        if (!strstr(dictionary, entry)) {
            fail_msg("fuzz/dictionaries/gmd.dict has no line %s", entry);
        }
    }
    free(dictionary);
}

TEST(what_can_be_left_out_is_listed)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        char name[80], unknown[32];
        gmd_profile_space space = {0};
        snprintf(name, sizeof name, ", %s, ", gmd_request_rows[op].word);
        char list[400];
        snprintf(list, sizeof list, ", %s, ", gmd_profile_left_out_names);
        bool is_known = gmd_profile_leave_out(&space, gmd_request_rows[op].word, unknown);
        assert_int_equal(is_known, strstr(list, name) != NULL);
        assert_int_equal(is_known, gmd_op_is(op, GMD_IS_OPTIONAL));
    }
}

/* The lines after which a request of this kind may come. */
static const char *lines_before(uint32_t op)
{
    bool is_of_capture = gmd_op_is_of_capture(op);
    switch ((gmd_pool_step)gmd_request_rows[op].pool_step) {
    case GMD_POOL_STEP_END:
        return is_of_capture ? "begin_capture p0 s1 device 1\n" : "begin_pool p0 s1 device 1\n";
    case GMD_POOL_STEP_RELEASE:
        return "begin_pool p0 s1 device 1\nend_pool p0 device 1\n";
    case GMD_POOL_STEP_LAUNCH:
        return "begin_capture p0 s1 device 1\nend_capture p0 device 1\n";
    case GMD_POOL_STEP_CHECKPOINT:
        return "begin_pool p0 s1 device 1\n";
    case GMD_POOL_STEP_RESTORE:
        return "begin_pool p0 s1 device 1\ncheckpoint_pool p0 device 1\n";
    default:
        return "";
    }
}

/* Every field is there and not what it is when left out. */
static const char *const samples[GMD_FIELD_KINDS] = {[GMD_FIELD_NONE] = "",
                                                     [GMD_FIELD_EXPECT] = "",
                                                     [GMD_FIELD_NEW_BLOCK] = "b1",
                                                     [GMD_FIELD_BLOCK] = "b0",
                                                     [GMD_FIELD_STREAM] = "s1",
                                                     [GMD_FIELD_OWN_STREAM] = "s1",
                                                     [GMD_FIELD_STREAM_OR_ALL] = "s1",
                                                     [GMD_FIELD_OTHER_STREAM] = "s2",
                                                     [GMD_FIELD_POOL] = "p0",
                                                     [GMD_FIELD_POOL_OPTIONS] = "+no_split",
                                                     [GMD_FIELD_FUNCTION] = "cudaMalloc",
                                                     [GMD_FIELD_COUNT] = "3",
                                                     [GMD_FIELD_ERROR] = "2",
                                                     [GMD_FIELD_EVERY] = "every",
                                                     [GMD_FIELD_BYTES] = "5MiB",
                                                     [GMD_FIELD_BYTES_OR_NONE] = "7MiB",
                                                     [GMD_FIELD_DURATION] = "30us",
                                                     [GMD_FIELD_WORK_DURATION] = "40us",
                                                     [GMD_FIELD_FRACTION] = "0.25",
                                                     [GMD_FIELD_DEVICE] = "device 1",
                                                     [GMD_FIELD_DEVICE_NUMBER] = "1"};

static char *sample_text(uint32_t op)
{
    char line[160], *text = malloc(600);
    assert_non_null(text);
    line_of(op, samples, line, sizeof line);
    snprintf(text, 600,
             "gmd-trace 1\ndevices 2\nstreams s0 s1 s2\nalloc b0 512 s2\nuse b0 s1 10us\n%s%s\n",
             lines_before(op), line);
    return text;
}

TEST(every_request_comes_back_from_its_text)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        char *text = sample_text(op);
        gmd_trace trace = parse_or_fail(text);
        char *written = text_of(&trace);
        assert_int_equal(trace.requests[trace.count - 1].op, op);
        assert_string_equal(strstr(written, "alloc b0"), strstr(text, "alloc b0"));
        free(written);
        free(text);
        gmd_trace_free(&trace);
    }
}

TEST(every_request_comes_back_from_its_bytes)
{
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        char *text = sample_text(op);
        gmd_trace trace = parse_or_fail(text), decoded;
        uint8_t *bytes;
        size_t size;
        gmd_error error = {""};
        demand_ok(gmd_input_encode(&trace, &bytes, &size, &error), &error);
        gmd_trace_init(&decoded);
        demand_ok(gmd_input_decode(bytes, size, &decoded, &error), &error);
        char *written = text_of(&decoded);
        assert_string_equal(strstr(written, "alloc b0"), strstr(text, "alloc b0"));
        free(written);
        free(bytes);
        free(text);
        gmd_trace_free(&decoded);
        gmd_trace_free(&trace);
    }
}
