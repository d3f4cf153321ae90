/* mdotc.h — compile trained predictors (ONNX) into artefacts, and check compiled code against the reference
 * evaluator.
 *
 * The library is libmdotc. Functions may be called from several threads at once on different files. The library
 * prints to no stream: warnings and progress go to callbacks. Strings passed in are read during the call only.
 */
#ifndef MDOTC_H
#define MDOTC_H

#include "mdot_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Returns the version of libmdotc as text.
 *
 * @return for example "0.3.0"; static
 */
const char *mdotc_version(void);
/* Returns the version of libmdotc as a number, for comparison with MDOT_VERSION_NUMBER.
 *
 * @return 1000000 * major + 1000 * minor + patch: 0.3.0 is 3000
 */
uint32_t mdotc_version_number(void);

enum {
    MDOTC_MAX_LENGTH = 1 << 20 /* largest max_length of a bucket */
};

/* A model that becomes an entry point of an artefact. */
typedef struct mdotc_entry {
    size_t struct_size;
    const char *name;       /* name of the entry point; "predict" by convention */
    const char *model_path; /* path of an ONNX file */
} mdotc_entry;

/* The text is valid during the call only. `done` counts the finished steps, of `total`. */
typedef void (*mdotc_progress_fn)(void *user, const char *step, size_t done, size_t total);
/* Receives a text, which is valid during the call only. */
typedef void (*mdotc_message_fn)(void *user, const char *message);

typedef struct mdotc_options { /* zero selects the default of every field */
    size_t struct_size;
    const int64_t *buckets; /* ascending lengths up to MDOTC_MAX_LENGTH. Empty: 32, 64, 128, 256, 512 and 1024, except
                             * those that are too long or too short for the model */
    size_t bucket_count;    /* number of buckets; 0 selects the default */
    const char *const *targets; /* "cpu" (every CPU ISA level), "cpu:x86-64-v3", …; "sm_90a" and other GPU
                                 * architectures, "cuda" (those in use). NULL: "cpu". If only GPUs are named, CPU code
                                 * for every ISA level is added */
    size_t target_count;        /* number of targets; 0 selects the default */
    const char
        *kernel_precision; /* precisions of the matrix kernels, separated by commas: "cuda=bf16" (fp16 on sm_75, which
                          * lacks bf16), "cuda=fp32", "cpu=fp32", "cpu=bf16" (on a CPU that lacks bf16, only the
                          * weights are bf16). "bf16" without a kind means both kinds. If several are given for one
                          * kind, each target gets code in all of them; the first is used unless the caller of open
                          * selects another. NULL: "cuda=bf16,cpu=fp32". All of them accumulate in f32 */
    const mdot_dim_binding *dims; /* for models with several symbolic dimensions: bind all except one. An unbound
                                   * dimension that is always the leading one (a batch) is bound to 1 with a warning */
    size_t dim_count;             /* number of bindings */
    const char *name;             /* name of the predictor; NULL: the first model's file name less its suffix */
    const char *dump_pass; /* name of a pass, or "import", "plan", "llvm", "asm", "cuda" (source of the CUDA kernels),
                            * "ptxas" (report of NVIDIA's assembler on them). The text goes to `dump` */
    mdotc_message_fn dump; /* receives the text that dump_pass selects; may be NULL */
    mdotc_message_fn warning;   /* called for each warning; may be NULL */
    mdotc_progress_fn progress; /* called after each step of the compilation; may be NULL */
    void *user;                 /* passed to the callbacks */
    int64_t min_length; /* shortest length of a call, for models that need one (for example TopK of 8 elements); 0: 1. A
                     * shorter call is OUT_OF_RANGE. Default buckets below it are omitted */
} mdotc_options;

/* Compiles the entries into one artefact. The file appears only when it is complete, because it is written under
 * another name in the same folder and then renamed.
 *
 * A GPU architecture requires NVRTC; TOOLCHAIN names the package to install. A model gets GPU code only if its plan is
 * that of a Transformer encoder, and only for architectures that have enough resources for its kernels. Otherwise a
 * warning is issued and the artefact runs on CPUs.
 *
 * LLVM and the linker run in child processes. If a process fails to start, the status is TOOLCHAIN, or OUT_OF_MEMORY
 * if memory is the reason.
 *
 * @param entries the entry points and their models
 * @param entry_count number of entries, at least 1
 * @param artefact_path file name of the artefact; an existing file is replaced
 * @param options NULL selects all defaults
 * @errors NOT_FOUND, IO; MALFORMED for invalid ONNX; UNSUPPORTED lists every unsupported operator with its node;
 *     INVALID_ARGUMENT for an option; TOOLCHAIN if LLVM, the linker or NVRTC fails; OUT_OF_MEMORY
 * @threads any, each with another artefact_path
 */
mdot_status mdotc_compile(const mdotc_entry *entries, size_t entry_count, const char *artefact_path,
                          const mdotc_options *options, mdot_error *err);

/* Worst difference for one bucket on one CPU ISA level or GPU, over full and partial lengths and several random
 * inputs. Relative error: max |got - want| / max(1e-3, max |want|) over one output. */
typedef struct mdotc_verify_row {
    size_t struct_size;   /* set by the library to its own size of the struct */
    const char *entry;    /* name of the entry point */
    const char *level;    /* for example "x86-64-v4" or "cuda:0" */
    bool passed;          /* false also if an output is entirely NaN on random inputs or on jobs, because its values are
                  * unverifiable then */
    int64_t max_length;   /* the bucket's largest length; 0 for an entry that has no length */
    int64_t worst_length; /* length of the worst error */
    double worst_error;   /* largest relative error of all outputs */
    double bound;         /* limit of worst_error */
} mdotc_verify_row;

/* Inputs and tolerance of a verification. */
typedef struct mdotc_verify_options {
    size_t struct_size;
    const mdot_dim_binding *dims; /* same bindings as in the compilation */
    size_t dim_count;             /* number of bindings */
    const char *entry;            /* name of the entry point; NULL: the only entry, or "predict" */
    double tolerance;             /* bound of the relative error; 0: 1e-4, and more for kernels that multiply bf16 or
                                   * fp16. Their bound is four times the error that the evaluator makes on the same
                                   * inputs when it rounds the factors of every matmul, but at least one such
                                   * rounding */
    uint64_t seed;                /* seed of the random inputs */
    void (*row)(void *user, const mdotc_verify_row *row); /* called for each row; may be NULL */
    mdotc_message_fn warning; /* receives a warning for CUDA code that no GPU of this machine can run, and for
                               * infinite or NaN outputs of the model */
    void *user;
    const char *inputs; /* folder with input_0.pb, input_1.pb, … (TensorProto, as in ONNX's tests) to verify on. Use
                         * it for models that accept only certain values; NULL: random inputs */
    /* Verify on features of real jobs instead of random inputs. The inputs are those that mdot_predict would pass to
     * the entry for jobs[i] under configurations[i] (mdot_job_inputs). Excludes `inputs`. */
    const struct mdot_job *const *jobs;
    const struct mdot_configuration *configurations; /* configuration of each job */
    size_t job_count;                                /* number of jobs and configurations; 0: random inputs */
} mdotc_verify_options;

/* Compares an artefact's code with a double-precision evaluation of the model. It covers every CPU ISA level that this
 * machine can run, and the first GPU if the artefact has code for it. The result is OK if the comparison ran.
 *
 * @param artefact_path file name of the artefact
 * @param model_path file name of its ONNX model
 * @param options NULL selects all defaults
 * @param out_passed receives true if every row passed
 * @errors those of mdot_predictor_open and mdotc_compile; DEVICE if the GPU failed during the comparison
 * @threads any
 */
mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err);

/* Result of a check. */
typedef enum mdotc_check_result {
    MDOTC_CHECK_PASS,       /* all outputs are within the tolerance */
    MDOTC_CHECK_FAIL,       /* an output differs by more */
    MDOTC_CHECK_UNSUPPORTED /* the compiler lacks an operator of the model */
} mdotc_check_result;

/* Where a check runs, and its tolerance. */
typedef struct mdotc_check_options {
    size_t struct_size;
    const char *level;         /* CPU ISA level to run on; NULL: the best of this machine */
    double relative_tolerance; /* 0: 1e-4; |got - want| <= absolute + relative * |want|, which is ONNX's own rule */
    double absolute_tolerance; /* 0: 1e-6 */
} mdotc_check_options;

/* What a check found. */
typedef struct mdotc_check_report {
    size_t struct_size;
    mdotc_check_result result; /* PASS only if every data set passed */
    double worst_error;        /* largest |got - want| / max(|want|, 1) over all floating-point outputs */
    size_t data_sets;          /* number of test_data_set_* folders that ran */
    char detail[1024]; /* FAIL: the output and the element. UNSUPPORTED: the operators. PASS: the inputs that were
                         * compiled in as constants because their contents determine shapes */
} mdotc_check_report;

/* Compiles DIRECTORY/model.onnx and runs every test_data_set_*: it feeds input_k.pb and compares the results with
 * output_k.pb. The model is bound to the shapes of the inputs; if one dimension is symbolic, one bucket is compiled
 * per length. The result is OK with a report, also if outputs differ.
 *
 * @param directory a directory of ONNX's tests
 * @param options NULL selects all defaults
 * @param out_report receives the result
 * @errors any, if the directory is unreadable
 * @threads any
 */
mdot_status mdotc_check(const char *directory, const mdotc_check_options *options, mdotc_check_report *out_report,
                        mdot_error *err);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
