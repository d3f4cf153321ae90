/* predictor_schema.c — determines whether an artefact predicts jobs: it has an entry "predict" that reads only the
 * tensors in predictor_schema.h, or an entry "encode" and an entry "evaluate" that reads the former's outputs. The
 * entry "explain" has the inputs of "predict". */
#include "runtime/predict/predictor_schema.h"
#include "runtime/core/core.h"
#include "runtime/job/job_model.h"

#include <stdio.h>
#include <string.h>

static const char predict_name[] = "predict", encode_name[] = "encode", evaluate_name[] = "evaluate";
static const char explain_name[] = "explain";

const rt_job_input_row rt_job_inputs[RT_JOB_INPUT_COUNT] = {
#define INPUT(id, name, dtype, has_rows, columns, grows) {name, MDOT_DTYPE_##dtype, has_rows, columns, grows},
    RT_JOB_INPUT_MAP(INPUT)
#undef INPUT
};

/* In a block of configurations, the last dimension indexes them. It replaces the dimension of a single column. */
static const struct {
    rt_job_question question;
    const char *name;
    bool has_rows;
    int64_t least_columns, columns;
    bool is_needed;
} outputs[RT_JOB_OUTPUT_COUNT] = {
    [RT_JOB_OUTPUT_STEP] = {RT_JOB_PREDICT, "step_ms", false, RT_STEP_NUMBERS, RT_STEP_NUMBERS, true},
    [RT_JOB_OUTPUT_OUTSIDE] = {RT_JOB_PREDICT, "outside_training", false, 1, RT_OUTSIDE_NUMBERS, false},
    [RT_JOB_OUTPUT_PARTS] = {RT_JOB_PREDICT, "part_ms", false, RT_PART_NUMBERS, RT_PART_NUMBERS, false},
    [RT_JOB_OUTPUT_OPERATORS] = {RT_JOB_EXPLAIN, "operator_ms", true, MDOT_PHASE_COUNT, MDOT_PHASE_COUNT, true},
    [RT_JOB_OUTPUT_OTHERS] = {RT_JOB_EXPLAIN, "other_ms", false, RT_OTHER_PARTS, RT_OTHER_NUMBERS, true},
};

static const char *const inabilities[] = {[RT_JOB_PREDICT] = "is unusable for predictions of jobs",
                                          [RT_JOB_EXPLAIN] = "is unusable for explanations of jobs"};

/* An entry that is being read. */
typedef struct reading {
    const mdot_abi_table *table;
    const mdot_abi_entry *entry;
    rt_job_question question;
    const char *name;
    int64_t block; /* 0: the entry takes one configuration, as a vector */
    rt_job_schema *schema;
    mdot_error *err;
} reading;

static bool is_row_dim(const mdot_abi_dim *dim) { return dim->scale == 1 && dim->offset == 0 && dim->times == 0; }

static bool is_fixed_dim(const mdot_abi_dim *dim, int64_t size) { return !rt_has_length(dim) && dim->offset == size; }

/* The fixed extent of the dimension; 0 if it is absent or symbolic. */
static int64_t extent_of(const mdot_abi_tensor *tensor, uint32_t dim)
{
    return dim < tensor->rank && !rt_has_length(&tensor->dim[dim]) ? tensor->dim[dim].offset : 0;
}

/* Dimensions are rows, then columns, then configurations. 0 means that a dimension is absent. */
static bool has_shape(const mdot_abi_tensor *tensor, bool has_rows, int64_t columns, int64_t block)
{
    const mdot_abi_dim *dim = tensor->dim;
    if (tensor->rank != (uint32_t)has_rows + (columns > 0) + (block > 0)) return false;
    if (has_rows && !is_row_dim(dim++)) return false;
    if (columns > 0 && !is_fixed_dim(dim++, columns)) return false;
    return block == 0 || is_fixed_dim(dim, block);
}

static mdot_status fail_tensor(const reading *r, const char *kind, const char *name, mdot_dtype dtype, bool has_rows,
                               int64_t columns, int64_t block)
{
    char shape[64] = "L";
    int length = has_rows ? 1 : 0;
    if (columns > 0)
        length += snprintf(shape + length, sizeof shape - 32, "%s%lld", length > 0 ? ", " : "", (long long)columns);
    if (block > 0) snprintf(shape + length, sizeof shape - 32, "%s%lld", length > 0 ? ", " : "", (long long)block);
    return mdot_fail(r->err, MDOT_INCOMPATIBLE, "%s %s of entry %s must be %s [%s]; the artefact %s", kind, name,
                     r->name, mdot_dtype_name(dtype), shape, inabilities[r->question]);
}

/* Returns RT_JOB_INPUT_COUNT if the name is unknown. */
static int find_input(const char *name)
{
    int i = 0;
    while (i < RT_JOB_INPUT_COUNT && strcmp(rt_job_inputs[i].name, name) != 0) i++;
    return i;
}

static int find_number(const char *name, size_t length)
{
    static const char *const names[RT_CONFIGURATION_NUMBERS] = {
#define NAME(id, name) name,
        MDOT_CONFIGURATION_MAP(NAME)
#undef NAME
    };
    int n = 0;
    while (n < RT_CONFIGURATION_NUMBERS && (strlen(names[n]) != length || strncmp(names[n], name, length) != 0)) n++;
    return n;
}

/* Maps the columns to numbers of a configuration: those in `names`, or the first `*known`. *known becomes the count
 * before the first column that this runtime does not know. The first `needed` columns must be known. */
static mdot_status read_numbers(const reading *r, const char *names, int64_t needed, int64_t *known)
{
    rt_job_schema *schema = r->schema;
    for (int64_t k = 0; *names == '\0' && k < *known; k++) schema->number[k] = (uint8_t)k;
    if (*names == '\0') return schema->reads = rt_first_numbers(*known), MDOT_OK;
    for (*known = 0; *names != '\0'; *known += 1) {
        size_t length = strcspn(names, ",");
        int number = find_number(names, length);
        bool is_known = number < RT_CONFIGURATION_NUMBERS && (schema->reads & RT_CONFIGURATION_BIT(number)) == 0;
        if (!is_known && *known >= needed) break;
        if (!is_known)
            return mdot_fail(r->err, MDOT_INCOMPATIBLE,
                             "column \"%.*s\" of input configuration of entry %s is repeated, or mdot %s does not know "
                             "it because the predictor was made for a later version",
                             (int)length, names, r->name, MDOT_VERSION_STRING);
        schema->number[*known] = (uint8_t)number;
        schema->reads |= RT_CONFIGURATION_BIT(number);
        names += length + (names[length] == ',');
    }
    return MDOT_OK;
}

static mdot_status read_input(const reading *r, uint32_t index, int i)
{
    const mdot_abi_tensor *tensor = &rt_inputs(r->table, r->entry)[index];
    rt_job_schema *schema = r->schema;
    int64_t block = rt_job_inputs[i].has_rows ? 0 : r->block;
    int64_t columns =
        rt_job_inputs[i].grows ? extent_of(tensor, rt_job_inputs[i].has_rows ? 1 : 0) : rt_job_inputs[i].columns;
    bool has_columns = rt_job_inputs[i].columns == 0 || columns > 0;
    if (tensor->dtype != (uint32_t)rt_job_inputs[i].dtype || !has_columns ||
        !has_shape(tensor, rt_job_inputs[i].has_rows, columns, block))
        return fail_tensor(r, "input", rt_job_inputs[i].name, rt_job_inputs[i].dtype, rt_job_inputs[i].has_rows,
                           rt_job_inputs[i].columns, block);
    int64_t known = columns < rt_job_inputs[i].columns ? columns : rt_job_inputs[i].columns;
    const char *names = rt_string(r->table, tensor->columns_at);
    if (i == RT_JOB_INPUT_CONFIGURATION)
        BS_TRY(read_numbers(r, names, (int64_t)columns - tensor->default_count, &known));
    if (columns - known > (int64_t)tensor->default_count)
        return mdot_fail(r->err, MDOT_INCOMPATIBLE,
                         "input %s of entry %s has %lld columns, of which mdot %s knows the first %lld: the predictor "
                         "was made for a later version and gives defaults for only %u",
                         rt_job_inputs[i].name, r->name, (long long)columns, MDOT_VERSION_STRING, (long long)known,
                         tensor->default_count);
    schema->columns[i] = (size_t)columns;
    schema->known[i] = (size_t)known;
    schema->defaults[i] = rt_defaults(r->table, tensor) + tensor->default_count - (columns - known);
    if (i == RT_JOB_INPUT_TYPE && tensor->index_count > 0) schema->type_count = tensor->index_count;
    schema->input_at[i] = (int)index;
    return MDOT_OK;
}

static mdot_status fail_input(const reading *r, uint32_t index)
{
    const char *name = rt_string(r->table, rt_inputs(r->table, r->entry)[index].name_at);
    return mdot_fail(r->err, MDOT_INCOMPATIBLE, "input %s of entry %s is unknown; the artefact %s", name, r->name,
                     inabilities[r->question]);
}

static mdot_status cache_tensor(const reading *r, const mdot_abi_tensor *tensor, uint32_t read_at, uint32_t made_at)
{
    rt_job_schema *schema = r->schema;
    if (schema->cached_count == RT_CACHED_CAPACITY)
        return mdot_fail(r->err, MDOT_INCOMPATIBLE, "entry %s has too many inputs; the limit is %d cached features",
                         r->name, RT_CACHED_CAPACITY);
    schema->cached[schema->cached_count++] = (rt_cached_tensor){tensor, read_at, made_at};
    return MDOT_OK;
}

/* Reads the inputs of an entry that has rows. In one piece, the rows are cached features and a configuration is read,
 * too. */
static mdot_status read_rows(const reading *r, bool in_one_piece)
{
    for (uint32_t index = 0; index < r->entry->input_count; index++) {
        const mdot_abi_tensor *tensor = &rt_inputs(r->table, r->entry)[index];
        int i = find_input(rt_string(r->table, tensor->name_at));
        if (i == RT_JOB_INPUT_COUNT || (!rt_job_inputs[i].has_rows && !in_one_piece)) return fail_input(r, index);
        BS_TRY(read_input(r, index, i));
        if (in_one_piece && rt_job_inputs[i].has_rows) BS_TRY(cache_tensor(r, tensor, index, (uint32_t)i));
    }
    return MDOT_OK;
}

static bool equal_tensors(const mdot_abi_tensor *a, const mdot_abi_tensor *b)
{
    bool equal = a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t i = 0; equal && i < a->rank; i++) equal = memcmp(&a->dim[i], &b->dim[i], sizeof a->dim[i]) == 0;
    return equal;
}

/* An input of "evaluate" that "encode" writes. */
static mdot_status cache_output(const reading *r, const mdot_abi_entry *encode, uint32_t index)
{
    const mdot_abi_tensor *wanted = &rt_inputs(r->table, r->entry)[index];
    const char *name = rt_string(r->table, wanted->name_at);
    for (uint32_t i = 0; i < encode->output_count; i++) {
        const mdot_abi_tensor *made = &rt_outputs(r->table, encode)[i];
        if (strcmp(rt_string(r->table, made->name_at), name) != 0) continue;
        if (equal_tensors(made, wanted)) return cache_tensor(r, wanted, index, i);
        return mdot_fail(r->err, MDOT_INCOMPATIBLE,
                         "%s has one shape as an output of entry %s and another as an input of entry %s", name,
                         encode_name, r->name);
    }
    return mdot_fail(r->err, MDOT_INCOMPATIBLE,
                     "input %s of entry %s must be an output of entry %s or an input for the configuration; the "
                     "artefact is unusable for predictions of jobs",
                     name, r->name, encode_name);
}

static mdot_status read_evaluate_inputs(const reading *r, const mdot_abi_entry *encode)
{
    for (uint32_t index = 0; index < r->entry->input_count; index++) {
        int i = find_input(rt_string(r->table, rt_inputs(r->table, r->entry)[index].name_at));
        bool is_given = i < RT_JOB_INPUT_COUNT && !rt_job_inputs[i].has_rows;
        BS_TRY(is_given ? read_input(r, index, i) : cache_output(r, encode, index));
    }
    return MDOT_OK;
}

/* "encode" writes all outputs, and memory exists only for those that "evaluate" reads. */
static mdot_status check_all_read(const reading *evaluate, const mdot_abi_entry *encode)
{
    const rt_job_schema *schema = evaluate->schema;
    for (uint32_t i = 0; i < encode->output_count; i++) {
        size_t k = 0;
        while (k < schema->cached_count && schema->cached[k].made_at != i) k++;
        if (k == schema->cached_count)
            return mdot_fail(
                evaluate->err, MDOT_INCOMPATIBLE,
                "output %s of entry %s must be an input of entry %s; the artefact is unusable for predictions of jobs",
                rt_string(evaluate->table, rt_outputs(evaluate->table, encode)[i].name_at), encode_name,
                evaluate->name);
    }
    return MDOT_OK;
}

/* 0 if the number of columns is outside the output's range. */
static int64_t columns_of(const reading *r, const mdot_abi_tensor *tensor, int i)
{
    bool is_single = r->block > 0 && outputs[i].least_columns == 1 && tensor->rank == 1;
    int64_t columns = is_single ? 1 : extent_of(tensor, outputs[i].has_rows);
    return columns >= outputs[i].least_columns && columns <= outputs[i].columns ? columns : 0;
}

static mdot_status read_outputs(const reading *r)
{
    rt_job_schema *schema = r->schema;
    for (uint32_t index = 0; index < r->entry->output_count; index++) {
        const mdot_abi_tensor *tensor = &rt_outputs(r->table, r->entry)[index];
        const char *name = rt_string(r->table, tensor->name_at);
        int i = 0;
        while (i < RT_JOB_OUTPUT_COUNT && (outputs[i].question != r->question || strcmp(outputs[i].name, name) != 0))
            i++;
        if (i == RT_JOB_OUTPUT_COUNT)
            return mdot_fail(r->err, MDOT_INCOMPATIBLE, "output %s of entry %s is unknown; the artefact %s", name,
                             r->name, inabilities[r->question]);
        int64_t columns = columns_of(r, tensor, i);
        bool is_single = r->block > 0 && columns == 1 && tensor->rank == 1;
        if (tensor->dtype != MDOT_DTYPE_F32 || columns == 0 ||
            !has_shape(tensor, outputs[i].has_rows, is_single ? 0 : columns, r->block))
            return fail_tensor(r, "output", name, MDOT_DTYPE_F32, outputs[i].has_rows, outputs[i].columns, r->block);
        if (i == RT_JOB_OUTPUT_OTHERS) schema->other_count = (size_t)columns;
        if (i == RT_JOB_OUTPUT_OUTSIDE) schema->outside_count = (size_t)columns;
        schema->output_at[i] = (int)index;
    }
    for (int i = 0; i < RT_JOB_OUTPUT_COUNT; i++)
        if (outputs[i].question == r->question && outputs[i].is_needed && schema->output_at[i] == RT_NOT_THERE)
            return mdot_fail(r->err, MDOT_INCOMPATIBLE, "entry %s lacks output %s; the artefact %s", r->name,
                             outputs[i].name, inabilities[r->question]);
    return MDOT_OK;
}

/* Number of configurations per run of "evaluate": the last dimension of step_ms. */
static mdot_status read_block(reading *r)
{
    for (uint32_t index = 0; index < r->entry->output_count; index++) {
        const mdot_abi_tensor *tensor = &rt_outputs(r->table, r->entry)[index];
        if (strcmp(rt_string(r->table, tensor->name_at), outputs[RT_JOB_OUTPUT_STEP].name) == 0)
            r->block = extent_of(tensor, 1);
    }
    if (r->block > 0 && r->block <= RT_PAIR_CAPACITY) return MDOT_OK;
    return mdot_fail(r->err, MDOT_INCOMPATIBLE,
                     "entry %s lacks an output %s of 3 numbers for 1 to %d configurations; the artefact is unusable "
                     "for predictions of jobs",
                     r->name, outputs[RT_JOB_OUTPUT_STEP].name, RT_PAIR_CAPACITY);
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

static void limit_rows(rt_job_schema *schema, const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    if (!entry->least_length) return;
    size_t maximum = (size_t)rt_buckets(table, entry)[entry->bucket_count - 1].max_length;
    if (schema->row_capacity == 0 || maximum < schema->row_capacity) schema->row_capacity = maximum;
}

static mdot_status read_pair(const mdot_abi_table *table, const mdot_abi_entry *encode,
                             const mdot_abi_entry *evaluate_entry, rt_job_schema *schema, mdot_error *err)
{
    const reading rows = {.table = table, .entry = encode, .name = encode_name, .schema = schema, .err = err};
    reading evaluate = {.table = table, .entry = evaluate_entry, .name = evaluate_name, .schema = schema, .err = err};
    BS_TRY(read_rows(&rows, false));
    BS_TRY(read_block(&evaluate));
    BS_TRY(read_evaluate_inputs(&evaluate, encode));
    BS_TRY(check_all_read(&evaluate, encode));
    schema->block = (size_t)evaluate.block;
    return read_outputs(&evaluate);
}

static mdot_status read_whole(const reading *r)
{
    r->schema->block = 1;
    BS_TRY(read_rows(r, true));
    return read_outputs(r);
}

mdot_status rt_job_schema_read(const mdot_abi_table *table, rt_job_question question, rt_job_schema *out_schema,
                               mdot_error *err)
{
    rt_job_schema schema = {.type_count = RT_JOB_MAX_TYPE + 1};
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) schema.input_at[i] = RT_NOT_THERE;
    for (int i = 0; i < RT_JOB_OUTPUT_COUNT; i++) schema.output_at[i] = RT_NOT_THERE;
    const mdot_abi_entry *rows = find_entry(table, encode_name, &schema.rows_entry);
    const mdot_abi_entry *evaluate = find_entry(table, evaluate_name, &schema.evaluate_entry);
    if (question == RT_JOB_PREDICT && rows != NULL && evaluate != NULL) {
        BS_TRY(read_pair(table, rows, evaluate, &schema, err));
    } else {
        const char *name = question == RT_JOB_PREDICT ? predict_name : explain_name;
        rows = evaluate = find_entry(table, name, &schema.rows_entry);
        schema.evaluate_entry = schema.rows_entry;
        if (rows == NULL)
            return mdot_fail(err, MDOT_INCOMPATIBLE, "the artefact lacks entry %s; it %s", name, inabilities[question]);
        BS_TRY(read_whole(&(reading){
            .table = table, .entry = rows, .question = question, .name = name, .schema = &schema, .err = err}));
    }
    if (rows->least_length > 1 || evaluate->least_length > 1)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the predictor needs at least %u rows, but a job may have a single one",
                         rows->least_length > 1 ? rows->least_length : evaluate->least_length);
    limit_rows(&schema, table, rows);
    limit_rows(&schema, table, evaluate);
    *out_schema = schema;
    return MDOT_OK;
}
