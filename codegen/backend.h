/* backend.h — what makes images of one kind, as a table of data and functions: what --target and --compute may say of
 * it, and how plans become its images. compiler/ and the writer of artefacts loop over cg_backends and know none by
 * name.
 */
#ifndef CG_BACKEND_H
#define CG_BACKEND_H

#include "base/join.h"
#include "codegen/codegen.h"
#include "codegen/machine.h"
#include "codegen/table_builder.h"

typedef struct cg_data_section {
    const char *name, *symbol; /* the symbol is global and stands at the section's start */
    const void *bytes;
    size_t size_bytes, alignment;
} cg_data_section;

/* Sections begin on pages of their own, so that processes share all of one, and none with what only a GPU reads. */
enum { CG_PAGE_BYTES = 4096, CG_MAX_SECTIONS = 2 };

/* The images that a backend has made; zero: none. */
typedef struct cg_made {
    void *images; /* the backend's own, for describe and done */
    int image_count;
    const char *toolchain; /* what made them, in the arena: "LLVM 19.1.7" */
    cg_data_section section[CG_MAX_SECTIONS];
    int section_count;
    const cg_machine *machine; /* of `code`, an object file that the artefact is linked with; a CPU's */
    const void *code;
    size_t code_bytes;
} cg_made;

typedef struct cg_dump { /* text that the backend can show of its work */
    const char *name;
    bool needs_target; /* it comes of the making of images: without a target there is none */
} cg_dump;

typedef struct cg_backend {
    const char *name;     /* "cpu": what --target calls the usual targets, and --compute whose arithmetic it is */
    const char *example;  /* of a target: "sm_90a" */
    mdot_image_kind kind; /* of its images */
    bool stands_behind;   /* every artefact has images of it: where none of its targets is named, the usual ones */
    const cg_dump *dumps; /* up to one without a name */
    cg_compute computes[CG_COMPUTES]; /* what --compute may ask for, the first where nothing is asked */
    int compute_count;

    /* The targets that a name means, ascending, where `compute` is asked for: a target without it takes the nearest
     * that it has. NOT_FOUND: the name is none of this backend's. INVALID_ARGUMENT: nothing near. */
    mdot_status (*parse)(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                         int *out_count, mdot_error *err);
    /* Adds the names that parse knows, less those without number. */
    void (*list)(bs_join *names);

    /* Images for the options' targets of this backend (cg_targets_of), in their order; fewer, with a warning, where the
     * backend's header says so. End with `done` in either case. */
    mdot_status (*make_images)(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_made *out_made, mdot_error *err);
    /* Puts the images' records into the table, the first at `at`, and into the head what they need there. */
    void (*describe)(const void *images, const cg_entry *entries, int entry_count, cg_table *table, uint32_t at,
                     mdot_abi_table *head);
    void (*done)(void *images); /* NULL is allowed */
} cg_backend;

enum { CG_BACKENDS = 2 };
extern const cg_backend *const cg_backends[CG_BACKENDS]; /* ascending in kind */

/* ---- Lists of targets -------------------------------------------------------------------------------------------- */

/* Puts a target into a list of `*count`, which has room for MDOT_ABI_MAX_IMAGES: after lesser ones, and after those
 * that differ from it in the arithmetic alone; nothing where it is there. INVALID_ARGUMENT when the list is full. */
mdot_status cg_add_target(cg_target *targets, int *count, cg_target target, mdot_error *err);
/* Those of one kind stand side by side. */
const cg_target *cg_targets_of(const cg_options *options, mdot_image_kind kind, int *out_count);

#endif
