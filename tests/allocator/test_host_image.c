/* How much of the host's memory an image of a device's may take: what the kernel's files say. The
 * linker puts the function below in place of fopen, which opens what a test says. */
#include "gmd_size.h"
#include "gmd_test.h"
#include "host_image.h"

#include <stdio.h>
#include <string.h>

static struct { /* what the files hold; NULL: there is none */
    const char *meminfo, *most, *used;
} files;

__attribute__((visibility("default"))) FILE *__wrap_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    (void)mode;
    const char *text = strcmp(path, "/proc/meminfo") == 0               ? files.meminfo
                       : strcmp(path, "/sys/fs/cgroup/memory.max") == 0 ? files.most
                                                                        : files.used;
    return text ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : NULL;
}

#define SYSTEM_HAS_10_MIB                                                                          \
    "MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable:  10240 kB\nCached: 0\n"

/* An image of so many bytes. "": it can be had. */
static const char *refusal(uint64_t bytes)
{
    static gmd_error error;
    host_image image;
    error.text[0] = '\0';
    gmd_status status = host_image_open(&image, bytes, &error);
    assert_true((status == GMD_OK) == !error.text[0]);
    if (status == GMD_OK) {
        memset(image.data, 0xAB, bytes);
        assert_int_equal(image.bytes, bytes);
    }
    host_image_close(&image);
    return error.text;
}

static void expect_available(uint64_t mib)
{
    char expected[128];
    snprintf(expected, sizeof expected,
             "%d MiB of host memory are needed for the live blocks and %d MiB are available",
             (int)mib + 1, (int)mib);
    assert_string_equal(refusal(mib * GMD_MIB), "");
    assert_string_equal(refusal(mib * GMD_MIB + 1), expected);
}

TEST(without_a_container_the_system_has_what_it_says)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = files.used = NULL;
    expect_available(10);
}

TEST(a_container_has_what_is_left_of_its_share)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = "7340032\n";
    files.used = "3145728\n";
    expect_available(4);
}

TEST(a_container_has_no_more_than_the_system)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = "73400320\n";
    files.used = "3145728\n";
    expect_available(10);
}

TEST(a_container_without_a_limit_has_all)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = "max\n";
    files.used = "3145728\n";
    expect_available(10);
}

TEST(a_container_that_does_not_tell_what_it_uses_has_all)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = "3145728\n";
    files.used = NULL;
    expect_available(10);
}

TEST(a_container_above_its_limit_has_nothing)
{
    files.meminfo = SYSTEM_HAS_10_MIB;
    files.most = "3145728\n";
    files.used = "4194304\n";
    assert_string_not_equal(refusal(1), "");
}

TEST(where_nothing_is_told_it_is_tried)
{
    files.meminfo = "MemTotal: 1 kB\n";
    files.most = files.used = NULL;
    assert_string_equal(refusal(20 * GMD_MIB), "");
    files.meminfo = NULL;
    assert_string_equal(refusal(20 * GMD_MIB), "");
    assert_string_not_equal(refusal((uint64_t)1 << 60), "");
}

TEST(an_image_of_nothing_needs_nothing)
{
    host_image image;
    files.meminfo = "MemAvailable: 0 kB\n";
    assert_int_equal(host_image_open(&image, 0, NULL), GMD_OK);
    assert_null(image.data);
    host_image_close(&image);
}
