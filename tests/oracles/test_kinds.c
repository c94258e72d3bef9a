/* gmd_kind.h, gmd_tokens.h: the list of oracles is sound, and what makes two violations the same
 * defect. */
#include "oracle_test.h"

#include "gmd_tokens.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TEST(every_kind_is_of_an_oracle_or_voice_and_named_once)
{
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        const gmd_kind_entry *kind = &gmd_kinds[i];
        size_t length = strlen(kind->oracle);
        assert_int_not_equal(gmd_severity(kind->oracle), INT_MAX);
        assert_memory_equal(kind->name, kind->oracle, length);
        assert_int_equal(kind->name[length], '.');
        assert_ptr_equal(gmd_kind_find(kind->name), kind);
    }
    assert_null(gmd_kind_find("leak"));
}

TEST(every_oracle_and_voice_has_a_kind_and_a_severity_of_its_own)
{
    for (size_t i = 0; i < GMD_JUDGE_COUNT; i++) {
        size_t kinds = 0;
        for (size_t k = 0; k < GMD_KIND_COUNT; k++) {
            kinds += strcmp(gmd_kinds[k].oracle, gmd_judges[i].name) == 0;
        }
        assert_int_not_equal(kinds, 0);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(gmd_judges[i].severity, gmd_judges[k].severity);
        }
    }
    assert_int_equal(gmd_severity("nobody"), INT_MAX);
}

/* docs/oracles.md has a row for each kind, with its meaning, and none for what is no kind. */
TEST(the_manual_lists_every_kind_and_no_other)
{
    char line[400], row[400];
    size_t rows = 0;
    FILE *page = fopen(GMD_TEST_PAGE, "r");
    assert_non_null(page);
    while (fgets(line, sizeof line, page)) {
        char name[GMD_KIND_NAME];
        if (sscanf(line, "| `%47[a-z_.]` |", name) == 1 && strchr(name, '.')) {
            const gmd_kind_entry *kind = gmd_kind_find(name);
            assert_non_null(kind);
            snprintf(row, sizeof row, "| `%s` | %s |\n", kind->name, kind->meaning);
            assert_string_equal(line, row);
            rows++;
        }
    }
    fclose(page);
    assert_int_equal(rows, GMD_KIND_COUNT);
}

TEST(parties_make_another_defect_and_their_absence_does)
{
    gmd_identity a, b;
    gmd_identity_make(&a, GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGSEGV"}));
    gmd_identity_make(&b, GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGSEGV"}));
    assert_true(gmd_identity_equal(&a, &b));
    gmd_identity_make(&b, GMD_KIND(progress, crash), GMD_PARTIES({"signal", "SIGBUS"}));
    assert_false(gmd_identity_equal(&a, &b));
    gmd_identity_make(&b, GMD_KIND(progress, crash), GMD_NO_PARTIES);
    assert_false(gmd_identity_equal(&a, &b));
    gmd_identity_make(&b, GMD_KIND(misuse, crash), GMD_PARTIES({"signal", "SIGSEGV"}));
    assert_false(gmd_identity_equal(&a, &b));
}

TEST(a_party_without_a_value_is_left_out)
{
    gmd_identity identity;
    gmd_identity_make(&identity, GMD_KIND(size, ends_early),
                      GMD_PARTIES({"bytes", gmd_party_bytes(4096)}, {"at", ""}, {"x", "y"}));
    assert_int_equal(identity.party_count, 1);
    assert_string_equal(gmd_identity_party(&identity, "x"), "y");
    assert_null(gmd_identity_party(&identity, "bytes"));
}

TEST(only_a_size_that_wraps_around_is_a_party)
{
    assert_null(gmd_party_bytes((uint64_t)1 << 63));
    assert_string_equal(gmd_party_bytes(UINT64_MAX - 4095), "near_2^64");
}

/* The identity may lie in memory that a foreign process has written over. */
TEST(whatever_is_in_an_identity_it_can_be_made_well_formed)
{
    gmd_identity identity;
    char text[GMD_IDENTITY_TEXT];
    memset(&identity, '"', sizeof identity);
    gmd_identity_mend(&identity);
    assert_string_equal(identity.kind, "");
    assert_int_equal(identity.party_count, 0);
    memset(&identity, 1, sizeof identity);
    strcpy(identity.kind, "leak.streams");
    identity.party_count = GMD_PARTY_MAX;
    gmd_identity_mend(&identity);
    gmd_identity_print(&identity, text);
    assert_int_equal(identity.party_count, 0);
    assert_string_equal(text, "leak.streams");
    memset(&identity, 1, sizeof identity);
    strcpy(identity.kind, "progress.crash");
    strcpy(identity.parties[0].name, "at");
    strcpy(identity.parties[1].name, "other");
    identity.party_count = GMD_PARTY_MAX;
    gmd_identity_mend(&identity);
    gmd_identity_print(&identity, text);
    assert_int_equal(identity.party_count, 1);
    assert_null(strpbrk(text, "\1"));
}

TEST(every_party_of_a_kind_has_a_name_of_its_own_and_its_lines_fit)
{
    for (size_t i = 0; i < GMD_KIND_COUNT; i++) {
        char name[GMD_PARTY_NAME], text[GMD_IDENTITY_TEXT], value[200];
        gmd_identity identity;
        memset(value, ' ', sizeof value);
        value[sizeof value - 1] = '\0';
        gmd_identity_make(&identity, (gmd_kind)i, GMD_NO_PARTIES);
        for (const char *at = gmd_kinds[i].parties; gmd_kind_next_party(&at, name);) {
            bool is_full = identity.party_count == GMD_PARTY_MAX;
            assert_true(gmd_identity_add(&identity, name, value) || is_full);
            gmd_identity_known_line(&identity, text);
            assert_true(strlen(text) + 1 < sizeof text);
        }
    }
}

TEST(the_parties_of_a_kind_are_found_by_name)
{
    const gmd_kind_entry *kind = gmd_kind_find("progress.failed");
    assert_string_equal(kind->meaning, "an error other than out of memory: error, [fault]");
    assert_true(gmd_kind_has_party(kind, "error"));
    assert_true(gmd_kind_has_party(kind, "fault"));
    assert_false(gmd_kind_has_party(kind, "err"));
    assert_false(gmd_kind_has_party(gmd_kind_find("leak.streams"), "fault"));
}

TEST(a_party_is_text_that_a_list_can_hold)
{
    char value[GMD_PARTY_VALUE];
    gmd_party_text("\xc3\xa9 \"x\"\t\x80\xe2\x82 \xc2\x85", value);
    assert_string_equal(value, "\xc3\xa9 'x' ???  ");
}

TEST(a_long_error_is_cut_behind_a_whole_character)
{
    char text[400], token[GMD_PARTY_VALUE];
    size_t most = GMD_PARTY_VALUE - 1;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + most - 1, "\xe2\x82\xac", 3);
    gmd_error_token(text, token);
    assert_int_equal(strlen(token), most - 1);
    memcpy(text + most - 3, "\xe2\x82\xac", 3);
    gmd_error_token(text, token);
    assert_int_equal(strlen(token), most);
    assert_memory_equal(token + most - 3, "\xe2\x82\xac", 3);
}

static void expect_token(const char *text, const char *expected)
{
    char token[GMD_PARTY_VALUE];
    gmd_error_token(text, token);
    assert_string_equal(token, expected);
}

TEST(of_an_error_the_first_line_counts_without_its_numbers)
{
    expect_token("CUDA error: invalid resource handle\nSearch for `cudaErrorInvalid...",
                 "CUDA error: invalid resource handle");
    expect_token("\nno room for 17 B at 0x7f00, 2.5 MiB left", "no room for * at *, * left");
    expect_token("no room for 3 KiB at 0x7f00, 512 B left", "no room for * at *, * left");
    expect_token("libc10_cuda.so: b3x, num_ooms", "libc10_cuda.so: b3x, num_ooms");
}

TEST(of_an_assertion_the_condition_counts_and_not_its_place)
{
    expect_token(
        "!handles_.at(i) INTERNAL ASSERT FAILED at \"/pytorch/c10/cuda/x.cpp\":312, please",
        "!handles_.at(i) INTERNAL ASSERT FAILED");
}

TEST(which_symbol_is_missing_does_not_count)
{
    expect_token("Can't find cuMemMap: not found", "Can't find *: not found");
    expect_token("r.cuMemCreate_ INTERNAL ASSERT FAILED at \"y.cpp\":2",
                 "* INTERNAL ASSERT FAILED");
    expect_token("cuMemMap(0x1, 2 B) returned 400", "cuMemMap(*, *) returned *");
}

TEST(a_long_error_is_cut)
{
    char text[400], token[GMD_PARTY_VALUE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    gmd_error_token(text, token);
    assert_int_equal(strlen(token), GMD_PARTY_VALUE - 1);
}

TEST(signals_and_requests_have_one_word)
{
    char signal_name[GMD_SIGNAL_TOKEN], request[GMD_REQUEST_TOKEN];
    gmd_signal_token(SIGSEGV, signal_name);
    assert_string_equal(signal_name, "SIGSEGV");
    gmd_signal_token(63, signal_name);
    assert_string_equal(signal_name, "63");
    gmd_request_token("alloc act 1 s1", request);
    assert_string_equal(request, "alloc");
}
