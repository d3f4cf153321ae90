/* cuda_open.c — prepares a GPU for a predictor: selects and loads the image and uploads its weights. */
#include "base/text.h"
#include "runtime/cuda/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mdot_status find_device(rt_cuda *cuda, mdot_error *err)
{
    const rt_cuda_driver *d = &cuda->driver;
    int count = 0;
    BS_TRY(RT_CUDA_CALL(d, cuInit, err, 0));
    BS_TRY(RT_CUDA_CALL(d, cuDeviceGetCount, err, &count));
    if (cuda->ordinal >= count)
        return mdot_fail(err, MDOT_DEVICE, "CUDA device %d is out of range; this machine has %d, counted from 0",
                         cuda->ordinal, count);
    mdot_status status = RT_CUDA_CALL(d, cuDeviceGet, err, &cuda->handle, cuda->ordinal);
    if (status == MDOT_OK)
        status = RT_CUDA_CALL(d, cuDeviceGetName, err, cuda->name, (int)sizeof cuda->name, cuda->handle);
    snprintf(cuda->id, sizeof cuda->id, "cuda:%d", cuda->ordinal);
    return status;
}

static mdot_status read_properties(rt_cuda *cuda, mdot_error *err)
{
    int cooperative = 0;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {RT_CU_COMPUTE_CAPABILITY_MAJOR, &cuda->major},
        {RT_CU_COMPUTE_CAPABILITY_MINOR, &cuda->minor},
        {RT_CU_MULTIPROCESSOR_COUNT, &cuda->multiprocessors},
        {RT_CU_COOPERATIVE_LAUNCH, &cooperative},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        BS_TRY(
            RT_CUDA_CALL(&cuda->driver, cuDeviceGetAttribute, err, wanted[i].value, wanted[i].attribute, cuda->handle));
    if (!cooperative || cuda->multiprocessors < 1)
        return mdot_fail(err, MDOT_DEVICE, "%s (%s) lacks cooperative kernel launches", cuda->id, cuda->name);
    return MDOT_OK;
}

static mdot_status find(void *object, mdot_error *err)
{
    rt_cuda *cuda = object;
    BS_TRY(rt_cuda_driver_load(&cuda->driver, err));
    BS_TRY(find_device(cuda, err));
    return read_properties(cuda, err);
}

/* The artefact's CUDA images, for messages: "sm_80, sm_90a". */
static void list_images(const mdot_abi_table *table, char *text, size_t size)
{
    bs_join list;
    bs_join_begin(&list, text, size);
    for (size_t i = 0; i < table->image_count; i++)
        if (rt_image(table, i)->kind == MDOT_IMAGE_CUDA)
            bs_join_add(&list, "%s", rt_string(table, rt_image(table, i)->target_at));
}

/* Selects the first image of the highest target that fits and has the requested precision. The accelerated target
 * comes later than the plain one and is therefore preferred. See mdot_abi_image. */
static mdot_status choose_image(rt_cuda *cuda, const char *kernel_precision, mdot_error *err)
{
    const mdot_abi_table *table = cuda->artefact->table;
    bool fits_in_another = false;
    const mdot_abi_image *best = NULL;
    for (uint32_t i = 0; i < table->image_count; i++) {
        const mdot_abi_image *image = rt_image(table, i);
        if (image->kind != MDOT_IMAGE_CUDA) continue;
        uint32_t major = image->number / 10, minor = image->number % 10;
        bool fits = major == (uint32_t)cuda->major &&
                    (image->variant != 0 ? minor == (uint32_t)cuda->minor : minor <= (uint32_t)cuda->minor);
        if (!fits) continue;
        fits_in_another = true;
        if (kernel_precision != NULL && strcmp(rt_string(table, image->compute_at), kernel_precision) != 0) continue;
        if (best == NULL || best->number != image->number || best->variant != image->variant) best = image;
    }
    if (best == NULL && fits_in_another)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "the artefact's CUDA code for %s (%s) lacks precision %s", cuda->id,
                         cuda->name, kernel_precision);
    if (best == NULL) {
        char held[256];
        list_images(table, held, sizeof held);
        return mdot_fail(err, MDOT_DEVICE,
                         "the artefact has CUDA code for %s; %s (%s) needs sm_%d%d: compile with --target sm_%d%d",
                         held, cuda->id, cuda->name, cuda->major, cuda->minor, cuda->major, cuda->minor);
    }
    cuda->image = best;
    return MDOT_OK;
}

static mdot_status load_image(rt_cuda *cuda, mdot_error *err)
{
    const unsigned char *bytes = cuda->artefact->cubins + cuda->image->code_offset;
    mdot_error reason = {0};
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuModuleLoadData, &reason, &cuda->module, bytes);
    if (status == MDOT_OK) return MDOT_OK;
    cuda->module = NULL;
    int version = 0;
    cuda->driver.cuDriverGetVersion(&version);
    return mdot_fail(err, status, "%s (driver for CUDA %d.%d) refuses the artefact's %s code: %s", cuda->id,
                     version / 1000, version % 1000 / 10, rt_string(cuda->artefact->table, cuda->image->target_at),
                     reason.message);
}

/* The copy uses the default stream. It is synchronised here, because the contexts' streams do not wait for the
 * default stream. */
static mdot_status upload_weights(rt_cuda *cuda, mdot_error *err)
{
    const mdot_abi_image *image = cuda->image;
    if (image->weights_bytes == 0) return MDOT_OK;
    const unsigned char *bytes = cuda->artefact->cuda_weights + image->weights_offset;
    size_t size_bytes = (size_t)image->weights_bytes;
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuMemAlloc, err, &cuda->weights, size_bytes);
    if (status != MDOT_OK) {
        cuda->weights = 0;
        return status;
    }
    BS_TRY(RT_CUDA_CALL(&cuda->driver, cuMemcpyHtoD, err, cuda->weights, bytes, size_bytes));
    return RT_CUDA_CALL(&cuda->driver, cuStreamSynchronize, err, NULL);
}

static mdot_status retain_context(void *object, mdot_error *err)
{
    rt_cuda *cuda = object;
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuDevicePrimaryCtxRetain, err, &cuda->primary, cuda->handle);
    if (status != MDOT_OK) cuda->primary = NULL;
    return status;
}

/* Releases the artefact, because the driver's threads never read it later. */
static mdot_status load(void *object, mdot_error *err)
{
    rt_cuda *cuda = object;
    mdot_status status = rt_cuda_enter(&cuda->driver, cuda->primary, err);
    if (status == MDOT_OK) {
        status = load_image(cuda, err);
        if (status == MDOT_OK) status = upload_weights(cuda, err);
        if (status == MDOT_OK) status = rt_cuda_prepare_kernels(cuda, err);
        rt_cuda_leave(&cuda->driver);
    }
    rt_artefact_release(cuda->artefact);
    return status;
}

static const rt_cuda_step finding = {.what = "start", .run = find},
                          retaining = {.what = "create a context", .run = retain_context},
                          loading = {.what = "load the artefact's code", .run = load};

/* If a step fails because the thread is abandoned, only the thread may use `cuda` afterwards. */
static mdot_status make_ready(rt_cuda *cuda, rt_cuda_thread *thread, const char *kernel_precision, mdot_error *err)
{
    uint64_t limit_ms = rt_cuda_open_limit_ms(cuda);
    BS_TRY(rt_cuda_ask(thread, &finding, limit_ms, err));
    BS_TRY(choose_image(cuda, kernel_precision, err));
    cuda->device.kernel_precision = rt_string(cuda->artefact->table, cuda->image->compute_at);
    cuda->kernels = calloc(cuda->image->kernel_count, sizeof *cuda->kernels);
    if (cuda->kernels == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(rt_cuda_ask(thread, &retaining, limit_ms, err));
    rt_artefact_keep(cuda->artefact);
    return rt_cuda_ask(thread, &loading, limit_ms, err);
}

void rt_cuda_close(rt_device *device)
{
    rt_cuda *cuda = (rt_cuda *)device;
    rt_cuda_thread_end(cuda->thread, rt_cuda_open_limit_ms(cuda));
}

mdot_status rt_cuda_open(const rt_device_request *request, rt_device **out_device, mdot_error *err)
{
    const mdot_abi_table *table = request->artefact->table;
    if (rt_image(table, table->image_count - 1)->kind != MDOT_IMAGE_CUDA) /* they come last */
        return mdot_fail(err, MDOT_DEVICE, "the artefact lacks CUDA code: compile it with --target sm_…");
    rt_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    cuda->device = (rt_device){.id = cuda->id, .name = cuda->name, .kernel_precision = ""};
    cuda->artefact = request->artefact;
    cuda->ordinal = request->ordinal;
    cuda->timeout_ms = request->timeout_ms;
    uint64_t limit_ms = rt_cuda_open_limit_ms(cuda);
    rt_cuda_thread *thread;
    mdot_status status = rt_cuda_thread_start(cuda, (rt_cuda_owner){.object = cuda}, &thread, err);
    if (status != MDOT_OK) {
        free(cuda);
        return status;
    }
    cuda->thread = thread;
    status = make_ready(cuda, thread, request->kernel_precision, err);
    if (status != MDOT_OK) {
        rt_cuda_thread_end(thread, limit_ms);
        return status;
    }
    *out_device = &cuda->device;
    return MDOT_OK;
}
