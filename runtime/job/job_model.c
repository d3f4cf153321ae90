/* job_model.c — operator sequences in memory: checks and copies them and computes positions. job_file.c reads and
 * writes files.
 *
 * Every source of jobs, for example a reader of ONNX or of `.job` files, goes through rt_job_make. Therefore one
 * list of checks protects all code that reads jobs.
 */
#include "runtime/job/job_model.h"
#include "base/struct_version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *mdot_setting_name(mdot_setting setting)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        MDOT_SETTING_MAP(NAME)
#undef NAME
    };
    return (unsigned)setting < MDOT_SETTING_COUNT ? names[setting] : "?";
}

static bool is_count(double number) { return number >= 0 && number <= RT_JOB_MAX_COUNT; /* false for NaN */ }

static bool is_load(const mdot_load *load)
{
    return is_count(load->flops) && is_count(load->bytes_read) && is_count(load->bytes_written);
}

/* Padding is the only setting that may be negative: it crops. */
static bool is_padding(int setting) { return setting == MDOT_SETTING_PADDING_H || setting == MDOT_SETTING_PADDING_W; }

static bool is_setting(int setting, int64_t value)
{
    return value <= RT_JOB_MAX_SETTING && value >= (is_padding(setting) ? -RT_JOB_MAX_SETTING : 0);
}

static const bs_struct_version description_type = BS_SIZED(mdot_job_description, optimizer);
static const bs_struct_version operator_type = BS_SIZED(mdot_job_operator, module);
static const bs_struct_version info_type = BS_SIZED(mdot_job_info, notes);

/* Flags and fields of later versions must be zero, as they are in programs that predate them. */
static bool reserved_is_zero(const mdot_job_operator *op)
{
    bool is_zero =
        (op->flags & ~(uint32_t)MDOT_OPERATOR_FLAGS_ALL) == 0 && op->batch_settings >> MDOT_SETTING_COUNT == 0;
    for (int s = MDOT_SETTING_COUNT; s < MDOT_SETTING_CAPACITY; s++) is_zero = is_zero && op->setting[s] == 0;
    for (size_t i = 0; i < sizeof op->traits.reserved / sizeof *op->traits.reserved; i++)
        is_zero = is_zero && op->traits.reserved[i] == 0;
    return is_zero;
}

static mdot_status check_operator(const mdot_job_operator *op, size_t index, mdot_error *err)
{
    if (op->type == NULL || *op->type == '\0')
        return BS_INVALID(err, "operator %zu of the job: type is missing", index);
    if (op->traits.number > RT_JOB_MAX_TYPE)
        return BS_INVALID(err, "operator %zu of the job (%s): traits.number is %u; the largest type id is %d", index,
                          op->type, (unsigned)op->traits.number, RT_JOB_MAX_TYPE);
    bool sound = is_count(op->parameters) && is_count(op->frozen_parameters);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        sound = sound && is_load(&op->per_sample[phase]) && is_load(&op->per_step[phase]) &&
                is_load(&op->per_square[phase]);
    if (!sound)
        return BS_INVALID(err,
                          "operator %zu of the job (%s): FLOPs, bytes and parameters must be numbers from 0 to 2^62",
                          index, op->type);
    for (int s = 0; s < MDOT_SETTING_COUNT; s++)
        if (!is_setting(s, op->setting[s]))
            return BS_INVALID(err, "operator %zu of the job (%s): %s is %lld; accepted: %s to 2^40", index, op->type,
                              mdot_setting_name((mdot_setting)s), (long long)op->setting[s],
                              is_padding(s) ? "-2^40" : "0");
    if (!reserved_is_zero(op))
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "operator %zu of the job (%s) sets flags or reserved fields that mdot %s does not know: use a "
                         "newer version of mdot, or set them to 0",
                         index, op->type, MDOT_VERSION_STRING);
    if (op->input_count > 0 && op->inputs == NULL)
        return BS_INVALID(err, "operator %zu of the job (%s): input_count is above 0, but inputs is NULL", index,
                          op->type);
    for (size_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] >= index || (i > 0 && op->inputs[i] <= op->inputs[i - 1]))
            return BS_INVALID(err, "operator %zu of the job (%s): inputs must ascend and precede the operator", index,
                              op->type);
    return MDOT_OK;
}

static mdot_status check(const mdot_job_description *d, mdot_error *err)
{
    if (d->operator_count == 0) return BS_INVALID(err, "the job is empty: operator_count must be at least 1");
    if (d->operator_count > RT_JOB_MAX_OPERATORS)
        return BS_INVALID(err, "the job has %zu operators; the limit is %d", d->operator_count, RT_JOB_MAX_OPERATORS);
    if (d->batch < 0) return BS_INVALID(err, "the job's batch is negative");
    if (d->has_optimizer && (unsigned)d->optimizer > MDOT_OPTIMIZER_ADAMW)
        return BS_INVALID(err, "the job's optimizer is unknown; accepted: sgd, adam, adamw");
    if (d->reserved != 0 || (d->notes & ~(uint32_t)MDOT_JOB_NOTES_ALL) != 0)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the job sets notes or reserved fields that mdot %s does not know: use a newer version of "
                         "mdot, or set them to 0",
                         MDOT_VERSION_STRING);
    return MDOT_OK;
}

static void round_load(mdot_load *load)
{
    *load = (mdot_load){rint(load->flops), rint(load->bytes_read), rint(load->bytes_written)};
}

/* Converts the caller's operators to this library's form. Their strings and inputs remain the caller's. */
static mdot_status copy_operators(const mdot_job_description *d, mdot_job_operator *operators, mdot_error *err)
{
    for (size_t i = 0; i < d->operator_count; i++)
        BS_TRY(bs_read_element(&operator_type, d->operators, i, &operators[i], err));
    return MDOT_OK;
}

static mdot_status check_operators(mdot_job *job, mdot_error *err)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        BS_TRY(check_operator(op, i, err));
        if (op->block > job->info.block_count && op->block != ++job->info.block_count)
            return BS_INVALID(err, "operator %zu of the job (%s): blocks must ascend, but block %u precedes block %u",
                              i, op->type, (unsigned)op->block, (unsigned)job->info.block_count);
    }
    return MDOT_OK;
}

static void own_operator(mdot_job_operator *op, uint32_t **inputs)
{
    op->parameters = rint(op->parameters);
    op->frozen_parameters = rint(op->frozen_parameters);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        round_load(&op->per_sample[phase]);
        round_load(&op->per_step[phase]);
        round_load(&op->per_square[phase]);
    }
    if (op->input_count > 0) memcpy(*inputs, op->inputs, op->input_count * sizeof **inputs);
    op->inputs = *inputs;
    *inputs += op->input_count;
    op->depth = op->height = op->out_degree = op->equal_blocks = 0;
}

static void find_positions(mdot_job *job)
{
    mdot_job_operator *operators = job->operators;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        for (size_t k = 0; k < operators[i].input_count; k++) {
            mdot_job_operator *producer = &operators[operators[i].inputs[k]];
            producer->out_degree++;
            if (operators[i].depth <= producer->depth) operators[i].depth = producer->depth + 1;
        }
    }
    for (size_t i = job->info.operator_count; i-- > 0;) {
        for (size_t k = 0; k < operators[i].input_count; k++) {
            mdot_job_operator *producer = &operators[operators[i].inputs[k]];
            if (producer->height <= operators[i].height) producer->height = operators[i].height + 1;
        }
    }
}

/* Copies the strings and inputs into the job. Returns false if memory runs out. */
static bool own_operators(mdot_job *job)
{
    size_t input_count = 0;
    for (size_t i = 0; i < job->info.operator_count; i++) input_count += job->operators[i].input_count;
    uint32_t *inputs = job->inputs = calloc(input_count + 1, sizeof *job->inputs);
    if (inputs == NULL || !rt_pool_strings(job->operators, job->info.operator_count, &job->strings)) return false;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        own_operator(&job->operators[i], &inputs);
        job->info.unknown_count += !job->operators[i].known;
        job->info.parameters += job->operators[i].parameters;
        job->info.frozen_parameters += job->operators[i].frozen_parameters;
    }
    return true;
}

static mdot_status fill_job(mdot_job *job, const mdot_job_description *d, const rt_program *program,
                            const rt_lengths *lengths, mdot_error *err)
{
    job->info = (mdot_job_info){.struct_size = sizeof job->info,
                                .operator_count = d->operator_count,
                                .batch = d->batch,
                                .has_optimizer = d->has_optimizer,
                                .notes = d->notes,
                                .optimizer = d->has_optimizer ? d->optimizer : MDOT_OPTIMIZER_SGD};
    BS_TRY(check_operators(job, err));
    if (!own_operators(job)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    find_positions(job);
    if (!rt_compare_blocks(job->operators, job->info.operator_count, job->info.block_count))
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    job->analysis = job->analyzer->create(job);
    if (job->analysis == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (program != NULL) {
        job->program = rt_program_copy(program);
        if (job->program == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        rt_program_estimate(job->analyzer, job->analysis, job->program);
    }
    if (lengths == NULL) return MDOT_OK;
    const rt_job_numbers numbers = {job->operators, job->info.operator_count, job->program};
    job->lengths = rt_lengths_copy(lengths, &numbers);
    if (job->lengths == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    job->info.length = job->lengths->current;
    job->info.length_name = job->lengths->name;
    return MDOT_OK;
}

static void free_content(mdot_job *job)
{
    free(job->operators);
    free(job->inputs);
    free(job->strings.chars);
    free(job->program);
    free(job->lengths);
    if (job->analysis != NULL) job->analyzer->destroy(job->analysis);
}

mdot_status rt_job_make(const rt_components *components, const mdot_job_description *d, mdot_job_operator *operators,
                        const rt_program *program, const rt_lengths *lengths, mdot_job **out_job, mdot_error *err)
{
    mdot_status status = check(d, err);
    mdot_job *job = status == MDOT_OK ? calloc(1, sizeof *job) : NULL;
    if (job == NULL) {
        free(operators);
        return status == MDOT_OK ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : status;
    }
    job->operators = operators;
    job->analyzer = components->analyzer;
    status = fill_job(job, d, program, lengths, err);
    if (status != MDOT_OK) {
        free_content(job);
        free(job);
        return status;
    }
    rt_handle_register(job, RT_JOB);
    *out_job = job;
    return MDOT_OK;
}

mdot_status rt_job_create(const rt_components *components, const mdot_job_description *description, mdot_job **out_job,
                          mdot_error *err)
{
    if (out_job == NULL) return BS_INVALID(err, "mdot_job_create: out_job is NULL");
    mdot_job_description d;
    BS_TRY(bs_read_struct(&description_type, description, &d, err));
    BS_TRY(check(&d, err));
    BS_TRY(bs_check_struct(&operator_type, d.operators, err));
    mdot_job_operator *operators = calloc(d.operator_count, sizeof *operators);
    if (operators == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = copy_operators(&d, operators, err);
    if (status == MDOT_OK) return rt_job_make(components, &d, operators, NULL, NULL, out_job, err);
    free(operators);
    return status;
}

mdot_job_operator *rt_copy_operators(const mdot_job *job)
{
    mdot_job_operator *operators = calloc(job->info.operator_count, sizeof *operators);
    if (operators != NULL) memcpy(operators, job->operators, job->info.operator_count * sizeof *operators);
    return operators;
}

mdot_status rt_job_copy(const rt_components *components, const mdot_job *job, mdot_job_operator *operators,
                        const rt_program *program, const rt_lengths *lengths, mdot_job **out_job, mdot_error *err)
{
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operator_count = job->info.operator_count,
                                              .batch = job->info.batch,
                                              .has_optimizer = job->info.has_optimizer,
                                              .optimizer = job->info.optimizer,
                                              .notes = job->info.notes};
    if (operators == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return rt_job_make(components, &description, operators, program, lengths, out_job, err);
}

void mdot_job_destroy(mdot_job *job)
{
    if (job == NULL || !rt_handle_unregister(job, RT_JOB, __func__)) return;
    free_content(job);
    if (!rt_validates_handles()) free(job);
}

mdot_status mdot_job_get_info(const mdot_job *job, mdot_job_info *out_info)
{
    if (job == NULL || !rt_handle_is_live(job, RT_JOB, __func__)) return MDOT_INVALID_ARGUMENT;
    return bs_fill_struct(&info_type, &job->info, out_info, NULL);
}

mdot_status mdot_job_get_operator(const mdot_job *job, size_t index, mdot_job_operator *out_operator)
{
    if (job == NULL || !rt_handle_is_live(job, RT_JOB, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= job->info.operator_count) return MDOT_OUT_OF_RANGE;
    return bs_fill_struct(&operator_type, &job->operators[index], out_operator, NULL);
}
