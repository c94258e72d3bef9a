/* The list of the ABI's functions (GMD_ABI_FUNCTIONS), what is bound by it, and its page in the
 * manual. */
#include "gmd_subject.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As the manual shows it: no space behind an asterisk, wherever clang-format puts one. */
static void add_row(char *table, size_t size, const char *row)
{
    size_t length = strlen(table);
    for (const char *c = row; *c && length + 1 < size; c++) {
        if (*c != ' ' || c == row || c[-1] != '*') {
            table[length++] = *c;
        }
    }
    assert_true(length + 1 < size);
    table[length] = '\0';
}

#define ROW(returns, name, parameters, unlocks, meaning)                                           \
    add_row(table, sizeof table,                                                                   \
            "| `" #returns " gmd_" #name #parameters "` | " unlocks " | " meaning " |\n");

static char *read_manual(void)
{
    FILE *file = fopen(GMD_TEST_MANUAL, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void expect_in_manual(const char *table)
{
    char *manual = read_manual();
    bool is_there = strstr(manual, table) != NULL;
    free(manual);
    if (!is_there) {
        print_message("docs/allocators.md is to have these rows:\n%s", table);
        fail();
    }
}

TEST(the_manual_has_the_required_functions_as_the_header_declares_them)
{
    static char table[1 << 14];
    GMD_ABI_REQUIRED(ROW)
    expect_in_manual(table);
}

TEST(the_manual_has_the_optional_functions_as_the_header_declares_them)
{
    static char table[1 << 14];
    GMD_ABI_OPTIONAL(ROW)
    expect_in_manual(table);
}

TEST(the_manual_has_the_functions_for_programs_as_the_header_declares_them)
{
    static char table[1 << 14];
    GMD_ABI_HOSTED(ROW)
    expect_in_manual(table);
}

/* --- binding ----------------------------------------------------------------------------- */

static void open_subject(gmd_subject *subject, const char *spec)
{
    gmd_error error = {""};
    void *runtime = dlopen(GMD_TEST_LIB_DIR "/sim/libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    assert_non_null(runtime);
    gmd_subject_source source = {.spec = spec, .lib_directory = GMD_TEST_LIB_DIR};
    if (gmd_subject_open(subject, &source, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

#define ASSERT_BOUND(returns, name, parameters, unlocks, meaning) assert_non_null(subject.name);

TEST(of_the_reference_allocator_every_function_is_bound)
{
    gmd_subject subject;
    open_subject(&subject, "reference");
    GMD_ABI_FUNCTIONS(ASSERT_BOUND)
}

#define ASSERT_ABLE(returns, name, parameters, unlocks, meaning) assert_true(abilities.name);

TEST(the_reference_allocator_has_every_ability)
{
    gmd_subject subject;
    open_subject(&subject, "reference");
    gmd_abilities abilities = gmd_subject_abilities(&subject);
    GMD_ABI_OPTIONAL(ASSERT_ABLE)
}

#define ASSERT_UNABLE(returns, name, parameters, unlocks, meaning) assert_false(abilities.name);

TEST(an_allocator_with_two_functions_has_no_ability)
{
    gmd_subject subject;
    open_subject(&subject, GMD_TEST_BARE);
    gmd_abilities abilities = gmd_subject_abilities(&subject);
    GMD_ABI_OPTIONAL(ASSERT_UNABLE)
}

TEST(abilities_are_told_apart)
{
    gmd_subject subject;
    open_subject(&subject, "cudamalloc");
    gmd_abilities abilities = gmd_subject_abilities(&subject);
    assert_true(abilities.get_stats);
    assert_true(abilities.empty_cache);
    assert_false(abilities.record_stream);
    assert_false(abilities.begin_pool);
}
