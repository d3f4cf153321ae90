/* job_schema.c — whether an artefact predicts jobs, which it does when its entry "predict" reads nothing but the
 * tensors of predict.h, and a context's memory for those. The entry "explain" reads the same.
 */
#include "runtime/job/job.h"
#include "runtime/job/predict.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    mdot_dtype dtype;
    bool has_rows;
    int64_t columns;
    bool grows;
} inputs[RT_JOB_INPUT_COUNT] = {
#define INPUT(id, name, dtype, has_rows, columns, grows) {name, MDOT_DTYPE_##dtype, has_rows, columns, grows},
    RT_JOB_INPUT_MAP(INPUT)
#undef INPUT
};

static const struct {
    rt_job_entry entry;
    const char *name;
    bool has_rows;
    int64_t columns;
    bool is_needed;
} outputs[RT_JOB_OUTPUT_COUNT] = {
    [RT_JOB_OUTPUT_STEP] = {RT_JOB_PREDICT, "step_ms", false, RT_STEP_NUMBERS, true},
    [RT_JOB_OUTPUT_OUTSIDE] = {RT_JOB_PREDICT, "outside_training", false, 1, false},
    [RT_JOB_OUTPUT_OPERATORS] = {RT_JOB_EXPLAIN, "operator_ms", true, MDOT_PHASE_COUNT, true},
    [RT_JOB_OUTPUT_OTHERS] = {RT_JOB_EXPLAIN, "other_ms", false, RT_OTHER_NUMBERS, true},
};

/* What an entry is called, and what an artefact does that has it. */
static const struct {
    const char *name, *ability;
} entries[] = {[RT_JOB_PREDICT] = {"predict", "predicts no jobs"}, [RT_JOB_EXPLAIN] = {"explain", "explains no jobs"}};

static bool is_row_dim(const mdot_abi_dim *dim)
{
    return dim->scale == 1 && dim->offset == 0;
}

static bool is_fixed_dim(const mdot_abi_dim *dim, int64_t size)
{
    return dim->scale == 0 && dim->offset == size;
}

static bool has_shape(const mdot_abi_tensor *tensor, bool has_rows, int64_t columns)
{
    uint32_t rank = (has_rows ? 1 : 0) + (columns > 0 ? 1 : 0);
    if (tensor->rank != rank) return false;
    if (has_rows && !is_row_dim(&tensor->dim[0])) return false;
    return columns == 0 || is_fixed_dim(&tensor->dim[rank - 1], columns);
}

/* Of the last dimension; 0 where there is none or it is no number. */
static int64_t last_extent(const mdot_abi_tensor *tensor)
{
    const mdot_abi_dim *last = &tensor->dim[tensor->rank > 0 ? tensor->rank - 1 : 0];
    return tensor->rank > 0 && last->scale == 0 ? last->offset : 0;
}

static mdot_status fail_tensor(rt_job_entry which, const char *kind, const char *name, mdot_dtype dtype, bool has_rows,
                               int64_t columns, mdot_error *err)
{
    char shape[32] = "[L]";
    if (columns > 0) snprintf(shape, sizeof shape, has_rows ? "[L, %lld]" : "[%lld]", (long long)columns);
    return mdot_fail(err, MDOT_INCOMPATIBLE, "%s %s of entry %s is not %s %s, so the artefact %s", kind, name,
                     entries[which].name, mdot_dtype_name(dtype), shape, entries[which].ability);
}

static mdot_status read_inputs(const mdot_abi_table *table, rt_job_entry which, const mdot_abi_entry *entry,
                               rt_job_schema *schema, mdot_error *err)
{
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) schema->input_at[i] = RT_NOT_THERE;
    for (uint32_t at = 0; at < entry->input_count; at++) {
        const mdot_abi_tensor *tensor = &rt_inputs(table, entry)[at];
        const char *name = rt_string(table, tensor->name_at);
        int i = 0;
        while (i < RT_JOB_INPUT_COUNT && strcmp(inputs[i].name, name) != 0) i++;
        if (i == RT_JOB_INPUT_COUNT)
            return mdot_fail(err, MDOT_INCOMPATIBLE,
                             "input %s of entry %s is nothing that jobs have, so the artefact %s", name,
                             entries[which].name, entries[which].ability);
        int64_t columns = inputs[i].grows ? last_extent(tensor) : inputs[i].columns;
        bool has_columns = inputs[i].columns == 0 || columns > 0;
        if (tensor->dtype != (uint32_t)inputs[i].dtype || !has_columns ||
            !has_shape(tensor, inputs[i].has_rows, columns))
            return fail_tensor(which, "input", name, inputs[i].dtype, inputs[i].has_rows, inputs[i].columns, err);
        int64_t known = columns < inputs[i].columns ? columns : inputs[i].columns;
        if (columns - known > (int64_t)tensor->default_count)
            return mdot_fail(
                err, MDOT_INCOMPATIBLE,
                "input %s of entry %s has %lld columns, of which mdot %s knows the first %lld: the predictor "
                "was made for a later version and says of %u what they are without it",
                name, entries[which].name, (long long)columns, MDOT_VERSION_STRING, (long long)known,
                tensor->default_count);
        schema->columns[i] = (size_t)columns;
        schema->known[i] = (size_t)known;
        schema->defaults[i] = rt_defaults(table, tensor) + tensor->default_count - (columns - known);
        if (i == RT_JOB_INPUT_TYPE && tensor->index_count > 0) schema->type_count = tensor->index_count;
        schema->input_at[i] = (int)at;
    }
    return MDOT_OK;
}

static mdot_status read_outputs(const mdot_abi_table *table, rt_job_entry which, const mdot_abi_entry *entry,
                                rt_job_schema *schema, mdot_error *err)
{
    for (int i = 0; i < RT_JOB_OUTPUT_COUNT; i++) schema->output_at[i] = RT_NOT_THERE;
    for (uint32_t at = 0; at < entry->output_count; at++) {
        const mdot_abi_tensor *tensor = &rt_outputs(table, entry)[at];
        const char *name = rt_string(table, tensor->name_at);
        int i = 0;
        while (i < RT_JOB_OUTPUT_COUNT && (outputs[i].entry != which || strcmp(outputs[i].name, name) != 0)) i++;
        if (i == RT_JOB_OUTPUT_COUNT)
            return mdot_fail(err, MDOT_INCOMPATIBLE,
                             "output %s of entry %s is nothing that predictions have, so the artefact %s", name,
                             entries[which].name, entries[which].ability);
        if (tensor->dtype != MDOT_DTYPE_F32 || !has_shape(tensor, outputs[i].has_rows, outputs[i].columns))
            return fail_tensor(which, "output", name, MDOT_DTYPE_F32, outputs[i].has_rows, outputs[i].columns, err);
        schema->output_at[i] = (int)at;
    }
    for (int i = 0; i < RT_JOB_OUTPUT_COUNT; i++)
        if (outputs[i].entry == which && outputs[i].is_needed && schema->output_at[i] == RT_NOT_THERE)
            return mdot_fail(err, MDOT_INCOMPATIBLE, "entry %s has no output %s, so the artefact %s",
                             entries[which].name, outputs[i].name, entries[which].ability);
    return MDOT_OK;
}

static const mdot_abi_entry *find_entry(const mdot_abi_table *table, const char *name, uint32_t *out_index)
{
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const mdot_abi_entry *entry = rt_entry(table, i);
        if (strcmp(rt_string(table, entry->name_at), name) != 0) continue;
        *out_index = i;
        return entry;
    }
    return NULL;
}

mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_entry which, rt_job_schema *out_schema,
                               mdot_error *err)
{
    rt_job_schema schema = {.type_count = RT_FIRST_TYPE_COUNT};
    const mdot_abi_entry *entry = find_entry(table, entries[which].name, &schema.entry);
    if (entry == NULL)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the artefact has no entry %s, so it %s", entries[which].name,
                         entries[which].ability);
    mdot_status status = read_inputs(table, which, entry, &schema, err);
    if (status == MDOT_OK) status = read_outputs(table, which, entry, &schema, err);
    if (status != MDOT_OK) return status;
    if (entry->has_length) schema.row_capacity = (size_t)rt_buckets(table, entry)[entry->bucket_count - 1].max_length;
    *out_schema = schema;
    return MDOT_OK;
}

/* ---- Their memory ------------------------------------------------------------------------------------------------ */

enum { TENSOR_ALIGNMENT = 64 };

static size_t align(size_t bytes)
{
    return (bytes + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
}

/* The numbers of one configuration: as many as there are, or as the entry reads. */
static size_t numbers_bytes(const rt_job_schema *schema, int input)
{
    size_t columns = (size_t)inputs[input].columns;
    return align((schema->columns[input] > columns ? schema->columns[input] : columns) * sizeof(float));
}

/* The checks at open have ruled overflow out for lengths up to the largest bucket's. */
static size_t rows_bytes(const rt_job_schema *schema, int input)
{
    if (schema->input_at[input] == RT_NOT_THERE || !inputs[input].has_rows) return 0;
    size_t columns = schema->columns[input] > 0 ? schema->columns[input] : 1;
    return align(schema->row_capacity * columns * mdot_dtype_size_bytes(inputs[input].dtype));
}

/* Behind the known columns, which alone are written from then on. */
static void write_defaults(const rt_job_schema *schema, int input, float *tensor, size_t row_count)
{
    size_t columns = schema->columns[input], known = schema->known[input];
    for (size_t row = 0; columns > known && row < row_count; row++)
        memcpy(tensor + row * columns + known, schema->defaults[input], (columns - known) * sizeof *tensor);
}

static void point_at_tensors(rt_job_tensors *tensors, rt_job_pair *pair)
{
    const rt_job_schema *schema = &tensors->schema;
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) {
        if (schema->input_at[i] == RT_NOT_THERE) continue;
        const void *own = i == RT_JOB_INPUT_GPU ? pair->gpu : pair->configuration;
        pair->inputs[schema->input_at[i]] = inputs[i].has_rows ? tensors->rows[i] : own;
    }
    const int *at = schema->output_at;
    if (at[RT_JOB_OUTPUT_STEP] != RT_NOT_THERE) pair->outputs[at[RT_JOB_OUTPUT_STEP]] = pair->step_ms;
    if (at[RT_JOB_OUTPUT_OUTSIDE] != RT_NOT_THERE) pair->outputs[at[RT_JOB_OUTPUT_OUTSIDE]] = &pair->outside;
}

mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err)
{
    size_t configuration_bytes = numbers_bytes(schema, RT_JOB_INPUT_CONFIGURATION);
    size_t gpu_bytes = numbers_bytes(schema, RT_JOB_INPUT_GPU);
    size_t bytes = align(sizeof(rt_job_tensors)) + RT_PAIR_CAPACITY * (configuration_bytes + gpu_bytes);
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) bytes += rows_bytes(schema, i);
    rt_job_tensors *tensors = rt_alloc(rt_predictor_allocator(predictor), bytes);
    if (tensors == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for jobs of %zu rows", schema->row_capacity);
    tensors->schema = *schema;
    char *at = (char *)tensors + align(sizeof *tensors);
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) {
        if (rows_bytes(schema, i) == 0) continue;
        tensors->rows[i] = at;
        write_defaults(schema, i, tensors->rows[i], schema->row_capacity);
        at += rows_bytes(schema, i);
    }
    for (int i = 0; i < RT_PAIR_CAPACITY; i++, at += configuration_bytes + gpu_bytes) {
        rt_job_pair *pair = &tensors->pairs[i];
        pair->configuration = (float *)(void *)at;
        pair->gpu = (float *)(void *)(at + configuration_bytes);
        write_defaults(schema, RT_JOB_INPUT_CONFIGURATION, pair->configuration, 1);
        write_defaults(schema, RT_JOB_INPUT_GPU, pair->gpu, 1);
        point_at_tensors(tensors, pair);
    }
    *out_tensors = tensors;
    return MDOT_OK;
}

static mdot_status create_tensors(const mdot_predictor *predictor, void **out_tensors, mdot_error *err)
{
    rt_job_schema schema;
    const mdot_abi_table *table = rt_predictor_artefact(predictor)->table;
    if (rt_job_schema_read(table, RT_JOB_PREDICT, &schema, NULL) != MDOT_OK) return MDOT_OK;
    rt_job_tensors *tensors = NULL;
    mdot_status status = rt_job_tensors_create(predictor, &schema, &tensors, err);
    if (status == MDOT_OK) *out_tensors = tensors;
    return status;
}

void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors)
{
    rt_free(rt_predictor_allocator(predictor), tensors);
}

const rt_extension rt_job_extension = {create_tensors, rt_job_tensors_destroy};
