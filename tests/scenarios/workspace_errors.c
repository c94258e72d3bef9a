/* workspace_errors TABLE - how far the models of cuDNN's workspaces are off on the calls of a
 * table: on those that are marked "held", and on the others. A line for each model:
 *
 *     MODEL held|others CALLS median P95 worst outside
 *
 * The last four are |recorded - estimated| as shares of the call's tensors, and how far 19 in 20
 * are at most outside of the range that the table gives, as workspace_use.c has them. */
#include "conv_model.h"
#include "rnn_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct share {
    enum workspace_model model;
    bool is_held;
    double off, outside; /* of the estimate, and of its range */
} share;

typedef struct shares {
    share *items; /* room for three of each line */
    size_t count;
} shares;

static enum dtype dtype_of(int64_t dtype)
{
    static const enum dtype dtypes[] = {[GMD_WS_FLOAT32] = DTYPE_FLOAT32,
                                        [GMD_WS_FLOAT64] = DTYPE_FLOAT64,
                                        [GMD_WS_FLOAT16] = DTYPE_FLOAT16,
                                        [GMD_WS_BFLOAT16] = DTYPE_BFLOAT16};
    return dtypes[dtype];
}

static struct conv_call conv_call_of(const gmd_workspace_call *from)
{
    static const enum conv_pass passes[] = {[GMD_CONV_FORWARD] = CONV_FORWARD,
                                            [GMD_CONV_BACKWARD_DATA] = CONV_INPUT_GRAD,
                                            [GMD_CONV_BACKWARD_WEIGHT] = CONV_WEIGHT_GRAD};
    struct conv_call call = {.pass = passes[from->op],
                             .conv = {.groups = from->groups},
                             .dtype = dtype_of(from->dtype),
                             .format = from->channels_last ? FORMAT_CHANNELS_LAST : FORMAT_ROWS,
                             .input = {.dims = 4},
                             .weight = {.dims = 4},
                             .output = {.dims = 4, .size = {from->input[0], from->weight[0]}}};
    memcpy(call.input.size, from->input, sizeof from->input);
    memcpy(call.weight.size, from->weight, sizeof from->weight);
    for (int i = 0; i < 2; i++) {
        call.conv.kernel[i] = from->weight[2 + i];
        call.conv.stride[i] = from->stride[i];
        call.conv.padding[i] = from->padding[i];
        call.conv.dilation[i] = from->dilation[i];
        int64_t reach = from->dilation[i] * (from->weight[2 + i] - 1) + 1;
        call.output.size[2 + i] =
            (from->input[2 + i] + 2 * from->padding[i] - reach) / from->stride[i] + 1;
    }
    return call;
}

static workspace_estimate rnn_estimate(const gmd_workspace_call *from)
{
    uint64_t gates = from->kind == GMD_WS_LSTM ? 4 : 3, bytes = dtype_bytes(dtype_of(from->dtype));
    int64_t inner = (from->layers - 1) * from->hidden * from->directions;
    int64_t columns = from->features + inner + from->layers * from->hidden;
    const struct rnn_call call = {
        .op = (enum gmd_workspace_op)from->op,
        .lstm = from->kind == GMD_WS_LSTM,
        .training = from->training != 0,
        .dtype = dtype_of(from->dtype),
        .packed = from->packed != 0,
        .batch = from->batch,
        .length = from->length,
        .features = from->features,
        .hidden = from->hidden,
        .layers = from->layers,
        .directions = from->directions,
        .step_bytes =
            (uint64_t)(from->batch * from->length * from->hidden * from->directions) * bytes,
        .matrix_bytes = gates * (uint64_t)(from->directions * from->hidden * columns) * bytes,
    };
    return rnn_model_workspace(&call);
}

static void add(shares *to, const gmd_workspace *item, workspace_estimate estimate,
                uint64_t recorded)
{
    double is = (double)recorded, tensors = (double)estimate.tensors;
    double outside = fmax((double)estimate.least - is, is - (double)estimate.most);
    to->items[to->count++] =
        (share){estimate.model, item->is_held, fabs(is - (double)estimate.bytes) / tensors,
                fmax(outside, 0) / tensors};
}

static void judge(shares *to, const gmd_workspaces *table, const gmd_workspace *item)
{
    const gmd_workspace_call *call = &item->call;
    if (call->op == GMD_RNN_FORWARD || call->op == GMD_RNN_BACKWARD) {
        if (call->kind <= GMD_WS_GRU) { /* there is no model of the others */
            add(to, item, rnn_estimate(call), item->bytes);
        }
        return;
    }
    struct conv_call conv = conv_call_of(call);
    workspace_estimate chosen = conv_model_chosen(&conv);
    add(to, item, chosen, item->bytes);
    workspace_from_table(table, call, &chosen); /* which does not ask the call itself */
    if (chosen.model == MODEL_CONV_NEAREST || chosen.model == MODEL_CONV_OTHER_BATCH) {
        add(to, item, chosen, item->bytes);
    }
    if (item->has_tried) {
        add(to, item, conv_model_tried(&conv), item->tried);
    }
}

static int by_model(const void *a, const void *b)
{
    const share *x = a, *y = b;
    if (x->model != y->model) {
        return x->model < y->model ? -1 : 1;
    }
    if (x->is_held != y->is_held) {
        return x->is_held ? -1 : 1;
    }
    return (x->off > y->off) - (x->off < y->off);
}

static int by_outside(const void *a, const void *b)
{
    double x = ((const share *)a)->outside, y = ((const share *)b)->outside;
    return (x > y) - (x < y);
}

static void print_group(share *group, size_t count)
{
    static const char *const names[WORKSPACE_MODELS] = {
        [MODEL_CONV_FORWARD] = "conv_forward", [MODEL_CONV_BACKWARD] = "conv_backward",
        [MODEL_CONV_TRIALS] = "conv_trials",   [MODEL_RNN] = "rnn",
        [MODEL_RNN_NARROW] = "rnn_narrow",     [MODEL_CONV_OTHER_BATCH] = "conv_other_batch",
        [MODEL_CONV_NEAREST] = "conv_nearest",
    };
    printf("%s %s %zu %.4f %.4f %.4f", names[group->model], group->is_held ? "held" : "others",
           count, group[count / 2].off, group[count * 95 / 100].off, group[count - 1].off);
    qsort(group, count, sizeof *group, by_outside);
    printf(" %.4f\n", group[count * 95 / 100].outside);
}

static void print(shares *all)
{
    qsort(all->items, all->count, sizeof *all->items, by_model);
    for (size_t from = 0, to; from < all->count; from = to) {
        share *first = &all->items[from];
        for (to = from + 1; to < all->count && all->items[to].model == first->model &&
                            all->items[to].is_held == first->is_held;) {
            to++;
        }
        print_group(first, to - from);
    }
}

int main(int argc, char **argv)
{
    gmd_workspaces *table;
    gmd_error error = {""};
    if (argc != 2) {
        fprintf(stderr, "usage: workspace_errors TABLE\n");
        return 2;
    }
    if (gmd_workspaces_read(&table, argv[1], &error) != GMD_OK) {
        fprintf(stderr, "workspace_errors: %s\n", error.text);
        return 2;
    }
    size_t count = gmd_workspaces_count(table);
    shares all = {calloc(3 * count + 1, sizeof *all.items), 0};
    for (size_t i = 0; i < count && all.items; i++) {
        judge(&all, table, gmd_workspaces_at(table, i));
    }
    int exit_status = all.items ? 0 : 3;
    if (all.items) {
        print(&all);
    }
    free(all.items);
    gmd_workspaces_close(table);
    return exit_status;
}
