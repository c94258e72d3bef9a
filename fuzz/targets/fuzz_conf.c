/* Any text is settings: they are refused with a message that quotes the token, or taken, and the
 * allocator serves requests under them. */
#include "fuzz.h"

#include "gmd_allocator.h"
#include "gmd_min.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_utf8.h"

#include <ctype.h>
#include <string.h>

enum { CONF_MAX = 4096 };

/* Whether the text has the token at this place, blanks aside, as a message shows it: in one line,
 * with U+FFFD for what is no UTF-8, which may be where the text is cut. */
static bool is_token_at(const char *conf, const char *token, size_t length)
{
    char bytes[CONF_MAX + 1] = "", line[3 * CONF_MAX + 1] = "";
    size_t count = 0;
    while (strlen(line) <= length + 9 && *conf) { /* three signs may yet become one character */
        if (!isspace((unsigned char)*conf)) {
            bytes[count++] = *conf;
            bytes[count] = '\0';
            gmd_utf8_copy_line(line, sizeof line, bytes);
        }
        conf++;
        if (strlen(line) == length && memcmp(line, token, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

/* `... expected instead of 'TOKEN' at character N of 'TEXT'`, with TOKEN at N of the text. A token
 * may itself look like the end of it. */
static void require_token(const char *conf, const char *message)
{
    static const char before[] = " instead of '", after[] = "' at character ";
    FUZZ_REQUIRE(strncmp(message, "allocator settings: ", 20) == 0);
    if (strncmp(message + 20, "roundup_power2_divisions: the bound ", 36) == 0) {
        return; /* it names the number */
    }
    const char *start = strstr(message, before);
    FUZZ_REQUIRE(start);
    start += sizeof before - 1;
    bool is_named = false;
    for (const char *end = strstr(start, after); end && !is_named; end = strstr(end + 1, after)) {
        size_t length = (size_t)(end - start);
        unsigned long at = strtoul(end + sizeof after - 1, NULL, 10);
        is_named = at >= 1 && at <= strlen(conf) + 1 &&
                   (is_token_at(conf + at - 1, start, length) ||
                    (length == 7 && memcmp(start, "the end", length) == 0));
    }
    FUZZ_REQUIRE(is_named);
}

static void make_requests(gmd_allocator *a)
{
    static const size_t sizes[] = {1, 513, GMD_MIB, GMD_MIB + 1, 11 * GMD_MIB, 30 * GMD_MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    void *blocks[SIZES];
    gmd_stats stats = {.struct_size = sizeof stats};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            blocks[i] = gmd_allocator_malloc(a, sizes[i], 0, NULL);
        }
        for (size_t i = 0; i < SIZES; i++) {
            FUZZ_REQUIRE(!blocks[i] || gmd_allocator_free(a, blocks[i], 0, NULL));
        }
    }
    gmd_allocator_empty_cache(a);
    FUZZ_REQUIRE(gmd_allocator_get_stats(a, 0, &stats));
    FUZZ_REQUIRE(!stats.allocated_bytes && !stats.reserved_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char conf[CONF_MAX + 1];
    gmd_sim_config config;
    gmd_error error = {""};
    gmd_allocator *a = NULL;
    size = gmd_min(size, CONF_MAX);
    if (size) {
        memcpy(conf, data, size);
    }
    conf[size] = '\0';
    gmd_sim_default_config(&config);
    config.capacity_bytes = 256 * GMD_MIB;
    FUZZ_REQUIRE(gmd_sim_reset(&config) == 0);
    if (gmd_allocator_create(&a, 1, conf, &error) != GMD_OK) {
        require_token(conf, error.text);
        return 0;
    }
    make_requests(a);
    gmd_allocator_destroy(a);
    return 0;
}
