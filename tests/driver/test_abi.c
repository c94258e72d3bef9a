/* The list of the ABI's functions (GMD_ABI_FUNCTIONS), what is bound by it, and its page in the
 * manual. */
#include "gmd_subject.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1 << 15 };

/* An entry as the manual has it, but on one line, and without the space that clang-format may have
 * put behind an asterisk. */
static void add_entry(char *text, const char *declaration, const char *meaning, const char *unlocks)
{
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, TEXT_MAX - length, "- `");
    for (const char *c = declaration; *c; c++) {
        if (*c != ' ' || c == declaration || c[-1] != '*') {
            text[length++] = *c;
        }
    }
    length += (size_t)snprintf(text + length, TEXT_MAX - length, "`: %s. ", meaning);
    if (*unlocks) {
        snprintf(text + length, TEXT_MAX - length, "Unlocks %s. ", unlocks);
    }
}

#define ENTRY(returns, name, parameters, unlocks, meaning)                                         \
    add_entry(text, #returns " gmd_" #name #parameters, meaning, unlocks);

/* With one space wherever lines are broken. */
static void read_manual(char *text)
{
    FILE *file = fopen(GMD_TEST_MANUAL, "r");
    assert_non_null(file);
    size_t length = 0;
    for (int c = getc(file); c != EOF && length < TEXT_MAX - 1; c = getc(file)) {
        bool is_space = c == ' ' || c == '\n';
        if (!is_space || (length && text[length - 1] != ' ')) {
            text[length++] = (char)(is_space ? ' ' : c);
        }
    }
    text[length] = '\0';
    fclose(file);
}

static void expect_in_manual(const char *text)
{
    static char manual[TEXT_MAX];
    read_manual(manual);
    if (!strstr(manual, text)) {
        print_message("docs/allocators.md is to have this, with its lines broken:\n%s\n", text);
        fail();
    }
}

TEST(the_manual_has_the_required_functions_as_the_header_declares_them)
{
    static char text[TEXT_MAX];
    GMD_ABI_REQUIRED(ENTRY)
    expect_in_manual(text);
}

TEST(the_manual_has_the_optional_functions_as_the_header_declares_them)
{
    static char text[TEXT_MAX];
    GMD_ABI_OPTIONAL(ENTRY)
    expect_in_manual(text);
}

TEST(the_manual_has_the_functions_for_programs_as_the_header_declares_them)
{
    static char text[TEXT_MAX];
    GMD_ABI_HOSTED(ENTRY)
    expect_in_manual(text);
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
