/* temp_dir.h — the private temporary folder beside an output, for the linker. */
#ifndef CG_TEMP_DIR_H
#define CG_TEMP_DIR_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef enum cg_work_file {
    CG_DATA_OBJECT,
    CG_CODE_OBJECT,
    CG_EXPORT_MAP,
    CG_LINKER_OUTPUT,
    CG_LINKED,
    CG_WORK_FILE_COUNT
} cg_work_file;

typedef struct cg_temp_dir {
    char *directory;
    char *file[CG_WORK_FILE_COUNT];
    int lock; /* descriptor of the directory, which holds a lock on it for the life of the process */
} cg_temp_dir;

/* Creates a folder beside `path`. Also removes folders there that killed compilations abandoned, and temporary files
 * that killed processes abandoned (base/file.h). Strings are in the arena. */
mdot_status cg_temp_dir_open(const char *path, ir_arena *arena, cg_temp_dir *out, mdot_error *err);
/* Removes the folder with all files in it, including the linker's own. */
void cg_temp_dir_close(const cg_temp_dir *w);

#endif
