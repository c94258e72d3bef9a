/* Makes a fuzz target a program that replays files, and folders of files, one after the other: the
 * regression test where there is no libFuzzer; and a bounded search, with inputs from a fixed seed.
 * Usage: fuzz_NAME PATH... | fuzz_NAME --random COUNT
 *
 * Compiled by AFL++'s afl-clang-fast it is AFL++'s harness, too: without arguments, many inputs in
 * one process, out of memory shared with afl-fuzz
 * (https://github.com/AFLplusplus/AFLplusplus/blob/stable/instrumentation/README.persistent_mode.md).
 */
#include "fuzz.h"

#include "gmd_random.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t replayed;

static bool run_one_random(uint64_t seed)
{
    enum { LONGEST = 2000 };
    gmd_random random = {gmd_random_derive(0, seed)};
    size_t size = gmd_random_below(&random, LONGEST);
    uint8_t *data = malloc(size ? size : 1);
    for (size_t i = 0; data && i < size; i++) {
        data[i] = (uint8_t)gmd_random_next(&random);
    }
    if (data) {
        LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return data != NULL;
}

#ifdef __AFL_FUZZ_TESTCASE_LEN
#define HAS_AFL 1
__AFL_FUZZ_INIT();

/* What the target sets up with its first input, and its libraries with what they tell of coverage,
 * are there before afl-fuzz forks it; so are tables as large as most inputs need, or the same input
 * would take another way the first time than later, which afl-fuzz holds for chance. So it would
 * where the next input gives back what one leaves: an empty input does, within the same turn. */
static int run_afl(void)
{
    uint8_t nothing = 0;
    LLVMFuzzerTestOneInput(&nothing, 0);
    for (uint64_t seed = 1; seed <= 64; seed++) {
        run_one_random(seed);
    }
    __AFL_INIT();
    const uint8_t *data = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(10000)) {
        LLVMFuzzerTestOneInput(data, (size_t)__AFL_FUZZ_TESTCASE_LEN);
        LLVMFuzzerTestOneInput(&nothing, 0);
    }
    return 0;
}
#else
#define HAS_AFL 0
static int run_afl(void)
{
    return 2;
}
#endif

static bool replay_file(const char *path, size_t size)
{
    /* Exactly as large as the input, so that a sanitizer sees the first byte that is read beyond
     * it. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *file = data ? fopen(path, "rb") : NULL;
    bool ok = file && fread(data, 1, size, file) == size;
    if (ok) {
        /* Said before, so that the last line names the file that aborts the program. */
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
        replayed++;
    } else {
        fprintf(stderr, "%s: cannot be read\n", path);
    }
    if (file) {
        fclose(file);
    }
    free(data);
    return ok;
}

static bool replay(const char *path);

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool replay_folder(const char *folder)
{
    struct dirent **entries;
    bool ok = true;
    int count = scandir(folder, &entries, is_visible, alphasort);
    if (count < 0) {
        fprintf(stderr, "%s: cannot be read\n", folder);
        return false;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        ok = replay(path) && ok;
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static bool replay(const char *path)
{
    struct stat info;
    if (stat(path, &info)) {
        fprintf(stderr, "%s: cannot be found\n", path);
        return false;
    }
    return S_ISDIR(info.st_mode) ? replay_folder(path) : replay_file(path, (size_t)info.st_size);
}

/* The last line names the seed of the input that aborts the program. */
static int run_random(const char *count)
{
    for (uint64_t seed = 1, last = strtoull(count, NULL, 10); seed <= last; seed++) {
        printf("random input %llu\n", (unsigned long long)seed);
        fflush(stdout);
        if (!run_one_random(seed)) {
            return 2;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--random") == 0) {
        return run_random(argv[2]);
    }
    if (HAS_AFL && argc == 1) {
        return run_afl();
    }
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        ok = replay(argv[i]) && ok;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE|FOLDER... | --random COUNT\n", argv[0]);
        return 2;
    }
    printf("%zu inputs replayed\n", replayed);
    return ok && replayed ? 0 : 1;
}
