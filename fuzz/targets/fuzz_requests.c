/* Any bytes are a request sequence (gmd_input.h), and so is the text of a .gmd file: all oracles
 * judge what the reference allocator makes of it. */
#include "fuzz.h"

#include "fuzz_run.h"
#include "gmd_input.h"
#include "gmd_min.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gmd_trace decoded; /* used again: its arrays are large enough after a few inputs */
    gmd_trace parsed;
    gmd_error error = {""};
    if (gmd_input_is_text(data, size)) {
        if (gmd_input_read(data, size, "input", &parsed, &error) == GMD_OK) {
            fuzz_fit(&parsed);
            fuzz_run(&parsed);
            gmd_trace_free(&parsed);
        }
        return 0;
    }
    if (!decoded.streams.count) {
        gmd_trace_init(&decoded);
    }
    size = gmd_min(size, GMD_INPUT_BYTES_MAX);
    FUZZ_REQUIRE(gmd_input_decode(data, size, &decoded, &error) == GMD_OK);
    fuzz_fit(&decoded);
    fuzz_run(&decoded);
    return 0;
}
