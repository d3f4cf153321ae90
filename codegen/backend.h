/* backend.h — a backend makes images of one kind. It is a table of data and functions: the values of --target and
 * --kernel-precision that it accepts, and the functions that turn plans into its images. compiler/ and the artefact
 * writer loop over cg_backends and refer to none by name. */
#ifndef CG_BACKEND_H
#define CG_BACKEND_H

#include "base/text.h"
#include "codegen/codegen.h"
#include "codegen/machine.h"
#include "codegen/table_builder.h"

typedef struct cg_data_section {
    const char *name, *symbol; /* the symbol is global and marks the section's start */
    const void *bytes;
    size_t size_bytes, alignment;
} cg_data_section;

/* Each section starts on its own page. Therefore processes share a section's pages, separately from those that only
 * a GPU reads. */
enum { CG_PAGE_BYTES = 4096, CG_MAX_SECTIONS = 2 };

/* The images that a backend has made. Zero-initialised: empty. */
typedef struct cg_image_set {
    void *images; /* the backend's own, for describe and done */
    int image_count;
    const char *toolchain; /* name of the compiler, in the arena, for example "LLVM 19.1.7" */
    cg_data_section section[CG_MAX_SECTIONS];
    int section_count;
    const cg_machine *machine; /* CPU machine of `code`, an object file that the artefact is linked with */
    const void *code;
    size_t code_bytes;
} cg_image_set;

typedef struct cg_dump { /* text that the backend can print about its work */
    const char *name;
    bool needs_target; /* produced while making images, so it needs a target */
} cg_dump;

typedef struct cg_backend {
    const char
        *name; /* for example "cpu": the --target name of the default targets, and the --kernel-precision prefix */
    const char *example;  /* example of a target, for example "sm_90a" */
    mdot_image_kind kind; /* kind of its images */
    bool is_default;      /* every artefact has images of it: the default targets, if the caller names none */
    const cg_dump *dumps; /* terminated by an entry whose name is NULL */
    cg_compute computes[CG_COMPUTES]; /* values of --kernel-precision; the first is the default */
    int compute_count;

    /* Sets the targets of a name, ascending, for a requested precision `compute`. A target that lacks it takes its
     * nearest one. Returns NOT_FOUND if the name is unknown to this backend, and INVALID_ARGUMENT if no near
     * precision exists. */
    mdot_status (*parse)(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                         int *out_count, mdot_error *err);
    /* Adds the names that `parse` accepts, except open-ended families. */
    void (*list)(bs_join *names);

    /* Makes images for the options' targets of this backend (cg_targets_of), in their order. It makes fewer, with a
     * warning, in the cases that the backend's header lists. Call `done` in either case. */
    mdot_status (*make_images)(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_image_set *out_set, mdot_error *err);
    /* Writes the images' records into the table, the first at `at`, and the fields that they need into the head. */
    void (*describe)(const void *images, const cg_entry *entries, int entry_count, cg_table *table, uint32_t at,
                     mdot_abi_table *head);
    void (*done)(void *images); /* accepts NULL */
} cg_backend;

#endif
