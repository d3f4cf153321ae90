/* predictor_tensors.c — memory for the inputs and outputs of job predictions: one block in every context. */
#include "runtime/predict/predictor_tensors.h"

#include <string.h>

/* Divides a memory block into parts. With `memory` NULL, it only sums their sizes. */
typedef struct arena {
    char *memory;
    size_t used_bytes;
} arena;

static void *arena_take(arena *d, size_t bytes)
{
    void *part = d->memory != NULL ? d->memory + d->used_bytes : NULL;
    d->used_bytes += rt_align(bytes);
    return part;
}

/* Fills the columns after the known ones. Later writes touch only the known columns. */
static void write_row_defaults(const rt_job_schema *schema, int input, float *tensor)
{
    size_t columns = schema->columns[input], known = schema->known[input];
    for (size_t row = 0; columns > known && row < schema->row_capacity; row++)
        memcpy(tensor + row * columns + known, schema->defaults[input], (columns - known) * sizeof *tensor);
}

/* The checks at open exclude overflow for lengths up to the largest bucket's. */
static void allocate_rows(arena *d, const rt_job_schema *schema, void *rows[RT_JOB_INPUT_COUNT])
{
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) {
        if (schema->input_at[i] == RT_NOT_THERE || !rt_job_inputs[i].has_rows) continue;
        size_t columns = schema->columns[i] > 0 ? schema->columns[i] : 1;
        rows[i] = arena_take(d, schema->row_capacity * columns * mdot_dtype_size_bytes(rt_job_inputs[i].dtype));
        if (rows[i] != NULL) write_row_defaults(schema, i, rows[i]);
    }
}

/* In one piece, an evaluation reads the rows themselves. */
static void allocate_features(arena *d, const rt_job_schema *schema, void *const rows[RT_JOB_INPUT_COUNT],
                              rt_cached_features *out)
{
    for (size_t i = 0; i < schema->cached_count; i++) {
        const rt_cached_tensor *cached = &schema->cached[i];
        out->tensors[i] = rt_is_pair(schema)
                              ? arena_take(d, rt_tensor_bytes(cached->tensor, (int64_t)schema->row_capacity))
                              : rows[cached->made_at];
    }
}

/* A column that the caller has yet to fill holds plausible numbers: the predictor's defaults, or ones. */
static float *allocate_numbers(arena *d, const rt_job_schema *schema, int input)
{
    size_t columns = schema->columns[input], known = schema->known[input], block = schema->block;
    float *numbers = arena_take(d, columns * block * sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < columns * block; i++)
        numbers[i] = i < known * block ? 1 : schema->defaults[input][i / block - known];
    return numbers;
}

static void allocate_block(arena *d, const rt_job_schema *schema, rt_job_block *out)
{
    rt_job_block block = {.configuration = allocate_numbers(d, schema, RT_JOB_INPUT_CONFIGURATION),
                          .gpu = allocate_numbers(d, schema, RT_JOB_INPUT_GPU),
                          .step_ms = arena_take(d, RT_STEP_NUMBERS * schema->block * sizeof(float)),
                          .outside = arena_take(d, RT_OUTSIDE_NUMBERS * schema->block * sizeof(float)),
                          .parts = arena_take(d, RT_PART_NUMBERS * schema->block * sizeof(float))};
    int configuration_at = schema->input_at[RT_JOB_INPUT_CONFIGURATION], gpu_at = schema->input_at[RT_JOB_INPUT_GPU];
    if (configuration_at != RT_NOT_THERE) block.inputs[configuration_at] = block.configuration;
    if (gpu_at != RT_NOT_THERE) block.inputs[gpu_at] = block.gpu;
    const int *output_index = schema->output_at;
    if (output_index[RT_JOB_OUTPUT_STEP] != RT_NOT_THERE)
        block.outputs[output_index[RT_JOB_OUTPUT_STEP]] = block.step_ms;
    if (output_index[RT_JOB_OUTPUT_OUTSIDE] != RT_NOT_THERE)
        block.outputs[output_index[RT_JOB_OUTPUT_OUTSIDE]] = block.outside;
    if (output_index[RT_JOB_OUTPUT_PARTS] != RT_NOT_THERE)
        block.outputs[output_index[RT_JOB_OUTPUT_PARTS]] = block.parts;
    if (out != NULL) *out = block;
}

/* The tensors have no copy on the stack, because their pairs take more than small stacks have. */
static rt_job_tensors *lay_out(arena *d, const rt_job_schema *schema)
{
    void *rows[RT_JOB_INPUT_COUNT] = {0};
    rt_cached_features features = {0};
    rt_job_tensors *tensors = arena_take(d, sizeof *tensors);
    size_t block_count = schema->block > 1 ? RT_BLOCK_CAPACITY : RT_PAIR_CAPACITY;
    rt_job_block *blocks = arena_take(d, block_count * sizeof *blocks);
    allocate_rows(d, schema, rows);
    allocate_features(d, schema, rows, &features);
    for (size_t i = 0; i < block_count; i++) allocate_block(d, schema, blocks != NULL ? &blocks[i] : NULL);
    if (tensors == NULL) return NULL;
    memset(tensors, 0, sizeof *tensors);
    tensors->schema = *schema;
    memcpy(tensors->rows, rows, sizeof rows);
    tensors->features = features;
    tensors->block_count = block_count;
    tensors->blocks = blocks;
    return tensors;
}

mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err)
{
    arena needed = {0};
    lay_out(&needed, schema);
    arena d = {.memory = rt_alloc(rt_predictor_allocator(predictor), needed.used_bytes)};
    if (d.memory == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out_tensors = lay_out(&d, schema);
    return MDOT_OK;
}

void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors)
{
    rt_free(rt_predictor_allocator(predictor), tensors);
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

const rt_extension rt_predict_extension = {create_tensors, rt_job_tensors_destroy};
