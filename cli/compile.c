/* compile.c — `mdot compile`: ONNX predictors in, one artefact out. */
#include "cli/cli.h"
#include "mdot/mdotc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ITEMS = 64, BAR_WIDTH = 30 };

typedef struct arguments {
    mdotc_entry entries[MAX_ITEMS];
    size_t entry_count;
    const char *output;
    int64_t buckets[MAX_ITEMS];
    const char *targets[MAX_ITEMS];
    cli_dims dims;
    mdotc_options options;
    bool quiet;
} arguments;

static const char help[] =
    "Usage: mdot compile MODEL.onnx -o MODEL.mdot [OPTION]…\n"
    "       mdot compile --entry NAME=MODEL.onnx [--entry …] -o MODEL.mdot [OPTION]…\n"
    "\n"
    "Compiles a trained predictor into an artefact: specialised kernels for each sequence\n"
    "bucket and CPU level or GPU architecture, with the packed weights, in one file that\n"
    "libmdot runs.\n"
    "\n"
    "The model's one symbolic dimension becomes the run-time length; a call runs in the\n"
    "smallest bucket that holds it and costs what its own length costs.\n"
    "\n"
    "Options:\n"
    "  -o, --output FILE        the artefact to write (needed)\n"
    "  -b, --buckets N,N,…      greatest lengths to specialise for, ascending\n"
    "                           (default 32,64,128,256,512,1024)\n"
    "  -t, --target T,T,…       cpu (all levels), cpu:x86-64-v3, cpu:x86-64-v4 (default cpu);\n"
    "                           NVIDIA GPUs: sm_75, sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120,\n"
    "                           others that NVRTC knows, or cuda for these seven. May be repeated;\n"
    "                           there is CPU code in any case, for machines without a GPU\n"
    "      --compute ARITHMETIC  of matrices on GPUs: bf16 (fp16 on sm_75; default) or fp32\n"
    "  -e, --entry NAME=MODEL   an entry point of its own; MODEL.onnx alone is entry \"predict\"\n"
    "  -d, --dim NAME=N         fix another symbolic dimension of the model, such as a batch\n"
    "      --dim NAME=OTHER     say that two symbolic dimensions are the same length\n"
    "      --name NAME          the predictor's name (default: the first model's file name)\n"
    "      --dump PASS          print the graph after a pass of each bucket; also \"import\",\n"
    "                           \"plan\", \"llvm\", \"asm\", \"cuda\" (the GPU's source) and \"ptxas\"\n"
    "                           (what NVIDIA's assembler says of it)\n"
    "  -q, --quiet              no progress and no warnings\n"
    "  -h, --help               show this help\n"
    "\n"
    "GPU targets take NVIDIA's NVRTC library, but no GPU. A model that is no Transformer encoder\n"
    "gets CPU code alone, with a warning that says why.\n"
    "\n"
    "The artefact appears complete or not at all. Exit status: 0 compiled, 1 failed, 2 usage.\n";

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

static bool parse_buckets(arguments *a, char *text)
{
    const char *items[MAX_ITEMS];
    size_t count;
    if (!cli_split_list("compile", "--buckets", text, MAX_ITEMS, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!cli_parse_int("compile", "--buckets", items[i], 1, 1 << 20, &a->buckets[i])) return false;
        if (i > 0 && a->buckets[i] <= a->buckets[i - 1]) {
            cli_usage_error("compile", "--buckets must ascend: %s stands after %s", items[i], items[i - 1]);
            return false;
        }
    }
    a->options.buckets = a->buckets;
    a->options.bucket_count = count;
    return true;
}

/* "name=rest" in place. */
static char *split_assignment(const char *what, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        cli_usage_error("compile", "%s takes NAME=VALUE, not \"%s\"", what, text);
        return NULL;
    }
    *equals = '\0';
    return equals + 1;
}

static bool add_entry(arguments *a, const char *name, const char *model)
{
    if (a->entry_count == MAX_ITEMS) {
        cli_usage_error("compile", "at most %d entry points", MAX_ITEMS);
        return false;
    }
    a->entries[a->entry_count++] = (mdotc_entry){sizeof(mdotc_entry), name, model};
    return true;
}

static bool add_targets(arguments *a, char *text)
{
    size_t there = a->options.target_count, added;
    if (!cli_split_list("compile", "--target", text, MAX_ITEMS - there, a->targets + there, &added)) return false;
    a->options.targets = a->targets;
    a->options.target_count = there + added;
    return true;
}

static bool parse_option(arguments *a, int option, char *value)
{
    switch (option) {
    case 'o':
        a->output = value;
        return true;
    case 'b':
        return parse_buckets(a, value);
    case 't':
        return add_targets(a, value);
    case 'c':
        a->options.compute = value;
        return true;
    case 'e': {
        char *model = split_assignment("--entry", value);
        return model != NULL && add_entry(a, value, model);
    }
    case 'd':
        return cli_parse_dim("compile", value, &a->dims);
    case 'n':
        a->options.name = value;
        return true;
    case 'D':
        a->options.dump_pass = value;
        return true;
    case 'q':
        a->quiet = true;
        return true;
    default:
        return false;
    }
}

/* CLI_OK to go on, else the exit status; *out_help says that help was shown. */
static int parse_arguments(int argc, char **argv, arguments *a, bool *out_help)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"buckets", required_argument, NULL, 'b'},
                                            {"target", required_argument, NULL, 't'},
                                            {"entry", required_argument, NULL, 'e'},
                                            {"dim", required_argument, NULL, 'd'},
                                            {"name", required_argument, NULL, 'n'},
                                            {"compute", required_argument, NULL, 'c'},
                                            {"dump", required_argument, NULL, 'D'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = cli_next_option(argc, argv, ":o:b:t:e:d:qh", options)) != -1;) {
        if (option == 'h') {
            fputs(help, stdout);
            *out_help = true;
            return CLI_OK;
        }
        if (!parse_option(a, option, optarg)) return CLI_USAGE;
    }
    if (argc - optind > 1) return cli_usage_error("compile", "one model at a time; name others with --entry");
    if (optind < argc && !add_entry(a, "predict", argv[optind])) return CLI_USAGE;
    if (a->entry_count == 0) return cli_usage_error("compile", "no model given");
    if (a->output == NULL) return cli_usage_error("compile", "no output given: -o MODEL.mdot");
    return CLI_OK;
}

int cli_compile(int argc, char **argv)
{
    arguments a = {.options = MDOT_INIT(mdotc_options)};
    bool helped = false;
    int status = parse_arguments(argc, argv, &a, &helped);
    if (status != CLI_OK || helped) return status;

    a.options.dims = a.dims.item;
    a.options.dim_count = a.dims.count;
    a.options.dump = show_dump;
    if (!a.quiet) {
        a.options.warning = show_warning;
        if (isatty(STDERR_FILENO)) a.options.progress = show_progress;
    }
    mdot_error err = {0};
    if (mdotc_compile(a.entries, a.entry_count, a.output, &a.options, &err) == MDOT_OK) return CLI_OK;
    if (a.options.progress != NULL) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
    int reported = cli_report("compile", &err);
    return err.status == MDOT_INVALID_ARGUMENT ? CLI_USAGE : reported;
}
