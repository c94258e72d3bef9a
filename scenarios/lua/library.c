/* library.c - everything that scripts can call, put together. */
#include "library.h"
#include "library_parts.h"

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
    {"", NULL, block_functions},
    {"", NULL, object_functions},
    {"nn.", NULL, nn_functions},
    {"optim.", NULL, optim_functions},
    {"gc.", NULL, gc_functions},
    {"cuda.", NULL, cuda_functions},
    {"cuda.", NULL, stream_functions},
    {"cudnn.", NULL, cudnn_functions},
    {"t:", &tensor_class, tensor_methods},
    {"t:", &tensor_class, tensor_operations},
    {"t:", &tensor_class, tensor_views},
    {"t:", &tensor_class, tensor_changes},
    {"t:", &tensor_class, tensor_stream_methods},
    {"m:", &module_class, module_methods},
    {"o:", &optimizer_class, optimizer_methods},
    {"l:", &list_class, list_methods},
    {"s:", &stream_class, stream_methods},
    {NULL, NULL, NULL},
};

const struct script_library script_library = {.groups = script_groups,
                                              .operators = script_operators,
                                              .index = script_index,
                                              .set_index = script_set_index,
                                              .take_arguments = signature_take,
                                              .raise_unknown = signature_unknown};
