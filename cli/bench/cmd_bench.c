/* cmd_bench.c — `mdot bench`: an artefact's latency on this machine, compared with the core's peak rate. */
#include "base/training/job_argument.h"
#include "cli/bench/bench.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, MAX_JOBS = 100000, MAX_CONFIGURATIONS = 1000, MAX_WORKERS = 64 };

typedef struct bench_request {
    const char *path, *entry_name, *device, *level;
    int64_t bucket, length, threads, workers; /* bucket and length: 0 if absent */
    double seconds;
    bool json, round, profile;
    int64_t jobs, configurations; /* sizes of a round */
    cli_reading reading;
    char *const *job_paths;
    size_t job_count;
} bench_request;

typedef struct benchmark {
    const bench_request *request;
    mdot_predictor *predictor;
    mdot_predictor_info info;
    double open_us;
    size_t entry;
    mdot_entry_info entry_info;
    size_t rows;
} benchmark;

/* Returns the rate. The FLOPs of a call are known only at a bucket's full length; 0 for other lengths. */
static double gflops(const benchmark *s, const mdot_bucket_info *bucket, int64_t length, const bench_result *result)
{
    bool full = !s->entry_info.has_length || length == bucket->max_length;
    return full ? bucket->flops / result->p50_us * 1e-3 : 0;
}

static bool is_on_cpu(const benchmark *s) { return strcmp(s->info.device, "cpu") == 0; }

/* Returns the processor that runs the calls: "x86-64-v4", "NVIDIA H200". */
static const char *processor(const benchmark *s) { return is_on_cpu(s) ? s->info.cpu_isa : s->info.device_name; }

static void print_text(const benchmark *s, const mdot_bucket_info *bucket, int64_t length, const bench_result *r)
{
    if (s->rows == 0) {
        printf("%s, entry %s, %s, %lld thread%s", s->info.name, s->entry_info.name, processor(s),
               (long long)s->request->threads, s->request->threads == 1 ? "" : "s");
        if (s->request->workers > 1) printf(" of %lld workers", (long long)s->request->workers);
        printf("; opened in %.0f us\n\n", s->open_us);
        printf("%7s %7s %10s %10s %10s %10s %10s %11s %8s %6s\n", "bucket", "length", "p50 us", "p90 us", "p99 us",
               "p99.9 us", "first us", "calls/s", "GFLOP/s", "peak");
    }
    printf("%7lld %7lld %10.2f %10.2f %10.2f %10.2f %10.2f %11.0f", (long long)bucket->max_length, (long long)length,
           r->p50_us, r->p90_us, r->p99_us, r->p999_us, r->first_call_us, r->calls_per_second);
    double rate = gflops(s, bucket, length, r);
    if (rate > 0) printf(" %8.1f", rate);
    if (rate > 0 && r->peak_gflops > 0 && is_on_cpu(s)) printf(" %5.1f%%", 100 * rate / r->peak_gflops);
    printf("\n");
    fflush(stdout);
}

static void print_json_number(const char *name, double value)
{
    if (value > 0)
        printf(", \"%s\": %.4g", name, value);
    else
        printf(", \"%s\": null", name);
}

static void print_json(const benchmark *s, const mdot_bucket_info *bucket, int64_t length, const bench_result *r)
{
    if (s->rows == 0) {
        cli_json_member(stdout, "{\n  ", "name", s->info.name);
        cli_json_member(stdout, ", ", "entry", s->entry_info.name);
        printf(", \"isa\": \"%s\", \"device\": \"%s\"", s->info.cpu_isa, s->info.device);
        cli_json_member(stdout, ", ", "device_name", s->info.device_name);
        printf(", \"device_kernel_precision\": \"%s\", \"threads\": %lld, \"workers\": %lld, \"open_us\": %.1f,\n"
               "  \"rows\": [",
               s->info.device_kernel_precision, (long long)s->request->threads, (long long)s->request->workers,
               s->open_us);
    }
    printf("%s\n    {\"bucket\": %lld, \"length\": %lld, \"calls\": %zu", s->rows == 0 ? "" : ",",
           (long long)bucket->max_length, (long long)length, r->calls);
    printf(", \"p50_us\": %.3f, \"p90_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"first_call_us\": %.3f",
           r->p50_us, r->p90_us, r->p99_us, r->p999_us, r->first_call_us);
    printf(", \"calls_per_second\": %.1f", r->calls_per_second);
    double rate = gflops(s, bucket, length, r);
    print_json_number("gflops", rate);
    print_json_number("peak_gflops", r->peak_gflops);
    print_json_number("peak_share", r->peak_gflops > 0 && is_on_cpu(s) ? rate / r->peak_gflops : 0);
    printf("}");
}

static mdot_kernel_info kernel_of(const benchmark *s, size_t bucket, size_t kernel)
{
    mdot_kernel_info info = MDOT_INIT(mdot_kernel_info);
    mdot_predictor_get_kernel(s->predictor, s->entry, bucket, kernel, &info);
    return info;
}

/* Returns the common kind of a step's kernels, or "several". */
static const char *step_kind(const benchmark *s, size_t bucket, const bench_step *step)
{
    const char *kind = kernel_of(s, bucket, step->first_kernel).kind;
    for (size_t i = 1; i < step->kernel_count; i++)
        if (strcmp(kind, kernel_of(s, bucket, step->first_kernel + i).kind) != 0) return "several";
    return kind;
}

static void print_step(const char *name, const char *kind, const bench_step *step, const bench_profile *p)
{
    double rate = step->flops / step->p50_us * 1e-3;
    printf("%-34s %-11s %10.2f %6.1f%%", name, kind, step->p50_us, 100 * step->p50_us / p->steps_us);
    if (step->flops > 0) printf(" %8.1f", rate);
    if (step->flops > 0 && p->peak_gflops > 0) printf(" %5.1f%%", 100 * rate / p->peak_gflops);
    printf("\n");
}

/* Prints the sum of all steps with one kind at the first step's position. */
static void print_kinds(const benchmark *s, size_t bucket, const bench_profile *p)
{
    for (size_t i = 0; i < p->step_count; i++) {
        const char *kind = step_kind(s, bucket, &p->steps[i]);
        bench_step sum = {0};
        bool is_first = true;
        for (size_t k = 0; k < p->step_count; k++) {
            const bench_step *step = &p->steps[k];
            if (strcmp(kind, step_kind(s, bucket, step)) != 0) continue;
            if (k < i) is_first = false;
            sum.kernel_count += step->kernel_count;
            sum.flops += step->flops;
            sum.p50_us += step->p50_us;
        }
        char name[48];
        snprintf(name, sizeof name, "%zu kernel%s", sum.kernel_count, sum.kernel_count == 1 ? "" : "s");
        if (is_first) print_step(name, kind, &sum, p);
    }
}

static void print_profile(const benchmark *s, size_t bucket, int64_t length, const bench_profile *p)
{
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(s->predictor, s->entry, bucket, &info);
    printf("%s%s, entry %s, bucket %lld, length %lld, %s, %zu turns\n\n", s->rows == 0 ? "" : "\n", s->info.name,
           s->entry_info.name, (long long)info.max_length, (long long)length, processor(s), p->turns);
    printf("%-34s %-11s %10s %7s %8s %6s\n", "kernel", "kind", "p50 us", "time %", "GFLOP/s", "peak");
    for (size_t i = 0; i < p->step_count; i++) {
        const bench_step *step = &p->steps[i];
        char name[256];
        snprintf(name, sizeof name, "%s", kernel_of(s, bucket, step->first_kernel).name);
        size_t used = strlen(name);
        if (step->kernel_count > 1) snprintf(name + used, sizeof name - used, " and %zu more", step->kernel_count - 1);
        print_step(name, step_kind(s, bucket, step), step, p);
    }
    printf("\n");
    print_kinds(s, bucket, p);
    printf("%-34s %-11s %10.2f\n%-34s %-11s %10.2f\n", "together", "", p->steps_us, "complete call", "", p->call_us);
}

static void print_profile_json(const benchmark *s, size_t bucket, int64_t length, const bench_profile *p)
{
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(s->predictor, s->entry, bucket, &info);
    if (s->rows == 0) {
        cli_json_member(stdout, "{\n  ", "name", s->info.name);
        cli_json_member(stdout, ", ", "entry", s->entry_info.name);
        printf(", \"isa\": \"%s\", \"kernel_precision\": \"%s\",\n  \"rows\": [", s->info.cpu_isa,
               s->info.kernel_precision);
    }
    printf("%s\n    {\"bucket\": %lld, \"length\": %lld, \"turns\": %zu, \"call_us\": %.3f, \"steps_us\": %.3f",
           s->rows == 0 ? "" : ",", (long long)info.max_length, (long long)length, p->turns, p->call_us, p->steps_us);
    print_json_number("peak_gflops", p->peak_gflops);
    printf(", \"steps\": [");
    for (size_t i = 0; i < p->step_count; i++) {
        const bench_step *step = &p->steps[i];
        double rate = step->flops / step->p50_us * 1e-3;
        printf("%s\n      {\"kernels\": [", i == 0 ? "" : ",");
        for (size_t k = 0; k < step->kernel_count; k++) {
            if (k > 0) printf(", ");
            cli_json_string(stdout, kernel_of(s, bucket, step->first_kernel + k).name);
        }
        printf("], \"kind\": \"%s\", \"p50_us\": %.3f, \"share\": %.4f", step_kind(s, bucket, step), step->p50_us,
               step->p50_us / p->steps_us);
        printf(", \"flops\": %.0f", step->flops);
        print_json_number("gflops", rate);
        print_json_number("peak_share", p->peak_gflops > 0 ? rate / p->peak_gflops : 0);
        printf("}");
    }
    printf("]}");
}

static mdot_status profile_row(benchmark *s, size_t bucket, int64_t length, mdot_error *err)
{
    const bench_profile_task task = {.predictor = s->predictor,
                                     .entry = s->entry,
                                     .bucket = bucket,
                                     .length = length,
                                     .seconds = s->request->seconds};
    bench_profile profile;
    BS_TRY(bench_measure_profile(&task, &profile, err));
    (s->request->json ? print_profile_json : print_profile)(s, bucket, length, &profile);
    s->rows++;
    free(profile.steps);
    return MDOT_OK;
}

static mdot_status run_row(benchmark *s, size_t bucket, int64_t length, mdot_error *err)
{
    if (s->request->profile) return profile_row(s, bucket, length, err);
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(s->predictor, s->entry, bucket, &info);
    bench_task task = {.predictor = s->predictor,
                       .entry = s->entry,
                       .length = length,
                       .threads = (int)s->request->threads,
                       .workers = (int)s->request->workers,
                       .seconds = s->request->seconds};
    bench_result result;
    BS_TRY(bench_measure(&task, &result, err));
    (s->request->json ? print_json : print_text)(s, &info, length, &result);
    s->rows++;
    return MDOT_OK;
}

/* The length selects the bucket; if a bucket was requested, it must be the same. */
static mdot_status run_length(benchmark *s, mdot_error *err)
{
    size_t bucket;
    int64_t length = s->request->length;
    if (mdot_predictor_find_bucket(s->predictor, s->entry, length, &bucket) != MDOT_OK)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: no bucket of entry %s takes length %lld", s->request->path,
                         s->entry_info.name, (long long)length);
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(s->predictor, s->entry, bucket, &info);
    if (s->request->bucket != 0 && info.max_length != s->request->bucket)
        return BS_INVALID(err, "%s: length %lld runs in bucket %lld, not %lld", s->request->path, (long long)length,
                          (long long)info.max_length, (long long)s->request->bucket);
    return run_row(s, bucket, length, err);
}

static mdot_status run_rows(benchmark *s, mdot_error *err)
{
    if (s->request->length != 0) return run_length(s, err);
    for (size_t i = 0; i < s->entry_info.bucket_count; i++) {
        mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
        mdot_predictor_get_bucket(s->predictor, s->entry, i, &info);
        if (s->request->bucket != 0 && s->request->bucket != info.max_length) continue;
        BS_TRY(run_row(s, i, info.max_length, err));
    }
    if (s->rows > 0) return MDOT_OK;
    return mdot_fail(err, MDOT_NOT_FOUND, "%s: entry %s has no bucket of length %lld", s->request->path,
                     s->entry_info.name, (long long)s->request->bucket);
}

static mdot_status find_entry(benchmark *s, mdot_error *err)
{
    const char *name = s->request->entry_name != NULL ? s->request->entry_name : "predict";
    s->entry = 0;
    bool found = s->request->entry_name == NULL && s->info.entry_count == 1;
    if (!found) found = mdot_predictor_find_entry(s->predictor, name, &s->entry) == MDOT_OK;
    if (!found && s->request->entry_name == NULL)
        found = mdot_predictor_find_entry(s->predictor, "evaluate", &s->entry) == MDOT_OK;
    if (!found)
        return mdot_fail(err, MDOT_NOT_FOUND, "%s: there is no entry %s; `mdot inspect` lists all entries",
                         s->request->path, name);
    return mdot_predictor_get_entry(s->predictor, s->entry, &s->entry_info);
}

static void print_round_time(const char *name, const bench_round_time *time, double count, const char *unit)
{
    printf("%-10s %10.2f %10.2f  %8.2f us per %s\n", name, time->median_ms, time->least_ms,
           1e3 * time->median_ms / count, unit);
}

static void print_round(const benchmark *s, const bench_round *round, const bench_round_result *r)
{
    double jobs = (double)round->jobs, pairs = jobs * (double)round->configurations;
    printf("%s, %s; %zu jobs of %.0f operators x %zu configurations, %zu rounds\n\n", s->info.name, processor(s),
           round->jobs, r->mean_operators, round->configurations, r->cold.rounds);
    printf("           %10s %10s\n", "median ms", "minimum ms");
    print_round_time("cold", &r->cold, pairs, "pair");
    print_round_time("encoding", &r->encode, jobs, "job");
    print_round_time("cached", &r->encoded, pairs, "pair");
    printf("\none evaluation: p50 %.2f us, p99 %.2f, p99.9 %.2f\n", r->p50_us, r->p99_us, r->p999_us);
}

static void print_round_json(const benchmark *s, const bench_round *round, const bench_round_result *r)
{
    cli_json_member(stdout, "{\n  ", "name", s->info.name);
    printf(", \"isa\": \"%s\", \"device\": \"%s\",\n", s->info.cpu_isa, s->info.device);
    printf("  \"jobs\": %zu, \"configurations\": %zu, \"operators\": %.1f, \"rounds\": %zu,\n", round->jobs,
           round->configurations, r->mean_operators, r->cold.rounds);
    printf("  \"cold_ms\": %.4f, \"encode_ms\": %.4f, \"encoded_ms\": %.4f,\n", r->cold.median_ms, r->encode.median_ms,
           r->encoded.median_ms);
    printf("  \"least\": {\"cold_ms\": %.4f, \"encode_ms\": %.4f, \"encoded_ms\": %.4f},\n", r->cold.least_ms,
           r->encode.least_ms, r->encoded.least_ms);
    printf("  \"price\": {\"calls\": %zu, \"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f}\n}\n", r->evaluations,
           r->p50_us, r->p99_us, r->p999_us);
}

static mdot_status run_round(const benchmark *s, const bench_request *request, mdot_error *err)
{
    mdot_job **models = calloc(request->job_count, sizeof *models);
    if (models == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    bench_round round = {.predictor = s->predictor,
                         .models = (const mdot_job *const *)models,
                         .jobs = (size_t)request->jobs,
                         .configurations = (size_t)request->configurations,
                         .seconds = request->seconds};
    bench_round_result result;
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < request->job_count; i++, round.model_count++)
        status = cli_read_job("bench", request->job_paths[i], &request->reading, &models[i], err);
    if (status == MDOT_OK) status = bench_measure_round(&round, &result, err);
    if (status == MDOT_OK) (request->json ? print_round_json : print_round)(s, &round, &result);
    for (size_t i = 0; i < request->job_count; i++) mdot_job_destroy(models[i]);
    free(models);
    return status;
}

static mdot_status bench(const bench_request *request, mdot_error *err)
{
    benchmark s = {
        .request = request, .info = MDOT_INIT(mdot_predictor_info), .entry_info = MDOT_INIT(mdot_entry_info)};
    mdot_open_options options = {.struct_size = sizeof options, .cpu_isa = request->level, .device = request->device};
    if (request->profile && options.device == NULL) options.device = "cpu"; /* a GPU runs a bucket in one launch */
    double begin = bench_now();
    mdot_status status = mdot_predictor_open(request->path, &options, &s.predictor, err);
    s.open_us = (bench_now() - begin) * 1e6;
    if (status != MDOT_OK) return status;
    mdot_predictor_get_info(s.predictor, &s.info);
    if (request->profile && !is_on_cpu(&s)) {
        status = mdot_fail(err, MDOT_UNSUPPORTED,
                           "%s: --profile requires the CPU, because %s runs all kernels in one launch", request->path,
                           s.info.device);
    } else if (request->round) {
        status = run_round(&s, request, err);
    } else {
        status = find_entry(&s, err);
        if (status == MDOT_OK) status = run_rows(&s, err);
    }
    if (request->json && s.rows > 0) printf("\n  ]\n}\n");
    mdot_predictor_close(s.predictor);
    return status;
}

static int run(int argc, char **argv)
{
    bench_request request = {.threads = 1, .workers = 1, .seconds = 1, .jobs = 500, .configurations = 20};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_bench, argc, argv, &request, &operands, &status)) return status;
    if (request.profile && (request.round || request.threads > 1 || request.workers > 1))
        return cli_usage_error("bench", "--profile requires one thread: remove --threads and --workers");
    if (operands.count == 0 || (operands.count > 1 && !request.round))
        return cli_usage_error("bench", "expected one artefact (MODEL.mdot)");
    if (request.round && operands.count == 1)
        return cli_usage_error("bench", "--round requires job files (.onnx or .job) after the artefact");
    request.path = operands.item[0];
    request.job_paths = operands.item + 1;
    request.job_count = (size_t)operands.count - 1;
    mdot_error err = {0};
    return bench(&request, &err) == MDOT_OK ? CLI_OK : cli_report("bench", &err);
}

static const cli_option options[] = {
    CLI_TEXT_ROW("entry", "NAME", bench_request, entry_name,
                 "the entry point (default: the only one, otherwise \"predict\", otherwise \"evaluate\")"),
    CLI_WHOLE_ROW("bucket", "N", bench_request, bucket, 1, INT32_MAX,
                  "measure only the bucket whose maximum length is N"),
    CLI_WHOLE_ROW("length", "N", bench_request, length, 1, INT32_MAX, "measure at this length"),
    CLI_WHOLE_ROW("threads", "N", bench_request, threads, 1, MAX_THREADS,
                  "number of contexts that run at the same time, each on its own thread (default 1)"),
    CLI_WHOLE_ROW("workers", "N", bench_request, workers, 1, MAX_WORKERS,
                  "number of threads that execute each call of length 256 or more (default 1)"),
    CLI_TEXT_ROW("device", "NAME", bench_request, device,
                 "cpu, cuda, cuda:1, … or auto, which selects the faster one (default: MDOT_DEVICE, otherwise auto)",
                 .names = cli_device_names),
    CLI_TEXT_ROW("level", "NAME", bench_request, level,
                 "run the code of this ISA level: x86-64-v3, x86-64-v4, x86-64-bf16, x86-64-amx, aarch64-neon or "
                 "aarch64-bf16 (default: the highest that this CPU supports)",
                 .names = cli_isa_names),
    CLI_VALUE_ROW(CLI_REAL, "seconds", "S", bench_request, seconds,
                  "duration of the measurement of each row (default 1)", .most = 3600),
    CLI_FLAG_ROW(
        "profile", bench_request, profile,
        "show the time and the fraction of peak performance of each kernel; kernels that run concurrently form "
        "one row"),
    CLI_FLAG_ROW("round", bench_request, round,
                 "measure a scheduling round: predict copies of the given jobs (.job or .onnx) at five batch "
                 "sizes, on four GPU models and 1 to 16 GPUs. The rows are predictions with a cold cache, "
                 "encoding alone, and evaluation with cached features"),
    CLI_WHOLE_ROW("jobs", "N", bench_request, jobs, 1, MAX_JOBS, "number of jobs in a round (default 500)"),
    CLI_WHOLE_ROW("configurations", "N", bench_request, configurations, 1, MAX_CONFIGURATIONS,
                  "number of configurations of each job in a round (default 20)"),
    CLI_DIM_OPTION(
        bench_request, reading.dims, 1,
        "fix a symbolic dimension of the jobs of --round other than the batch, or set it equal to another one "
        "(NAME=OTHER)"),
    CLI_JSON_OPTION(bench_request, json, "print the results as JSON"),
};
const cli_command cli_bench = {
    .name = "bench",
    .summary = "measure the latency of an artefact on this machine",
    .synopsis = "MODEL.mdot [OPTION]…\n"
                "MODEL.mdot --round JOB… [OPTION]…",
    .description = "Runs an entry point on synthetic inputs (random floats, zero integers, true booleans) and "
                   "prints percentiles of the latency of a call. By default, every bucket runs at its full length; "
                   "--bucket and --length select one. \"peak\" is the fraction of the rate that register-only FMAs "
                   "reach on one core, measured alternately with the calls. With --round, the command measures the "
                   "time of a scheduling round.",
    CLI_OPTIONS(options),
    .files = "mdot|job|onnx",
    .run = run,
};
