/* freeze.c — makes jobs in which training leaves some parameters unchanged, for example fine-tuning of heads or LoRA.
 *
 * Operators still read a frozen parameter, but its gradient and its optimizer state do not exist. A gradient passes an
 * operator only if an operator before it is still trained. Therefore frozen layers at the start of a network skip the
 * backward pass.
 */
#include "base/struct_version.h"
#include "runtime/job/job_model.h"

#include <stdlib.h>

static const bs_struct_version freezing_type = BS_SIZED(mdot_job_freezing, trained_count);
static const bs_struct_version operator_type = BS_SIZED(mdot_job_operator, frozen_parameters);

/* Does the pattern match the module or a module that contains it, that is the whole name or a prefix that ends before
 * a dot? '*' matches any letters and '?' matches one. The part before the last '*' seen has been matched as early as
 * possible, which leaves the most to the rest. So only the rest is retried, one letter further on. The work is at
 * most the name's length times the pattern's. */
static bool matches(const char *pattern, const char *name)
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

static bool matches_any(const char *const *patterns, size_t count, const char *module)
{
    for (size_t i = 0; i < count; i++)
        if (matches(patterns[i], module)) return true;
    return false;
}

/* A module's name, once for each address. A job stores equal names once (string_pool.c), so that a long name that many
 * operators share is compared once. */
typedef struct module {
    const char *name;
    bool is_frozen;
} module;

typedef struct modules {
    module *items; /* sorted by the address of the name */
    size_t count;
} modules;

static int compare_modules(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const module *)a)->name, y = (uintptr_t)((const module *)b)->name;
    return (x > y) - (x < y);
}

/* Returns false if memory runs out. The caller frees the items. */
static bool collect_modules(const mdot_job_operator *operators, size_t count, modules *m)
{
    m->items = calloc(count + 1, sizeof *m->items);
    if (m->items == NULL) return false;
    size_t sorted = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = operators[i].module;
        if (name != NULL && (i == 0 || name != operators[i - 1].module)) m->items[sorted++].name = name;
    }
    qsort(m->items, sorted, sizeof *m->items, compare_modules);
    for (size_t i = 0; i < sorted; i++)
        if (i == 0 || m->items[i].name != m->items[i - 1].name) m->items[m->count++] = m->items[i];
    return true;
}

static void find_frozen(const mdot_job_freezing *f, modules *m)
{
    for (size_t i = 0; i < m->count; i++) {
        module *found = &m->items[i];
        if (matches_any(f->trained, f->trained_count, found->name)) continue;
        found->is_frozen = f->frozen_count == 0 || matches_any(f->frozen, f->frozen_count, found->name);
    }
}

/* An operator that has no module is frozen if the request freezes everything except listed modules. */
static bool is_frozen(const mdot_job_freezing *f, const modules *m, const char *name)
{
    if (name == NULL) return f->frozen_count == 0;
    const module key = {.name = name}, *found = bsearch(&key, m->items, m->count, sizeof key, compare_modules);
    return found != NULL && found->is_frozen;
}

/* Every pattern must match a module, because a pattern that matches none is misspelt. */
static mdot_status check_patterns(const modules *m, const char *const *patterns, size_t count, mdot_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (patterns == NULL || patterns[i] == NULL) return BS_INVALID(err, "a module pattern is NULL");
        bool found = false;
        for (size_t k = 0; k < m->count && !found; k++) found = matches(patterns[i], m->items[k].name);
        if (!found)
            return mdot_fail(err, MDOT_NOT_FOUND, "the pattern \"%.128s\" matches no module of the job", patterns[i]);
    }
    return MDOT_OK;
}

static mdot_status check(const modules *m, const mdot_job_freezing *f, mdot_error *err)
{
    if (m->count == 0)
        return BS_INVALID(err,
                          "freezing parameters needs module names, and the job omits them: keep them when you read the "
                          "job (keep_names), or name the modules when you export it");
    if (f->frozen_count + f->trained_count == 0)
        return BS_INVALID(err, "frozen and trained are both empty: pass at least one module pattern");
    mdot_status status = check_patterns(m, f->frozen, f->frozen_count, err);
    return status == MDOT_OK ? check_patterns(m, f->trained, f->trained_count, err) : status;
}

static void remove_phase(mdot_job_operator *op, mdot_phase phase)
{
    op->per_sample[phase] = op->per_step[phase] = op->per_square[phase] = (mdot_load){0};
}

static void freeze_parameters(mdot_job_operator *op)
{
    op->frozen_parameters += op->parameters;
    op->parameters = 0;
    remove_phase(op, MDOT_PHASE_WEIGHT_GRADIENT);
}

/* `trains` has an element for every operator. Returns true if any operator is still trained. */
static bool freeze(const mdot_job_freezing *f, const modules *m, mdot_job_operator *operators, size_t count,
                   bool *trains)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        mdot_job_operator *op = &operators[i];
        if (is_frozen(f, m, op->module)) freeze_parameters(op);
        bool before = false;
        for (size_t k = 0; k < op->input_count; k++) before = before || trains[op->inputs[k]];
        if (!before) remove_phase(op, MDOT_PHASE_DATA_GRADIENT);
        bool has_weights = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
        trains[i] = (before || has_weights) && (op->flags & MDOT_OPERATOR_STOPS_GRADIENT) == 0;
        any = any || has_weights;
    }
    return any;
}

/* Dependencies select elements of an array, so they are checked before they are followed. */
static mdot_status check_inputs(const mdot_job_operator *op, size_t index, mdot_error *err)
{
    bool valid = op->input_count == 0 || op->inputs != NULL;
    for (size_t k = 0; k < op->input_count && valid; k++) valid = op->inputs[k] < index;
    if (valid) return MDOT_OK;
    return BS_INVALID(err, "operator %zu reads an operator that does not precede it", index);
}

/* Freezes parameters in place. `operators` are undefined on failure. */
static mdot_status freeze_all(const mdot_job_freezing *f, mdot_job_operator *operators, size_t count, mdot_error *err)
{
    modules m = {0};
    bool *trains = calloc(count + 1, sizeof *trains);
    mdot_status status = MDOT_OK;
    if (!collect_modules(operators, count, &m) || trains == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = check(&m, f, err);
    if (status == MDOT_OK) {
        find_frozen(f, &m);
        if (!freeze(f, &m, operators, count, trains))
            status = BS_INVALID(err, "the patterns freeze every parameter: keep at least one trainable");
    }
    free(trains);
    free(m.items);
    return status;
}

mdot_status rt_job_freeze(const rt_components *components, const mdot_job *job, const mdot_job_freezing *freezing,
                          mdot_job **out_job, mdot_error *err)
{
    if (job == NULL || out_job == NULL) return BS_INVALID(err, "mdot_job_freeze: job or out_job is NULL");
    mdot_job_freezing f;
    BS_TRY(rt_handle_check(job, RT_JOB, "mdot_job_freeze", err));
    BS_TRY(bs_read_struct(&freezing_type, freezing, &f, err));
    size_t count = job->info.operator_count;
    mdot_job_operator *operators = rt_copy_operators(job);
    if (operators == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = freeze_all(&f, operators, count, err);
    if (status != MDOT_OK) {
        free(operators);
        return status;
    }
    if (job->program == NULL) return rt_job_copy(components, job, operators, NULL, job->lengths, out_job, err);
    double trained = 0;
    for (size_t i = 0; i < count; i++) trained += operators[i].parameters;
    rt_program program = *job->program;
    rt_program_freeze(&program, job->info.parameters > 0 ? trained / job->info.parameters : 1);
    return rt_job_copy(components, job, operators, &program, job->lengths, out_job, err);
}

/* The caller's operators change at the end only, so that they stay as they are on failure. */
mdot_status mdot_operators_freeze(const mdot_job_freezing *freezing, mdot_job_operator *operators,
                                  size_t operator_count, mdot_error *err)
{
    mdot_job_freezing f;
    mdot_status status = bs_read_struct(&freezing_type, freezing, &f, err);
    if (status == MDOT_OK) status = bs_check_struct(&operator_type, operators, err);
    if (status != MDOT_OK) return status;
    mdot_job_operator *copy = calloc(operator_count + 1, sizeof *copy);
    if (copy == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < operator_count && status == MDOT_OK; i++) {
        status = bs_read_element(&operator_type, operators, i, &copy[i], err);
        if (status == MDOT_OK) status = check_inputs(&copy[i], i, err);
    }
    if (status == MDOT_OK) status = freeze_all(&f, copy, operator_count, err);
    for (size_t i = 0; i < operator_count && status == MDOT_OK; i++)
        bs_write_struct(&operator_type, &copy[i], bs_struct_at(operators, i), bs_struct_bytes(operators));
    free(copy);
    return status;
}
