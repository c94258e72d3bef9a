/* Dicts that are taken while a pickle is read: what refers to them, and their memory. */
#include "pickle.h"
#include "pickle_literal.h"

#include <stdio.h>
#include <string.h>

enum { NOTE = 77 };

static pickle_text text;
static size_t taken;

/* Takes dicts with the key 't', and notes the lists in them. */
static bool take(void *context, uint64_t at, const pickle_value *pairs, size_t count,
                 uint64_t *number)
{
    (void)context;
    (void)at;
    bool is_wanted = false;
    for (size_t i = 0; i < count; i += 2) {
        is_wanted |=
            pairs[i].kind == PICKLE_STRING && pairs[i].length == 1 && pairs[i].text[0] == 't';
    }
    for (size_t i = 1; i < count && is_wanted; i += 2) {
        if (pairs[i].kind == PICKLE_LIST || pairs[i].kind == PICKLE_TUPLE) {
            pairs[i].items->note = NOTE;
        }
    }
    *number = taken;
    taken += is_wanted;
    return is_wanted;
}

static const pickle_taker taker = {NULL, take};

static void render(const pickle_value *v, char *out, size_t size, size_t *at);

static void render_items(const pickle_value *v, char *out, size_t size, size_t *at)
{
    for (uint32_t i = 0; i < v->items->count; i++) {
        pickle_value item = pickle_item(v->items, i, v->at);
        *at += (size_t)snprintf(out + *at, size - *at, "%s", i ? " " : "");
        render(&item, out, size, at);
    }
}

static void render(const pickle_value *v, char *out, size_t size, size_t *at)
{
    if (v->kind >= PICKLE_LIST && v->kind <= PICKLE_DICT) {
        *at += (size_t)snprintf(out + *at, size - *at, "(");
        render_items(v, out, size, at);
        *at += (size_t)snprintf(out + *at, size - *at, ")");
        return;
    }
    const char *kind = v->kind == PICKLE_RECORD ? "r" : v->kind == PICKLE_NOTED ? "n" : "";
    if (v->kind == PICKLE_STRING) {
        *at += (size_t)snprintf(out + *at, size - *at, "%.*s", (int)v->length, v->text);
    } else {
        *at +=
            (size_t)snprintf(out + *at, size - *at, "%s%llu", kind, (unsigned long long)v->number);
    }
}

static gmd_status read_text(pickle_document *pickle, gmd_error *error)
{
    taken = 0;
    return pickle_read_taking(pickle, text.data, text.size, "x", &taker, error);
}

/* What a pickle is: r1 is the record number 1, n77 what only a record referred to. */
static void assert_is(const char *literal, const char *expected)
{
    pickle_document pickle;
    gmd_error error = {""};
    char out[256] = "";
    size_t at = 0;
    text.size = 0;
    put_literal(&text, literal);
    put(&text, ".");
    if (read_text(&pickle, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    render(&pickle.root, out, sizeof out, &at);
    pickle_free(&pickle);
    assert_string_equal(out, expected);
}

TEST(a_dict_that_is_taken_is_a_record)
{
    assert_is("{'t': 1}", "r0");
    assert_is("{'a': 1}", "(a 1)");
    assert_is("[{'t': 1}, {'a': {'t': 2}}]", "(r0 (a r1))");
}

TEST(what_refers_to_it_refers_to_the_record)
{
    assert_is("[&1 {'t': 1}, 5, *1, [*1]]", "(r0 5 r0 (r0))");
}

TEST(what_refers_to_a_list_that_only_it_had_refers_to_the_note)
{
    assert_is("[{'t': &1 [1, 2]}, *1, (*1,)]", "(r0 n77 (n77))");
    assert_is("[{'t': &1 (1, 2)}, *1]", "(r0 n77)");
}

TEST(a_list_that_something_else_has_too_stays)
{
    assert_is("[&1 [1, 2], {'t': *1}, *1]", "((1 2) r0 (1 2))");
}

TEST(a_dict_that_is_referred_to_before_it_is_complete_stays)
{
    assert_is("[{'a': &1 {'t': 1, 'self': [7]}}, &2 [*1]]", "((a r0) (r0))");
    text.size = 0;
    put_literal(&text, "&1 {'t': *1}");
    put(&text, ".");
    pickle_document pickle;
    assert_int_equal(read_text(&pickle, NULL), GMD_OK);
    assert_int_equal(pickle.root.kind, PICKLE_DICT);
    assert_ptr_equal(pickle.root.items->values[1].items, pickle.root.items);
    pickle_free(&pickle);
}

TEST(records_one_after_the_other_are_kept_as_a_run)
{
    text.size = 0;
    put_literal(&text, "[{'t': 1}, {'t': 2}, {'t': 3}]");
    put(&text, ".");
    pickle_document pickle;
    assert_int_equal(read_text(&pickle, NULL), GMD_OK);
    assert_true(pickle_is_run(pickle.root.items));
    assert_int_equal(pickle.root.items->count, 3);
    assert_int_equal(pickle_item(pickle.root.items, 2, 0).number, 2);
    pickle_free(&pickle);
}

TEST(a_list_that_is_no_run_any_more_has_the_same_values)
{
    assert_is("[{'t': 1}, {'t': 2}, 9]", "(r0 r1 9)");
    assert_is("[&1 {'t': 1}, {'t': 2}, *1]", "(r0 r1 r0)");
    assert_is("[{'a': {'t': 1}}, {'t': 2}, {'t': 3}]", "((a r0) r1 r2)");
}

static void assert_opcodes_give(const char *opcodes, const char *expected)
{
    pickle_document pickle;
    char out[256] = "";
    size_t at = 0;
    gmd_error error = {""};
    text.size = 0;
    put(&text, opcodes);
    if (read_text(&pickle, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    render(&pickle.root, out, sizeof out, &at);
    pickle_free(&pickle);
    assert_string_equal(out, expected);
}

/* A record, and more behind it: in one batch, in two, value by value. */
TEST(a_run_may_come_in_batches)
{
    assert_opcodes_give("](}(U\x01tNu}(U\x01tNue(}(U\x01tNue}(U\x01tNua.", "(r0 r1 r2 r3)");
    assert_opcodes_give("](}(U\x01tNue(K\x05}(U\x01tNue}(U\x01tNua.", "(r0 5 r1 r2)");
}

TEST(all_ways_to_make_a_dict_but_one_by_one_are_offered)
{
    assert_opcodes_give("(U\x01tNd.", "r0");
    assert_opcodes_give("}(U\x01tNu.", "r0");
    assert_opcodes_give("}U\x01tNs.", "(t 0)");
    assert_opcodes_give("}U\x01"
                        "aNs(U\x01tNu.",
                        "(a 0 t 0)");
}

static void assert_refused(const char *opcodes, const char *part)
{
    pickle_document pickle;
    gmd_error error = {""};
    text.size = 0;
    put(&text, opcodes);
    assert_int_equal(read_text(&pickle, &error), GMD_BAD_INPUT);
    assert_contains(error.text, part);
}

TEST(nothing_is_added_to_what_was_taken)
{
    assert_refused("}(U\x01tNuU\x01"
                   "aNs.",
                   "SETITEM: expected a dict to add to, found another record");
    assert_refused("}(U\x01t]q\x01"
                   "u0h\x01Na.",
                   "APPEND: expected a list to add to, found another record's list");
    assert_refused("]q\x01h\x01}(U\x01th\x01u0Na.", "APPEND: expected a list that is complete");
}

TEST(a_record_is_no_key)
{
    assert_refused("}(}(U\x01tNuNu.", "expected a key, found another record");
}

TEST(an_index_of_the_memo_may_go_to_another_value)
{
    /* The list's entry is the number's when the list is taken, and stays that. */
    assert_opcodes_give("(}(U\x01t]q\x01K\x08q\x01"
                        "0uh\x01t.",
                        "(r0 8)");
    /* A list with two entries: both stay the list. */
    assert_opcodes_give("(}(U\x01t]q\x01q\x02uh\x01h\x02t.", "(r0 () ())");
    /* Copied on the stack. */
    assert_opcodes_give("(]2}(U\x01t]q\x01h\x01"
                        "0ut.",
                        "(() () r0)");
}

/* Dict after dict takes the memory of the one before: the limit is that of the values that are
 * there. */
TEST(the_memory_of_what_was_taken_is_used_again)
{
    enum { DICTS = 20000, ROOM = DICTS * 32 };
    uint8_t *data = malloc(ROOM);
    assert_non_null(data);
    size_t size = 0;
    data[size++] = ']';
    data[size++] = '(';
    for (int i = 0; i < DICTS; i++) {
        static const char dict[] = "}\x94(U\x01t](NNNNe\x94u";
        memcpy(data + size, dict, sizeof dict - 1);
        size += sizeof dict - 1;
    }
    data[size++] = 'e';
    data[size++] = '.';
    pickle_document pickle;
    assert_int_equal(pickle_read_taking(&pickle, data, size, "x", &taker, NULL), GMD_OK);
    assert_int_equal(pickle.root.items->count, DICTS);
    assert_true(pickle.arena.used < 1024);
    pickle_free(&pickle);
    free(data);
}

TEST(random_opcodes_are_read_or_refused)
{
    static const char opcodes[] = "(.012KNUade}hq]tu}}((](u\x94\x85\x8f\x90";
    uint64_t random = 3;
    for (int run = 0; run < 200000; run++) {
        text.size = 0;
        while (next_random(&random) % 40) {
            uint64_t r = next_random(&random);
            if (r % 8 == 0) {
                put(&text, "U\x01t");
            } else {
                text.data[text.size++] = r % 8 == 1
                                             ? (uint8_t)(r >> 32 & 3)
                                             : (uint8_t)opcodes[r / 8 % (sizeof opcodes - 1)];
            }
        }
        pickle_document pickle;
        gmd_error error = {""};
        gmd_status status = read_text(&pickle, &error);
        assert_true(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
        pickle_free(&pickle);
    }
}
