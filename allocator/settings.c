#include "settings.h"

#include "gmd_spelling.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- sizes ------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t size, uint64_t multiple)
{
    uint64_t padded;
    if (__builtin_add_overflow(size, multiple - 1, &padded)) {
        padded = UINT64_MAX;
    }
    return padded / multiple * multiple;
}

static unsigned log2_floor(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value);
}

static uint64_t divisions_for(const settings *s, uint64_t size)
{
    unsigned log = log2_floor(size);
    unsigned index = log > 20 ? log - 20 : 0;
    return s->roundup_divisions[index < ROUNDUP_INTERVALS ? index : ROUNDUP_INTERVALS - 1];
}

/* The range between two powers of two is cut into `divisions` equal parts. */
static uint64_t round_to_division(uint64_t size, uint64_t divisions)
{
    uint64_t part = ((uint64_t)1 << log2_floor(size)) >> log2_floor(divisions);
    return part ? round_up(size, part) : (uint64_t)1 << log2_floor(size) << 1;
}

uint64_t settings_block_size(const settings *s, uint64_t requested)
{
    if (requested < BLOCK_BYTES) {
        return BLOCK_BYTES;
    }
    if (__builtin_expect(s->rounds_up, 0)) {
        uint64_t divisions = divisions_for(s, requested);
        if (divisions > 1 && (requested - 1) / divisions >= BLOCK_BYTES) {
            return round_to_division(requested, divisions);
        }
    }
    return round_up(requested, BLOCK_BYTES);
}

uint64_t settings_segment_size(const settings *s, uint64_t block_size)
{
    if (block_size <= SMALL_REQUEST_BYTES) {
        return SMALL_SEGMENT_BYTES;
    }
    if (block_size < LARGE_REQUEST_BYTES) {
        return s->large_segment_bytes;
    }
    return round_up(block_size, SEGMENT_ROUND_BYTES);
}

uint64_t settings_page_size(const settings *s, bool is_small)
{
    return is_small ? SMALL_SEGMENT_BYTES : round_up(s->large_segment_bytes, SEGMENT_ROUND_BYTES);
}

uint64_t settings_device_request(const settings *s, uint64_t block_size)
{
    return s->expandable_segments
               ? round_up(block_size, settings_page_size(s, block_size <= SMALL_REQUEST_BYTES))
               : settings_segment_size(s, block_size);
}

/* --- reading ----------------------------------------------------------------------------- */

/* A token is one of , : [ ] or what lies between them, without blanks. */
typedef struct reader {
    const char *conf, *at;
    char token[128]; /* cut off where it is longer; "" at the end */
    size_t offset;   /* of the token in conf */
    gmd_error *error;
} reader;

static bool is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static void advance(reader *r)
{
    while (isspace((unsigned char)*r->at)) {
        r->at++;
    }
    r->offset = (size_t)(r->at - r->conf);
    size_t length = 0;
    if (is_mark(*r->at)) {
        r->token[length++] = *r->at++;
    } else {
        for (; *r->at && !is_mark(*r->at); r->at++) {
            if (!isspace((unsigned char)*r->at) && length < sizeof r->token - 1) {
                r->token[length++] = *r->at;
            }
        }
    }
    r->token[length] = '\0';
}

static gmd_status refuse(const reader *r, const char *expected)
{
    return gmd_fail(r->error, GMD_BAD_INPUT,
                    "allocator settings: %s expected instead of '%s' at character %zu of '%.200s'",
                    expected, *r->token ? r->token : "the end", r->offset + 1, r->conf);
}

static gmd_status take_mark(reader *r, char mark)
{
    char quoted[] = {'\'', mark, '\'', '\0'};
    if (r->token[0] != mark) {
        bool is_equation = mark == ':' && memchr(r->conf, '=', r->offset);
        return refuse(r, is_equation ? "':', as in NAME:VALUE," : quoted);
    }
    advance(r);
    return GMD_OK;
}

static gmd_status take_number(reader *r, uint64_t *out, const char *expected)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(r->token, &end, 10);
    if (!isdigit((unsigned char)r->token[0]) || *end || errno) {
        return refuse(r, expected);
    }
    *out = value;
    advance(r);
    return GMD_OK;
}

static gmd_status take_fraction(reader *r, double *out, const char *expected, bool with_ends)
{
    char *end;
    double value = strtod(r->token, &end);
    bool is_number = (isdigit((unsigned char)r->token[0]) || r->token[0] == '.') && !*end;
    if (!is_number || !(with_ends ? value >= 0 && value <= 1 : value > 0 && value < 1)) {
        return refuse(r, expected);
    }
    *out = value;
    advance(r);
    return GMD_OK;
}

static gmd_status take_bool(reader *r, bool *out)
{
    *out = strcmp(r->token, "True") == 0;
    if (!*out && strcmp(r->token, "False") != 0) {
        return refuse(r, "'True' or 'False'");
    }
    advance(r);
    return GMD_OK;
}

/* A number of MiB; what passes the range of bytes is as good as no bound. */
static gmd_status take_mib(reader *r, uint64_t *out, uint64_t least_mib, const char *expected)
{
    reader before = *r;
    uint64_t mib = 0;
    gmd_status status = take_number(r, &mib, expected);
    if (status == GMD_OK && mib < least_mib) {
        return refuse(&before, expected);
    }
    *out = status == GMD_OK && mib <= UINT64_MAX / GMD_MIB ? mib * GMD_MIB
                                                           : UINT64_MAX / GMD_MIB * GMD_MIB;
    return status;
}

static bool is_power_of_2(uint64_t value)
{
    return value && !(value & (value - 1));
}

static gmd_status take_divisions(reader *r, uint64_t *out, bool may_be_0)
{
    reader before = *r;
    const char *expected =
        may_be_0 ? "a number of divisions, 0 or a power of two," : "a power of two";
    gmd_status status = take_number(r, out, expected);
    if (status == GMD_OK && !is_power_of_2(*out) && !(may_be_0 && *out == 0)) {
        return refuse(&before, expected);
    }
    return status;
}

/* [256:1,512:2,>:4]: requests up to a bound (MiB, a power of two) are rounded with its divisions;
 * `>` stands for all that is larger than the bound before it. */
static gmd_status take_interval(reader *r, settings *s, unsigned *last, bool is_first)
{
    bool is_rest = strcmp(r->token, ">") == 0;
    uint64_t bound = 1, divisions = 0;
    gmd_status status = GMD_OK;
    if (is_rest) {
        advance(r);
    } else if ((status = take_number(r, &bound, "a size in MiB or '>'")) == GMD_OK &&
               !is_power_of_2(bound)) {
        status =
            gmd_fail(r->error, GMD_BAD_INPUT,
                     "allocator settings: roundup_power2_divisions: the bound %llu MiB is not a "
                     "power of two in '%.200s'",
                     (unsigned long long)bound, r->conf);
    }
    if (status != GMD_OK || (status = take_mark(r, ':')) != GMD_OK ||
        (status = take_divisions(r, &divisions, true)) != GMD_OK) {
        return status;
    }
    unsigned index = log2_floor(bound);
    index = index < ROUNDUP_INTERVALS ? index : ROUNDUP_INTERVALS - 1;
    unsigned from = is_rest ? *last + 1 : is_first ? 0 : index;
    unsigned to = is_rest ? ROUNDUP_INTERVALS : index + 1;
    for (unsigned i = from; i < to; i++) {
        s->roundup_divisions[i] = divisions;
    }
    *last = is_rest ? *last : index;
    return GMD_OK;
}

static gmd_status take_roundup(reader *r, settings *s)
{
    if (r->token[0] != '[') {
        uint64_t divisions = 0;
        gmd_status status = take_divisions(r, &divisions, false);
        for (int i = 0; i < ROUNDUP_INTERVALS; i++) {
            s->roundup_divisions[i] = divisions;
        }
        return status;
    }
    advance(r);
    unsigned last = 0;
    for (bool is_first = true; r->token[0] != ']'; is_first = false) {
        gmd_status status = take_interval(r, s, &last, is_first);
        if (status != GMD_OK || (r->token[0] != ']' && (status = take_mark(r, ',')) != GMD_OK)) {
            return status;
        }
    }
    advance(r);
    return GMD_OK;
}

/* --- settings by name -------------------------------------------------------------------- */

typedef gmd_status take_fn(reader *r, settings *s);

static gmd_status take_max_split(reader *r, settings *s)
{
    return take_mib(r, &s->max_split_bytes, 20, "a size in MiB of at least 20");
}

static gmd_status take_non_split_rounding(reader *r, settings *s)
{
    return take_mib(r, &s->max_non_split_rounding_bytes, 20, "a size in MiB of at least 20");
}

static gmd_status take_large_segment(reader *r, settings *s)
{
    return take_mib(r, &s->large_segment_bytes, 11, "a size in MiB above 10");
}

static gmd_status take_gc_threshold(reader *r, settings *s)
{
    return take_fraction(r, &s->gc_threshold, "a fraction between 0 and 1", false);
}

static gmd_status take_memory_fraction(reader *r, settings *s)
{
    return take_fraction(r, &s->memory_fraction, "a fraction from 0 to 1", true);
}

static gmd_status take_expandable(reader *r, settings *s)
{
    return take_bool(r, &s->expandable_segments);
}

static gmd_status take_backend(reader *r, settings *s)
{
    (void)s;
    if (strcmp(r->token, "native") != 0) {
        return refuse(r, "backend 'native', which is the one that this allocator is,");
    }
    advance(r);
    return GMD_OK;
}

static gmd_status read_over_bool(reader *r, settings *s)
{
    (void)s;
    bool ignored;
    return take_bool(r, &ignored);
}

static gmd_status read_over_threads(reader *r, settings *s)
{
    (void)s;
    reader before = *r;
    const char *expected = "a power of two up to 128";
    uint64_t threads = 0;
    gmd_status status = take_number(r, &threads, expected);
    return status == GMD_OK && (!is_power_of_2(threads) || threads > 128)
               ? refuse(&before, expected)
               : status;
}

static gmd_status read_over_mib(reader *r, settings *s)
{
    (void)s;
    uint64_t ignored;
    return take_mib(r, &ignored, 1, "a size in MiB of at least 1");
}

static gmd_status take_reuse_in_captures(reader *r, settings *s)
{
    return take_bool(r, &s->reuses_in_captures);
}

static const struct {
    const char *name;
    take_fn *take;
} known_settings[] = {
    {"max_split_size_mb", take_max_split},
    {"max_non_split_rounding_mb", take_non_split_rounding},
    {"large_segment_size_mb", take_large_segment},
    {"roundup_power2_divisions", take_roundup},
    {"garbage_collection_threshold", take_gc_threshold},
    {"per_process_memory_fraction", take_memory_fraction},
    {"expandable_segments", take_expandable},
    {"graph_capture_record_stream_reuse", take_reuse_in_captures},
    {"backend", take_backend},
    /* These have no say in what is allocated on the device, and when. */
    {"release_lock_on_cudamalloc", read_over_bool}, /* no stream waits for another's cudaMalloc */
    {"release_lock_on_hipmalloc", read_over_bool},
    {"pinned_use_cuda_host_register", read_over_bool},
    {"pinned_use_hip_host_register", read_over_bool},
    {"pinned_use_background_threads", read_over_bool},
    {"pinned_num_register_threads", read_over_threads},
    {"pinned_reserve_segment_size_mb", read_over_mib},
};

/* NULL: there is none of this name; `near` has those that are spelt like it. */
static take_fn *find_setting(const char *name, gmd_near *near)
{
    gmd_near_begin(near, name);
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++) {
        if (strcmp(name, known_settings[i].name) == 0) {
            return known_settings[i].take;
        }
        gmd_near_offer(near, known_settings[i].name);
    }
    return NULL;
}

static gmd_status take_setting(reader *r, settings *s)
{
    if (is_mark(r->token[0]) || !r->token[0]) {
        return refuse(r, "the name of a setting");
    }
    reader before = *r;
    advance(r);
    gmd_status status = take_mark(r, ':');
    if (status != GMD_OK) {
        return status;
    }
    gmd_near near;
    take_fn *take = find_setting(before.token, &near);
    if (!take) {
        return gmd_fail(r->error, GMD_BAD_INPUT,
                        "allocator settings: a setting of torch 2.11's native allocator expected "
                        "instead of '%s' at character %zu of '%.200s'%s",
                        before.token, before.offset + 1, r->conf, gmd_near_text(&near));
    }
    return take(r, s);
}

static gmd_status parse_over(settings *s, const char *conf, gmd_error *error)
{
    reader r = {.conf = conf ? conf : "", .error = error};
    r.at = r.conf;
    advance(&r);
    while (r.token[0]) {
        gmd_status status = take_setting(&r, s);
        if (status == GMD_OK && r.token[0]) {
            status = take_mark(&r, ',');
        }
        if (status != GMD_OK) {
            return status;
        }
    }
    s->rounds_up = false;
    for (int i = 0; i < ROUNDUP_INTERVALS; i++) {
        s->rounds_up = s->rounds_up || s->roundup_divisions[i] > 1;
    }
    return GMD_OK;
}

gmd_status settings_parse(settings *out, const char *conf, gmd_error *error)
{
    settings s = {.max_split_bytes = UINT64_MAX,
                  .max_non_split_rounding_bytes = 20 * GMD_MIB,
                  .large_segment_bytes = 20 * GMD_MIB,
                  .memory_fraction = 1};
    gmd_status status = parse_over(&s, conf, error);
    if (status == GMD_OK) {
        *out = s;
    }
    return status;
}

gmd_status settings_parse_later(settings *out, const settings *before, const char *conf,
                                gmd_error *error)
{
    settings s = *before;
    s.max_split_bytes = UINT64_MAX;
    s.gc_threshold = 0;
    memset(s.roundup_divisions, 0, sizeof s.roundup_divisions);
    gmd_status status = parse_over(&s, conf, error);
    if (status == GMD_OK) {
        *out = s;
    }
    return status;
}
