/* artefacts.c — examples of mdot_base.h and mdot_run.h for the reference: describe an artefact, and run it in each way.
 *
 *     artefacts JOB.job PREDICTOR.mdot
 */
#include "mdot/mdot.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TENSORS = 16 };

/* [example: mdot_fail, mdot_dtype_name, mdot_dtype_size_bytes] */
static mdot_status count_bytes(const mdot_tensor_info *tensor, int64_t length, size_t *out_bytes, mdot_error *err)
{
    size_t bytes = mdot_dtype_size_bytes(tensor->dtype);
    if (bytes == 0)
        return mdot_fail(err, MDOT_UNSUPPORTED, "%s: elements of type %s have no fixed size", tensor->name,
                         mdot_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++) bytes *= (size_t)mdot_tensor_extent(tensor, i, length);
    *out_bytes = bytes;
    return MDOT_OK;
}
/* [end of example] */

static mdot_status describe(const mdot_predictor *predictor, size_t *out_entry)
{
    /* [example: mdot_predictor_get_info, mdot_predictor_get_image] */
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_status status = mdot_predictor_get_info(predictor, &info);
    for (size_t i = 0; status == MDOT_OK && i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        status = mdot_predictor_get_image(predictor, i, &image);
        if (status == MDOT_OK)
            printf("%s %s: %zu bytes of code\n", image.target, image.kernel_precision, image.image_bytes);
    }
    /* [end of example] */

    /* [example: mdot_predictor_find_entry, mdot_predictor_get_entry, mdot_predictor_get_input] */
    size_t entry = 0;
    mdot_entry_info about = MDOT_INIT(mdot_entry_info);
    status = mdot_predictor_find_entry(predictor, "encode", &entry);
    if (status == MDOT_OK) status = mdot_predictor_get_entry(predictor, entry, &about);
    for (size_t i = 0; status == MDOT_OK && i < about.input_count; i++) {
        mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(predictor, entry, i, &tensor);
        if (status == MDOT_OK) printf("input %s has %d dimensions\n", tensor.name, tensor.rank);
    }
    /* [end of example] */

    /* [example: mdot_predictor_find_bucket, mdot_predictor_get_bucket, mdot_predictor_get_kernel,
     *           mdot_predictor_get_image_kernel] */
    size_t bucket = 0;
    mdot_bucket_info part = MDOT_INIT(mdot_bucket_info);
    mdot_image_kernel_info code = MDOT_INIT(mdot_image_kernel_info);
    if (status == MDOT_OK) status = mdot_predictor_find_bucket(predictor, entry, 20, &bucket);
    if (status == MDOT_OK) status = mdot_predictor_get_bucket(predictor, entry, bucket, &part);
    if (status == MDOT_OK) status = mdot_predictor_get_image_kernel(predictor, 0, entry, bucket, &code);
    if (status == MDOT_OK)
        printf("length 20 runs in the bucket of %lld, %zu bytes of scratch\n", (long long)part.max_length,
               code.scratch_bytes);
    for (size_t i = 0; status == MDOT_OK && i < part.kernel_count; i++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        status = mdot_predictor_get_kernel(predictor, entry, bucket, i, &kernel);
        if (status == MDOT_OK && i == 0) printf("its first kernel is %s, a %s\n", kernel.name, kernel.kind);
    }
    /* [end of example] */
    *out_entry = entry;
    return status;
}

static mdot_status make_outputs(const mdot_predictor *predictor, size_t entry, int64_t length, void **outputs,
                                size_t *out_count, mdot_error *err)
{
    /* [example: mdot_predictor_get_output] */
    mdot_entry_info about = MDOT_INIT(mdot_entry_info);
    mdot_status status = mdot_predictor_get_entry(predictor, entry, &about);
    for (size_t i = 0; status == MDOT_OK && i < about.output_count; i++) {
        mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
        size_t bytes = 0;
        status = mdot_predictor_get_output(predictor, entry, i, &tensor);
        if (status == MDOT_OK) status = count_bytes(&tensor, length, &bytes, err);
        if (status == MDOT_OK) outputs[i] = calloc(1, bytes);
    }
    /* [end of example] */
    *out_count = about.output_count;
    return status;
}

static mdot_status run(const mdot_predictor *predictor, mdot_context *context, size_t entry, const mdot_job *job,
                       mdot_error *err)
{
    /* [example: mdot_job_inputs_create, mdot_job_inputs_get] */
    const mdot_configuration configuration = {.struct_size = sizeof configuration, .batch = 32, .gpu = "T4"};
    const void *inputs[MAX_TENSORS] = {NULL};
    int64_t length = 0;
    mdot_job_inputs *made = NULL;
    mdot_status status = mdot_job_inputs_create(context, entry, job, &configuration, &made, err);
    for (size_t i = 0; status == MDOT_OK && i < MAX_TENSORS; i++) {
        mdot_input input;
        if (mdot_job_inputs_get(made, i, &input) == MDOT_OUT_OF_RANGE) break; /* behind the last */
        inputs[i] = input.data;
        length = input.dims[0];
    }
    /* [end of example] */

    void *outputs[MAX_TENSORS] = {NULL};
    size_t output_count = 0;
    if (status == MDOT_OK) status = make_outputs(predictor, entry, length, outputs, &output_count, err);

    /* [example: mdot_run_ordered, mdot_run_many] */
    if (status == MDOT_OK) status = mdot_run_ordered(context, entry, length, inputs, outputs, err);
    const mdot_item item = {length, inputs, outputs}; /* a real program passes many */
    if (status == MDOT_OK) status = mdot_run_many(context, entry, &item, 1, err);
    /* [end of example] */

    /* [example: mdot_run_step] */
    size_t step = 0;
    mdot_status measured = status;
    while (measured == MDOT_OK) { /* measure the time of each call */
        measured = mdot_run_step(context, entry, length, inputs, outputs, step, NULL);
        if (measured == MDOT_OK) step++;
    }
    if (status == MDOT_OK) printf("%zu steps\n", step);
    /* [end of example] */

    /* [example: mdot_context_get_device_status] */
    const char *reason = "";
    if (mdot_context_get_device_status(context, &reason) != MDOT_OK)
        printf("the GPU failed, and the CPU answers: %s\n", reason);
    /* [end of example] */

    for (size_t i = 0; i < output_count; i++) free(outputs[i]);
    /* [example: mdot_job_inputs_destroy] */
    mdot_job_inputs_destroy(made); /* NULL is accepted */
    /* [end of example] */
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: artefacts JOB.job PREDICTOR.mdot\n"), 2;
    mdot_job *job = NULL;
    mdot_error err = {0};
    size_t entry = 0;

    /* [example: mdot_version, mdot_version_number] */
    if (mdot_version_number() < MDOT_VERSION_NUMBER)
        printf("libmdot %s is older than its headers, %s\n", mdot_version(), MDOT_VERSION_STRING);
    /* [end of example] */

    mdot_status status = mdot_job_load(argv[1], &job, &err);

    /* [example: mdot_predictor_open, mdot_predictor_close, mdot_context_create_with, mdot_context_create,
     *           mdot_context_destroy, mdot_status_name, mdot_status_text] */
    const mdot_open_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    const mdot_context_options two_threads = {.struct_size = sizeof two_threads, .threads = 2};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL, *shared = NULL;
    if (status == MDOT_OK) status = mdot_predictor_open(argv[2], &on_cpu, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err); /* for one thread */
    if (status == MDOT_OK) status = mdot_context_create_with(predictor, &two_threads, &shared, &err);
    if (status == MDOT_OK) status = describe(predictor, &entry);
    if (status == MDOT_OK) status = run(predictor, context, entry, job, &err);
    if (status != MDOT_OK)
        fprintf(stderr, "%s (%s): %s\n", mdot_status_name(status), mdot_status_text(status), err.message);
    mdot_predictor_close(predictor); /* contexts keep what they need */
    mdot_context_destroy(shared);
    mdot_context_destroy(context);
    /* [end of example] */
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
