/* targets.c — turn names of targets and precisions, as in --target and --compute, into targets of images. */
#include "base/suggest.h"
#include "base/text.h"
#include "codegen/backend.h"
#include "codegen/codegen.h"
#include "compiler/compiler.h"

#include <stdio.h>
#include <string.h>

typedef struct computes { /* requested precisions per backend, preferred first; empty: the backend's first */
    cg_compute requested[CG_BACKENDS][CG_COMPUTES];
    int count[CG_BACKENDS];
} computes;

static bool find_compute(const cg_backend *backend, const char *name, size_t length, cg_compute *out_compute)
{
    for (int i = 0; i < backend->compute_count; i++) {
        const char *known = cg_compute_name(backend->computes[i]);
        if (strlen(known) != length || strncmp(known, name, length) != 0) continue;
        *out_compute = backend->computes[i];
        return true;
    }
    return false;
}

static void request(computes *c, int backend, cg_compute kernel_precision)
{
    for (int i = 0; i < c->count[backend]; i++)
        if (c->requested[backend][i] == kernel_precision) return;
    c->requested[backend][c->count[backend]++] = kernel_precision;
}

/* "cpu=fp32, cpu=bf16, cuda=bf16, cuda=fp32, bf16, fp32" */
static mdot_status unknown_compute(const char *item, size_t length, mdot_error *err)
{
    char text[256];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    for (int is_short = 0; is_short <= 1; is_short++)
        for (int b = 0; b < CG_BACKENDS; b++) {
            const cg_backend *backend = cg_backends[b];
            for (int i = 0; i < backend->compute_count && !(is_short && backend->is_default); i++)
                bs_join_add(&list, "%s%s%s", is_short ? "" : backend->name, is_short ? "" : "=",
                            cg_compute_name(backend->computes[i]));
        }
    char unknown[BS_SUGGEST_LENGTH + 1];
    snprintf(unknown, sizeof unknown, "%.*s", (int)length, item);
    return BS_INVALID(err, "unknown kernel precision \"%.*s\"%s; known are %s", (int)length, item,
                      bs_suggest_among(unknown, text).text, text);
}

/* Parses "cuda=bf16", or "bf16" for every kind that has it. */
static bool parse_compute(const char *item, size_t length, computes *c)
{
    const char *equals = memchr(item, '=', length);
    const char *name = equals != NULL ? equals + 1 : item;
    size_t kind_length = equals != NULL ? (size_t)(equals - item) : 0;
    bool is_known = false;
    for (int b = 0; b < CG_BACKENDS; b++) {
        const cg_backend *backend = cg_backends[b];
        bool matches =
            equals == NULL || (strlen(backend->name) == kind_length && strncmp(backend->name, item, kind_length) == 0);
        cg_compute kernel_precision;
        if (!matches || !find_compute(backend, name, length - (size_t)(name - item), &kernel_precision)) continue;
        request(c, b, kernel_precision);
        is_known = true;
    }
    return is_known;
}

static mdot_status parse_computes(const char *text, computes *out_computes, mdot_error *err)
{
    computes c = {0};
    for (const char *item = text; item != NULL;) {
        const char *comma = strchr(item, ',');
        size_t length = comma != NULL ? (size_t)(comma - item) : strlen(item);
        if (!parse_compute(item, length, &c)) return unknown_compute(item, length, err);
        item = comma != NULL ? comma + 1 : NULL;
    }
    for (int b = 0; b < CG_BACKENDS; b++)
        if (c.count[b] == 0) request(&c, b, cg_backends[b]->computes[0]);
    *out_computes = c;
    return MDOT_OK;
}

static mdot_status unknown_target(const char *name, mdot_error *err)
{
    char text[512];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    for (int b = 0; b < CG_BACKENDS; b++) cg_backends[b]->list(&list);
    if (strncmp(name, "sm", 2) == 0 && name[2] >= '0' && name[2] <= '9') /* the nearest name may be another one */
        return BS_INVALID(err, "unknown target \"%s\" (did you mean sm_%s?); known are %s", name, name + 2, text);
    return BS_INVALID(err, "unknown target \"%s\"%s; known are %s", name, bs_suggest_among(name, text).text, text);
}

/* NOT_FOUND: the backend does not know the name. */
static mdot_status add_targets(const char *name, int backend, const computes *c, co_targets *targets, mdot_error *err)
{
    for (int i = 0; i < c->count[backend]; i++) {
        cg_target parsed[MDOT_ABI_MAX_IMAGES];
        int count = 0;
        BS_TRY(cg_backends[backend]->parse(name, c->requested[backend][i], parsed, &count, err));
        for (int k = 0; k < count; k++) BS_TRY(cg_add_target(targets->target, &targets->count, parsed[k], err));
    }
    return MDOT_OK;
}

static mdot_status add_named(const char *name, const computes *c, co_targets *targets, bool is_named[CG_BACKENDS],
                             mdot_error *err)
{
    for (int b = 0; b < CG_BACKENDS; b++) {
        mdot_status status = add_targets(name, b, c, targets, err);
        if (status == MDOT_NOT_FOUND) continue;
        is_named[b] = true;
        return status;
    }
    return unknown_target(name, err);
}

mdot_status co_parse_targets(const char *const *names, size_t count, const char *kernel_precision,
                             co_targets *out_targets, mdot_error *err)
{
    co_targets targets = {.count = 0};
    bool is_named[CG_BACKENDS] = {false};
    computes c;
    BS_TRY(parse_computes(kernel_precision, &c, err));
    for (size_t i = 0; i < count; i++) BS_TRY(add_named(names[i], &c, &targets, is_named, err));
    for (int b = 0; b < CG_BACKENDS; b++)
        if (cg_backends[b]->is_default && !is_named[b]) BS_TRY(add_targets(cg_backends[b]->name, b, &c, &targets, err));
    *out_targets = targets;
    return MDOT_OK;
}
