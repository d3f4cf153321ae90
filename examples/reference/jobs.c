/* jobs.c — examples of mdot_job.h, mdot_program.h and mdotjob.h for the reference: make, read, change and save jobs.
 *
 *     jobs MODEL.onnx FOLDER
 */
#include "mdot/mdotjob.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads a file whole. The caller frees the bytes. */
static void *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *bytes = malloc(1 << 24);
    *out_size = bytes != NULL ? fread(bytes, 1, 1 << 24, file) : 0;
    fclose(file);
    return bytes;
}

/* [example: mdot_job_create, mdot_operator_traits_find, mdot_operators_freeze, mdot_job_destroy] */
/* A job of two linear layers over a sequence, of which the first is frozen. */
static mdot_status create(int64_t length, mdot_job **out_job, mdot_error *err)
{
    const uint32_t first = 0;
    mdot_job_operator operators[2] = {MDOT_INIT(mdot_job_operator), MDOT_INIT(mdot_job_operator)};
    for (int i = 0; i < 2; i++) {
        mdot_job_operator *o = &operators[i];
        o->type = "Linear";
        o->known = true;
        o->setting[MDOT_SETTING_CHANNELS_IN] = o->setting[MDOT_SETTING_CHANNELS_OUT] = 1024;
        o->setting[MDOT_SETTING_SIZE_IN] = o->setting[MDOT_SETTING_SIZE_OUT] = length;
        o->parameters = 1024 * 1024;
        double elements = 1024 * (double)length;
        o->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){2 * 1024 * elements, 4 * elements, 4 * elements};
        o->per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * o->parameters;
        o->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){2 * 1024 * elements, 8 * elements, 0};
        o->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * o->parameters;
        o->module = i == 0 ? "encoder" : "head";
        mdot_status status = mdot_operator_traits_find(o->type, &o->traits);
        if (status != MDOT_OK) return mdot_fail(err, status, "the type %s is unknown", o->type);
    }
    operators[1].inputs = &first;
    operators[1].input_count = 1;
    operators[1].per_sample[MDOT_PHASE_DATA_GRADIENT] = operators[1].per_sample[MDOT_PHASE_FORWARD];

    const char *const frozen[] = {"encoder"};
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = frozen, .frozen_count = 1};
    mdot_status status = mdot_operators_freeze(&freezing, operators, 2, err);
    if (status != MDOT_OK) return status;

    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = operators, .operator_count = 2, .batch = 1};
    return mdot_job_create(&description, out_job, err); /* release it with mdot_job_destroy */
}
/* [end of example] */

/* [example: mdot_job_of_lengths, mdot_job_with_length] */
/* A job for all lengths, from jobs at three, and then at one more length. */
static mdot_status create_long(mdot_job **out_job, mdot_error *err)
{
    const int64_t lengths[3] = {128, 256, 512};
    mdot_job *jobs[3] = {NULL}, *any_length = NULL;
    mdot_status status = MDOT_OK;
    for (int i = 0; status == MDOT_OK && i < 3; i++) status = create(lengths[i], &jobs[i], err);
    const mdot_job *const made[3] = {jobs[0], jobs[1], jobs[2]};
    if (status == MDOT_OK) status = mdot_job_of_lengths(made, lengths, "sequence", &any_length, err);
    if (status == MDOT_OK) status = mdot_job_with_length(any_length, 4096, out_job, err);
    for (int i = 0; i < 3; i++) mdot_job_destroy(jobs[i]);
    mdot_job_destroy(any_length);
    return status;
}
/* [end of example] */

static mdot_status compare_samples(mdot_error *err)
{
    /* [example: mdot_operators_combine] */
    mdot_job_operator two = MDOT_INIT(mdot_job_operator), three = MDOT_INIT(mdot_job_operator);
    two.type = three.type = "MatMul"; /* of each sample with all samples, as in a contrastive loss */
    two.per_sample[MDOT_PHASE_FORWARD].flops = 2 * 1024;
    three.per_sample[MDOT_PHASE_FORWARD].flops = 3 * 1024;
    mdot_status status = mdot_operators_combine(&two, 2, &three, 3, 1, err);
    if (status == MDOT_OK) printf("%.0f FLOP per square of the batch\n", two.per_square[MDOT_PHASE_FORWARD].flops);
    /* [end of example] */
    return status;
}

static mdot_status print(const mdot_job *job)
{
    /* [example: mdot_job_get_info, mdot_job_get_operator, mdot_setting_name, mdot_optimizer_load] */
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_status status = mdot_job_get_info(job, &info);
    for (size_t i = 0; status == MDOT_OK && i < info.operator_count && i < 3; i++) {
        mdot_job_operator o = MDOT_INIT(mdot_job_operator);
        status = mdot_job_get_operator(job, i, &o);
        if (status == MDOT_OK)
            printf("%s, %s %lld\n", o.type, mdot_setting_name(MDOT_SETTING_CHANNELS_OUT),
                   (long long)o.setting[MDOT_SETTING_CHANNELS_OUT]);
    }
    mdot_load update = mdot_optimizer_load(MDOT_OPTIMIZER_ADAMW, info.parameters);
    printf("%.3g parameters, %.3g bytes for an update\n", info.parameters, update.bytes_read + update.bytes_written);
    /* [end of example] */
    return status;
}

static mdot_status describe_program(const mdot_job *job, const char *path, mdot_error *err)
{
    /* [example: mdot_job_with_program, mdot_job_get_program] */
    mdot_job_program program = MDOT_INIT(mdot_job_program);
    program.precision = MDOT_PRECISION_BF16;
    program.attention = MDOT_ATTENTION_FLASH;
    program.trained_bytes = 2 * 25.6e6; /* 16 bits for each parameter */
    const mdot_peak_moment moment = {.per_sample = 1e8, .per_step = 1e6, .gradients = 0.5, .logits = 4096};
    const mdot_recorded_memory recorded = {
        .precision = MDOT_PRECISION_BF16, .moment_count = 1, .moments = &moment}; /* of a traced step */
    program.recorded = &recorded;
    program.recorded_count = 1;
    mdot_job *described = NULL;
    mdot_status status = mdot_job_with_program(job, &program, &described, err);
    if (status == MDOT_OK) status = mdot_job_get_program(described, &program);
    if (status == MDOT_OK) status = mdot_job_save(described, path, err);
    if (status == MDOT_OK) printf("%.0f bytes of weights\n", program.trained_bytes);
    mdot_job_destroy(described);
    /* [end of example] */
    return status;
}

/* [example: mdot_ready_jobs] */
static void print_ready_job(void *user, const mdot_ready_job *job)
{
    double *largest = user;
    if (job->parameters > *largest) *largest = job->parameters;
    printf("%-24s %10.0f parameters  %s\n", job->name, job->parameters, job->title);
}

static mdot_status list_ready_jobs(mdot_error *err)
{
    double largest = 0;
    mdot_status status = mdot_ready_jobs(print_ready_job, &largest, err);
    if (status == MDOT_OK) printf("the largest one has %.0f parameters\n", largest);
    return status;
}
/* [end of example] */

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: jobs MODEL.onnx FOLDER\n"), 2;
    mdot_job *made = NULL, *again = NULL, *same = NULL, *longer = NULL;
    mdot_error err = {0};
    char path[4096];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/example.job", argv[2]);

    /* [example: mdotjob_version, mdotjob_version_number] */
    if (mdotjob_version_number() != mdot_version_number())
        printf("libmdotjob %s and libmdot %s belong to different releases\n", mdotjob_version(), mdot_version());
    /* [end of example] */

    /* [example: mdot_job_read, mdot_job_freeze] */
    const mdot_job_options keep_names = {.struct_size = sizeof keep_names, .keep_names = 1};
    const char *const all = "*", *const trained[] = {"*fc*"};
    const mdot_job_freezing head_only = {
        .struct_size = sizeof head_only, .frozen = &all, .frozen_count = 1, .trained = trained, .trained_count = 1};
    mdot_job *job = NULL, *fine_tuned = NULL;
    mdot_status status = mdot_job_read(argv[1], &keep_names, &job, &err);
    if (status == MDOT_OK) status = mdot_job_freeze(job, &head_only, &fine_tuned, &err);
    /* [end of example] */

    /* [example: mdot_job_save, mdot_job_load] */
    if (status == MDOT_OK) status = mdot_job_save(job, path, &err);
    if (status == MDOT_OK) status = mdot_job_load(path, &again, &err);
    /* [end of example] */

    void *model = read_file(argv[1], &size);
    /* [example: mdot_job_read_bytes] */
    mdot_job *other = NULL;
    if (status == MDOT_OK) status = mdot_job_read_bytes(model, size, "model of user 42", NULL, &other, &err);
    /* [end of example] */
    free(model);
    void *bytes = read_file(path, &size);
    /* [example: mdot_job_parse] */
    if (status == MDOT_OK) status = mdot_job_parse(bytes, size, &same, &err);
    free(bytes); /* the job has copied them */
    /* [end of example] */

    if (status == MDOT_OK) status = create(1, &made, &err);
    if (status == MDOT_OK) status = create_long(&longer, &err);
    if (status == MDOT_OK) status = compare_samples(&err);
    if (status == MDOT_OK) status = print(fine_tuned);
    if (status == MDOT_OK) status = print(made);
    if (status == MDOT_OK) status = describe_program(same, path, &err);
    if (status == MDOT_OK) status = list_ready_jobs(&err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_job_destroy(job);
    mdot_job_destroy(fine_tuned);
    mdot_job_destroy(again);
    mdot_job_destroy(other);
    mdot_job_destroy(same);
    mdot_job_destroy(made);
    mdot_job_destroy(longer);
    return status == MDOT_OK ? 0 : 1;
}
