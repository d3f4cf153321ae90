/* default_predictor.c — opens the predictor and loads a calibration. The default predictor ships with mdot and is found
 * relative to the executable. */
#include "base/file.h"
#include "base/training/job_argument.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIPPED "/share/mdot/predictor.mdot"

/* Returns the path of the file beside this executable's folder, malloc'ed; NULL if the kernel does not report the
 * executable. */
static char *beside_executable(void)
{
    char executable[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    if (length <= 0) return NULL;
    executable[length] = '\0';
    for (int level = 0; level < 2; level++) { /* removes the executable's name and its folder */
        char *slash = strrchr(executable, '/');
        if (slash == NULL) return NULL;
        *slash = '\0';
    }
    char *path = NULL;
    return asprintf(&path, "%s" SHIPPED, executable) < 0 ? NULL : path;
}

mdot_status predict_find_default(char **out_path, mdot_error *err)
{
    const char *chosen = secure_getenv("MDOT_PREDICTOR");
    bool is_chosen = chosen != NULL && *chosen != '\0';
    char *path = is_chosen ? strdup(chosen) : beside_executable();
    if (path == NULL)
        return mdot_fail(err, MDOT_NOT_FOUND, "cannot find the folder where mdot is installed: use --model FILE.mdot");
    if (is_chosen || access(path, R_OK) == 0) {
        *out_path = path;
        return MDOT_OK;
    }
    mdot_status status =
        mdot_fail(err, MDOT_NOT_FOUND,
                  "cannot open the default predictor %s (%s): set --model or MDOT_PREDICTOR to a compiled "
                  "predictor; `mdot compile PREDICTOR.onnx -o FILE.mdot` makes one",
                  path, strerror(errno));
    free(path);
    return status;
}

mdot_status predict_open_model(const char *path, const char *output, mdot_predictor **out_predictor,
                               mdot_context **out_context, mdot_error *err)
{
    char *shipped = NULL;
    mdot_status status = path == NULL ? predict_find_default(&shipped, err) : MDOT_OK;
    if (shipped != NULL) path = shipped;
    if (status == MDOT_OK && output != NULL) status = bs_check_replaces(output, path, err);
    if (status == MDOT_OK) status = mdot_predictor_open(path, NULL, out_predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(*out_predictor, out_context, err);
    free(shipped);
    return status;
}

mdot_status predict_load_calibration(const char *path, const char *predictor, mdot_calibration **out_calibration,
                                     mdot_error *err)
{
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_status status = mdot_calibration_load(path, out_calibration, err);
    if (status == MDOT_OK) status = mdot_calibration_get_info(*out_calibration, &info);
    if (status != MDOT_OK || strcmp(info.predictor, predictor) == 0) return status;
    return mdot_fail(err, MDOT_INCOMPATIBLE,
                     "%s: the calibration belongs to predictor \"%s\", but the predictor is \"%s\"", path,
                     info.predictor, predictor);
}
