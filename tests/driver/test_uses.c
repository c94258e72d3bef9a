/* The uses of blocks: the latest on each stream, in lists that share one array. */
#include "gmd_test.h"
#include "uses.h"

static void note(block_uses *uses, uint32_t *head, uint32_t stream, uint32_t place, uint64_t ticket)
{
    assert_true(
        uses_note(uses, head, &(gmd_use){.ticket = ticket, .place = place, .stream = stream}));
}

static size_t take(block_uses *uses, uint32_t *head, const gmd_use **taken)
{
    size_t count;
    assert_true(uses_take(uses, head, taken, &count));
    return count;
}

TEST(the_latest_use_on_a_stream_is_kept)
{
    block_uses uses = {0};
    const gmd_use *taken;
    uint32_t head = 0;
    note(&uses, &head, 1, 7, 1);
    note(&uses, &head, 1, 7, 5);
    assert_int_equal(take(&uses, &head, &taken), 1);
    assert_int_equal(taken[0].ticket, 5);
    uses_free(&uses);
}

TEST(a_stream_made_anew_is_another_one)
{
    block_uses uses = {0};
    const gmd_use *taken;
    uint32_t head = 0;
    note(&uses, &head, 1, 7, 9);
    note(&uses, &head, 1, 8, 1);
    assert_int_equal(take(&uses, &head, &taken), 2);
    uses_free(&uses);
}

TEST(lists_do_not_mix_and_their_nodes_are_used_again)
{
    block_uses uses = {0};
    const gmd_use *taken;
    uint32_t heads[2] = {0, 0};
    for (int round = 0; round < 100; round++) {
        for (uint32_t stream = 0; stream < 40; stream++) {
            note(&uses, &heads[0], stream, stream, 1);
            note(&uses, &heads[1], stream, stream, 2);
        }
        assert_int_equal(take(&uses, &heads[0], &taken), 40);
        assert_int_equal(taken[39].ticket, 1);
        assert_int_equal(take(&uses, &heads[1], &taken), 40);
        assert_int_equal(taken[0].ticket, 2);
    }
    assert_int_equal(uses.used, 80);
    uses_free(&uses);
}
