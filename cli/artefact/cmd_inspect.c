/* cmd_inspect.c — `mdot inspect`: prints the contents of an artefact, as tables for people or as JSON. */
#include "cli/artefact/inspect.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct view {
    const mdot_predictor *predictor;
    const cli_section *sections;
    size_t section_count;
    bool every_kernel;
} view;

typedef mdot_status (*get_tensor)(const mdot_predictor *, size_t, size_t, mdot_tensor_info *);

/* Prints scale * L: "L", "-L" or "40L". */
static void print_length(int64_t scale)
{
    if (scale == -1)
        printf("-");
    else if (scale != 1)
        printf("%" PRId64, scale);
    printf("L");
}

/* Prints "2L+1", "L", "40", or with a quotient that is rounded down "(L+1)/2-1". */
static void print_dim(mdot_dim dim, mdot_dim_floor floor)
{
    if (floor.times != 0) {
        if (floor.times != 1) printf("%" PRId32 "*(", floor.times);
        printf(floor.start != 0 ? "(" : "");
        print_length(floor.step);
        if (floor.start != 0) printf("+%" PRId32 ")", floor.start);
        printf("/%" PRId32 "%s", floor.divisor, floor.times != 1 ? ")" : "");
        if (dim.scale > 0) printf("+");
    }
    if (dim.scale != 0) print_length(dim.scale);
    if (floor.times == 0 && dim.scale == 0)
        printf("%" PRId64, dim.offset);
    else if (dim.offset != 0)
        printf("%+" PRId64, dim.offset);
}

static void print_tensors(const view *v, size_t entry, size_t count, get_tensor get, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        cli_text name;
        get(v->predictor, entry, i, &info);
        printf("  %-7s %-24s %-5s [", what, cli_printable(&name, info.name), mdot_dtype_name(info.dtype));
        for (int d = 0; d < info.rank; d++) {
            if (d > 0) printf(", ");
            print_dim(info.dim[d], info.floor[d]);
        }
        printf("]\n");
    }
}

static void print_kernels(const view *v, size_t entry, size_t index, const mdot_bucket_info *bucket)
{
    if (bucket->max_length > 0)
        printf("\n  kernels of bucket %" PRId64 "\n", bucket->max_length);
    else
        printf("\n  kernels\n");
    printf("  %3s %-11s %10s %6s  %s\n", "", "kind", "MFLOP", "share", "name");
    for (size_t k = 0; k < bucket->kernel_count; k++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        cli_text name;
        mdot_predictor_get_kernel(v->predictor, entry, index, k, &kernel);
        double percent = bucket->flops > 0 ? 100 * kernel.flops / bucket->flops : 0;
        printf("  %3zu %-11s %10.3f %5.1f%%  %s\n", k, kernel.kind, kernel.flops * 1e-6, percent,
               cli_printable(&name, kernel.name));
    }
}

/* Prints the kernel count and the FLOP share of each kind at the longest length. So a reader sees fused patterns and
 * the loops (nests) that stayed general. */
static void print_kinds(const view *v, size_t entry, size_t index, const mdot_bucket_info *bucket)
{
    enum { MAX_KINDS = 16 };
    struct {
        const char *name;
        size_t count;
        double flops;
    } kinds[MAX_KINDS];
    size_t kind_count = 0;
    for (size_t k = 0; k < bucket->kernel_count; k++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        mdot_predictor_get_kernel(v->predictor, entry, index, k, &kernel);
        size_t kind_index = 0;
        while (kind_index < kind_count && strcmp(kinds[kind_index].name, kernel.kind) != 0) kind_index++;
        if (kind_index == MAX_KINDS) continue;
        if (kind_index == kind_count) {
            kinds[kind_count].name = kernel.kind;
            kinds[kind_count].count = 0;
            kinds[kind_count++].flops = 0;
        }
        kinds[kind_index].count++;
        kinds[kind_index].flops += kernel.flops;
    }
    printf("\n  kernels by kind, with their fraction of the FLOPs:");
    for (int is_general = 0; is_general <= 1; is_general++)
        for (size_t i = 0; i < kind_count; i++) {
            if ((strcmp(kinds[i].name, "nest") == 0) != (is_general == 1)) continue;
            double percent = bucket->flops > 0 ? 100 * kinds[i].flops / bucket->flops : 0;
            printf(" %s %zu (%.1f %%)", is_general ? "general loops" : kinds[i].name, kinds[i].count, percent);
        }
    printf("\n");
}

static void print_entry(const view *v, size_t index)
{
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_entry(v->predictor, index, &entry);
    mdot_predictor_get_bucket(v->predictor, index, entry.bucket_count - 1, &bucket);
    cli_text name;
    printf("\nentry %s", cli_printable(&name, entry.name));
    if (entry.has_length) printf(", L = %" PRId64 " … %" PRId64, entry.min_length, bucket.max_length);
    printf(", schema %016" PRIx64 "\n", entry.schema_hash);
    if (entry.items_together > 1) printf("  up to %zu items per call (mdot_run_many)\n", entry.items_together);
    print_tensors(v, index, entry.input_count, mdot_predictor_get_input, "input");
    print_tensors(v, index, entry.output_count, mdot_predictor_get_output, "output");
    printf("\n  %7s %8s %10s %14s\n", "bucket", "kernels", "MFLOP", "scratch bytes");
    for (size_t i = 0; i < entry.bucket_count; i++) {
        mdot_predictor_get_bucket(v->predictor, index, i, &bucket);
        printf("  %7" PRId64 " %8zu %10.3f %14zu\n", bucket.max_length, bucket.kernel_count, bucket.flops * 1e-6,
               bucket.scratch_bytes);
    }
    print_kinds(v, index, entry.bucket_count - 1, &bucket);
    for (size_t i = v->every_kernel ? 0 : entry.bucket_count - 1; i < entry.bucket_count; i++) {
        mdot_predictor_get_bucket(v->predictor, index, i, &bucket);
        print_kernels(v, index, i, &bucket);
    }
}

/* Prints one line per bucket: scratch memory, which is the only resource of a CPU call; or the resources that limit
 * resident blocks, and values that should be zero. */
static void print_image(const view *v, size_t index, size_t entry_count)
{
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    mdot_predictor_get_image(v->predictor, index, &image);
    bool is_cpu = strcmp(image.kind, "cpu") == 0;
    printf("\nimage %s, kernel precision %s, %zu bytes, weights %zu\n", image.target, image.kernel_precision,
           image.image_bytes, image.weights_bytes);
    if (is_cpu)
        printf("  %-24s %7s %14s\n", "entry", "bucket", "scratch bytes");
    else
        printf("  %-24s %7s %9s %8s %7s %7s %7s %8s %9s\n", "kernel", "threads", "registers", "shared", "local",
               "spilled", "tensor", "barriers", "code");
    for (size_t e = 0; e < entry_count; e++) {
        mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
        mdot_predictor_get_entry(v->predictor, e, &entry);
        for (size_t b = 0; b < entry.bucket_count; b++) {
            mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
            mdot_image_kernel_info k = MDOT_INIT(mdot_image_kernel_info);
            cli_text name;
            mdot_predictor_get_bucket(v->predictor, e, b, &bucket);
            mdot_predictor_get_image_kernel(v->predictor, index, e, b, &k);
            printf("  %-24s ", cli_printable(&name, is_cpu ? entry.name : k.name));
            if (is_cpu)
                printf("%7" PRId64 " %14zu\n", bucket.max_length, k.scratch_bytes);
            else
                printf("%7u %9u %8zu %7zu %7zu %7u %8u %9zu\n", k.threads, k.registers, k.shared_bytes, k.local_bytes,
                       k.spill_bytes, k.tensor_instructions, k.grid_barriers, k.code_bytes);
        }
    }
}

static void print_text(const view *v)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(v->predictor, &info);
    cli_text name;
    printf("predictor  %s\n", cli_printable(&name, info.name));
    printf("compiler   %s\n", info.compiler);
    printf("precision  %s\n", info.kernel_precision);
    printf("images     ");
    for (size_t i = 0; i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        mdot_predictor_get_image(v->predictor, i, &image);
        printf("%s%s", i > 0 ? ", " : "", image.target);
    }
    printf(" (this machine's CPU runs %s%s%s)\n", info.cpu_isa, info.cpu_reason[0] != '\0' ? "; " : "",
           info.cpu_reason);
    cli_print_reads(v->predictor);
    printf("size       %zu bytes, of which weights %zu\n", info.file_bytes, info.weights_bytes);
    printf("\n  %-24s %12s %12s  %s\n", "section", "address", "bytes", "access");
    for (size_t i = 0; i < v->section_count; i++)
        printf("  %-24s %#12" PRIx64 " %12" PRIu64 "  %s\n", cli_printable(&name, v->sections[i].name),
               v->sections[i].address, v->sections[i].size_bytes, v->sections[i].access);
    for (size_t i = 0; i < info.entry_count; i++) print_entry(v, i);
    for (size_t i = 0; i < info.image_count; i++) print_image(v, i, info.entry_count);
}

static void json_tensors(const view *v, size_t entry, size_t count, get_tensor get, const char *what)
{
    printf(",\n      \"%s\": [", what);
    for (size_t i = 0; i < count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        get(v->predictor, entry, i, &info);
        cli_json_member(stdout, i > 0 ? ",\n        {" : "\n        {", "name", info.name);
        printf(", \"dtype\": \"%s\", \"dims\": [", mdot_dtype_name(info.dtype));
        for (int d = 0; d < info.rank; d++) {
            const mdot_dim_floor *floor = &info.floor[d];
            printf("%s{\"scale\": %" PRId64 ", \"offset\": %" PRId64, d > 0 ? ", " : "", info.dim[d].scale,
                   info.dim[d].offset);
            if (floor->times != 0)
                printf(", \"times\": %" PRId32 ", \"step\": %" PRId32 ", \"start\": %" PRId32 ", \"divisor\": %" PRId32,
                       floor->times, floor->step, floor->start, floor->divisor);
            printf("}");
        }
        printf("]}");
    }
    printf("]");
}

static void json_bucket(const view *v, size_t entry, size_t index)
{
    mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(v->predictor, entry, index, &bucket);
    printf("%s\n        {\"max_length\": %" PRId64 ", \"scratch_bytes\": %zu, \"flops\": %.0f, \"kernels\": [",
           index > 0 ? "," : "", bucket.max_length, bucket.scratch_bytes, bucket.flops);
    for (size_t k = 0; k < bucket.kernel_count; k++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        mdot_predictor_get_kernel(v->predictor, entry, index, k, &kernel);
        cli_json_member(stdout, k > 0 ? ",\n          {" : "\n          {", "name", kernel.name);
        cli_json_member(stdout, ", ", "kind", kernel.kind);
        printf(", \"flops\": %.0f}", kernel.flops);
    }
    printf("]}");
}

static void json_entry(const view *v, size_t index)
{
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_predictor_get_entry(v->predictor, index, &entry);
    cli_json_member(stdout, index > 0 ? ",\n    {" : "\n    {", "name", entry.name);
    printf(", \"has_length\": %s, \"min_length\": %" PRId64 ", \"schema_hash\": \"%016" PRIx64
           "\", \"items_together\": %zu",
           entry.has_length ? "true" : "false", entry.min_length, entry.schema_hash, entry.items_together);
    json_tensors(v, index, entry.input_count, mdot_predictor_get_input, "inputs");
    json_tensors(v, index, entry.output_count, mdot_predictor_get_output, "outputs");
    printf(",\n      \"buckets\": [");
    for (size_t i = 0; i < entry.bucket_count; i++) json_bucket(v, index, i);
    printf("]}");
}

static void json_image_kernel(const view *v, size_t image, const mdot_entry_info *entry, size_t entry_index,
                              size_t bucket, bool first)
{
    mdot_image_kernel_info kernel = MDOT_INIT(mdot_image_kernel_info);
    mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_image_kernel(v->predictor, image, entry_index, bucket, &kernel);
    mdot_predictor_get_bucket(v->predictor, entry_index, bucket, &info);
    cli_json_member(stdout, first ? "\n      {" : ",\n      {", "name", kernel.name);
    cli_json_member(stdout, ", ", "entry", entry->name);
    printf(", \"max_length\": %" PRId64 ", \"threads\": %u, \"registers\": %u, \"shared_bytes\": %zu, "
           "\"local_bytes\": %zu, \"spill_bytes\": %zu, \"tensor_instructions\": %u, \"grid_barriers\": %u, "
           "\"barriers\": %u, \"code_bytes\": %zu, \"inline_input_bytes\": %zu, \"scratch_bytes\": %zu}",
           info.max_length, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.local_bytes,
           kernel.spill_bytes, kernel.tensor_instructions, kernel.grid_barriers, kernel.barriers, kernel.code_bytes,
           kernel.inline_input_bytes, kernel.scratch_bytes);
}

static void json_image(const view *v, size_t index, size_t entry_count)
{
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    mdot_predictor_get_image(v->predictor, index, &image);
    cli_json_member(stdout, index > 0 ? ",\n    {" : "\n    {", "kind", image.kind);
    cli_json_member(stdout, ", ", "target", image.target);
    cli_json_member(stdout, ", ", "kernel_precision", image.kernel_precision);
    printf(", \"image_bytes\": %zu, \"weights_bytes\": %zu, \"kernels\": [", image.image_bytes, image.weights_bytes);
    for (size_t e = 0; e < entry_count; e++) {
        mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
        mdot_predictor_get_entry(v->predictor, e, &entry);
        for (size_t b = 0; b < entry.bucket_count; b++) json_image_kernel(v, index, &entry, e, b, e == 0 && b == 0);
    }
    printf("]}");
}

static void print_json(const view *v)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(v->predictor, &info);
    cli_json_member(stdout, "{\n  ", "name", info.name);
    cli_json_member(stdout, ",\n  ", "compiler", info.compiler);
    cli_json_member(stdout, ",\n  ", "kernel_precision", info.kernel_precision);
    cli_json_member(stdout, ",\n  ", "cpu_isa", info.cpu_isa);
    cli_json_member(stdout, ",\n  ", "cpu_reason", info.cpu_reason);
    cli_json_reads(v->predictor);
    printf(",\n  \"file_bytes\": %zu,\n  \"weights_bytes\": %zu,\n  \"sections\": [", info.file_bytes,
           info.weights_bytes);
    for (size_t i = 0; i < v->section_count; i++) {
        cli_json_member(stdout, i > 0 ? ",\n    {" : "\n    {", "name", v->sections[i].name);
        printf(", \"address\": %" PRIu64 ", \"size_bytes\": %" PRIu64 ", \"access\": \"%s\"}", v->sections[i].address,
               v->sections[i].size_bytes, v->sections[i].access);
    }
    printf("],\n  \"entries\": [");
    for (size_t i = 0; i < info.entry_count; i++) json_entry(v, i);
    printf("],\n  \"images\": [");
    for (size_t i = 0; i < info.image_count; i++) json_image(v, i, info.entry_count);
    printf("]\n}\n");
}

typedef struct inspect_request {
    bool every_kernel, json;
} inspect_request;

static int run(int argc, char **argv)
{
    inspect_request request = {0};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_inspect, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count != 1) return cli_usage_error("inspect", "expected one artefact (MODEL.mdot)");
    const char *path = operands.item[0];
    view v = {.every_kernel = request.every_kernel};
    mdot_error err = {0};
    mdot_predictor *predictor = NULL;
    cli_section *sections = NULL;
    mdot_open_options open = {.struct_size = sizeof open, .device = "cpu"};
    mdot_status status = mdot_predictor_open(path, &open, &predictor, &err);
    if (status == MDOT_OK) status = cli_read_sections(path, &sections, &v.section_count, &err);
    if (status == MDOT_OK) {
        v.predictor = predictor;
        v.sections = sections;
        (request.json ? print_json : print_text)(&v);
    }
    free(sections);
    mdot_predictor_close(predictor);
    return status == MDOT_OK ? CLI_OK : cli_report("inspect", &err);
}

static const cli_option options[] = {
    CLI_FLAG_ROW("kernels", inspect_request, every_kernel,
                 "list the kernels of every bucket (default: only of the largest one)", .letter = 'k'),
    CLI_JSON_OPTION(inspect_request, json, "print everything as JSON"),
};
const cli_command cli_inspect = {
    .name = "inspect",
    .summary = "show the contents of an artefact: entry points, buckets, kernels, sizes",
    .synopsis = "MODEL.mdot [OPTION]…",
    .description = "Shows the contents of an artefact: its origin, its sections and, for each entry point, the "
                   "inputs, outputs, buckets and kernels. For a predictor of training jobs, it lists the options of "
                   "`mdot predict` that are inputs of the predictor and the options that are estimated "
                   "analytically. For each GPU architecture, it lists the resources of the kernel of each bucket. L "
                   "is the run-time length.",
    CLI_OPTIONS(options),
    .files = "mdot",
    .run = run,
};
