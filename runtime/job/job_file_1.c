/* job_file_1.c — `.job` files of version 1, which mdot 0.1 wrote. Their content holds only the name of a type:
 *
 *   batch, optimizer + 1 (0: none), count of types, each type as length and bytes;
 *   an operator: its type's number * 2 + known, then as in version 2 (rt_get_numbers).
 *
 * job_types_1.def holds the traits of the types that mdot had then.
 */
#include "runtime/job/job_bytes.h"

#include <stdlib.h>

#define NOTHING MDOT_SAVES_NOTHING
#define INPUTS MDOT_SAVES_INPUTS
#define RESULT MDOT_SAVES_RESULT
#define FACTORS MDOT_SAVES_FACTORS
#define INDICES MDOT_SAVES_INDICES
#define NONE 0
#define VIEW MDOT_TRAIT_VIEW
#define PICKS MDOT_TRAIT_PICKS
#define PARTS MDOT_TRAIT_PARTS
#define SUMS_PARTS MDOT_TRAIT_SUMS_PARTS

static const struct {
    const char *name;
    uint32_t autocast, saved, reserve, traits;
} types_1[] = {
#define TYPE_1(name, autocast, saved, reserve, trait) {name, MDOT_AUTOCAST_##autocast, saved, reserve, trait},
#include "runtime/job/job_types_1.def"
#undef TYPE_1
};

/* Unknown types are taken to save their inputs. */
static mdot_operator_traits traits_of(const char *name)
{
    for (uint32_t i = 0; i < sizeof types_1 / sizeof *types_1; i++) {
        if (strcmp(types_1[i].name, name) != 0) continue;
        return (mdot_operator_traits){.number = i + 1,
                                      .autocast = types_1[i].autocast,
                                      .saved_written = types_1[i].saved,
                                      .saved_fused = types_1[i].saved,
                                      .saved_recomputed = types_1[i].saved,
                                      .reserve = types_1[i].reserve,
                                      .traits = types_1[i].traits};
    }
    return (mdot_operator_traits){.saved_written = INPUTS, .saved_fused = INPUTS, .saved_recomputed = INPUTS};
}

static bool get_types(rt_reader *r, rt_decoded *d)
{
    size_t count = rt_get_below(r, (uint64_t)rt_bytes_left(r) + 1);
    d->types = calloc(count + 1, sizeof *d->types);
    if (d->types == NULL) return false;
    while (d->type_count < count && !r->failed) {
        char *name = rt_get_text(r);
        if (name == NULL) return r->failed;
        d->types[d->type_count++] = (rt_job_type){.name = name, .traits = traits_of(name)};
    }
    return true;
}

static void get_operator(rt_reader *r, rt_decoded *d, size_t index, size_t *input_count)
{
    mdot_job_operator *op = &d->operators[index];
    uint64_t type = rt_get_below(r, 2 * (uint64_t)d->type_count);
    if (r->failed) return;
    op->type = d->types[type / 2].name;
    op->known = type & 1;
    if (op->known) op->traits = d->types[type / 2].traits;
    rt_get_numbers(r, d, index, input_count);
}

bool rt_get_content_1(rt_reader *r, size_t operator_count, rt_decoded *d)
{
    size_t input_count = 0;
    if (!rt_make_tensors(d, operator_count, rt_bytes_left(r))) return false;
    d->description.batch = (int64_t)rt_get_below(r, (uint64_t)INT64_MAX);
    uint64_t optimizer = rt_get_below(r, MDOT_OPTIMIZER_ADAMW + 2);
    d->description.has_optimizer = optimizer > 0;
    d->description.optimizer = optimizer > 0 ? (mdot_optimizer)(optimizer - 1) : MDOT_OPTIMIZER_SGD;
    if (!get_types(r, d)) return false;
    for (size_t i = 0; i < operator_count && !r->failed; i++) get_operator(r, d, i, &input_count);
    if (r->at != r->end) r->failed = true;
    return true;
}
