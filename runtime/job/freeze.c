/* freeze.c — jobs of which training leaves some parameters as they are: fine-tuning of heads, LoRA and its kin.
 *
 * A frozen parameter has no gradient and no optimizer's state; it is read as before. A gradient passes an operator
 * only where something before it still learns, so that frozen layers at the start of a network have no backward
 * pass at all.
 */
#include "base/sized.h"
#include "runtime/core/core.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>

static const bs_sized freezing_type = BS_SIZED(mdot_job_freezing, trained_count);

/* ---- Patterns ------------------------------------------------------------------------------------------------ */

/* Whether the pattern, in which '*' stands for any letters and '?' for one, fits the whole of the `length` letters.
 * */
static bool fits(const char *pattern, const char *name, size_t length)
{
    const char *end = name + length, *star = NULL, *resumed = NULL;
    while (name < end) {
        if (*pattern == '*') {
            star = ++pattern;
            resumed = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++resumed;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

/* A module, or one that it stands in. */
static bool fits_module(const char *pattern, const char *module)
{
    if (module == NULL) return false;
    for (const char *dot = strchr(module, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        if (fits(pattern, module, (size_t)(dot - module))) return true;
    return fits(pattern, module, strlen(module));
}

static bool fits_any(const char *const *patterns, size_t count, const char *module)
{
    for (size_t i = 0; i < count; i++)
        if (fits_module(patterns[i], module)) return true;
    return false;
}

static bool is_frozen(const mdot_job_freezing *f, const mdot_job_operator *op)
{
    if (fits_any(f->trained, f->trained_count, op->module)) return false;
    return f->frozen_count == 0 || fits_any(f->frozen, f->frozen_count, op->module);
}

/* Every pattern fits something: one that does not is misspelt. */
static mdot_status check_patterns(const mdot_job *job, const char *const *patterns, size_t count, mdot_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (patterns == NULL || patterns[i] == NULL)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a pattern of modules is missing");
        bool found = false;
        for (size_t k = 0; k < job->info.operator_count && !found; k++)
            found = fits_module(patterns[i], job->operators[k].module);
        if (!found) return mdot_fail(err, MDOT_NOT_FOUND, "no module of the job is called \"%.128s\"", patterns[i]);
    }
    return MDOT_OK;
}

static mdot_status check(const mdot_job *job, const mdot_job_freezing *f, mdot_error *err)
{
    bool named = false;
    for (size_t i = 0; i < job->info.operator_count; i++) named = named || job->operators[i].module != NULL;
    if (!named)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "the job holds no names of modules, by which parameters are frozen: keep_names keeps them");
    if (f->frozen_count + f->trained_count == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "nothing says which parameters are frozen");
    mdot_status status = check_patterns(job, f->frozen, f->frozen_count, err);
    return status == MDOT_OK ? check_patterns(job, f->trained, f->trained_count, err) : status;
}

/* ---- Freezing ------------------------------------------------------------------------------------------------ */

static void freeze_parameters(mdot_job_operator *op)
{
    op->frozen_parameters += op->parameters;
    op->parameters = 0;
    op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = op->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){0};
}

/* `learns` has a place for every operator. True: something still learns. */
static bool freeze(const mdot_job_freezing *f, mdot_job_operator *operators, size_t count, bool *learns)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        mdot_job_operator *op = &operators[i];
        if (is_frozen(f, op)) freeze_parameters(op);
        bool before = false;
        for (size_t k = 0; k < op->input_count; k++) before = before || learns[op->inputs[k]];
        if (!before) op->per_sample[MDOT_PHASE_DATA_GRADIENT] = op->per_step[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){0};
        bool own = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
        learns[i] = before || own;
        any = any || own;
    }
    return any;
}

mdot_status mdot_job_freeze(const mdot_job *job, const mdot_job_freezing *freezing, mdot_job **out_job, mdot_error *err)
{
    if (job == NULL || out_job == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_job_freeze needs a job and a place for the new one");
    mdot_job_freezing f;
    mdot_status status = rt_armor_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = bs_read_struct(&freezing_type, freezing, &f, err);
    if (status == MDOT_OK) status = check(job, &f, err);
    if (status != MDOT_OK) return status;
    size_t count = job->info.operator_count;
    mdot_job_operator *operators = calloc(count, sizeof *operators);
    bool *learns = calloc(count, sizeof *learns);
    if (operators == NULL || learns == NULL) {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a job of %zu operators", count);
    } else {
        memcpy(operators, job->operators, count * sizeof *operators);
        if (!freeze(&f, operators, count, learns))
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "no parameter is left that learns");
    }
    free(learns);
    if (status != MDOT_OK) {
        free(operators);
        return status;
    }
    mdot_job_description description = {.struct_size = sizeof description,
                                        .operator_count = count,
                                        .batch = job->info.batch,
                                        .has_optimizer = job->info.has_optimizer,
                                        .optimizer = job->info.optimizer,
                                        .notes = job->info.notes};
    return rt_job_make(&description, operators, out_job, err);
}
