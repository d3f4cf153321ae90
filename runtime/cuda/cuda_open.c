/* cuda_open.c — a GPU made ready for a predictor: the image that it runs, loaded, and its weights, uploaded. */
#include "base/list.h"
#include "runtime/cuda/cuda_device.h"

#include <stdio.h>
#include <string.h>

/* ---- The device -------------------------------------------------------------------------------------------------- */

typedef struct properties {
    int major, minor, multiprocessors;
} properties;

/* What asking for a device takes and gives; nothing that a predictor owns, since it may be left behind. */
typedef struct search {
    int ordinal;
    rt_cuda_driver driver;
    rt_cu_device handle;
    char id[RT_CUDA_ID_BYTES], name[RT_CUDA_NAME_BYTES];
    properties properties;
} search;

static mdot_status find_device(search *s, mdot_error *err)
{
    const rt_cuda_driver *d = &s->driver;
    int count = 0;
    mdot_status status = RT_CUDA_CALL(d, cuInit, err, 0);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDeviceGetCount, err, &count);
    if (status != MDOT_OK) return status;
    if (s->ordinal >= count)
        return mdot_fail(err, MDOT_DEVICE, "there is no CUDA device %d; this machine shows %d, counted from 0",
                         s->ordinal, count);
    status = RT_CUDA_CALL(d, cuDeviceGet, err, &s->handle, s->ordinal);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDeviceGetName, err, s->name, (int)sizeof s->name, s->handle);
    snprintf(s->id, sizeof s->id, "cuda:%d", s->ordinal);
    return status;
}

static mdot_status read_properties(search *s, mdot_error *err)
{
    int cooperative = 0;
    properties *p = &s->properties;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {RT_CU_COMPUTE_CAPABILITY_MAJOR, &p->major},
        {RT_CU_COMPUTE_CAPABILITY_MINOR, &p->minor},
        {RT_CU_MULTIPROCESSOR_COUNT, &p->multiprocessors},
        {RT_CU_COOPERATIVE_LAUNCH, &cooperative},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        mdot_status status =
            RT_CUDA_CALL(&s->driver, cuDeviceGetAttribute, err, wanted[i].value, wanted[i].attribute, s->handle);
        if (status != MDOT_OK) return status;
    }
    if (!cooperative || p->multiprocessors < 1)
        return mdot_fail(err, MDOT_DEVICE, "%s (%s) launches no cooperative kernels", s->id, s->name);
    return MDOT_OK;
}

static mdot_status run_search(void *state, mdot_error *err)
{
    search *s = state;
    mdot_status status = rt_cuda_driver_load(&s->driver, err);
    if (status == MDOT_OK) status = find_device(s, err);
    if (status == MDOT_OK) status = read_properties(s, err);
    return status;
}

static const rt_cuda_step searching = {.what = "start", .run = run_search};

/* ---- Its context ------------------------------------------------------------------------------------------------- */

typedef struct retaining {
    rt_cuda_driver driver;
    rt_cu_device handle;
    rt_cu_context primary;
} retaining;

static mdot_status run_retain(void *state, mdot_error *err)
{
    retaining *r = state;
    return RT_CUDA_CALL(&r->driver, cuDevicePrimaryCtxRetain, err, &r->primary, r->handle);
}

static void undo_retain(void *state)
{
    retaining *r = state;
    r->driver.cuDevicePrimaryCtxRelease(r->handle);
}

static const rt_cuda_step retain = {.what = "make a context", .run = run_retain, .undo = undo_retain};

/* A driver that has to wake the cards of a large machine takes seconds, where a call takes microseconds. */
static uint64_t start_limit_ms(const rt_cuda *cuda)
{
    enum { START_LIMITS = 30 };
    return (uint64_t)cuda->timeout_ms * START_LIMITS;
}

static mdot_status find(rt_cuda *cuda, int ordinal, properties *out, mdot_error *err)
{
    search s = {.ordinal = ordinal};
    mdot_status status = rt_cuda_run_limited(&searching, &s, sizeof s, start_limit_ms(cuda), err);
    if (status != MDOT_OK) return status;
    cuda->driver = s.driver;
    cuda->handle = s.handle;
    memcpy(cuda->id, s.id, sizeof cuda->id);
    memcpy(cuda->name, s.name, sizeof cuda->name);
    *out = s.properties;
    return MDOT_OK;
}

static mdot_status retain_context(rt_cuda *cuda, mdot_error *err)
{
    retaining r = {.driver = cuda->driver, .handle = cuda->handle};
    mdot_status status = rt_cuda_run_limited(&retain, &r, sizeof r, start_limit_ms(cuda), err);
    if (status == MDOT_OK) cuda->primary = r.primary;
    return status;
}

/* ---- The image --------------------------------------------------------------------------------------------------- */

/* "sm_80, sm_90a": the artefact's images, for messages. */
static void list_images(const mdot_abi_table *table, char *text, size_t size)
{
    bs_list list;
    bs_list_begin(&list, text, size);
    for (size_t i = 0; i < table->image_count; i++)
        if (rt_image(table, i)->kind == MDOT_IMAGE_CUDA)
            bs_list_add(&list, "%s", rt_string(table, rt_image(table, i)->target_at));
}

/* CUDA images come last. */
static bool has_images(const mdot_abi_table *table)
{
    return rt_image(table, table->image_count - 1)->kind == MDOT_IMAGE_CUDA;
}

/* The first of the highest target that fits, which is the accelerated one where there are two, since it comes later; of
 * the arithmetic asked for. See mdot_abi_image. */
static mdot_status choose_image(const rt_cuda *cuda, const properties *p, const char *compute,
                                const mdot_abi_image **out_image, mdot_error *err)
{
    const mdot_abi_table *table = cuda->artefact->table;
    bool fits_in_another = false;
    const mdot_abi_image *best = NULL;
    for (uint32_t i = 0; i < table->image_count; i++) {
        const mdot_abi_image *image = rt_image(table, i);
        if (image->kind != MDOT_IMAGE_CUDA) continue;
        uint32_t major = image->number / 10, minor = image->number % 10;
        bool fits = major == (uint32_t)p->major &&
                    (image->variant != 0 ? minor == (uint32_t)p->minor : minor <= (uint32_t)p->minor);
        if (!fits) continue;
        fits_in_another = true;
        if (compute != NULL && strcmp(rt_string(table, image->compute_at), compute) != 0) continue;
        if (best == NULL || best->number != image->number || best->variant != image->variant) best = image;
    }
    if (best == NULL && fits_in_another)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the artefact's CUDA code for %s (%s) does not compute in %s",
                         cuda->id, cuda->name, compute);
    if (best == NULL) {
        char held[256];
        list_images(table, held, sizeof held);
        return mdot_fail(err, MDOT_DEVICE,
                         "the artefact has CUDA code for %s; %s (%s) needs sm_%d%d: compile with --target sm_%d%d",
                         held, cuda->id, cuda->name, p->major, p->minor, p->major, p->minor);
    }
    *out_image = best;
    return MDOT_OK;
}

static mdot_status load_image(rt_cuda *cuda, const mdot_abi_image *image, mdot_error *err)
{
    const unsigned char *bytes = cuda->artefact->cubins + image->code_offset;
    mdot_error reason = {0};
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuModuleLoadData, &reason, &cuda->module, bytes);
    if (status == MDOT_OK) return MDOT_OK;
    cuda->module = NULL;
    int version = 0;
    cuda->driver.cuDriverGetVersion(&version);
    return mdot_fail(err, status, "%s (driver for CUDA %d.%d) refuses the artefact's %s code: %s", cuda->id,
                     version / 1000, version % 1000 / 10, rt_string(cuda->artefact->table, image->target_at),
                     reason.message);
}

/* The copy goes through the default stream, which the contexts' streams do not wait for. */
static mdot_status upload_weights(rt_cuda *cuda, const mdot_abi_image *image, mdot_error *err)
{
    if (image->weights_bytes == 0) return MDOT_OK;
    const unsigned char *bytes = cuda->artefact->cuda_weights + image->weights_offset;
    size_t size_bytes = (size_t)image->weights_bytes;
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuMemAlloc, err, &cuda->weights, size_bytes);
    if (status != MDOT_OK) {
        cuda->weights = 0;
        return status;
    }
    status = RT_CUDA_CALL(&cuda->driver, cuMemcpyHtoD, err, cuda->weights, bytes, size_bytes);
    if (status == MDOT_OK) status = RT_CUDA_CALL(&cuda->driver, cuStreamSynchronize, err, NULL);
    return status;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

/* With the device's context current. */
static mdot_status load(rt_cuda *cuda, const mdot_abi_image *image, const properties *p, mdot_error *err)
{
    mdot_status status = load_image(cuda, image, err);
    if (status == MDOT_OK) status = upload_weights(cuda, image, err);
    if (status == MDOT_OK) status = rt_cuda_prepare_kernels(cuda, p->multiprocessors, image, err);
    return status;
}

static mdot_status make_ready(rt_cuda *cuda, const rt_device_request *request, mdot_error *err)
{
    properties p;
    const mdot_abi_image *image;
    mdot_status status = find(cuda, request->ordinal, &p, err);
    if (status == MDOT_OK) status = choose_image(cuda, &p, request->compute, &image, err);
    if (status != MDOT_OK) return status;
    cuda->device.compute = rt_string(cuda->artefact->table, image->compute_at);
    cuda->kernels = rt_alloc(cuda->allocator, image->kernel_count * sizeof *cuda->kernels);
    if (cuda->kernels == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %u kernels", image->kernel_count);
    status = retain_context(cuda, err);
    if (status != MDOT_OK) return status;
    status = rt_cuda_enter(&cuda->driver, cuda->primary, err);
    if (status != MDOT_OK) return status;
    status = load(cuda, image, &p, err);
    rt_cuda_leave(&cuda->driver);
    return status;
}

/* After a sticky error the driver answers every call with it, while the memory is gone with the context: what these
 * functions return says nothing. */
static void unload(const rt_cuda *cuda)
{
    const rt_cuda_driver *d = &cuda->driver;
    if (rt_cuda_enter(d, cuda->primary, NULL) != MDOT_OK) return;
    if (cuda->weights != 0) d->cuMemFree(cuda->weights);
    if (cuda->module != NULL) d->cuModuleUnload(cuda->module);
    rt_cuda_leave(&cuda->driver);
}

void rt_cuda_close(rt_device *device)
{
    rt_cuda *cuda = (rt_cuda *)device;
    const rt_allocator *allocator = cuda->allocator;
    if (cuda->primary != NULL && !cuda->is_stuck) {
        unload(cuda);
        cuda->driver.cuDevicePrimaryCtxRelease(cuda->handle);
    }
    rt_free(allocator, cuda->kernels);
    rt_free(allocator, cuda);
}

mdot_status rt_cuda_open(const rt_device_request *request, rt_device **out_device, mdot_error *err)
{
    if (!has_images(request->artefact->table))
        return mdot_fail(err, MDOT_DEVICE, "the artefact has no CUDA code: compile it with --target sm_…");
    rt_cuda *cuda = rt_alloc(request->allocator, sizeof *cuda);
    if (cuda == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a CUDA device");
    cuda->device = (rt_device){.id = cuda->id, .name = cuda->name, .compute = ""};
    cuda->artefact = request->artefact;
    cuda->allocator = request->allocator;
    cuda->timeout_ms = request->timeout_ms;
    mdot_status status = make_ready(cuda, request, err);
    if (status != MDOT_OK) {
        rt_cuda_close(&cuda->device);
        return status;
    }
    *out_device = &cuda->device;
    return MDOT_OK;
}
