/* artefact_table.c — plans and the backends' images → an artefact's table (mdot_abi.h), the description that the
 * runtime and `mdot inspect` read. */
#include "codegen/artefact.h"

#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "ir/ops.h"
#include "mdot/mdot.h"
#include "plan/kernel_kind.h"

#include <stdlib.h>
#include <string.h>

/* Rows in the smallest table indexed by the input; 0 if it indexes none. */
static uint32_t count_indices(const ir_graph *graph, const ir_value *input)
{
    int64_t minimum = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op != &ir_ops[IR_OP_Gather] || node->inputs[1] != input) continue;
        const ir_type *table = &node->inputs[0]->type;
        int axis = ir_node_axis(node, 0, table->rank);
        if (axis < 0 || axis >= table->rank || !ir_dim_is_number(table->dim[axis])) continue;
        int64_t rows = table->dim[axis].offset;
        if (rows > 0 && rows <= UINT32_MAX && (minimum == 0 || rows < minimum)) minimum = rows;
    }
    return (uint32_t)minimum;
}

/* Hashes only fields visible to the entry's users, so the hash does not depend on table positions. */
static uint64_t hash_tensor(mdot_abi_tensor tensor, const char *name, uint64_t seed)
{
    tensor.name_at = tensor.index_count = tensor.defaults_at = tensor.default_count = tensor.columns_at = 0;
    tensor.assumed_torch = 0;
    return mdot_abi_checksum(name, strlen(name) + 1, mdot_abi_checksum(&tensor, sizeof tensor, seed));
}

/* `columns` has one element per value, or is NULL. */
static uint32_t add_tensors(cg_table *t, const ir_graph *graph, ir_value *const *values, int count,
                            const cg_columns *columns, uint64_t *hash)
{
    uint32_t index = cg_table_array(t, count, sizeof(mdot_abi_tensor));
    *hash = mdot_abi_checksum(&count, sizeof count, *hash);
    for (int i = 0; i < count; i++) {
        const ir_type *type = &values[i]->type;
        const cg_columns description = columns != NULL ? columns[i] : (cg_columns){0};
        mdot_abi_tensor tensor = {.name_at = cg_table_string(t, values[i]->name),
                                  .dtype = type->dtype,
                                  .rank = (uint32_t)type->rank,
                                  .index_count = count_indices(graph, values[i]),
                                  .default_count = (uint32_t)description.default_count,
                                  .assumed_torch = description.assumed_torch};
        if (description.default_count > 0)
            tensor.defaults_at = cg_table_intern(t, description.defaults, description.default_count, sizeof(float));
        if (description.names != NULL) tensor.columns_at = cg_table_string(t, description.names);
        for (int d = 0; d < type->rank; d++) {
            ir_dim dim = type->dim[d];
            tensor.dim[d] = (mdot_abi_dim){dim.scale, dim.offset, dim.times, dim.step, dim.start, dim.divisor};
        }
        cg_table_put(t, index, i, &tensor, sizeof tensor);
        *hash = hash_tensor(tensor, values[i]->name, *hash);
    }
    return index;
}

/* Buckets mostly differ only in the work of each kernel. Therefore the work is stored separately and the list once. */
static uint32_t add_kernels(cg_table *t, const pl_plan *plan)
{
    mdot_abi_kernel *records = calloc((size_t)plan->kernel_count + 1, sizeof *records);
    if (records == NULL) {
        t->pool.failed = true;
        return 0;
    }
    for (int i = 0; i < plan->kernel_count; i++) {
        const pl_kernel *kernel = &plan->kernels[i];
        records[i] = (mdot_abi_kernel){.name_at = cg_table_string(t, kernel->name),
                                       .kind_at = cg_table_string(t, pl_kind_name(kernel->kind)),
                                       .is_split = pl_is_split(plan, kernel),
                                       .is_rowwise = kernel->is_rowwise,
                                       .unit_offset = kernel->unit_offset};
    }
    uint32_t position = cg_table_intern(t, records, plan->kernel_count, sizeof *records);
    free(records);
    return position;
}

static uint32_t add_kernel_flops(cg_table *t, const pl_plan *plan)
{
    uint32_t index = cg_table_array(t, plan->kernel_count, sizeof(double));
    for (int i = 0; i < plan->kernel_count; i++) cg_table_put(t, index, i, &plan->kernels[i].flops, sizeof(double));
    return index;
}

static uint32_t add_buckets(cg_table *t, const cg_entry *entry)
{
    uint32_t index = cg_table_array(t, entry->plan_count, sizeof(mdot_abi_bucket));
    for (int i = 0; i < entry->plan_count; i++) {
        const pl_plan *plan = entry->plans[i];
        mdot_abi_bucket record = {.max_length = plan->max_length,
                                  .flops = plan->flops,
                                  .kernels_at = add_kernels(t, plan),
                                  .kernel_count = (uint32_t)plan->kernel_count,
                                  .number = t->bucket_count++,
                                  .kernel_flops_at = add_kernel_flops(t, plan),
                                  .most_items = (uint32_t)plan->most_items,
                                  .unit_offset = plan->unit_offset};
        cg_table_put(t, index, i, &record, sizeof record);
    }
    return index;
}

static mdot_abi_entry add_entry(cg_table *t, const cg_entry *entry)
{
    const ir_graph *graph = entry->graph;
    uint64_t hash = 0;
    mdot_abi_entry record = {.name_at = cg_table_string(t, entry->name),
                             .input_count = (uint32_t)graph->input_count,
                             .output_count = (uint32_t)graph->output_count,
                             .bucket_count = (uint32_t)entry->plan_count,
                             .least_length = (uint32_t)(entry->plans[0]->max_length > 0 ? ir_first_length(graph) : 0)};
    record.inputs_at = add_tensors(t, graph, graph->inputs, graph->input_count, entry->columns, &hash);
    record.outputs_at = add_tensors(t, graph, graph->outputs, graph->output_count, NULL, &hash);
    record.buckets_at = add_buckets(t, entry);
    record.schema_hash = hash;
    return record;
}

/* For example "mdot 0.2.0, LLVM 19.1.7". */
static void print_compiler(const cg_image_set sets[CG_BACKENDS], char *text, size_t size)
{
    bs_join list;
    bs_join_begin(&list, text, size);
    bs_join_add(&list, "mdot %s", mdot_version());
    for (int b = 0; b < CG_BACKENDS; b++)
        if (sets[b].toolchain != NULL) bs_join_add(&list, "%s", sets[b].toolchain);
}

mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_image_set sets[CG_BACKENDS], cg_table *out_table, mdot_error *err)
{
    cg_table *t = out_table;
    char compiler[96];
    print_compiler(sets, compiler, sizeof compiler);
    cg_table_array(t, 1, sizeof(mdot_abi_table));
    mdot_abi_table head = {.magic = MDOT_ABI_MAGIC,
                           .abi_version = MDOT_ABI_VERSION,
                           .name_at = cg_table_string(t, options->predictor_name),
                           .compiler_at = cg_table_string(t, compiler),
                           .entry_count = (uint32_t)entry_count};
    head.entries_at = cg_table_array(t, entry_count, sizeof(mdot_abi_entry));
    for (int i = 0; i < entry_count; i++) {
        mdot_abi_entry record = add_entry(t, &entries[i]);
        cg_table_put(t, head.entries_at, i, &record, sizeof record);
    }
    head.bucket_count = t->bucket_count;
    for (int b = 0; b < CG_BACKENDS; b++) head.image_count += (uint32_t)sets[b].image_count;
    head.images_at = cg_table_array(t, (int)head.image_count, sizeof(mdot_abi_image));
    uint32_t index = head.images_at;
    for (int b = 0; b < CG_BACKENDS; b++) {
        if (sets[b].image_count == 0) continue;
        cg_backends[b]->describe(sets[b].images, entries, entry_count, t, index, &head);
        index += (uint32_t)sets[b].image_count * (uint32_t)sizeof(mdot_abi_image);
    }
    head.table_bytes = (uint32_t)t->pool.size_bytes;
    if (t->pool.failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (t->pool.size_bytes > UINT32_MAX)
        return mdot_fail(err, MDOT_UNSUPPORTED, "the artefact's table would be larger than 4 GB");
    cg_table_put(t, 0, 0, &head, sizeof head);
    return MDOT_OK;
}
