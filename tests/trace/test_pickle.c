#include "trace_test.h"

#include "pickle.h"

#include <stdio.h>
#include <string.h>

/* --- values as text ---------------------------------------------------------------------- */

typedef struct text_buffer {
    char data[4096];
    size_t size;
} text_buffer;

static void add(text_buffer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    out->size +=
        (size_t)vsnprintf(out->data + out->size, sizeof out->data - out->size, format, arguments);
    va_end(arguments);
    assert_true(out->size < sizeof out->data);
}

static void render(text_buffer *out, const pickle_value *v, int depth);

static void render_items(text_buffer *out, const pickle_value *v, const char *open,
                         const char *close, int depth)
{
    add(out, "%s", open);
    for (size_t i = 0; i < v->items->count; i++) {
        bool is_value = v->kind == PICKLE_DICT && i % 2;
        add(out, "%s", i == 0 ? "" : is_value ? ": " : ", ");
        render(out, &v->items->values[i], depth + 1);
    }
    add(out, "%s", close);
}

static void render(text_buffer *out, const pickle_value *v, int depth)
{
    if (depth > 4) {
        add(out, "...");
        return;
    }
    switch ((pickle_kind)v->kind) {
    case PICKLE_NOTHING:
        add(out, "?");
        break;
    case PICKLE_NONE:
        add(out, "None");
        break;
    case PICKLE_BOOL:
        add(out, v->number ? "True" : "False");
        break;
    case PICKLE_NATURAL:
        add(out, "%llu", (unsigned long long)v->number);
        break;
    case PICKLE_NEGATIVE:
        add(out, "%lld", (long long)v->negative);
        break;
    case PICKLE_FLOAT:
        add(out, "%.17g", v->real);
        break;
    case PICKLE_STRING:
        add(out, "'%.*s'", (int)v->length, v->text);
        break;
    case PICKLE_BYTES:
        add(out, "b'%.*s'", (int)v->length, v->text);
        break;
    case PICKLE_LIST:
        render_items(out, v, "[", "]", depth);
        break;
    case PICKLE_TUPLE:
        render_items(out, v, "(", ")", depth);
        break;
    case PICKLE_SET:
        render_items(out, v, "set(", ")", depth);
        break;
    case PICKLE_DICT:
        render_items(out, v, "{", "}", depth);
        break;
    case PICKLE_RECORD:
        add(out, "record %llu", (unsigned long long)v->number);
        break;
    case PICKLE_NOTED:
        add(out, "note %llu", (unsigned long long)v->number);
        break;
    }
}

/* A copy on the heap, so that ASan sees every byte read beyond the end. */
static gmd_status read_copy(pickle_document *pickle, const void *data, size_t size, uint8_t **copy,
                            gmd_error *error)
{
    *copy = malloc(size ? size : 1);
    assert_non_null(*copy);
    if (size) {
        memcpy(*copy, data, size);
    }
    return pickle_read(pickle, *copy, size, "x", error);
}

typedef struct pickle_case {
    const char *name;
    bytes pickle;
    const char *expected; /* the value, or a part of the message */
} pickle_case;

static void assert_value(const pickle_case *c)
{
    pickle_document pickle;
    gmd_error error = {""};
    uint8_t *copy;
    text_buffer text = {.size = 0};
    if (read_copy(&pickle, c->pickle.data, c->pickle.size, &copy, &error) != GMD_OK) {
        fail_msg("%s: %s", c->name, error.text);
    }
    render(&text, &pickle.root, 0);
    if (strcmp(text.data, c->expected) != 0) {
        fail_msg("%s: expected %s, got %s", c->name, c->expected, text.data);
    }
    pickle_free(&pickle);
    free(copy);
}

static void assert_refused(const pickle_case *c)
{
    pickle_document pickle;
    gmd_error error = {""};
    uint8_t *copy;
    if (read_copy(&pickle, c->pickle.data, c->pickle.size, &copy, &error) != GMD_BAD_INPUT) {
        fail_msg("%s: was not refused", c->name);
    }
    if (!strstr(error.text, c->expected)) {
        fail_msg("%s: expected \"%s\" in \"%s\"", c->name, c->expected, error.text);
    }
    assert_null(pickle.arena.chunks);
    free(copy);
}

/* --- the cases --------------------------------------------------------------------------- */

static const pickle_case values[] = {
    {"PROTO", {"\x80\x04N.", 4}, "None"},
    {"FRAME", {"\x80\x04\x95\x02\0\0\0\0\0\0\0N.", 13}, "None"},
    {"NONE", {"N.", 2}, "None"},
    {"NEWTRUE", {"\x88.", 2}, "True"},
    {"NEWFALSE", {"\x89.", 2}, "False"},
    {"BININT1", {"K\xff.", 3}, "255"},
    {"BININT2", {"M\x01\x02.", 4}, "513"},
    {"BININT", {"J\xff\xff\xff\x7f.", 6}, "2147483647"},
    {"BININT below zero", {"J\xff\xff\xff\xff.", 6}, "-1"},
    {"LONG1 of no bytes", {"\x8a\0.", 3}, "0"},
    {"LONG1", {"\x8a\x05\0\0\0\0\x01.", 8}, "4294967296"},
    {"LONG1 below zero", {"\x8a\x01\x80.", 4}, "-128"},
    {"LONG1, the largest",
     {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0.", 12},
     "18446744073709551615"},
    {"LONG1, the least", {"\x8a\x08\0\0\0\0\0\0\0\x80.", 11}, "-9223372036854775808"},
    {"LONG4", {"\x8b\x02\0\0\0\x01\x02.", 8}, "513"},
    {"INT", {"I-42\n.", 6}, "-42"},
    {"INT, False", {"I00\n.", 5}, "False"},
    {"INT, True", {"I01\n.", 5}, "True"},
    {"LONG", {"L18446744073709551615L\n.", 24}, "18446744073709551615"},
    {"LONG below zero", {"L-9223372036854775808L\n.", 24}, "-9223372036854775808"},
    {"FLOAT", {"F0.5\n.", 6}, "0.5"},
    {"BINFLOAT", {"G\x3f\xf8\0\0\0\0\0\0.", 10}, "1.5"},
    {"BINUNICODE", {"X\x02\0\0\0ab.", 8}, "'ab'"},
    {"SHORT_BINUNICODE",
     {"\x8c\x02"
      "ab.",
      5},
     "'ab'"},
    {"BINUNICODE8", {"\x8d\x02\0\0\0\0\0\0\0ab.", 12}, "'ab'"},
    {"UNICODE", {"Va\\u00e9\\U0001f600\xe9\n.", 21}, "'a\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9'"},
    {"BINBYTES", {"B\x02\0\0\0ab.", 8}, "b'ab'"},
    {"SHORT_BINBYTES",
     {"C\x02"
      "ab.",
      5},
     "b'ab'"},
    {"BINBYTES8", {"\x8e\x02\0\0\0\0\0\0\0ab.", 12}, "b'ab'"},
    {"BYTEARRAY8", {"\x96\x02\0\0\0\0\0\0\0ab.", 12}, "b'ab'"},
    {"BINSTRING", {"T\x02\0\0\0ab.", 8}, "'ab'"},
    {"SHORT_BINSTRING",
     {"U\x02"
      "ab.",
      5},
     "'ab'"},
    {"STRING", {"S'a\\x41\\'\\\\'\n.", 14}, "'aA'\\'"},
    {"EMPTY_LIST", {"].", 2}, "[]"},
    {"EMPTY_TUPLE", {").", 2}, "()"},
    {"EMPTY_DICT", {"}.", 2}, "{}"},
    {"EMPTY_SET", {"\x8f.", 2}, "set()"},
    {"APPEND",
     {"]K\x01"
      "a.",
      5},
     "[1]"},
    {"APPENDS",
     {"](K\x01K\x02"
      "e.",
      8},
     "[1, 2]"},
    {"APPENDS of nothing", {"](e.", 4}, "[]"},
    {"SETITEM", {"}K\x01K\x02s.", 7}, "{1: 2}"},
    {"SETITEMS", {"}(K\x01NK\x02Nu.", 10}, "{1: None, 2: None}"},
    {"ADDITEMS", {"\x8f(K\x01K\x02\x90.", 8}, "set(1, 2)"},
    {"FROZENSET", {"(K\x01K\x02\x91.", 7}, "set(1, 2)"},
    {"LIST of nothing, first of all", {"(l.", 3}, "[]"},
    {"LIST", {"(K\x01l.", 5}, "[1]"},
    {"DICT",
     {"(K\x01K\x02"
      "d.",
      7},
     "{1: 2}"},
    {"TUPLE", {"(K\x01K\x02t.", 7}, "(1, 2)"},
    {"TUPLE1", {"K\x01\x85.", 4}, "(1)"},
    {"TUPLE2", {"K\x01K\x02\x86.", 6}, "(1, 2)"},
    {"TUPLE3", {"K\x01K\x02K\x03\x87.", 8}, "(1, 2, 3)"},
    {"MARK nested", {"((K\x01lt.", 7}, "([1])"},
    {"POP",
     {"K\x01K\x02"
      "0.",
      6},
     "1"},
    {"POP of a mark", {"K\x01(0.", 5}, "1"},
    {"POP_MARK",
     {"K\x01(K\x02K\x03"
      "1.",
      9},
     "1"},
    {"DUP",
     {"K\x01"
      "2\x86.",
      5},
     "(1, 1)"},
    {"MEMOIZE and BINGET", {"]\x94h\0a.", 6}, "[[[[[...]]]]]"},
    {"BINPUT and BINGET", {"K\x07q\x05h\x05\x86.", 8}, "(7, 7)"},
    {"LONG_BINPUT and LONG_BINGET", {"K\x07r\x05\0\0\0j\x05\0\0\0\x86.", 14}, "(7, 7)"},
    {"PUT and GET", {"K\x07p3\ng3\n\x86.", 10}, "(7, 7)"},
    {"a memo entry is replaced", {"K\x07q\0K\x08q\0h\0\x87.", 12}, "(7, 8, 8)"},
};

static const pickle_case refusals[] = {
    {"GLOBAL",
     {"cos\nsystem\n.", 12},
     "x: byte 0: GLOBAL 'os.system': snapshots hold plain data only; refused"},
    {"GLOBAL, unprintable", {"co\x01s\nsystem\n.", 13}, "GLOBAL 'o\\x01s.system'"},
    {"STACK_GLOBAL",
     {"\x8c\x02os\x8c\x06system\x93.", 14},
     "byte 12: STACK_GLOBAL 'os.system': snapshots hold plain data only; refused"},
    {"STACK_GLOBAL of no names",
     {"NN\x93.", 4},
     "byte 2: STACK_GLOBAL: snapshots hold plain data only"},
    {"INST",
     {"(ios\nsystem\n.", 13},
     "byte 1: INST 'os.system': snapshots hold plain data only; refused"},
    {"REDUCE", {"N)R.", 4}, "byte 2: REDUCE: snapshots hold plain data only; refused"},
    {"BUILD", {"NNb.", 4}, "byte 2: BUILD: snapshots"},
    {"NEWOBJ", {"N)\x81.", 4}, "byte 2: NEWOBJ: snapshots"},
    {"NEWOBJ_EX", {"N)}\x92.", 5}, "byte 3: NEWOBJ_EX: snapshots"},
    {"OBJ", {"(No.", 4}, "byte 2: OBJ: snapshots"},
    {"EXT1", {"\x82\x01.", 3}, "byte 0: EXT1: snapshots"},
    {"EXT2", {"\x83\x01\0.", 4}, "byte 0: EXT2: snapshots"},
    {"EXT4", {"\x84\x01\0\0\0.", 6}, "byte 0: EXT4: snapshots"},
    {"PERSID", {"Pid\n.", 5}, "byte 0: PERSID: snapshots"},
    {"BINPERSID", {"NQ.", 3}, "byte 1: BINPERSID: snapshots"},
    {"NEXT_BUFFER", {"\x97.", 2}, "byte 0: NEXT_BUFFER: snapshots"},
    {"READONLY_BUFFER", {"N\x98.", 3}, "byte 1: READONLY_BUFFER: snapshots"},
};

static const pickle_case malformed[] = {
    {"nothing", {"", 0}, "byte 0: end of the file: expected an opcode: the pickle is truncated"},
    {"no STOP", {"N", 1}, "byte 1: end of the file: expected an opcode"},
    {"unknown opcode",
     {"N\xff.", 3},
     "byte 1: not a pickle opcode: expected one of protocols 0 to 5, found 0xff"},
    {"protocol 6", {"\x80\x06N.", 4}, "PROTO: protocol 6: expected at most 5"},
    {"PROTO twice",
     {"\x80\x04\x80\x04N.", 6},
     "byte 2: PROTO: expected it as the first opcode only"},
    {"STOP on nothing", {".", 1}, "byte 0: STOP: expected one value on the stack, found 0"},
    {"STOP on two values", {"NN.", 3}, "byte 2: STOP: expected one value on the stack, found 2"},
    {"STOP in a container", {"N(.", 3}, "found 1 and 1 open containers"},
    {"bytes after STOP",
     {"N.N", 3},
     "byte 1: STOP: expected the end of the file, found 1 bytes more"},
    {"BININT cut", {"J\x01\x02", 3}, "byte 0: BININT: expected 4 bytes more, found 2"},
    {"INT is no number", {"I4x\n.", 5}, "expected a decimal integer, found '4x'"},
    {"INT is empty", {"I\n.", 3}, "expected a decimal integer, found ''"},
    {"INT is a sign", {"I-\n.", 4}, "expected a decimal integer, found '-'"},
    {"INT over 64 bits", {"I18446744073709551616\n.", 23}, "an integer of at most 64 bits"},
    {"INT under 64 bits", {"I-9223372036854775809\n.", 23}, "an integer of at most 64 bits"},
    {"INT without a newline", {"I42", 3}, "expected a line, found the end of the file"},
    {"LONG1 over 64 bits",
     {"\x8a\x09\0\0\0\0\0\0\0\0\x01.", 12},
     "an integer of 9 bytes: expected at most 64 bits"},
    {"LONG1 under 64 bits",
     {"\x8a\x09\0\0\0\0\0\0\0\0\xff.", 12},
     "an integer below -2^63: expected at most 64 bits"},
    {"LONG4 of a negative length",
     {"\x8b\xff\xff\xff\xff.", 6},
     "expected a length, found a negative number"},
    {"LONG4 longer than the file", {"\x8b\xff\xff\xff\x7f.", 6}, "an integer of 2147483647 bytes"},
    {"FLOAT is no number", {"F1.5x\n.", 7}, "expected a decimal number, found '1.5x'"},
    {"FLOAT with a space", {"F 1.5\n.", 7}, "expected a decimal number, found ' 1.5'"},
    {"UNICODE, bad escape", {"V\\u12g4\n.", 9}, "hexadecimal digits"},
    {"UNICODE, cut escape", {"V\\u12\n.", 7}, "hexadecimal digits"},
    {"UNICODE over U+10FFFF", {"V\\U00110000\n.", 13}, "hexadecimal digits"},
    {"STRING without quotes", {"Sab\n.", 5}, "expected a quoted string, found 'ab'"},
    {"STRING of one quote", {"S'\n.", 4}, "expected a quoted string"},
    {"STRING, bad escape", {"S'\\q'\n.", 7}, "valid escapes"},
    {"STRING, cut escape", {"S'\\x4'\n.", 8}, "valid escapes"},
    {"APPEND to no list", {"}Na.", 4}, "byte 2: APPEND: expected a list to add to, found a dict"},
    {"APPEND to nothing", {"Na.", 3}, "APPEND: expected 2 values on the stack, found 1"},
    {"APPENDS without a mark", {"]Ne.", 4}, "APPENDS: expected a MARK on the stack, found none"},
    {"APPENDS to nothing", {"(Ne.", 4}, "APPENDS: expected 1 value on the stack, found 0"},
    {"SETITEM to a list", {"]NNs.", 5}, "SETITEM: expected a dict to add to, found a list"},
    {"SETITEMS of an odd number",
     {"}(Nu.", 5},
     "expected keys and values in pairs, found 1 values"},
    {"DICT of an odd number", {"(Nd.", 4}, "expected keys and values in pairs"},
    {"a list as a key", {"}]Ns.", 5}, "expected a key, found a list"},
    {"ADDITEMS to a list", {"](N\x90.", 5}, "expected a set to add to, found a list"},
    {"TUPLE2 of one", {"N\x86.", 3}, "TUPLE2: expected 2 values on the stack, found 1"},
    {"TUPLE1 reaching over a mark",
     {"N(\x85.", 4},
     "TUPLE1: expected 1 value on the stack, found 0"},
    {"POP of nothing", {"0.", 2}, "POP: expected 1 value on the stack, found 0"},
    {"DUP of nothing", {"2.", 2}, "DUP: expected 1 value on the stack, found 0"},
    {"MEMOIZE of nothing", {"\x94.", 2}, "MEMOIZE: expected 1 value on the stack, found 0"},
    {"BINGET of nothing", {"h\x05.", 3}, "BINGET: expected a memo entry, found none at index 5"},
    {"BINGET of a gap", {"Nq\x03h\x02.", 6}, "expected a memo entry, found none at index 2"},
    {"PUT of no number", {"Npx\n.", 5}, "PUT: expected a memo index, found 'x'"},
    {"GET of no number", {"g\n.", 3}, "GET: expected a memo index, found ''"},
    {"SHORT_BINUNICODE cut",
     {"\x8c\x05"
      "ab.",
      5},
     "claims 5 bytes, found 3 before the end of the file"},
};

/* Claims that would cost much if they were believed. */
static const pickle_case claims[] = {
    {"BINUNICODE8 of 2^60 bytes",
     {"\x8d\0\0\0\0\0\0\0\x10.", 10},
     "claims 1152921504606846976 bytes, found 1"},
    {"BINBYTES8 of 2^64-1 bytes",
     {"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", 10},
     "claims 18446744073709551615 bytes"},
    {"BYTEARRAY8 of 2^63 bytes",
     {"\x96\0\0\0\0\0\0\0\x80.", 10},
     "claims 9223372036854775808 bytes"},
    {"BINUNICODE of 4 GiB", {"X\xff\xff\xff\xff.", 6}, "claims 4294967295 bytes"},
    {"BINSTRING of 4 GiB", {"T\xff\xff\xff\xff.", 6}, "claims 4294967295 bytes"},
    {"FRAME of 2^60 bytes",
     {"\x95\0\0\0\0\0\0\0\x10N.", 11},
     "FRAME: claims 1152921504606846976 bytes, found 2"},
    {"LONG_BINPUT at 2^32-1",
     {"Nr\xff\xff\xff\xff.", 7},
     "memo index 4294967295: expected less than the file's 7 bytes"},
    {"PUT at 9999999999", {"Np9999999999\n.", 14}, "memo index 9999999999: expected less than"},
    {"PUT beyond 64 bits", {"Np99999999999999999999999\n.", 27}, "expected a memo index"},
};

#define ASSERT_ALL(cases, assertion)                                                               \
    for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) {                                 \
        assertion(&(cases)[i]);                                                                    \
    }

TEST(each_opcode_makes_its_value){ASSERT_ALL(values, assert_value)}

TEST(a_decimal_number_longer_than_any_real_one_is_refused)
{
    char data[700];
    memset(data, '1', sizeof data);
    data[0] = 'F';
    data[sizeof data - 2] = '\n';
    data[sizeof data - 1] = '.';
    pickle_document pickle;
    gmd_error error = {""};
    assert_int_equal(pickle_read(&pickle, (uint8_t *)data, sizeof data, "x", &error),
                     GMD_BAD_INPUT);
    assert_contains(error.text, "x: byte 0: FLOAT: expected a decimal number, found '1111");
}

TEST(opcodes_that_are_no_plain_data_are_refused_by_name_and_byte){
    ASSERT_ALL(refusals, assert_refused)}

TEST(malformed_pickles_are_refused_with_what_was_expected){ASSERT_ALL(malformed, assert_refused)}

TEST(sizes_that_the_file_cannot_hold_are_refused_at_once){ASSERT_ALL(claims, assert_refused)}

/* pickletools lists 68 opcodes for protocols 0 to 5. */
TEST(all_opcodes_of_protocols_0_to_5_are_known)
{
    int known = 0;
    for (int code = 0; code < 256; code++) {
        uint8_t pickle[] = {'N', (uint8_t)code};
        pickle_document read;
        gmd_error error = {""};
        assert_int_equal(pickle_read(&read, pickle, sizeof pickle, "x", &error),
                         code == '.' ? GMD_OK : GMD_BAD_INPUT);
        known += !strstr(error.text, "not a pickle opcode");
        pickle_free(&read);
    }
    assert_int_equal(known, 68);
}

TEST(a_value_remembers_the_byte_that_made_it)
{
    pickle_document pickle;
    const char data[] = "]NK\x07\x86"
                        "a.";
    assert_int_equal(pickle_read(&pickle, (const uint8_t *)data, sizeof data - 1, "x", NULL),
                     GMD_OK);
    const pickle_value *tuple = &pickle.root.items->values[0];
    assert_int_equal(tuple->at, 4);
    assert_int_equal(tuple->items->values[1].at, 2);
    pickle_free(&pickle);
}

TEST(containers_may_be_nested_to_a_depth_of_256)
{
    char data[2 * 257 + 1];
    memset(data, '(', 256);
    memset(data + 256, 'l', 256);
    data[512] = '.';
    pickle_document pickle;
    assert_int_equal(pickle_read(&pickle, (uint8_t *)data, 513, "x", NULL), GMD_OK);
    pickle_free(&pickle);
}

TEST(deeper_nesting_is_refused)
{
    char data[257];
    memset(data, '(', sizeof data);
    pickle_document pickle;
    gmd_error error = {""};
    assert_int_equal(pickle_read(&pickle, (uint8_t *)data, sizeof data, "x", &error),
                     GMD_BAD_INPUT);
    assert_contains(error.text, "byte 256: MARK: containers nested deeper than 256");
}

/* Ten lists, each with a thousand references to the one before: 10^30 values when walked. */
TEST(shared_containers_cost_what_the_file_holds)
{
    static char data[40000];
    size_t size = 0;
    data[size++] = ']';
    data[size++] = 'q';
    data[size++] = 0;
    for (char level = 0; level < 10; level++) {
        data[size++] = ']';
        data[size++] = '(';
        for (int i = 0; i < 1000; i++) {
            data[size++] = 'h';
            data[size++] = level;
        }
        data[size++] = 'e';
        data[size++] = 'q';
        data[size++] = (char)(level + 1);
        data[size++] = '\x86'; /* two values into one, so that one is left */
    }
    data[size++] = '.';
    pickle_document pickle;
    assert_int_equal(pickle_read(&pickle, (uint8_t *)data, size, "x", NULL), GMD_OK);
    assert_true(pickle.arena.used < 20 * size); /* rounded up to what the host gave */
    pickle_free(&pickle);
}

/* The largest cost of a byte that was found: one-element containers of containers. */
TEST(the_memory_bound_admits_the_most_costly_honest_pickles)
{
    static const char *const patterns[] = {"]a", "Na", "\x85", "N0", "(la", ")a"};
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        static char data[100002];
        size_t size = 0, length = strlen(patterns[p]);
        data[size++] = ']';
        while (size + length < sizeof data) {
            memcpy(data + size, patterns[p], length);
            size += length;
        }
        data[size++] = '.';
        pickle_document pickle;
        gmd_error error = {""};
        if (pickle_read(&pickle, (uint8_t *)data, size, "x", &error) != GMD_OK) {
            fail_msg("%s", error.text);
        }
        pickle_free(&pickle);
    }
}

TEST(an_arena_refuses_what_passes_its_limit)
{
    memory_arena arena;
    arena_init(&arena, 100);
    assert_non_null(arena_take(&arena, 60));
    assert_null(arena_take(&arena, 60));
    assert_true(arena_is_full(&arena, 60));
    assert_non_null(arena_take(&arena, 32));
    arena_free(&arena);
}

TEST(every_truncation_is_an_error)
{
    static const char data[] = "\x80\x04}\x94(\x8c\x01"
                               "a\x94](K\x01M\x01\x02J\x01\x02\x03\x04\x8a\x03\x01\x02\x03"
                               "G\x3f\xf8\0\0\0\0\0\0I42\nL42L\nF0.5\nVx\nS'y'\np9\ng9\n"
                               "X\x02\0\0\0abB\x02\0\0\0abC\x01z\x8b\x01\0\0\0\x05"
                               "\x8d\x01\0\0\0\0\0\0\0x\x8e\x01\0\0\0\0\0\0\0x"
                               "\x96\x01\0\0\0\0\0\0\0xr\x05\0\0\0j\x05\0\0\0q\x06h\x06\x88\x89N"
                               "e\x8c\x01"
                               "b)\x8c\x01"
                               "c\x8f(K\x01\x90\x8c\x01"
                               "d(K\x01\x91u.";
    const size_t size = sizeof data - 1;
    pickle_document pickle;
    gmd_error error = {""};
    uint8_t *copy;
    if (read_copy(&pickle, data, size, &copy, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    pickle_free(&pickle);
    free(copy);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(read_copy(&pickle, data, cut, &copy, &error), GMD_BAD_INPUT);
        free(copy);
    }
}

TEST(random_bytes_are_read_or_refused)
{
    static const char opcodes[] =
        "(.012FIJKLMNSTUVXabcdeghijlopqrstuGBC)]}\x80\x81\x85\x86\x87\x88\x8a\x8b"
        "\x8c\x8d\x8f\x90\x91\x94\x95\x96";
    uint64_t random = 7;
    for (int run = 0; run < 20000; run++) {
        char data[64];
        size_t size = next_random(&random) % sizeof data;
        for (size_t i = 0; i < size; i++) {
            uint64_t r = next_random(&random);
            data[i] = r % 4 ? opcodes[r / 4 % (sizeof opcodes - 1)] : (char)(r >> 32 & 7);
        }
        pickle_document pickle;
        gmd_error error = {""};
        uint8_t *copy;
        gmd_status status = read_copy(&pickle, data, size, &copy, &error);
        assert_true(status == GMD_OK || (status == GMD_BAD_INPUT && error.text[0]));
        pickle_free(&pickle);
        free(copy);
    }
}
