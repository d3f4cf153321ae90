/* compile.c — `mdot compile`: compile ONNX predictors into one artefact. */
#include "cli/command.h"
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
    (void)user;
    int filled = total == 0 ? 0 : (int)(done * BAR_WIDTH / total);
    fprintf(stderr, "\r[%.*s%*s] %3zu%% %-32.32s", filled, "##############################", BAR_WIDTH - filled, "",
            total == 0 ? 0 : done * 100 / total, step);
    if (done == total) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
    fflush(stderr);
}

static void show_warning(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "mdot compile: warning: %s\n", message);
}

static void show_dump(void *user, const char *message)
{
    (void)user;
    fputs(message, stdout);
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static bool parse_buckets(const char *command, char *text, void *request)
{
    compile_request *r = request;
    const char *items[MAX_ITEMS];
    size_t count;
    if (!cli_split_list(command, "--buckets", text, MAX_ITEMS, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!cli_parse_int(command, "--buckets", items[i], 1, MDOTC_MAX_LENGTH, &r->buckets[i])) return false;
        if (i > 0 && r->buckets[i] <= r->buckets[i - 1]) {
            cli_usage_error(command, "--buckets must ascend: %s stands after %s", items[i], items[i - 1]);
            return false;
        }
    }
    r->options.buckets = r->buckets;
    r->options.bucket_count = count;
    return true;
}

static bool add_entry(compile_request *r, const char *name, const char *model)
{
    if (r->entry_count == MAX_ITEMS) {
        cli_usage_error("compile", "at most %d entry points", MAX_ITEMS);
        return false;
    }
    r->entries[r->entry_count++] = (mdotc_entry){sizeof(mdotc_entry), name, model};
    return true;
}

/* Splits NAME=MODEL in place. */
static bool parse_entry(const char *command, char *text, void *request)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        cli_usage_error(command, "--entry takes NAME=MODEL, not \"%s\"", text);
        return false;
    }
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
    static const char *const names[] = {
        "cpu",   "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-bf16", "cpu:x86-64-amx", "cuda",   "sm_75",
        "sm_80", "sm_86",         "sm_89",         "sm_90a",          "sm_100",         "sm_120", NULL};
    return names;
}

static const char *const *compute_names(void)
{
    static const char *const names[] = {"bf16", "fp32", "cuda=bf16", "cuda=fp32", "cpu=bf16", "cpu=fp32", NULL};
    return names;
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "the artefact to write (needed): a file, no device and no pipe, since it appears whole or not at all",
     .kind = CLI_TEXT,
     .at = offsetof(compile_request, output),
     .files = "mdot"},
    {.name = "buckets",
     .letter = 'b',
     .value = "N,N,…",
     .help = "greatest lengths to specialise for, ascending (default 32,64,128,256,512,1024)",
     .kind = CLI_CALL,
     .call = parse_buckets},
    {.name = "min-length",
     .value = "N",
     .help = "refuse calls of shorter lengths, which some models need (TopK of N elements; default 1)",
     .kind = CLI_WHOLE,
     .at = offsetof(compile_request, options.min_length),
     .least = 1,
     .most = MDOTC_MAX_LENGTH},
    {.name = "target",
     .letter = 't',
     .value = "T,T,…",
     .help = "cpu (all levels; default), cpu:x86-64-v3, cpu:x86-64-v4 and, in bf16, cpu:x86-64-bf16 (AVX512_BF16) and "
             "cpu:x86-64-amx; NVIDIA GPUs: sm_75, sm_80, sm_86, sm_89, "
             "sm_90a, sm_100, sm_120, others that NVRTC knows, or cuda for these seven. May be repeated; there is CPU "
             "code in any case, for machines without a GPU",
     .kind = CLI_CALL,
     .call = add_targets,
     .repeats = true,
     .names = target_names,
     .is_list = true},
    {.name = "kernel-precision",
     .value = "A,A,…",
     .help = "arithmetic of matrices: cuda=bf16 (fp16 on sm_75; default), cuda=fp32, cpu=fp32 (default), cpu=bf16; "
             "without a kind of processor, both are meant. Of several for one kind each target gets code in all, and "
             "the first is used "
             "unless a program asks for another",
     .kind = CLI_TEXT,
     .at = offsetof(compile_request, options.kernel_precision),
     .names = compute_names,
     .is_list = true},
    {.name = "compute", /* the option's name until 0.3; remove the alias in 0.4 */
     .value = "A,A,…",
     .kind = CLI_TEXT,
     .at = offsetof(compile_request, options.kernel_precision),
     .is_list = true},
    {.name = "entry",
     .letter = 'e',
     .value = "NAME=MODEL",
     .help = "an entry point of its own; MODEL.onnx alone is entry \"predict\"",
     .kind = CLI_CALL,
     .call = parse_entry,
     .repeats = true},
    {.name = "dim",
     .letter = 'd',
     .value = "NAME=N",
     .help =
         "fix another symbolic dimension of the model, such as a batch; NAME=OTHER says that two are the same "
         "length. An input that NAME=0 leaves without elements, such as the keys of a past, is none of the artefact",
     .kind = CLI_DIM,
     .at = offsetof(compile_request, dims),
     .repeats = true},
    {.name = "name",
     .value = "NAME",
     .help = "the predictor's name (default: the first model's file name)",
     .kind = CLI_TEXT,
     .at = offsetof(compile_request, options.name)},
    {.name = "dump",
     .value = "PASS",
     .help = "print the graph after a pass of each bucket; also \"import\", \"plan\", \"llvm\", \"asm\", "
             "\"cuda\" (the GPU's source) and \"ptxas\" (what NVIDIA's assembler says of it)",
     .kind = CLI_TEXT,
     .at = offsetof(compile_request, options.dump_pass)},
    {.name = "quiet",
     .letter = 'q',
     .help = "no progress and no warnings",
     .kind = CLI_FLAG,
     .at = offsetof(compile_request, quiet)},
};
static const char *const synopsis[] = {"MODEL.onnx -o MODEL.mdot [OPTION]…",
                                       "--entry NAME=MODEL.onnx [--entry …] -o MODEL.mdot [OPTION]…", NULL};

/* ---- The subcommand --------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    compile_request r = {.options = MDOT_INIT(mdotc_options)};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_compile, argc, argv, &r, &operands, &status)) return status;
    if (operands.count > 1) return cli_usage_error("compile", "one model at a time; name others with --entry");
    if (operands.count == 1 && !add_entry(&r, "predict", operands.item[0])) return CLI_USAGE;
    if (r.entry_count == 0) return cli_usage_error("compile", "no model given");
    if (r.output == NULL) return cli_usage_error("compile", "no output given: -o MODEL.mdot");

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
    .synopsis = synopsis,
    .description =
        "Compiles a trained predictor into an artefact: specialised kernels for each sequence bucket and CPU "
        "level or GPU architecture, with the packed weights, in one file that libmdot runs.\n\n"
        "The model's one symbolic dimension becomes the run-time length; a call runs in the smallest bucket "
        "that holds it and costs what its own length costs.",
    CLI_OPTIONS(options),
    .notes =
        "GPU targets take NVIDIA's NVRTC library, but no GPU. A model that is no Transformer encoder gets CPU code "
        "alone, with a warning that says why.\n\n"
        "The artefact appears complete or not at all.",
    .exit_status = "0 compiled, 1 failed, 2 usage",
    .files = "onnx",
    .run = run,
};
