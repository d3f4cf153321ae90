/* encoding.c — cached features: an evaluation's inputs for a job. They are computed from the job's rows once, and the
 * caller or a call holds them. */
#include "runtime/predict/predictor_tensors.h"

#include <string.h>

static const mdot_abi_table *table_of(const mdot_context *context)
{
    return rt_predictor_artefact(rt_context_predictor(context))->table;
}

/* Encodes the tensors' rows. A predictor in one piece reads the rows themselves, possibly in place. */
static void encode_rows(mdot_context *context, const rt_job_tensors *tensors, rt_cached_features *out)
{
    const rt_job_schema *schema = &tensors->schema;
    out->row_count = tensors->row_count;
    out->shortened = tensors->shortened;
    if (!rt_is_pair(schema)) {
        for (size_t i = 0; i < schema->cached_count; i++) {
            const void *rows = tensors->rows[schema->cached[i].made_at];
            if (rows != out->tensors[i])
                memcpy(out->tensors[i], rows, rt_tensor_bytes(schema->cached[i].tensor, (int64_t)out->row_count));
        }
        return;
    }
    const mdot_abi_entry *entry = rt_entry(table_of(context), schema->rows_entry);
    const void *inputs[RT_JOB_INPUT_COUNT];
    void *outputs[RT_CACHED_CAPACITY];
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++)
        if (schema->input_at[i] != RT_NOT_THERE && rt_job_inputs[i].has_rows)
            inputs[schema->input_at[i]] = tensors->rows[i];
    for (size_t i = 0; i < schema->cached_count; i++) outputs[schema->cached[i].made_at] = out->tensors[i];
    rt_run_many(context, entry, entry->least_length ? (int64_t)out->row_count : 0, &(rt_item){inputs, outputs}, 1);
}

void rt_encode(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job, const rt_shard *shard,
               rt_cached_features *out)
{
    rt_write_operator_features(job, shard, tensors);
    encode_rows(context, tensors, out);
}

static mdot_status create(mdot_context *context, const mdot_job *job, mdot_encoding **out_encoding, mdot_error *err)
{
    rt_job_tensors *tensors = rt_context_state(context, &rt_predict_extension);
    if (tensors == NULL) return rt_job_schema_read(table_of(context), RT_JOB_PREDICT, &(rt_job_schema){0}, err);
    const rt_job_schema *schema = &tensors->schema;
    const rt_shard whole = {.tensor = 1, .experts = 1, .of = {1, 1, 1}};
    rt_write_operator_features(job, &whole, tensors);
    size_t bytes = rt_align(sizeof(mdot_encoding));
    for (size_t i = 0; i < schema->cached_count; i++)
        bytes += rt_align(rt_tensor_bytes(schema->cached[i].tensor, (int64_t)tensors->row_count));
    const mdot_predictor *predictor = rt_context_predictor(context);
    mdot_encoding *encoding = rt_alloc(rt_predictor_allocator(predictor), bytes);
    if (encoding == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    encoding->predictor = predictor;
    encoding->job = job;
    char *cursor = (char *)encoding + rt_align(sizeof *encoding);
    for (size_t i = 0; i < schema->cached_count; i++) {
        encoding->features.tensors[i] = cursor;
        cursor += rt_align(rt_tensor_bytes(schema->cached[i].tensor, (int64_t)tensors->row_count));
    }
    encode_rows(context, tensors, &encoding->features);
    rt_predictor_keep(predictor);
    rt_handle_register(encoding, RT_ENCODING);
    *out_encoding = encoding;
    return MDOT_OK;
}

mdot_status mdot_encoding_create(mdot_context *context, const mdot_job *job, mdot_encoding **out_encoding,
                                 mdot_error *err)
{
    if (context == NULL || job == NULL || out_encoding == NULL)
        return BS_INVALID(err, "mdot_encoding_create: context, job or out_encoding is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = create(context, job, out_encoding, err);
    rt_handle_leave(context);
    return status;
}

void mdot_encoding_destroy(mdot_encoding *encoding)
{
    if (encoding == NULL || !rt_handle_unregister(encoding, RT_ENCODING, __func__)) return;
    const mdot_predictor *predictor = encoding->predictor;
    if (!rt_validates_handles()) rt_free(rt_predictor_allocator(predictor), encoding);
    rt_predictor_release(predictor);
}
