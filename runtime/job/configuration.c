/* configuration.c — a configuration as the caller gave it: in the library's form, checked, and with its GPU.
 *
 * A GPU is a name or figures. Names are compared letter by letter with all that there are, which a call for many pairs
 * does once for each pointer.
 */
#include "runtime/job/predict.h"

#include <math.h>

enum { MAX_BATCH = 1 << 24 }; /* as far as an f32 holds every whole number */

static const bs_sized configuration_type = BS_SIZED(mdot_configuration, optimizer);

static mdot_status check_numbers(const mdot_configuration *c, mdot_error *err)
{
    if (c->batch < 1 || c->batch > MAX_BATCH)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the batch is %lld, not 1 to %d", (long long)c->batch, MAX_BATCH);
    if (c->gpu_count < 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU count is %d", c->gpu_count);
    if ((unsigned)c->precision > MDOT_PRECISION_AMP)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no precision %d", (int)c->precision);
    if ((unsigned)c->layout > MDOT_LAYOUT_NHWC)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no layout %d", (int)c->layout);
    if ((unsigned)c->optimizer > MDOT_OPTIMIZER_ADAMW)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no optimizer %d", (int)c->optimizer);
    return MDOT_OK;
}

/* ---- GPUs ----------------------------------------------------------------------------------------------------------
 */

static mdot_status find_name(const char *name, rt_gpu_names *names, mdot_gpu *out_gpu, mdot_error *err)
{
    size_t slot = ((uintptr_t)name ^ (uintptr_t)name >> 6) % RT_GPU_SLOTS; /* names of a table lie some bytes apart */
    if (name == NULL || names->slots[slot].name != name) {
        const mdot_gpu *gpu;
        mdot_status status = rt_gpu_find(name, &gpu, err);
        if (status != MDOT_OK) return status;
        names->slots[slot].name = name;
        names->slots[slot].gpu = gpu;
    }
    *out_gpu = *names->slots[slot].gpu;
    return MDOT_OK;
}

static mdot_status read_figures(const mdot_gpu *figures, mdot_gpu *out_gpu, mdot_error *err)
{
    mdot_status status = bs_read_struct(&rt_gpu_type, figures, out_gpu, err);
    if (status != MDOT_OK) return status;
#define CHECK(field)                                                                                                   \
    if (!(isfinite(out_gpu->field) && out_gpu->field > 0))                                                             \
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU's " #field " is %g", out_gpu->field);
    RT_GPU_COLUMN_MAP(CHECK)
#undef CHECK
    return MDOT_OK;
}

/* ---- Both ----------------------------------------------------------------------------------------------------------
 */

mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  mdot_configuration *out_configuration, mdot_gpu *out_gpu, mdot_error *err)
{
    mdot_configuration c;
    mdot_status status = bs_read_element(&configuration_type, first, i, &c, err);
    if (status == MDOT_OK) status = check_numbers(&c, err);
    if (status != MDOT_OK) return status;
    if (c.gpu_figures == NULL) {
        status = find_name(c.gpu, names, out_gpu, err);
    } else if (c.gpu == NULL) {
        status = read_figures(c.gpu_figures, out_gpu, err);
    } else {
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration has both gpu and gpu_figures");
    }
    if (status != MDOT_OK) return status;
    c.gpu_figures = out_gpu;
    *out_configuration = c;
    return MDOT_OK;
}
