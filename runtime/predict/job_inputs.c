/* job_inputs.c — mdot_job_inputs: the inputs of an entry for a job, as predictions pass them, for callers that run
 * or check the entry themselves. */
#include "runtime/core/core.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predict.h"
#include "runtime/predict/predictor_tensors.h"

typedef struct job_input {
    mdot_input input; /* its dims point at the array below */
    int64_t dims[MDOT_MAX_RANK];
} job_input;

struct mdot_job_inputs {
    const mdot_predictor *predictor; /* reference counted: names belong to its artefact */
    rt_job_tensors *tensors;
    size_t count;
    job_input inputs[]; /* in the entry's order */
};

/* "explain" reads its inputs like an entry in one piece. Any other entry must be one that predictions run. */
static mdot_status read_schema(const mdot_abi_table *table, size_t entry, rt_job_schema *out_schema, mdot_error *err)
{
    if (rt_job_schema_read(table, RT_JOB_EXPLAIN, out_schema, NULL) == MDOT_OK && out_schema->rows_entry == entry)
        return MDOT_OK;
    mdot_status status = rt_job_schema_read(table, RT_JOB_PREDICT, out_schema, err);
    if (status != MDOT_OK || entry == out_schema->rows_entry || entry == out_schema->evaluate_entry) return status;
    return mdot_fail(err, MDOT_INCOMPATIBLE,
                     "entry %s is not used in predictions of jobs; accepted: predict, encode, evaluate, explain",
                     rt_string(table, rt_entry(table, entry)->name_at));
}

/* Encodes the rows of one GPU's shard and fills a block whose columns all hold the configuration. */
static mdot_status fill(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job,
                        const mdot_configuration *configuration, mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration requested, queried;
    BS_TRY(rt_configuration_read(configuration, 0, &names, &requested, err));
    BS_TRY(rt_configuration_check(&requested, job, err));
    const rt_job_schema *schema = &tensors->schema;
    rt_job_block *block = &tensors->blocks[0];
    rt_resolved_configuration resolved;
    rt_resolve(job, &requested, &resolved);
    rt_project_configuration(&resolved.configuration, job, schema->reads, &queried);
    rt_encode(context, tensors, job, &resolved.shard, &tensors->features);
    while (block->count < schema->block) rt_add_configuration(schema, &queried, block);
    rt_bind_cached_features(schema, &tensors->features, block);
    return MDOT_OK;
}

/* Data for input number `index` of the entry. */
static const void *data_of(const rt_job_tensors *tensors, size_t entry, uint32_t index)
{
    const rt_job_schema *schema = &tensors->schema;
    if (entry == schema->evaluate_entry) return tensors->blocks[0].inputs[index];
    int i = 0;
    while (schema->input_at[i] != (int)index || !rt_job_inputs[i].has_rows) i++;
    return tensors->rows[i];
}

static void describe(const mdot_abi_table *table, size_t entry, const rt_job_tensors *tensors, job_input *out_inputs)
{
    const mdot_abi_entry *e = rt_entry(table, entry);
    for (uint32_t index = 0; index < e->input_count; index++) {
        const mdot_abi_tensor *tensor = &rt_inputs(table, e)[index];
        job_input *made = &out_inputs[index];
        for (uint32_t d = 0; d < tensor->rank; d++)
            made->dims[d] = rt_dim_at(&tensor->dim[d], (int64_t)tensors->row_count);
        made->input = (mdot_input){.name = rt_string(table, tensor->name_at),
                                   .dtype = (mdot_dtype)tensor->dtype,
                                   .rank = (int)tensor->rank,
                                   .dims = made->dims,
                                   .data = data_of(tensors, entry, index)};
    }
}

static mdot_status create(mdot_context *context, size_t entry, const mdot_job *job,
                          const mdot_configuration *configuration, mdot_job_inputs **out_inputs, mdot_error *err)
{
    const mdot_predictor *predictor = rt_context_predictor(context);
    const mdot_abi_table *table = rt_predictor_artefact(predictor)->table;
    if (entry >= table->entry_count)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "entry %zu is out of range; the artefact has %u", entry,
                         table->entry_count);
    rt_job_schema schema;
    BS_TRY(read_schema(table, entry, &schema, err));
    uint32_t count = rt_entry(table, entry)->input_count;
    const rt_allocator *allocator = rt_predictor_allocator(predictor);
    mdot_job_inputs *made = rt_alloc(allocator, sizeof *made + count * sizeof *made->inputs);
    if (made == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = rt_job_tensors_create(predictor, &schema, &made->tensors, err);
    if (status == MDOT_OK) status = fill(context, made->tensors, job, configuration, err);
    if (status != MDOT_OK) {
        if (made->tensors != NULL) rt_job_tensors_destroy(predictor, made->tensors);
        rt_free(allocator, made);
        return status;
    }
    made->predictor = predictor;
    made->count = count;
    describe(table, entry, made->tensors, made->inputs);
    rt_predictor_keep(predictor);
    rt_handle_register(made, RT_JOB_INPUTS);
    *out_inputs = made;
    return MDOT_OK;
}

mdot_status mdot_job_inputs_create(mdot_context *context, size_t entry, const mdot_job *job,
                                   const mdot_configuration *configuration, mdot_job_inputs **out_inputs,
                                   mdot_error *err)
{
    if (context == NULL || job == NULL || configuration == NULL || out_inputs == NULL)
        return BS_INVALID(err, "mdot_job_inputs_create: context, job, configuration or out_inputs is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = create(context, entry, job, configuration, out_inputs, err);
    rt_handle_leave(context);
    return status;
}

mdot_status mdot_job_inputs_get(const mdot_job_inputs *inputs, size_t index, mdot_input *out_input)
{
    if (inputs == NULL || out_input == NULL) return MDOT_INVALID_ARGUMENT;
    if (!rt_handle_is_live(inputs, RT_JOB_INPUTS, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= inputs->count) return MDOT_OUT_OF_RANGE;
    *out_input = inputs->inputs[index].input;
    return MDOT_OK;
}

void mdot_job_inputs_destroy(mdot_job_inputs *inputs)
{
    if (inputs == NULL || !rt_handle_unregister(inputs, RT_JOB_INPUTS, __func__)) return;
    const mdot_predictor *predictor = inputs->predictor;
    rt_job_tensors_destroy(predictor, inputs->tensors);
    if (!rt_validates_handles()) rt_free(rt_predictor_allocator(predictor), inputs);
    rt_predictor_release(predictor);
}
