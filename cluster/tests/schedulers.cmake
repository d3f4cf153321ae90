# mdot_schedulers_test(NAME FOLDER LABEL TEST.py MODULE…): a test of cluster/FOLDER in Python with packages from PyPI. It skips
# with the reason if a module is missing. The labels are `schedulers` and LABEL.
set(MDOT_SCHEDULERS_PYTHON "" CACHE FILEPATH "Python with tests/requirements.txt; empty: python3")
function(mdot_schedulers_test name folder label test)
  set(python ${MDOT_SCHEDULERS_PYTHON})
  if(NOT python)
    find_program(PYTHON3 python3)
    set(python ${PYTHON3})
  endif()
  mdot_test(
    ${name}
    LABELS schedulers ${label}
    TIMEOUT 900
    ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/${folder}:${PROJECT_SOURCE_DIR}/scheduler_python:${MDOT_PYTHON}"
                PYTHONDONTWRITEBYTECODE=1
                OMP_NUM_THREADS=1
                "MDOT_LIBRARIES=$<TARGET_FILE_DIR:mdot::mdot>:$<TARGET_FILE_DIR:mdot::mdotjob>"
                "MDOT_PREDICTOR=${mdot_PREDICTOR}"
                "MDOT_CLI=${mdot_COMMAND}"
                "MDOT_EXAMPLE_JOBS=${mdot_JOBS}"
    COMMAND ${PROJECT_SOURCE_DIR}/tests/python/run.sh "${python}" ${CMAKE_CURRENT_SOURCE_DIR}/${test} ${ARGN})
endfunction()
