/* cmd_compile.c — `mdot compile`: compile ONNX predictors into one artefact. */
#include "cli/cli.h"
#include "mdot/mdotc.h"

#include <string.h>
#include <unistd.h>

enum { MAX_ITEMS = 64, BAR_WIDTH = 30 };

typedef struct compile_request {
    mdotc_entry entries[MAX_ITEMS];
    size_t entry_count;
    const char *output;
    int64_t buckets[MAX_ITEMS];
    const char *targets[MAX_ITEMS];
    cli_dims dims;
    mdotc_options options;
    bool quiet;
} compile_request;

static void show_progress(void *user, const char *step, size_t done, size_t total)
{
    int filled = total == 0 ? 0 : (int)(done * BAR_WIDTH / total);
    fprintf(stderr, "\r[%.*s%*s] %3zu%% %-32.32s", filled, "##############################", BAR_WIDTH - filled, "",
            total == 0 ? 0 : done * 100 / total, step);
    if (done == total) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
    fflush(stderr);
}

static void show_warning(void *user, const char *message) { cli_message("compile", "warning: %s", message); }

static void show_dump(void *user, const char *message) { fputs(message, stdout); }

static bool parse_buckets(const char *command, char *text, void *request)
{
    compile_request *r = request;
    const char *items[MAX_ITEMS];
    size_t count;
    if (!cli_split_list(command, "--buckets", text, MAX_ITEMS, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!cli_parse_int(command, "--buckets", items[i], 1, MDOTC_MAX_LENGTH, &r->buckets[i])) return false;
        if (i > 0 && r->buckets[i] <= r->buckets[i - 1])
            return cli_refuse(command, "--buckets must ascend, but %s follows %s", items[i], items[i - 1]);
    }
    r->options.buckets = r->buckets;
    r->options.bucket_count = count;
    return true;
}

static bool add_entry(compile_request *r, const char *name, const char *model)
{
    if (r->entry_count == MAX_ITEMS) return cli_refuse("compile", "at most %d entry points", MAX_ITEMS);
    r->entries[r->entry_count++] = (mdotc_entry){sizeof(mdotc_entry), name, model};
    return true;
}

/* Splits NAME=MODEL in place. */
static bool parse_entry(const char *command, char *text, void *request)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return cli_refuse(command, "--entry takes NAME=MODEL, not \"%s\"", text);
    *equals = '\0';
    return add_entry(request, text, equals + 1);
}

static bool add_targets(const char *command, char *text, void *request)
{
    compile_request *r = request;
    size_t there = r->options.target_count, added;
    if (!cli_split_list(command, "--target", text, MAX_ITEMS - there, r->targets + there, &added)) return false;
    r->options.targets = r->targets;
    r->options.target_count = there + added;
    return true;
}

static const char *const *target_names(void)
{
    static const char *const names[] = {"cpu",
                                        "x86-64",
                                        "aarch64",
                                        "cpu:x86-64-v3",
                                        "cpu:x86-64-v4",
                                        "cpu:x86-64-bf16",
                                        "cpu:x86-64-amx",
                                        "cpu:aarch64-neon",
                                        "cpu:aarch64-bf16",
                                        "cuda",
                                        "sm_75",
                                        "sm_80",
                                        "sm_86",
                                        "sm_89",
                                        "sm_90a",
                                        "sm_100",
                                        "sm_120",
                                        NULL};
    return names;
}

static const char *const *compute_names(void)
{
    static const char *const names[] = {"bf16", "fp32", "cuda=bf16", "cuda=fp32", "cpu=bf16", "cpu=fp32", NULL};
    return names;
}

static const cli_option options[] = {
    CLI_OUTPUT_OPTION(
        compile_request, output, "FILE",
        "the artefact to write (required). It must be a regular file, because mdot replaces it atomically", "mdot"),
    CLI_CALL_ROW("buckets", "N,N,…", parse_buckets,
                 "maximum lengths of the buckets, ascending (default 32,64,128,256,512,1024)", .letter = 'b'),
    CLI_WHOLE_ROW(
        "min-length", "N", compile_request, options.min_length, 1, MDOTC_MAX_LENGTH,
        "minimum length of a call (default 1). Some models require one; for example, TopK requires at least K "
        "elements"),
    CLI_FLAG_ROW(
        "allow-dropped", compile_request, options.allow_dropped,
        "omit the buckets from the first one on that the model refuses, with a warning. Without this option such a "
        "bucket is an error"),
    CLI_CALL_ROW(
        "target", "T,T,…", add_targets,
        "CPU code: cpu (all ISA levels of the processor that mdot itself is built for; default), x86-64 or aarch64 "
        "(all ISA levels of that processor), cpu:x86-64-v3, cpu:x86-64-v4, cpu:aarch64-neon and, in bf16, "
        "cpu:x86-64-bf16 (AVX512_BF16), cpu:x86-64-amx and cpu:aarch64-bf16 (FEAT_BF16). An artefact holds code "
        "for one processor. NVIDIA GPUs: sm_75, sm_80, sm_86, sm_89, "
        "sm_90a, sm_100, sm_120, other architectures that NVRTC supports, or cuda for these seven; with "
        "sm_90a+clusters, eight multiprocessors share a tile (unmeasured). The "
        "option may be repeated. Every artefact contains CPU code for machines that lack a GPU",
        .letter = 't', .repeats = true, .names = target_names, .is_list = true),
    CLI_TEXT_ROW("kernel-precision", "A,A,…", compile_request, options.kernel_precision,
                 "precision of matrix multiplications: cuda=bf16 (fp16 on sm_75; default), cuda=fp32, cpu=fp32 "
                 "(default) or cpu=bf16. A value such as bf16 applies to both CPU and GPU. If several precisions "
                 "are given for one kind of processor, each target gets code in all of them; programs use the "
                 "first one by default",
                 .names = compute_names, .is_list = true),
    CLI_CALL_ROW("entry", "NAME=MODEL", parse_entry,
                 "add an entry point; a single MODEL.onnx becomes the entry point \"predict\"", .letter = 'e',
                 .repeats = true),
    CLI_DIM_OPTION(compile_request, dims, 0,
                   "fix a symbolic dimension of the model other than the length, such as a batch. NAME=OTHER "
                   "declares that two dimensions are equal. The artefact omits inputs that NAME=0 makes empty, such "
                   "as cached keys"),
    CLI_TEXT_ROW("name", "NAME", compile_request, options.name,
                 "name of the predictor (default: the file name of the first model)"),
    CLI_TEXT_ROW("dump", "PASS", compile_request, options.dump_pass,
                 "print the graph of each bucket after this pass; also \"import\", \"plan\", \"llvm\", \"asm\", "
                 "\"cuda\" (CUDA source) and \"ptxas\" (output of NVIDIA's assembler)"),
    CLI_QUIET_OPTION(compile_request, quiet, "suppress progress and warnings"),
};
static int run(int argc, char **argv)
{
    compile_request r = {.options = MDOT_INIT(mdotc_options)};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_compile, argc, argv, &r, &operands, &status)) return status;
    if (operands.count > 1) return cli_usage_error("compile", "expected one model; add others with --entry NAME=MODEL");
    if (operands.count == 1 && !add_entry(&r, "predict", operands.item[0])) return CLI_USAGE;
    if (r.entry_count == 0)
        return cli_usage_error("compile", "no model given: pass MODEL.onnx or --entry NAME=MODEL.onnx");
    if (r.output == NULL) return cli_usage_error("compile", "no output given: use -o MODEL.mdot");

    r.options.dims = r.dims.item;
    r.options.dim_count = r.dims.count;
    r.options.dump = show_dump;
    if (!r.quiet) {
        r.options.warning = show_warning;
        if (isatty(STDERR_FILENO)) r.options.progress = show_progress;
    }
    mdot_error err = {0};
    if (mdotc_compile(r.entries, r.entry_count, r.output, &r.options, &err) == MDOT_OK) return CLI_OK;
    if (r.options.progress != NULL) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
    int reported = cli_report("compile", &err);
    return err.status == MDOT_INVALID_ARGUMENT ? CLI_USAGE : reported;
}

const cli_command cli_compile = {
    .name = "compile",
    .summary = "compile a predictor (ONNX) into an artefact (.mdot)",
    .synopsis = "MODEL.onnx -o MODEL.mdot [OPTION]…\n"
                "--entry NAME=MODEL.onnx [--entry …] -o MODEL.mdot [OPTION]…",
    .description = "Compiles a trained predictor into an artefact: specialised kernels for each sequence bucket and "
                   "each ISA level or GPU architecture, and the packed weights, in one file that libmdot "
                   "runs.\n\nThe model's only symbolic dimension becomes the run-time length. A call runs in the "
                   "smallest bucket that fits its length, and its time depends on its actual length.",
    CLI_OPTIONS(options),
    .notes =
        "GPU targets require NVIDIA's NVRTC library; a GPU is optional. A model with a part that has no CUDA code, "
        "for example values of type f64, gets CPU code only, and a warning gives the reason.\n\nmdot "
        "writes the artefact atomically.",
    .files = "onnx",
    .run = run,
};
