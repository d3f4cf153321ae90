/* freeze.c — jobs of which training leaves some parameters as they are: fine-tuning of heads, LoRA and its kin.
 *
 * A frozen parameter has no gradient and no optimizer's state; it is read as before. A gradient passes an operator
 * only where something before it still learns, so that frozen layers at the start of a network have no backward
 * pass at all.
 */
#include "base/struct_version.h"
#include "runtime/core/core.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>

static const bs_struct_version freezing_type = BS_SIZED(mdot_job_freezing, trained_count);

/* ---- Patterns ------------------------------------------------------------------------------------------------ */

/* Whether the pattern, in which '*' stands for any letters and '?' for one, fits the module or one that it stands in:
 * the whole name, or what stands before one of its dots. What stands before the last '*' that was met has been fitted
 * as early as can be, which leaves most to the rest; so that alone is tried again, a letter further on, and the work is
 * the name's length times the pattern's at most. */
static bool fits(const char *pattern, const char *name)
{
    const char *star = NULL, *resumed = NULL;
    for (;;) {
        bool is_end = *name == '\0';
        if (*pattern == '*') {
            star = ++pattern;
            resumed = name;
        } else if (*pattern == '\0' && (is_end || *name == '.')) {
            return true;
        } else if (!is_end && *pattern != '\0' && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (!is_end && star != NULL) {
            pattern = star;
            name = ++resumed;
        } else {
            return false;
        }
    }
}

static bool fits_any(const char *const *patterns, size_t count, const char *module)
{
    for (size_t i = 0; i < count; i++)
        if (fits(patterns[i], module)) return true;
    return false;
}

/* ---- Modules -------------------------------------------------------------------------------------------------- */

/* A job's modules, each once: as many operators as there are may stand in one with a long name. */
typedef struct modules {
    const char *texts; /* the job's, in which the names lie */
    const char **names;
    size_t count;
    uint8_t *frozen; /* by where the name begins in `texts`: MODULE_… */
} modules;
enum { MODULE_UNSEEN, MODULE_TRAINED, MODULE_FROZEN };

/* False: memory ran out. */
static bool collect_modules(const mdot_job *job, modules *m)
{
    *m = (modules){.texts = job->texts};
    m->names = calloc(job->info.operator_count, sizeof(*m->names));
    m->frozen = calloc(job->text_bytes, sizeof *m->frozen);
    if (m->names == NULL || m->frozen == NULL) return false;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const char *name = job->operators[i].module;
        if (name == NULL || m->frozen[name - m->texts] != MODULE_UNSEEN) continue;
        m->frozen[name - m->texts] = MODULE_TRAINED;
        m->names[m->count++] = name;
    }
    return true;
}

static void free_modules(modules *m)
{
    free(m->names);
    free(m->frozen);
}

static void find_frozen(const mdot_job_freezing *f, modules *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (fits_any(f->trained, f->trained_count, m->names[i])) continue;
        if (f->frozen_count == 0 || fits_any(f->frozen, f->frozen_count, m->names[i]))
            m->frozen[m->names[i] - m->texts] = MODULE_FROZEN;
    }
}

/* What has no module is frozen where all is but what is trained. */
static bool is_frozen(const mdot_job_freezing *f, const modules *m, const char *module)
{
    return module == NULL ? f->frozen_count == 0 : m->frozen[module - m->texts] == MODULE_FROZEN;
}

/* Every pattern fits something: one that does not is misspelt. */
static mdot_status check_patterns(const modules *m, const char *const *patterns, size_t count, mdot_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (patterns == NULL || patterns[i] == NULL)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a pattern of modules is missing");
        bool found = false;
        for (size_t k = 0; k < m->count && !found; k++) found = fits(patterns[i], m->names[k]);
        if (!found) return mdot_fail(err, MDOT_NOT_FOUND, "no module of the job is called \"%.128s\"", patterns[i]);
    }
    return MDOT_OK;
}

static mdot_status check(const modules *m, const mdot_job_freezing *f, mdot_error *err)
{
    if (m->count == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "the job holds no names of modules, by which parameters are frozen: keep_names keeps them");
    if (f->frozen_count + f->trained_count == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "nothing says which parameters are frozen");
    mdot_status status = check_patterns(m, f->frozen, f->frozen_count, err);
    return status == MDOT_OK ? check_patterns(m, f->trained, f->trained_count, err) : status;
}

/* ---- Freezing ------------------------------------------------------------------------------------------------ */

static void freeze_parameters(mdot_job_operator *op)
{
    op->frozen_parameters += op->parameters;
    op->parameters = 0;
    op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = op->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){0};
}

/* `learns` has a place for every operator. True: something still learns. */
static bool freeze(const mdot_job_freezing *f, const modules *m, mdot_job_operator *operators, size_t count,
                   bool *learns)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        mdot_job_operator *op = &operators[i];
        if (is_frozen(f, m, op->module)) freeze_parameters(op);
        bool before = false;
        for (size_t k = 0; k < op->input_count; k++) before = before || learns[op->inputs[k]];
        if (!before) op->per_sample[MDOT_PHASE_DATA_GRADIENT] = op->per_step[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){0};
        bool own = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
        learns[i] = before || own;
        any = any || own;
    }
    return any;
}

/* The new job's operators, which the caller frees. */
static mdot_status make_operators(const mdot_job *job, const mdot_job_freezing *f, mdot_job_operator **out_operators,
                                  mdot_error *err)
{
    size_t count = job->info.operator_count;
    modules m;
    mdot_job_operator *operators = calloc(count, sizeof *operators);
    bool *learns = calloc(count, sizeof *learns);
    mdot_status status = MDOT_OK;
    if (!collect_modules(job, &m) || operators == NULL || learns == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a job of %zu operators", count);
    if (status == MDOT_OK) status = check(&m, f, err);
    if (status == MDOT_OK) {
        find_frozen(f, &m);
        memcpy(operators, job->operators, count * sizeof *operators);
        if (!freeze(f, &m, operators, count, learns))
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "no parameter is left that learns");
    }
    free(learns);
    free_modules(&m);
    if (status == MDOT_OK)
        *out_operators = operators;
    else
        free(operators);
    return status;
}

mdot_status mdot_job_freeze(const mdot_job *job, const mdot_job_freezing *freezing, mdot_job **out_job, mdot_error *err)
{
    if (job == NULL || out_job == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_job_freeze needs a job and a place for the new one");
    mdot_job_freezing f;
    mdot_job_operator *operators = NULL;
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = bs_read_struct(&freezing_type, freezing, &f, err);
    if (status == MDOT_OK) status = make_operators(job, &f, &operators, err);
    if (status != MDOT_OK) return status;
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operator_count = job->info.operator_count,
                                              .batch = job->info.batch,
                                              .has_optimizer = job->info.has_optimizer,
                                              .optimizer = job->info.optimizer,
                                              .notes = job->info.notes};
    return rt_job_make(&description, operators, out_job, err);
}
