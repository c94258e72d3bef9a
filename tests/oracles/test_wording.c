/* Blocks and sizes in sentences are those of the case. */
#include "oracle_test.h"
#include "wording.h"

#include <stdio.h>

static bool name_by_request(const void *context, uint64_t born, char name[GMD_BLOCK_NAME])
{
    (void)context;
    snprintf(name, GMD_BLOCK_NAME, "weights_%d", (int)born);
    return true;
}

static const gmd_live_block block = {.address = 0x7000, .bytes = 10 * GMD_MIB, .born = 3};

TEST(a_block_has_the_name_and_the_size_of_its_case)
{
    gmd_view view = {.ask.block_name = name_by_request};
    assert_string_equal(BLOCK(&view, &block), "block weights_3 of 10MiB at 0x7000");
}

TEST(a_block_without_a_name_has_its_size_and_address)
{
    gmd_view view = {.request = NULL};
    assert_string_equal(BLOCK(&view, &block), "block of 10MiB at 0x7000");
}
