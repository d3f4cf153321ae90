/* workplace.h — the private folder beside an output that the linker works in. */
#ifndef CG_WORKPLACE_H
#define CG_WORKPLACE_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef enum cg_work_file {
    CG_DATA_OBJECT,
    CG_CODE_OBJECT,
    CG_EXPORT_MAP,
    CG_LINKER_WORDS,
    CG_LINKED,
    CG_WORK_FILE_COUNT
} cg_work_file;

typedef struct cg_workplace {
    char *directory;
    char *file[CG_WORK_FILE_COUNT];
    int lock; /* the directory, and a lock on it as long as its process lives */
} cg_workplace;

/* Makes one beside `path`, and removes those there that killed compilations have left behind, as well as temporary
 * files that killed processes have (base/left.h). Strings are the arena's. */
mdot_status cg_workplace_open(const char *path, ir_arena *arena, cg_workplace *out, mdot_error *err);
/* Removes it with all files in it, a linker's own, too. */
void cg_workplace_close(const cg_workplace *w);

#endif
