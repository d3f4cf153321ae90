/* freeze.c — makes jobs in which training leaves some parameters unchanged, for example fine-tuning of heads or LoRA.
 *
 * A frozen parameter has neither a gradient nor optimizer state. It is read as before. A gradient passes an operator
 * only if an operator before it is still trained. Therefore frozen layers at the start of a network skip the backward
 * pass.
 */
#include "runtime/job/freeze.h"
#include "base/struct_version.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

static const bs_struct_version freezing_type = BS_SIZED(mdot_job_freezing, trained_count);

/* ---- Patterns ------------------------------------------------------------------------------------------------ */

/* Does the pattern match the module or a module that contains it, that is the whole name or a prefix that ends before
 * a dot? '*' matches any letters and '?' matches one. The part before the last '*' seen has been matched as early as
 * possible, which leaves the most to the rest. So only the rest is retried, one letter further on. The work is at
 * most the name's length times the pattern's. */
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

/* The job's modules, each once, because many operators may belong to one module with a long name. */
typedef struct modules {
    const char *texts; /* the job's texts, which contain the names */
    const char **names;
    size_t count;
    uint8_t *frozen; /* indexed by the name's offset in `texts`: MODULE_… */
} modules;
enum { MODULE_UNSEEN, MODULE_TRAINED, MODULE_FROZEN };

/* Returns false if memory runs out. */
static bool collect_modules(const mdot_job *job, modules *m)
{
    *m = (modules){.texts = job->strings.texts};
    m->names = calloc(job->info.operator_count, sizeof(*m->names));
    m->frozen = calloc(job->strings.text_bytes, sizeof *m->frozen);
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

/* An operator that has no module is frozen if the request freezes everything except listed modules. */
static bool is_frozen(const mdot_job_freezing *f, const modules *m, const char *module)
{
    return module == NULL ? f->frozen_count == 0 : m->frozen[module - m->texts] == MODULE_FROZEN;
}

/* Every pattern must match a module, because a pattern that matches none is misspelt. */
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

/* `learns` has an element for every operator. Returns true if any operator is still trained. */
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

/* Creates the new job's operators, which the caller frees. */
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

mdot_status rt_job_freeze(const rt_components *components, const mdot_job *job, const mdot_job_freezing *freezing,
                          mdot_job **out_job, mdot_error *err)
{
    if (job == NULL || out_job == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_job_freeze needs a job and a place for the new one");
    mdot_job_freezing f;
    mdot_job_operator *operators = NULL;
    mdot_status status = rt_handle_check(job, RT_JOB, "mdot_job_freeze", err);
    if (status == MDOT_OK) status = bs_read_struct(&freezing_type, freezing, &f, err);
    if (status == MDOT_OK) status = make_operators(job, &f, &operators, err);
    if (status != MDOT_OK) return status;
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operator_count = job->info.operator_count,
                                              .batch = job->info.batch,
                                              .has_optimizer = job->info.has_optimizer,
                                              .optimizer = job->info.optimizer,
                                              .notes = job->info.notes};
    return rt_job_make(components, &description, operators, out_job, err);
}
