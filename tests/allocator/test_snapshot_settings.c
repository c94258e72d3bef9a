/* The settings in a snapshot, under torch's names and with what they are. */
#include "allocator_test.h"
#include "pickle_test.h"

#include <inttypes.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024 };

static size_t append(char *text, size_t used, const value *v)
{
    char *to = text + used;
    size_t room = TEXT_BYTES - used;
    switch (v->kind) {
    case PICKLE_BOOL:
        return used + (size_t)snprintf(to, room, "%s", v->number ? "True" : "False");
    case PICKLE_NATURAL:
        return used + (size_t)snprintf(to, room, "%" PRIu64, v->number);
    case PICKLE_NEGATIVE:
        return used + (size_t)snprintf(to, room, "%" PRId64, v->negative);
    case PICKLE_FLOAT:
        return used + (size_t)snprintf(to, room, "%.2f", v->real);
    default:
        assert_int_equal(v->kind, PICKLE_STRING);
        return used + (size_t)snprintf(to, room, "%.*s", (int)v->length, v->text);
    }
}

/* "NAME=VALUE " for each entry, with those of a dict within it. */
static size_t append_entries(char *text, size_t used, const value *dict)
{
    for (size_t i = 0; i < dict->items->count; i += 2) {
        const value *of = item(dict, i + 1);
        used = append(text, used, item(dict, i));
        text[used++] = '=';
        if (of->kind == PICKLE_DICT) {
            used = append_entries(text, used, of);
        } else {
            used = append(text, used, of);
            text[used++] = ' ';
        }
        assert_true(used < TEXT_BYTES);
    }
    text[used] = '\0';
    return used;
}

static void expect_settings(const char *conf, const char *expected)
{
    char path[64], text[TEXT_BYTES];
    pickle_file file = {0};
    bench b = open_bench(GMD_GIB, conf);
    snprintf(path, sizeof path, "settings-%ld.pickle", (long)getpid());
    const value *snapshot = dump_pickle(&file, b.a, path);
    unlink(path);
    append_entries(text, 0, key(snapshot, "allocator_settings"));
    assert_string_equal(text, expected);
    forget_pickle(&file);
    close_bench(&b);
}

#define FIXED                                                                                      \
    "pinned_num_register_threads=1 release_lock_on_cudamalloc=False "                              \
    "pinned_use_cuda_host_register=False graph_capture_record_stream_reuse=False "
#define OTHER_DEFAULTS                                                                             \
    "garbage_collection_threshold=0.00 expandable_segments=False " FIXED                           \
    "roundup_power2_divisions=1=0 2=0 4=0 8=0 16=0 32=0 64=0 128=0 256=0 512=0 1024=0 2048=0 "     \
    "4096=0 8192=0 16384=0 32768=0 "

TEST(the_defaults_are_torch_s)
{
    expect_settings(NULL, "PYTORCH_CUDA_ALLOC_CONF= max_split_size=-1 " OTHER_DEFAULTS);
}

TEST(what_was_set_is_told_as_it_was_set)
{
#define CONF                                                                                       \
    "max_split_size_mb:64,garbage_collection_threshold:0.75,"                                      \
    "roundup_power2_divisions:[1:2,2:16,4:8,>:4],expandable_segments:True"
    expect_settings(CONF, "PYTORCH_CUDA_ALLOC_CONF=" CONF " max_split_size=67108864 "
                          "garbage_collection_threshold=0.75 expandable_segments=True " FIXED
                          "roundup_power2_divisions="
                          "1=2 2=16 4=8 8=4 16=4 32=4 64=4 128=4 256=4 512=4 1024=4 2048=4 "
                          "4096=4 8192=4 16384=4 32768=4 ");
#undef CONF
}

TEST(a_size_that_torch_has_no_number_for_is_none)
{
#define CONF "max_split_size_mb:8796093022208" /* 2^63 bytes */
    expect_settings(CONF, "PYTORCH_CUDA_ALLOC_CONF=" CONF " max_split_size=-1 " OTHER_DEFAULTS);
#undef CONF
}
