/* mdotc.h — compile trained predictors (ONNX) into artefacts, and check compiled code against the reference
 * evaluator.
 *
 * The library is libmdotc. Functions may be called from several threads at once on different files. The library
 * prints to no stream: warnings and progress go to callbacks. Strings passed in are read during the call only.
 */
#ifndef MDOTC_H
#define MDOTC_H

#include "mdot_base.h"

MDOT_BEGIN_DECLARATIONS

/* Returns the version of libmdotc as text.
 *
 * @return for example "0.4.0"; static
 */
const char *mdotc_version(void);
/* Returns the version of libmdotc as a number, for comparison with MDOT_VERSION_NUMBER.
 *
 * @return 1000000 * major + 1000 * minor + patch: 0.4.0 is 4000
 */
uint32_t mdotc_version_number(void);

enum {
    MDOTC_MAX_LENGTH = 1 << 20 /* a bucket's largest max_length */
};

/* A model for one entry point of an artefact. */
typedef struct mdotc_entry {
    size_t struct_size;
    const char *name;       /* entry name; "predict" by convention */
    const char *model_path; /* an ONNX file */
} mdotc_entry;

/* The text is valid during the call only. `done` counts the finished steps, of `total`. */
typedef void (*mdotc_progress_fn)(void *user, const char *step, size_t done, size_t total);
/* Receives a text, which is valid during the call only. */
typedef void (*mdotc_message_fn)(void *user, const char *message);

typedef struct mdotc_options { /* zero selects every default */
    size_t struct_size;
    /* ascending lengths up to MDOTC_MAX_LENGTH. Empty: 32, 64, 128, 256, 512 and 1024, except those below min_length */
    const int64_t *buckets;
    size_t bucket_count; /* bucket count; 0 selects the default */
    /* "cpu" (every CPU ISA level), "cpu:x86-64-v3", …; "sm_90a" and other GPU architectures, "cuda" (those in use).
     * NULL: "cpu". If only GPUs are named, CPU code for every ISA level is added */
    const char *const *targets;
    size_t target_count; /* target count; 0 selects the default */
    /* precisions of the matrix kernels, separated by commas: "cuda=bf16" (fp16 on sm_75, which lacks bf16),
     * "cuda=fp32", "cpu=fp32", "cpu=bf16" (on a CPU without bf16, only the weights are bf16). "bf16" without a kind
     * means both kinds. Several precisions for one kind give code in each; the first is used unless the caller of open
     * selects another. NULL: "cuda=bf16,cpu=fp32". All of them accumulate in f32 */
    const char *kernel_precision;
    /* for models with several symbolic dimensions: bind all except one. An unbound dimension that is always the leading
     * one (a batch) is bound to 1 with a warning */
    const mdot_dim_binding *dims;
    size_t dim_count; /* binding count */
    const char *name; /* predictor name; NULL: the first model's file name less its suffix */
    /* a pass's name, or "import", "plan", "llvm", "asm", "cuda" (CUDA kernels as source), "ptxas" (NVIDIA's assembler
     * report on them). The text goes to `dump` */
    const char *dump_pass;
    mdotc_message_fn dump;      /* receives the text that dump_pass selects; may be NULL */
    mdotc_message_fn warning;   /* called for each warning; may be NULL */
    mdotc_progress_fn progress; /* called after each compilation step; may be NULL */
    void *user;                 /* passed to the callbacks */
    /* omit buckets from the first one on that the model refuses, with a warning. Otherwise such a bucket is an error */
    bool allow_dropped;
    /* shortest length, for models with a minimum (for example TopK of 8 elements); 0: 1. A shorter call is
     * OUT_OF_RANGE. Default buckets below it are omitted */
    int64_t min_length;
} mdotc_options;

/* Compiles the entries into one artefact. The file appears only when it is complete, because it is written under
 * another name in the same folder and then renamed.
 *
 * A GPU architecture requires NVRTC; TOOLCHAIN names the package to install. Only Transformer encoders get GPU code,
 * and only for architectures with enough resources for the kernels. Otherwise a warning is issued and the artefact runs
 * on CPUs.
 *
 * LLVM and the linker run in child processes. If a process fails to start, the status is TOOLCHAIN, or OUT_OF_MEMORY
 * for lack of memory.
 *
 * @param entries entry points and models
 * @param entry_count number of entries, at least 1
 * @param artefact_path the artefact's file name; an existing file is replaced
 * @param options NULL selects all defaults
 * @errors NOT_FOUND, IO; MALFORMED for invalid ONNX; UNSUPPORTED lists every unsupported operator with its node;
 *     INVALID_ARGUMENT for an option; TOOLCHAIN if LLVM, the linker or NVRTC fails; OUT_OF_MEMORY
 * @threads any, each with another artefact_path */
mdot_status mdotc_compile(const mdotc_entry *entries, size_t entry_count, const char *artefact_path,
                          const mdotc_options *options, mdot_error *err);

/* Worst difference for one bucket on one CPU ISA level or GPU, over full and partial lengths and several random
 * inputs: at the element whose error is the greatest part of its limit. Both are relative to the element's scale, which
 * is the greatest magnitude of its column (the output's last dimension) times the row's greatest share of that. */
typedef struct mdotc_verify_row {
    size_t struct_size; /* set by the library to its own struct size */
    const char *entry;  /* entry name */
    const char *level;  /* for example "x86-64-v4" or "cuda:0" */
    /* false also if an output is entirely NaN on random inputs or on jobs, because its values are unverifiable then */
    bool passed;
    int64_t max_length;   /* the bucket's largest length; 0 for an entry that has no length */
    int64_t worst_length; /* length at the worst error */
    double worst_error;   /* relative error of that element */
    double bound;         /* limit for worst_error */
} mdotc_verify_row;

/* A verification's inputs and tolerance. */
typedef struct mdotc_verify_options {
    size_t struct_size;
    const mdot_dim_binding *dims; /* same bindings as in the compilation */
    size_t dim_count;             /* binding count */
    const char *entry;            /* entry name; NULL: the only entry, or "predict" */
    /* bound of the relative error, up to 1; 0: 1e-4. It is higher where rounding changes the model's own results by
     * more on the same inputs: in f32, or with the factors of every matmul rounded for bf16 or fp16 kernels */
    double tolerance;
    uint64_t seed;                                        /* seed for random inputs */
    void (*row)(void *user, const mdotc_verify_row *row); /* called for each row; may be NULL */
    /* receives a warning for CUDA code without a suitable GPU in this machine, and for infinite or NaN outputs of the
     * model */
    mdotc_message_fn warning;
    void *user;
    /* folder with input_0.pb, input_1.pb, … (TensorProto, as in ONNX's tests) to verify on. Use it for models that
     * accept only certain values; NULL: random inputs */
    const char *inputs;
    /* Verify on real jobs' features instead of random inputs: those of mdot_predict for jobs[i] under configurations[i]
     * (mdot_job_inputs). Excludes `inputs`. */
    const struct mdot_job *const *jobs;
    const struct mdot_configuration *configurations; /* each job's configuration */
    size_t job_count;                                /* jobs and configurations in the arrays; 0: random inputs */
} mdotc_verify_options;

/* Compares an artefact's code with a double-precision evaluation of the model, for every CPU ISA level of this machine,
 * and for the first GPU if the artefact has code for it. The result is OK if the comparison ran.
 *
 * @param artefact_path the artefact's file name
 * @param model_path the ONNX model's file name
 * @param options NULL selects all defaults
 * @param out_passed receives true if every row passed
 * @errors those of mdot_predictor_open and mdotc_compile; DEVICE if the GPU failed during the comparison
 * @threads any */
mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err);

/* A check's result. */
typedef enum mdotc_check_result {
    MDOTC_CHECK_PASS,       /* all outputs are within the tolerance */
    MDOTC_CHECK_FAIL,       /* an output differs by more */
    MDOTC_CHECK_UNSUPPORTED /* the compiler lacks a model operator */
} mdotc_check_result;

/* Where a check runs, and its tolerance. */
typedef struct mdotc_check_options {
    size_t struct_size;
    const char *level;         /* CPU ISA level to run on; NULL: the best of this machine */
    double relative_tolerance; /* 0: 1e-4; |got - want| <= absolute + relative * |want|, which is ONNX's own rule */
    double absolute_tolerance; /* 0: 1e-6 */
} mdotc_check_options;

/* Findings of a check. */
typedef struct mdotc_check_report {
    size_t struct_size;
    mdotc_check_result result; /* PASS only if every data set passed */
    double worst_error;        /* largest |got - want| / max(|want|, 1) over all floating-point outputs */
    size_t data_sets;          /* number of test_data_set_* folders that ran */
    /* FAIL: the output and the element. UNSUPPORTED: the operators. PASS: inputs compiled in as constants, because
     * these contents determine shapes */
    char detail[1024];
} mdotc_check_report;

/* Compiles DIRECTORY/model.onnx and runs every test_data_set_*: it feeds input_k.pb and compares the results with
 * output_k.pb. The input shapes bind the model; if one dimension is symbolic, one bucket is compiled per length. The
 * result is OK with a report, also if outputs differ.
 *
 * @param directory one test directory of ONNX
 * @param options NULL selects all defaults
 * @param out_report receives the result
 * @errors any, if the directory is unreadable
 * @threads any */
mdot_status mdotc_check(const char *directory, const mdotc_check_options *options, mdotc_check_report *out_report,
                        mdot_error *err);

MDOT_END_DECLARATIONS
#endif
