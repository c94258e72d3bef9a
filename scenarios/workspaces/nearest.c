/* nearest.c - what the calls of a table that are most like another one say of its workspace.
 *
 * cuDNN takes copies of what it reads and writes, some partial results of the size of a weight, or
 * nothing worth mentioning, by the algorithm that it chooses; and chooses alike for calls that are
 * alike. So the algorithm of a recorded call is told by what its workspace is made of, and the same
 * is made of the sizes of the call in question. The weights of differences are fitted to the calls
 * that integrations/workspaces/list_shapes.py lists; those that it marks as held judge them
 * (tests/scenarios/workspace_errors). */
#include "gmd_min.h"
#include "table.h"

#include <math.h>
#include <string.h>

enum { NEAREST = 16 };       /* calls whose answers make the range */
#define FEW ((uint64_t)1024) /* bytes: descriptors, no copy of anything */

typedef struct sizes { /* bytes of the tensors of a call */
    double input, weight, output;
    double images;
} sizes;

static int64_t product(const int64_t numbers[4])
{
    return numbers[0] * numbers[1] * numbers[2] * numbers[3];
}

static int64_t element_bytes(const gmd_workspace_call *call)
{
    return call->dtype == GMD_WS_FLOAT64 ? 8 : call->dtype == GMD_WS_FLOAT32 ? 4 : 2;
}

static int64_t output_side(const gmd_workspace_call *call, int i)
{
    int64_t reach = call->dilation[i] * (call->weight[2 + i] - 1) + 1;
    return (call->input[2 + i] + 2 * call->padding[i] - reach) / call->stride[i] + 1;
}

static sizes sizes_of(const gmd_workspace_call *call)
{
    double bytes = (double)element_bytes(call);
    double outputs = (double)(call->input[0] * call->weight[0]) * (double)output_side(call, 0) *
                     (double)output_side(call, 1);
    return (sizes){bytes * (double)product(call->input), bytes * (double)product(call->weight),
                   bytes * outputs, (double)call->input[0]};
}

static double sum(sizes of)
{
    return of.input + of.weight + of.output;
}

/* --- how much two calls differ ----------------------------------------------------------- */

enum grouping { UNGROUPED, GROUPED, DEPTHWISE };

static enum grouping grouping_of(const gmd_workspace_call *call)
{
    return call->groups == 1 ? UNGROUPED : call->groups == call->input[1] ? DEPTHWISE : GROUPED;
}

static bool is_comparable(const gmd_workspace_call *a, const gmd_workspace_call *b)
{
    return a->op == b->op && element_bytes(a) == element_bytes(b) && !b->benchmark &&
           a->channels_last == b->channels_last && grouping_of(a) == grouping_of(b);
}

/* In powers of two. */
static double apart(double a, double b)
{
    return fabs(log2(a / b));
}

/* By which powers of two up to 8 the number can be divided: how wide its vectors may be. */
static int alignment(int64_t channels)
{
    return channels % 8 == 0 ? 3 : channels % 4 == 0 ? 2 : channels % 2 == 0 ? 1 : 0;
}

static double window_difference(const gmd_workspace_call *a, const gmd_workspace_call *b)
{
    double difference = 0;
    for (int i = 0; i < 2; i++) {
        bool is_other = a->weight[2 + i] != b->weight[2 + i];
        difference +=
            is_other ? 0.75 + 1.5 * apart((double)a->weight[2 + i], (double)b->weight[2 + i]) : 0;
        difference += a->stride[i] != b->stride[i] ? 1 : 0;
        difference += a->dilation[i] != b->dilation[i] ? 0.5 : 0;
    }
    return difference;
}

static double channel_difference(const gmd_workspace_call *a, const gmd_workspace_call *b)
{
    double in = apart((double)a->weight[1], (double)b->weight[1]);
    double out =
        apart((double)a->weight[0] / (double)a->groups, (double)b->weight[0] / (double)b->groups);
    double other = (alignment(a->input[1]) != alignment(b->input[1])) +
                   (alignment(a->weight[0]) != alignment(b->weight[0]));
    return 0.5 * (in + out + other);
}

static double image_difference(const gmd_workspace_call *a, const gmd_workspace_call *b)
{
    double batch = apart((double)a->input[0], (double)b->input[0]);
    double area = apart((double)(a->input[2] * a->input[3]), (double)(b->input[2] * b->input[3]));
    bool one_is_single = (a->input[0] == 1) != (b->input[0] == 1);
    return 0.3 * (batch + area) + (one_is_single ? 2 : 0) +
           0.2 * apart(sum(sizes_of(a)), sum(sizes_of(b)));
}

static double difference(const gmd_workspace_call *a, const gmd_workspace_call *b)
{
    return window_difference(a, b) + channel_difference(a, b) + image_difference(a, b) +
           (a->dtype != b->dtype ? 0.1 : 0);
}

/* --- what a workspace is made of ---------------------------------------------------------- */

/* So many copies of the input and of the output; how many of the weight follows. */
static const int copies[][2] = {{1, 1}, {0, 2}, {1, 0}, {0, 1}, {2, 2},
                                {0, 0}, {2, 0}, {2, 1}, {1, 2}};

/* The bytes that the call would take if its workspace were made as the recorded one is. */
static double as_recorded(const gmd_workspace *known, sizes to)
{
    const sizes from = sizes_of(&known->call);
    double bytes = (double)known->bytes;
    if (known->bytes <= FEW) {
        return bytes;
    }
    if (fabs(bytes - from.images * from.weight) <= (double)FEW) { /* a weight for each image */
        return to.images * to.weight;
    }
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        bool has_partial =
            known->call.op == GMD_CONV_BACKWARD_WEIGHT || copies[i][0] + copies[i][1] == 0;
        double rest = bytes - copies[i][0] * from.input - copies[i][1] * from.output;
        double weights = floor(rest / from.weight);
        if (rest >= 0 && weights <= (has_partial ? 40 : 2) &&
            rest - weights * from.weight <= (double)FEW) {
            return copies[i][0] * to.input + copies[i][1] * to.output + weights * to.weight +
                   (rest - weights * from.weight);
        }
    }
    /* Much more than the tensors is tables of its own, which do not grow with them. */
    return bytes > 8 * sum(from) ? bytes : bytes * sum(to) / sum(from);
}

/* --- the nearest -------------------------------------------------------------------------- */

typedef struct neighbour {
    const gmd_workspace *item;
    double difference;
} neighbour;

/* Keeps the nearest, the first of them first; of those that differ as much, the earlier line. */
static size_t keep(neighbour nearest[NEAREST], size_t count, neighbour one)
{
    size_t at = count;
    while (at > 0 && one.difference < nearest[at - 1].difference) {
        at--;
    }
    if (at == NEAREST) {
        return count;
    }
    count = count < NEAREST ? count + 1 : count;
    for (size_t i = count - 1; i > at; i--) {
        nearest[i] = nearest[i - 1];
    }
    nearest[at] = one;
    return count;
}

static size_t find_nearest(const gmd_workspaces *table, const gmd_workspace_call *call,
                           neighbour nearest[NEAREST])
{
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const gmd_workspace *item = &table->items[i];
        if (!item->is_held && is_comparable(call, &item->call) &&
            memcmp(call, &item->call, sizeof *call) != 0) {
            count = keep(nearest, count, (neighbour){item, difference(call, &item->call)});
        }
    }
    return count;
}

bool gmd_workspaces_nearest(const gmd_workspaces *table, const gmd_workspace_call *call,
                            gmd_workspace_guess *guess)
{
    neighbour nearest[NEAREST];
    if (!table || call->benchmark || call->input[0] == 0) {
        return false;
    }
    const sizes to = sizes_of(call);
    size_t count = find_nearest(table, call, nearest);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = (uint64_t)as_recorded(nearest[i].item, to);
        guess->bytes = i ? guess->bytes : bytes;
        guess->least = i ? gmd_min(guess->least, bytes) : bytes;
        guess->most = i ? gmd_max(guess->most, bytes) : bytes;
    }
    return count > 0;
}
