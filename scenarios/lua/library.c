/* library.c - everything that scripts can call, put together. */
#include "library.h"
#include "library_parts.h"

#include "gmd_capture.h"
#include "gmd_grad_scaler.h"
#include "gmd_module.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "signature.h"
#include "stream.h"

const struct script_group script_groups[] = {
    {"", NULL, run_functions},
    {"", NULL, creation_functions},
    {"", NULL, operation_functions},
    {"", NULL, loss_functions},
    {"", NULL, rearranging_functions},
    {"copy.", NULL, copy_functions},
    {"", NULL, attention_functions},
    {"", NULL, block_functions},
    {"", NULL, object_functions},
    {"", NULL, index_functions},
    {"nn.", NULL, nn_more_functions},
    {"", NULL, scaler_functions},
    {"nn.", NULL, nn_functions},
    {"nn.", NULL, nn_attention_functions},
    {"optim.", NULL, optim_functions},
    {"autograd.", NULL, autograd_functions},
    {"dist.", NULL, dist_functions},
    {"", NULL, sharding_functions},
    {"gc.", NULL, gc_functions},
    {"cuda.", NULL, cuda_functions},
    {"cuda.", NULL, stream_functions},
    {"cuda.", NULL, graph_functions},
    {"cudnn.", NULL, cudnn_functions},
    {"t:", &tensor_class, tensor_methods},
    {"t:", &tensor_class, tensor_operations},
    {"t:", &tensor_class, tensor_rearrangements},
    {"t:", &tensor_class, tensor_indexing},
    {"t:", &tensor_class, tensor_parts},
    {"t:", &tensor_class, tensor_views},
    {"t:", &tensor_class, tensor_changes},
    {"t:", &tensor_class, tensor_stream_methods},
    {"m:", &module_class, module_methods},
    {"m:", &module_class, sharded_methods},
    {"o:", &optimizer_class, optimizer_methods},
    {"g:", &grad_scaler_class, scaler_methods},
    {"l:", &list_class, list_methods},
    {"graph:", &cuda_graph_class, graph_methods},
    {"s:", &stream_class, stream_methods},
    {NULL, NULL, NULL},
};

const struct script_library script_library = {.groups = script_groups,
                                              .operators = script_operators,
                                              .index = script_index,
                                              .set_index = script_set_index,
                                              .take_arguments = signature_take,
                                              .raise_unknown = signature_unknown};
